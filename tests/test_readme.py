"""What README counts is counted here. (Its table of lessons: test_lesson_list.py; its links: test_hygiene.py.)"""

import re
from importlib import import_module
from pathlib import Path

import pytest

from mhsa.claims import CLAIMS
from mhsa.exercises import exercises
from mhsa.lessons import WITH_EXERCISES

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
MODULES = [import_module(f"mhsa.exercises.{lesson.name}") for lesson in WITH_EXERCISES]
EXERCISES = [exercise for module in MODULES for exercise in exercises(module)]
COUNTS = {
    "claims": len(CLAIMS),
    "exercises": len(EXERCISES),
    "wrong answers that run": sum(len(exercise.mistakes) for exercise in EXERCISES),
    "quiz questions": sum(len(module.quiz().questions) for module in MODULES),
}


@pytest.mark.parametrize("what", COUNTS)
def test_more_than_so_many_is_true_and_not_much_too_little(what):
    """Not the number itself: one more of a kind then leaves README as it is."""
    [number] = re.findall(rf"more than (\d+) {what}\b", README, re.IGNORECASE)
    assert int(number) < COUNTS[what] <= 1.4 * int(number)
