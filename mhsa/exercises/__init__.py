"""Exercises that know what went wrong: `from mhsa.exercises import lesson01 as ex`, then `ex.ATTEND.check(attend)`."""

from mhsa.exercises.board import board
from mhsa.exercises.exercise import Exercise, cells, exercises

__all__ = ["Exercise", "board", "cells", "exercises"]
