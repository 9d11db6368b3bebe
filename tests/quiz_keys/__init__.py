"""What is right in each question of the quizzes, computed: {words of the option: whether it is right}, or the number.

A file for each lesson, in it for each question the function that its id names; the name of any other begins with _.
"""

from importlib import import_module

from mhsa.lessons import WITH_EXERCISES


def _keys(lesson: str) -> dict:
    module = import_module(f"quiz_keys.{lesson}")
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name: function for name, function in own.items() if not name.startswith("_")}


KEYS = {lesson.name: _keys(lesson.name) for lesson in WITH_EXERCISES}
