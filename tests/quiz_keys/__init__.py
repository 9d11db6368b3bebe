"""What is right in each question of the quizzes, computed: {words of the option: whether it is right}, or the number.

A file for each lesson, in it a function for each question, and KEYS, which has them in the order of the questions.
"""

from importlib import import_module

from mhsa.lessons import WITH_EXERCISES

KEYS = {lesson.name: import_module(f"quiz_keys.{lesson.name}").KEYS for lesson in WITH_EXERCISES}
