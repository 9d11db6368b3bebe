"""Stored notebooks are compared strictly, and `refresh` stores what can be read without a kernel."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from mhsa.authoring.names import paths_of
from mhsa.authoring.refresh import main, refresh
from mhsa.exercises import cells as exercise_cells
from mhsa.exercises import lesson02

ROOT = Path(__file__).parents[2]
PICTURE = """import uuid
class Picture:
    def _repr_mimebundle_(self, **options):
        view = {"model_id": uuid.uuid4().hex, "version_major": 2, "version_minor": 0}
        return {"text/plain": "a dot", "image/svg+xml": "<svg><circle r='7'/></svg>",
                "application/vnd.jupyter.widget-view+json": view}
Picture()"""


def store(path, *sources):
    cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells, metadata={"widgets": {}, "rise": {"scroll": True}}), path)
    return path


def test_refresh_stores_what_reads_without_a_kernel(tmp_path):
    path = store(tmp_path / "a.ipynb", PICTURE, "print('one')\nprint('two')")
    before = nbformat.read(path, as_version=4)
    before.cells[1].metadata = {"tags": ["x"], "slideshow": {"slide_type": "slide"}, "execution": {"iopub.status": "1"}}
    nbformat.write(before, path)
    refresh(path)
    once = path.read_bytes()
    after = nbformat.read(path, as_version=4)
    assert [cell.id for cell in after.cells] == [cell.id for cell in before.cells]
    assert after.cells[1].metadata == {"tags": ["x"], "slideshow": {"slide_type": "slide"}}
    assert after.cells[1].outputs[0].data == {"text/plain": "a dot", "image/svg+xml": "<svg><circle r='7'/></svg>"}
    assert [output.text for output in after.cells[2].outputs] == ["one\ntwo\n"]
    assert [cell.execution_count for cell in after.cells[1:]] == [1, 2]
    assert set(after.metadata) == {"rise", "kernelspec", "language_info"}
    refresh(path)
    assert path.read_bytes() == once


@pytest.mark.parametrize(
    "source, words", [("1 / 0", "ZeroDivisionError"), ("import sys; print(3, file=sys.stderr)", "stderr")]
)
def test_refresh_names_the_cell_that_fails_and_keeps_the_file(tmp_path, source, words):
    path = store(tmp_path / "b.ipynb", "x = 5", source)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=f"b.ipynb, code cell 1.*{words}"):
        refresh(path)
    assert path.read_bytes() == before


def test_refresh_tells_of_a_kernel_that_ended_and_keeps_the_file(tmp_path):
    path = store(tmp_path / "b.ipynb", "import os; os._exit(1)")
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="^b.ipynb: Kernel died"):
        refresh(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe\x00", b'{"nbformat": 4, "cells": 5}'])
def test_refresh_names_a_broken_file_in_one_line(tmp_path, content):
    (tmp_path / "c.ipynb").write_bytes(content)
    with pytest.raises(SystemExit, match="c.ipynb is no whole notebook: "):
        refresh(tmp_path / "c.ipynb")
    assert (tmp_path / "c.ipynb").read_bytes() == content


@pytest.mark.parametrize("name", ["99_nothing", "99", "ch", "--solutions", ""])
def test_refresh_refuses_a_lesson_that_does_not_exist(name):
    with pytest.raises(SystemExit, match=f"^{name} is no lesson; these are: 00_start_here"):
        main(["02", name])


def test_a_lesson_is_meant_by_its_number_its_name_or_its_file():
    names = ["3", "02", "03_split_and_merge", "notebooks/cheat_sheet.ipynb", "02_many_heads.ipynb"]
    assert [path.stem for path in paths_of(names)] == ["03_split_and_merge", "02_many_heads", "cheat_sheet"]
    assert paths_of([]) == sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_refresh_puts_in_the_exercises_runs_and_marks_the_slides(tmp_path):
    """An old answer is replaced, both headings get a cell of their own, and twice gives what once gave."""
    path = tmp_path / "02_two.ipynb"
    cells = [
        new_markdown_cell("# 2 · Two\n\nA sentence.\n\n## 1. One", id="start"),
        new_code_cell("one_head = 7", id="one-head"),
        new_markdown_cell("Explained.\n\n## The common trap\n\n## What comes next", id="end"),
    ]
    nbformat.write(new_notebook(cells=cells), path)
    refresh(path)
    once = path.read_bytes()
    stored, exercises = nbformat.read(path, as_version=4).cells, exercise_cells(lesson02)
    ids = [cell.id for cell in stored]
    assert ids[:3] == ["start", "start-2", "end"]
    assert [(cell.cell_type, cell.id, cell.source) for cell in stored[3:-4]] == exercises
    assert ids[-4:] == ["the-common-trap", "quiz-heading", "quiz", "what-comes-next"]
    assert all(cell.execution_count for cell in stored if cell.cell_type == "code")
    assert [cell.metadata.slideshow.slide_type for cell in stored[-4:]] == ["slide", "skip", "skip", "slide"]
    refresh(path)
    assert path.read_bytes() == once


@pytest.mark.parametrize("name", ["00_zero", "cheat_sheet"])
def test_refresh_puts_nothing_into_a_lesson_without_exercises(tmp_path, name):
    path = store(tmp_path / f"{name}.ipynb", "print(7)")
    refresh(path)
    assert [cell.source for cell in nbformat.read(path, as_version=4).cells] == ["# Title", "print(7)"]


def test_refresh_names_a_heading_that_is_missing(tmp_path):
    path = store(tmp_path / "02_two.ipynb", "print(7)")
    with pytest.raises(SystemExit, match="02_two.ipynb: .* before a heading that is missing: ## The common trap"):
        refresh(path)


def test_refresh_says_in_one_sentence_that_a_file_cannot_be_written(tmp_path, monkeypatch):
    path = store(tmp_path / "b.ipynb", "x = 5")

    def refused(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(nbformat, "write", refused)
    with pytest.raises(SystemExit, match=f"^{path} cannot be written: Permission denied$"):
        refresh(path)


def test_nbval_sees_every_difference(tmp_path):
    """Red: another character in a stored picture or text, a picture not stored, stderr, an outside request."""
    refresh(store(tmp_path / "same.ipynb", PICTURE))
    notebook = nbformat.read(tmp_path / "same.ipynb", as_version=4)
    cell, [output] = notebook.cells[1], notebook.cells[1].outputs
    right = dict(output.data)

    def variant(name, last_line="Picture()", **data):
        cell.source = PICTURE.replace("Picture()", last_line)
        output.data = {mime: text for mime, text in (right | data).items() if text}
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")

    variant("picture", **{"image/svg+xml": "<svg><circle r='8'/></svg>"})
    variant("text", **{"text/plain": "a dog"})
    variant("no_picture", **{"image/svg+xml": None})
    variant("stderr", "import sys; print(3, file=sys.stderr); Picture()")
    variant("outside", "import socket; socket.create_connection(('192.0.2.1', 9)); Picture()")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", "-rA", tmp_path]
    report = subprocess.run(command, capture_output=True, text=True).stdout
    outcomes = dict(reversed(outcome) for outcome in re.findall(r"^(PASSED|FAILED) (\w+).ipynb::Cell 0", report, re.M))
    assert outcomes.pop("same") == "PASSED"
    assert outcomes == dict.fromkeys(["picture", "text", "no_picture", "stderr", "outside"], "FAILED")
    assert "a lesson runs without network, and this one asks for 192.0.2.1" in report
