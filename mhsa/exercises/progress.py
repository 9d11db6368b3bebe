"""What a learner has solved, kept over restarts in one JSON file. Trouble with it is told in a line, never raised."""
import itertools
import json
import os
import tempfile
from pathlib import Path


def path() -> Path:
    """The file: what MHSA_PROGRESS names, else progress.json in the user's state folder. Raises OSError for no place.

    A link is followed, so that what it points to is written and not the link replaced.
    """
    named = os.environ.get("MHSA_PROGRESS")
    if not named:
        from platformdirs import user_state_path                   # import mhsa.exercises does not need it
        named = user_state_path("mhsa", appauthor=False) / "progress.json"
    try:
        return Path(os.path.realpath(Path(named).expanduser()))
    except RuntimeError as error:                                  # ~nobody: no such user
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
    right = (isinstance(data, dict) and all(isinstance(data.get(part), dict) for part in _empty())
             and all(isinstance(names, list) and all(isinstance(name, str) for name in names)
                     for names in data["exercises"].values())
             and all(isinstance(score, list) and len(score) == 2 and all(type(n) is int for n in score) and score[1] > 0
                     for score in data["quizzes"].values()))
    if not right:
        raise ValueError("not the expected form")


def _load() -> dict:
    """The file's content; a damaged file is set aside. Raises OSError if there is one that cannot be read."""
    file = path()
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        _check(data)
        return data
    except FileNotFoundError:
        return _empty()
    except (ValueError, RecursionError):                           # not UTF-8, not JSON, or not ours
        names = (f"{file.name}.damaged{number}" for number in itertools.chain([""], itertools.count(2)))
        aside = next(aside for aside in map(file.with_name, names) if not aside.exists())   # the earlier ones stay
        os.replace(file, aside)
        print(f"Your progress could not be read: the file is damaged. It is kept as {aside}; counting starts afresh.")
        return _empty()


def _read() -> dict:
    try:
        return _load()
    except OSError as error:
        print(f"Your progress cannot be read ({error.strerror or error}): {_name()}")
        return _empty()


def _change(change) -> None:
    """Read, change, write to a new file and put it in place of the old one, so that no moment leaves half a file."""
    try:
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        data = _load()
        change(data)
        handle, new = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".new")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(_empty() | data, stream, indent=1)
            os.replace(new, file)
        except BaseException:
            os.unlink(new)
            raise
    except OSError as error:
        print(f"Your progress could not be saved ({error.strerror or error}): {_name()}")


def _name() -> str:
    return os.environ.get("MHSA_PROGRESS") or str(path())
