"""mhsa.lessons is the one list: notebooks, exercises, README, lesson 0's map hold the same lessons, titles and minutes.

The teaching guide is compared in test_teaching.py, the keys of the quizzes in test_quiz.py.
"""

import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from mhsa.exercises import exercises
from mhsa.lessons import LESSONS, WITH_EXERCISES

ROOT = Path(__file__).parents[1]
ROW = r"(?m)^\| \[(.+)\]\((?:notebooks/)?(\d\d_\w+)\.ipynb\) \| (\d+) \| (.+) \|$"


def markdown(stem):
    """The text cells of a lesson."""
    cells = nbformat.read(ROOT / f"notebooks/{stem}.ipynb", as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def table(text):
    """[((stem, title, minutes), what it settles), …] of a map of the lessons"""
    return [((stem, title, int(minutes)), settles) for title, stem, minutes, settles in re.findall(ROW, text)]


def test_the_notebooks_are_those_of_the_list_in_its_order():
    assert [lesson.stem for lesson in LESSONS] == sorted(path.stem for path in ROOT.glob("notebooks/[0-9]*.ipynb"))
    assert [lesson.title.split(" · ")[0] for lesson in LESSONS] == [str(int(lesson.stem[:2])) for lesson in LESSONS]
    assert [int(lesson.stem[:2]) for lesson in LESSONS] == [*range(len(LESSONS))]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_the_first_cell_says_title_and_minutes(lesson):
    first = markdown(lesson.stem)[0]
    assert first.startswith(f"# {lesson.title}\n") and f"**Time** {lesson.minutes} minutes · " in first


@pytest.mark.parametrize("lesson, following", [*pairwise(LESSONS)], ids=lambda lesson: lesson.stem)
def test_a_lesson_leads_to_the_next(lesson, following):
    cells = markdown(lesson.stem)
    assert cells[0].endswith(f"**Next** [{following.title}]({following.stem}.ipynb)")
    [end] = [cell for cell in cells if cell.startswith("## What comes next\n")]
    assert f"({following.stem}.ipynb)" in end


def test_readme_and_lesson_0_map_the_same_lessons():
    readme = table((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [row for row, _ in readme] == list(LESSONS)
    assert table("\n".join(markdown("00_start_here"))) == readme[1:]


@pytest.mark.parametrize("lesson", WITH_EXERCISES, ids=lambda lesson: lesson.stem)
def test_a_lesson_has_exercises_and_a_quiz_of_its_own(lesson):
    module = import_module(f"mhsa.exercises.{lesson.name}")
    assert len(exercises(module)) >= 4
    quiz, questions = module.quiz(), import_module(f"mhsa.exercises.{lesson.name.replace('lesson', 'questions')}")
    assert quiz.lesson == lesson.name and [asked.question for asked in quiz.questions] == list(questions.QUESTIONS)
