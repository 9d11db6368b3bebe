"""Progress is kept over restarts, and trouble with its file is a line to read, never an error."""
import json
import os
import subprocess
import sys

import pytest

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


def test_progress_survives_a_restart(file):
    progress.record("lesson02", "JOIN")
    code = "from mhsa.exercises import progress; print(progress.solved('lesson02'))"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert again.stdout == "['JOIN']\n"


def test_the_best_quiz_score_is_kept(file):
    for right, questions in ((2, 5), (4, 5), (3, 5), (0, 5)):
        progress.record_quiz("lesson04", right, questions)
    assert progress.quiz_score("lesson04") == (4, 5) and progress.solved("lesson04") == []


def test_the_best_score_is_the_best_share_when_the_questions_change(file):
    progress.record_quiz("lesson04", 3, 5)
    progress.record_quiz("lesson04", 4, 11)                        # more right answers, a smaller share
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


DAMAGED = [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b'{"exercises": 5, "quizzes": {}}', b'{"exercises": {}}',
           b'{"exercises": {"lesson01": "SCORES"}, "quizzes": {}}', b'{"exercises": {"lesson01": [1]}, "quizzes": {}}',
           b'{"exercises": {}, "quizzes": {"lesson01": [1]}}', b'{"exercises": {}, "quizzes": {"lesson01": [1, 0]}}',
           b"[" * 100_000]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_set_aside(file, content, capsys):
    file.parent.mkdir()
    file.write_bytes(content)
    assert progress.solved("lesson01") == []
    told = capsys.readouterr().out
    assert told.startswith("Your progress could not be read: the file is damaged.") and told.count("\n") == 1
    assert file.with_name("progress.json.damaged").read_bytes() == content and not file.exists()
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == ["SCORES"] and capsys.readouterr().out == ""


def test_a_second_damage_does_not_lose_the_first(file, capsys):
    file.parent.mkdir()
    for content in (b"one", b"two", b"three"):
        file.write_bytes(content)
        progress.solved("lesson01")
        assert capsys.readouterr().out.count("\n") == 1
    kept = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    assert kept == {f"progress.json.damaged{n}": word for n, word in (("", b"one"), (2, b"two"), (3, b"three"))}


def test_a_link_is_written_through(file, tmp_path):
    target = tmp_path / "elsewhere.json"
    file.parent.mkdir()
    file.symlink_to(target)
    progress.record("lesson01", "SCORES")
    assert file.is_symlink() and "SCORES" in target.read_text() and progress.solved("lesson01") == ["SCORES"]


def test_a_user_that_does_not_exist_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MHSA_PROGRESS", "~nobody-of-that-name/progress.json")
    progress.record("lesson01", "SCORES")
    assert progress.solved("lesson01") == [] and not list(tmp_path.iterdir())
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 and all("~nobody-of-that-name/progress.json" in line for line in told)


def no_space(*args, **options):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("target, name", [(os, "replace"), (json, "dump"), (progress.tempfile, "mkstemp")])
def test_a_full_disk_is_told_and_the_old_progress_stays(file, target, name, monkeypatch, capsys):
    progress.record("lesson01", "SCORES")
    before = file.read_bytes()
    monkeypatch.setattr(target, name, no_space)
    progress.record("lesson01", "WEIGHTS")
    assert capsys.readouterr().out == f"Your progress could not be saved (No space left on device): {file}\n"
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


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
    assert capsys.readouterr().out.count("Your progress") == 3 and list(tmp_path.iterdir()) == [folder]


def test_the_file_lies_in_the_users_state_folder_unless_named(monkeypatch):
    monkeypatch.delenv("MHSA_PROGRESS", raising=False)
    assert progress.path().name == "progress.json" and "mhsa" in progress.path().parts
    monkeypatch.setenv("MHSA_PROGRESS", "~/mine.json")
    assert progress.path() == progress.Path.home() / "mine.json"
