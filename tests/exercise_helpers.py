"""The exercises of all lessons, and what a check says of an answer."""

import importlib

import pytest

from mhsa.exercises import exercises
from mhsa.exercises.judge import check_answer
from mhsa.lessons import WITH_EXERCISES

MODULES = [importlib.import_module(f"mhsa.exercises.{lesson.name}") for lesson in WITH_EXERCISES]
ALL = {exercise.name: exercise for lesson in MODULES for exercise in exercises(lesson)}
each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


def say(exercise, answer, seconds=5):
    return check_answer(exercise, answer, seconds)[1]
