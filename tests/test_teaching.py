"""The teaching guide and the glossary say what the lessons hold."""

import re
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

from mhsa.exercises import exercises
from mhsa.lessons import LESSONS, WITH_EXERCISES

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
GUIDE = (NOTEBOOKS / "teaching_guide.md").read_text(encoding="utf-8")
WORDS = re.findall(
    r"(?m)^\| \*\*(.+?)\*\* \| (.+) \| \[.+\]\((.+)#(.+)\) \|$", (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
)


def sections(path):
    """{section number, or the heading where it has none: its text}"""
    cells = nbformat.read(path, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    parts = re.split(r"(?m)^## (?:(\d+)\. )?(.+)$", text)  # before, number, heading, text, number, …
    return {number or heading: f"{heading}\n{body}" for number, heading, body in zip(*(parts[i::3] for i in (1, 2, 3)))}


def test_the_guide_has_a_part_for_each_lesson():
    parts = re.findall(r"(?m)^### (.+)$", GUIDE)
    assert parts == [f"[{lesson.title}]({lesson.stem}.ipynb)" for lesson in LESSONS]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_the_guide_has_a_row_for_each_section_that_asks(lesson):
    [part] = [part for part in GUIDE.split("\n### ") if part.startswith(f"[{lesson.title}]")]
    asks = [
        "trap" if name == "The common trap" else name
        for name, text in sections(NOTEBOOKS / f"{lesson.stem}.ipynb").items()
        if "**Predict.**" in text
    ]
    assert re.findall(r"(?m)^\| (\d+|trap) \|", part) == asks
    assert "**Aim.**" in part and "**Skip**" in part


def test_the_exercises_of_the_guide_exist_and_take_as_long():
    known = {
        exercise.name: exercise.minutes
        for lesson in WITH_EXERCISES
        for exercise in exercises(import_module(f"mhsa.exercises.{lesson.name}"))
    }
    assert set(re.findall(r"`([A-Z_]{3,})`", GUIDE)) <= set(known)
    timed = re.findall(r"`([A-Z_]+)` \((\d+) minutes\)", GUIDE)
    assert len(timed) >= 9 and all(known[name] == int(minutes) for name, minutes in timed)


@pytest.mark.parametrize("plan, minutes", [("50 minutes", 50), ("Half a day", 210)])
def test_a_plan_fills_its_time(plan, minutes):
    part = GUIDE.split(f"\n## {plan}\n")[1].split("\n## ")[0]
    spans = [(int(a), int(b)) for a, b in re.findall(r"(?m)^\| (\d+)–(\d+) \|", part)]
    assert [0, *(end for _, end in spans)] == [*(start for start, _ in spans), minutes]


def test_the_glossary_is_sorted_and_each_meaning_is_one_sentence():
    words = [word.lower().strip("[") for word, *_ in WORDS]
    assert len(words) >= 71 and words == sorted(set(words))
    assert not [meaning for _, meaning, *_ in WORDS if re.search(r"[.!?] [A-Z]|\.$", meaning)]


@pytest.mark.parametrize("word, path, heading", [(word, path, heading) for word, _, path, heading in WORDS])
def test_a_word_stands_where_the_glossary_says(word, path, heading):
    number = re.match(r"(\d+)\.", heading)
    text = sections(NOTEBOOKS / path)[number[1] if number else heading.replace("-", " ")].lower()
    stems = [re.sub(r"\W", "", part)[:4].lower() for part in re.split(r", | ", word.replace("_", ""))]
    assert any(stem in re.sub(r"[\^_{}\\]|text", "", text) for stem in stems)
