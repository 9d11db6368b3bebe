"""What a learner has solved, kept over restarts in one JSON file. Trouble with it is told in a line, never raised."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

DAMAGED = (ValueError, RecursionError)  # what reading raises: not UTF-8, not JSON, not ours
PATIENCE = 3  # seconds to wait for another kernel's writing


def path() -> Path:
    """The file: what MHSA_PROGRESS names, else progress.json in the user's state folder. Raises OSError for no place.

    A link is followed, so that what it points to is written and not the link replaced.
    """
    named = os.environ.get("MHSA_PROGRESS")
    try:
        if not named:
            from platformdirs import user_state_path  # import mhsa.exercises does not need it

            named = user_state_path("mhsa", appauthor=False) / "progress.json"
        return Path(os.path.realpath(Path(named).expanduser()))
    except RuntimeError as error:  # no home folder; ~nobody: no such user
        raise OSError(str(error)) from None


def solved(lesson: str) -> list[str]:
    """Names of the exercises of `lesson` ("lesson03") that are solved, first solved first."""
    return _read()["exercises"].get(lesson, [])


def record(lesson: str, exercise: str) -> None:
    """Keep that an exercise is solved."""

    def add(data):
        names = data["exercises"].setdefault(lesson, [])
        if exercise not in names:
            names.append(exercise)

    _change(add)


def quiz_score(lesson: str) -> tuple[int, int] | None:
    """(right answers, questions) of the best try, or None."""
    score = _read()["quizzes"].get(lesson)
    return (score[0], score[1]) if score else None


def record_quiz(lesson: str, right: int, questions: int) -> None:
    """Keep a quiz's score if it is the best so far."""

    def keep_best(data):
        scores = [data["quizzes"].get(lesson, [0, questions]), [right, questions]]
        data["quizzes"][lesson] = max(scores, key=lambda score: score[0] / score[1])

    _change(keep_best)


def reset() -> None:
    """Forget everything. Asks nothing: the caller has asked."""
    _change(dict.clear)


def _empty() -> dict:
    return {"exercises": {}, "quizzes": {}}


def _check(data) -> None:
    """Raise ValueError unless data has the form that _empty() begins."""
    right = (
        isinstance(data, dict)
        and all(isinstance(data.get(part), dict) for part in _empty())
        and all(
            isinstance(names, list) and all(isinstance(name, str) for name in names)
            for names in data["exercises"].values()
        )
        and all(
            isinstance(score, list)
            and len(score) == 2
            and all(type(n) is int for n in score)
            and 0 <= score[0] <= score[1]
            and score[1] > 0
            for score in data["quizzes"].values()
        )
    )
    if not right:
        raise ValueError("not the expected form")


def _load(file: Path) -> dict:
    """The file's content. Raises OSError if there is one that cannot be read, another error if it is damaged."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _empty()
    _check(data)
    return data


def _read() -> dict:
    try:
        return _load(path())
    except DAMAGED:
        return _change(lambda data: None)  # it sets the file aside
    except OSError as error:
        _tell("cannot be read", error.strerror or error)
        return _empty()


def _change(change: Callable[[dict], object]) -> dict:
    """Read, change, write to a new file and put it in place of the old one, so that no moment leaves half a file.

    Only one kernel at a time does so, or one would write over what the other has just added. The system unlocks for a
    kernel that is killed.
    """
    from filelock import FileLock, Timeout  # as platformdirs above

    try:
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=PATIENCE):
            data = _load_or_set_aside(file)
            change(data)
            _write(file, _empty() | data)
            return data
    except Timeout:
        _tell("could not be saved", "another kernel keeps it locked")
    except OSError as error:
        _tell("could not be saved", error.strerror or error)
    return _empty()


def _tell(trouble: str, reason: object) -> None:
    try:
        place = os.environ.get("MHSA_PROGRESS") or path()
    except OSError:
        place = "set MHSA_PROGRESS to a file of yours"
    print(f"Your progress {trouble} ({reason}): {place}")


def _load_or_set_aside(file: Path) -> dict:
    try:
        return _load(file)
    except DAMAGED:
        names = (f"{file.name}.damaged{number}" for number in itertools.chain([""], itertools.count(2)))
        aside = next(aside for aside in map(file.with_name, names) if not aside.exists())  # the earlier ones stay
        os.replace(file, aside)
        print(f"Your progress could not be read: the file is damaged. It is kept as {aside}; counting starts afresh.")
        return _empty()


def _write(file: Path, data: dict) -> None:
    if file.exists() and not os.access(file, os.W_OK):  # its folder alone would let it be replaced
        raise PermissionError("the file is read-only")
    new = file.with_name(f"{file.name}.new")  # nobody else writes it meanwhile: see _change()
    try:
        new.unlink(missing_ok=True)  # of a kernel that was killed
        with open(new, "x", encoding="utf-8") as stream:  # and never through a link that lies there
            json.dump(data, stream, indent=1)
        os.replace(new, file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
