"""The stored notebooks are compared strictly, and `refresh` stores what a reader can see without a kernel."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from refresh import main, refresh

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


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe\x00", b'{"nbformat": 4, "cells": 5}'])
def test_refresh_names_a_broken_file_in_one_line(tmp_path, content):
    (tmp_path / "c.ipynb").write_bytes(content)
    with pytest.raises(SystemExit, match="c.ipynb is no whole notebook: "):
        refresh(tmp_path / "c.ipynb")
    assert (tmp_path / "c.ipynb").read_bytes() == content


def test_refresh_refuses_a_lesson_that_does_not_exist():
    with pytest.raises(SystemExit, match="99_nothing is no lesson; these are: 00_start_here"):
        main(["99_nothing"])


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
