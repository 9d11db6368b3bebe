"""Progress is kept over restarts, and trouble with its file is a line to read, never an error."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from helpers import ALONE, AS_A_USER

from mhsa.exercises import progress


@pytest.fixture
def file(tmp_path, monkeypatch):
    file = tmp_path / "new folder" / "progress.json"
    monkeypatch.setenv("MHSA_PROGRESS", str(file))
    return file


def test_nothing_is_solved_at_first_and_reading_makes_no_file(file, capsys):
    assert progress.solved("lesson01") == [] and progress.quiz_score("lesson01") is None
    assert not file.parent.exists() and capsys.readouterr().out == ""


def test_exercises_are_kept_once_each_in_order(file):
    for name in ("WEIGHTS", "SCORES", "WEIGHTS"):
        progress.record("lesson01", name)
    progress.record("lesson03", "SPLIT")
    assert progress.solved("lesson01") == ["WEIGHTS", "SCORES"] and progress.solved("lesson03") == ["SPLIT"]


def another_kernel(code, before=()):
    """A process that does `import progress` and then the code."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", f"import os, progress\n{code}"],
        env=os.environ | ALONE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_progress_survives_a_restart(file):
    progress.record("lesson02", "JOIN")
    assert another_kernel("print(progress.solved('lesson02'))").communicate()[0] == "['JOIN']\n"


def test_the_best_quiz_score_is_kept(file):
    for right, questions in ((2, 5), (4, 5), (3, 5), (0, 5)):
        progress.record_quiz("lesson04", right, questions)
    assert progress.quiz_score("lesson04") == (4, 5) and progress.solved("lesson04") == []


def test_the_best_score_is_the_best_share_when_the_questions_change(file):
    progress.record_quiz("lesson04", 3, 5)
    progress.record_quiz("lesson04", 4, 11)  # more right answers, a smaller share
    assert progress.quiz_score("lesson04") == (3, 5)
    progress.record_quiz("lesson04", 2, 3)
    assert progress.quiz_score("lesson04") == (2, 3)


def test_a_first_score_of_nothing_is_kept(file):
    progress.record_quiz("lesson04", 0, 5)
    assert progress.quiz_score("lesson04") == (0, 5)


def test_reset_forgets_everything(file):
    progress.record("lesson01", "SCORES")
    progress.record_quiz("lesson01", 1, 2)
    progress.reset()
    assert progress.solved("lesson01") == [] and progress.quiz_score("lesson01") is None
    progress.record("lesson01", "WEIGHTS")
    assert progress.solved("lesson01") == ["WEIGHTS"]


DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b'{"exercises": 5, "quizzes": {}}',
    b'{"exercises": {}}',
    b'{"exercises": {"lesson01": "SCORES"}, "quizzes": {}}',
    b'{"exercises": {"lesson01": [1]}, "quizzes": {}}',
    b'{"exercises": {}, "quizzes": {"lesson01": [1]}}',
    b'{"exercises": {}, "quizzes": {"lesson01": [1, 0]}}',
    b'{"exercises": {}, "quizzes": {"lesson01": [9, 7]}}',
    b'{"exercises": {}, "quizzes": {"lesson01": [-1, 7]}}',
    b'{"exercises": {}, "quizzes": {"lesson01": [1%s, 7]}}' % (b"0" * 400),
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_set_aside(file, content, capsys):
    file.parent.mkdir()
    file.write_bytes(content)
    assert progress.solved("lesson01") == []
    told = capsys.readouterr().out
    assert told.startswith("Your progress could not be read: the file is damaged.") and told.count("\n") == 1
    assert file.with_name("progress.json.damaged").read_bytes() == content and progress.solved("lesson01") == []
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == ["SCORES"] and capsys.readouterr().out == ""


def test_a_second_damage_does_not_lose_the_first(file, capsys):
    file.parent.mkdir()
    for content in (b"one", b"two", b"three"):
        file.write_bytes(content)
        progress.solved("lesson01")
        assert capsys.readouterr().out.count("\n") == 1
    kept = {path.name: path.read_bytes() for path in file.parent.glob("*.damaged*")}
    assert kept == {f"progress.json.damaged{n}": word for n, word in (("", b"one"), (2, b"two"), (3, b"three"))}


def test_a_link_is_written_through(file, tmp_path):
    target = tmp_path / "elsewhere.json"
    file.parent.mkdir()
    file.symlink_to(target)
    progress.record("lesson01", "SCORES")
    assert file.is_symlink() and "SCORES" in target.read_text() and progress.solved("lesson01") == ["SCORES"]


def test_nothing_is_written_through_a_link_where_the_new_file_goes(file, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    file.parent.mkdir()
    file.with_name("progress.json.new").symlink_to(other)
    progress.record("lesson01", "SCORES")
    assert other.read_text() == "mine" and progress.solved("lesson01") == ["SCORES"]


def test_a_user_that_does_not_exist_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MHSA_PROGRESS", "~nobody-of-that-name/progress.json")
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == [] and not list(tmp_path.iterdir())
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 and all("~nobody-of-that-name/progress.json" in line for line in told)


def no_space(*args, **options):
    raise OSError(28, "No space left on device")


def names_beside(file):
    return {path.name for path in file.parent.iterdir()}


@pytest.mark.parametrize("target, name", [(os, "replace"), (json, "dump"), (Path, "mkdir")])
def test_a_full_disk_is_told_and_the_old_progress_stays(file, target, name, monkeypatch, capsys):
    progress.record("lesson01", "SCORES")
    before = file.read_bytes()
    monkeypatch.setattr(target, name, no_space)
    progress.record("lesson01", "WEIGHTS")
    assert capsys.readouterr().out == f"Your progress could not be saved (No space left on device): {file}\n"
    assert file.read_bytes() == before and names_beside(file) == {"progress.json", "progress.json.lock"}


def test_a_file_that_breaks_off_half_way_does_not_replace_the_old_one(file):
    """As on a full disk or beyond a quota: the system takes 20 bytes and no more."""
    progress.record("lesson01", "SCORES")
    before = file.read_bytes()
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
    said = another_kernel(limit + "progress.record('lesson01', 'WEIGHTS')").communicate()[0]
    assert said == f"Your progress could not be saved (File too large): {file}\n"
    assert file.read_bytes() == before and names_beside(file) == {"progress.json", "progress.json.lock"}


# Several kernels at once, and one that is killed


def test_of_what_several_kernels_record_at_once_nothing_is_lost(file):
    code = "print(flush=True); input()\nfor i in range(50): progress.record('lesson01', f'{os.getpid()} {i}')"
    kernels = [another_kernel(code) for _ in range(3)]
    for kernel in kernels:
        kernel.stdout.readline()  # all are ready
    for kernel in kernels:
        kernel.stdin.write("\n")
        kernel.stdin.flush()
    assert [kernel.communicate()[0] for kernel in kernels] == [""] * 3
    assert set(progress.solved("lesson01")) == {f"{kernel.pid} {i}" for kernel in kernels for i in range(50)}


def test_a_kernel_killed_while_it_writes_leaves_the_old_progress_and_no_lock(file, capsys):
    progress.record("lesson01", "SCORES")
    before = file.read_bytes()
    killed = another_kernel("os.replace = lambda *paths: os.kill(os.getpid(), 9)\nprogress.record('lesson01', 'SPLIT')")
    killed.communicate()
    assert killed.returncode == -9 and file.read_bytes() == before and len(names_beside(file)) == 3
    progress.record("lesson01", "WEIGHTS")
    assert progress.solved("lesson01") == ["SCORES", "WEIGHTS"] and capsys.readouterr().out == ""
    assert names_beside(file) == {"progress.json", "progress.json.lock"}


def test_a_kernel_that_does_not_unlock_is_told_of(file, monkeypatch, capsys):
    progress.record("lesson01", "SCORES")
    monkeypatch.setattr(progress, "PATIENCE", 0.1)
    with FileLock(f"{file}.lock"):
        progress.record("lesson01", "WEIGHTS")
        assert capsys.readouterr().out == f"Your progress could not be saved (another kernel keeps it locked): {file}\n"
        assert progress.solved("lesson01") == ["SCORES"]  # reading needs no lock
    progress.record("lesson01", "WEIGHTS")
    assert progress.solved("lesson01") == ["SCORES", "WEIGHTS"]


def test_a_damaged_file_is_set_aside_once_where_two_kernels_find_it(file, monkeypatch, capsys):
    """The other one has set it aside, and written what was solved, before this one has the lock."""
    file.parent.mkdir()
    file.write_bytes(b"{")
    load = progress._load

    def late(path):
        try:
            return load(path)
        finally:
            file.write_text(json.dumps({"exercises": {"lesson01": ["SCORES"]}, "quizzes": {}}))

    monkeypatch.setattr(progress, "_load", late)
    assert progress.solved("lesson01") == ["SCORES"] and capsys.readouterr().out == ""


# What may not be written. Root may write everything: it drops that right first


@pytest.mark.parametrize("what, reason", [("file", "the file is read-only"), ("folder", "Permission denied")])
def test_a_read_only_file_or_folder_is_told_and_left_as_it_is(file, what, reason):
    progress.record("lesson01", "SCORES")
    before, readonly = file.read_bytes(), file if what == "file" else file.parent
    Path(f"{file}.lock").unlink()
    readonly.chmod(0o555)
    code = "progress.record('lesson01', 'WEIGHTS'); print(progress.solved('lesson01'))"
    said = another_kernel(code, AS_A_USER).communicate()[0]
    assert said == f"Your progress could not be saved ({reason}): {file}\n['SCORES']\n"
    assert file.read_bytes() == before
    readonly.chmod(0o755)


def test_no_home_is_told(monkeypatch, capsys):
    """As in a container whose user has no name: HOME is not set, and the system knows no home."""
    for name in ("MHSA_PROGRESS", "HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == []
    saved, read = capsys.readouterr().out.splitlines()
    assert saved.startswith("Your progress could not be saved (") and read.startswith("Your progress cannot be read (")
    assert all("home" in line and line.endswith("): set MHSA_PROGRESS to a file of yours") for line in (saved, read))


def test_a_folder_that_cannot_be_made_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == []
    told = capsys.readouterr().out.splitlines()
    words = [line.split(" (")[0] for line in told]
    assert words == ["Your progress could not be saved", "Your progress cannot be read"]


def test_a_file_that_cannot_be_read_is_never_written_over(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "progress.json"
    folder.mkdir()
    monkeypatch.setenv("MHSA_PROGRESS", str(folder))
    assert progress.solved("lesson01") == []
    progress.record("lesson01", "SCORES")
    progress.reset()
    assert capsys.readouterr().out.count("Your progress") == 3
    assert names_beside(folder) == {"progress.json", "progress.json.lock"} and not list(folder.iterdir())


def test_the_file_lies_in_the_users_state_folder_unless_named(monkeypatch):
    monkeypatch.delenv("MHSA_PROGRESS", raising=False)
    assert progress.path().name == "progress.json" and "mhsa" in progress.path().parts
    monkeypatch.setenv("MHSA_PROGRESS", "~/mine.json")
    assert progress.path() == progress.Path.home() / "mine.json"
