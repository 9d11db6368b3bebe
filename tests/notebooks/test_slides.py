"""Slides, decks and handouts: every lesson is marked, a deck loads nothing, every solution is right."""

import os
import re
import subprocess
import sys
from copy import deepcopy
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mhsa.authoring import handout
from mhsa.authoring.names import NOTEBOOKS
from mhsa.authoring.slides import LINES, mark
from mhsa.exercises import exercises
from mhsa.exercises.judge import check_answer

ROOT = Path(__file__).parents[2]
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def types(notebook):
    return [cell.metadata.get("slideshow", {}).get("slide_type", "-") for cell in notebook.cells]


@each_lesson
def test_the_stored_slide_types_are_those_of_the_rule(path):
    notebook, marked = read(path), read(path)
    mark(marked)
    assert [cell.source for cell in marked.cells] == [cell.source for cell in notebook.cells]
    assert types(marked) == types(notebook), f"python3 course.py refresh {path.stem}"


def test_a_question_comes_with_its_heading_and_before_its_answer():
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# 5 · Title\n\n**Time** 7 minutes"),
            new_code_cell("import torch"),
            new_markdown_cell("## 1. One\n\nA sentence."),
            new_markdown_cell("**Predict.** Two or three?"),
            new_code_cell("print(3)", outputs=[new_output("stream", text="3\n")]),
            new_markdown_cell("Three.\n\n**Predict.** And now?\n\n## 2. Two"),
            new_code_cell("x\n" * LINES),
            new_markdown_cell("Too long for one slide."),
            new_code_cell("time()", metadata={"tags": ["nbval-ignore-output"]}),
            new_code_cell("assert True"),
            new_markdown_cell("## Exercises"),
            new_markdown_cell("### A card"),
            new_code_cell("f = ..."),
            new_markdown_cell("## Quiz\n\nChoose."),
            new_code_cell("ex.quiz()"),
            new_markdown_cell("## Takeaways"),
        ]
    )
    mark(notebook)
    assert [cell.source.splitlines()[0] for cell in notebook.cells[5:8]] == [
        "Three.",
        "**Predict.** And now?",
        "## 2. Two",
    ]
    assert types(notebook) == [
        "slide",
        "skip",
        "slide",
        "-",
        "fragment",
        "fragment",
        "subslide",
        "slide",
        "fragment",
        "subslide",
        "fragment",
        "skip",
        "slide",
        "subslide",
        "skip",
        "skip",
        "skip",
        "slide",
    ]
    once = deepcopy(notebook)
    mark(notebook)
    assert notebook == once and len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_a_deck_loads_nothing_and_keeps_every_formula(tmp_path):
    path = ROOT / "notebooks/02_many_heads.ipynb"
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "slides", "--output-dir", tmp_path, path],
        check=True,
        env=os.environ | {"JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter")},
        capture_output=True,
    )
    html = (tmp_path / "02_many_heads.slides.html").read_text(encoding="utf-8")
    loaded = re.findall(
        r"<(?:script|img|iframe)[^>]*\bsrc=\"([^\"]*)|<link[^>]*href=\"([^\"]*)|@import|\burl\((.*?)\)", html
    )
    assert all(src.startswith("data:") for found in loaded for src in found if src)
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    formulas = re.findall(r"\$\$.+?\$\$|\$.+?\$", re.sub(r"`[^`]*`", "", text), re.DOTALL)
    assert html.count("<math ") == len(formulas) > 20 and "<annotation" not in html
    assert "03_split_and_merge.slides.html" in html and ".ipynb" not in html
    alts = re.findall(r"<img [^>]*\balt=\"([^\"]*)", html)
    assert len(alts) == html.count("<img ") and all(alts) and "No description" not in html


@pytest.fixture
def handed_out(tmp_path, monkeypatch):
    monkeypatch.setattr(handout, "HANDOUTS", tmp_path / "handouts")
    return tmp_path / "handouts"


def test_a_handout_without_solutions_shows_no_result(handed_out):
    handout.main(["01_one_head"])
    [path] = handed_out.iterdir()
    lesson, copy = read(NOTEBOOKS / "01_one_head.ipynb"), read(path)
    assert [cell.source for cell in copy.cells] == [cell.source for cell in lesson.cells]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in copy.cells)


@pytest.mark.parametrize("path", [path for path in LESSONS if path.stem[:2] != "00"], ids=lambda path: path.stem)
def test_every_solution_that_is_handed_out_is_right(handed_out, path):
    handout.main(["--solutions", path.stem])
    lesson = import_module(f"mhsa.exercises.lesson{path.stem[:2]}")
    cells = {cell.id: cell for cell in read(handed_out / f"{path.stem}-solutions.ipynb").cells}
    names = {}
    exec(cells["exercises-import"].source, names)
    assert exercises(lesson)
    for exercise in exercises(lesson):
        cell = cells[exercise.name.lower().replace("_", "-")]
        source, check = cell.source.split(f"ex.{exercise.name}.check")
        exec(source, names)
        assert check_answer(exercise, eval(check, names))[0], exercise.name
        assert not cell.outputs


def test_all_lessons_are_handed_out(handed_out):
    handout.main([])
    assert {path.stem for path in handed_out.iterdir()} == {path.stem for path in LESSONS}
    with pytest.raises(SystemExit, match="99_nothing is no lesson"):
        handout.main(["99_nothing"])
