"""The progress board, without a browser."""

import re
from html import unescape

import pytest

from mhsa.exercises import exercises, lesson02, progress
from mhsa.exercises.board import board
from mhsa.lessons import WITH_EXERCISES


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "progress.json"))


def shown(widget):
    """{lesson: the other cells of its row}"""
    rows = re.findall("<tr>(.*?)</tr>", widget.table.value)
    cells = [[unescape(cell) for cell in re.findall("<t[dh].*?>(.*?)</t[dh]>", row)] for row in rows]
    return {first: rest for first, *rest in cells}


def minutes(row):
    """[the core, what is extra]"""
    core, _, extra = row[2].partition(" + ")
    return [int(core), int(extra.removesuffix(" extra") or 0)]


def is_asking(widget):
    return widget.ask.layout.display is None


def test_a_beginner_has_everything_before_them():
    rows = shown(board())
    assert list(rows) == ["lesson", *(lesson.title for lesson in WITH_EXERCISES), "in all"]
    core, extra = (sum(ex.minutes for ex in exercises(lesson02) if ex.extra == kind) for kind in (False, True))
    assert rows["2 · Many heads"] == [f"0 of {len(exercises(lesson02))}", "not yet", f"{25 + core} + {extra} extra"]
    assert minutes(rows.pop("in all")) == [
        sum(kind) for kind in zip(*(minutes(row) for row in list(rows.values())[1:]))
    ]


def test_the_board_counts_what_is_solved_and_refreshes():
    widget = board()
    core, extra = minutes(shown(widget)["2 · Many heads"])
    progress.record("lesson02", "JOIN")
    progress.record("lesson02", "of an older course")
    progress.record_quiz("lesson02", 3, 7)
    assert minutes(shown(widget)["2 · Many heads"]) == [core, extra]
    widget.refresh.click()
    core -= 25 + lesson02.JOIN.minutes
    assert shown(widget)["2 · Many heads"] == [f"1 of {len(exercises(lesson02))}", "3 of 7", f"{core} + {extra} extra"]
    assert shown(board()) == shown(widget)
    progress.record("lesson02", "CONCAT_SHAPE")
    assert minutes(shown(board())["2 · Many heads"]) == [core, extra - lesson02.CONCAT_SHAPE.minutes]
    for exercise in exercises(lesson02):
        progress.record("lesson02", exercise.name)
    assert shown(board())["2 · Many heads"][2] == "0"


def test_start_over_asks_first():
    progress.record("lesson02", "JOIN")
    widget = board()
    assert not is_asking(widget)
    widget.start_over.click()
    assert is_asking(widget) and progress.solved("lesson02") == ["JOIN"]
    widget.keep.click()
    assert not is_asking(widget) and progress.solved("lesson02") == ["JOIN"]
    widget.start_over.click()
    widget.really.click()
    assert not is_asking(widget) and progress.solved("lesson02") == []
    assert shown(widget)["2 · Many heads"][0].startswith("0 of")


def test_the_still_is_the_same_whatever_is_solved():
    before = board()._repr_mimebundle_()
    progress.record("lesson02", "JOIN")
    progress.record_quiz("lesson04", 1, 3)
    after = board()._repr_mimebundle_()
    assert before["text/plain"] == after["text/plain"] == before["text/markdown"] == after["text/markdown"]
    assert "| 2 · Many heads | 0 of" in before["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in before


def test_trouble_with_the_file_is_shown_once_and_in_words(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "<folder>"
    folder.mkdir()
    monkeypatch.setenv("MHSA_PROGRESS", str(folder))
    widget = board()
    assert widget.trouble.value.count("Your progress cannot be read") == 1 and "&lt;folder&gt;" in widget.trouble.value
    widget.really.click()
    assert "could not be saved" in widget.trouble.value and capsys.readouterr().out == ""
