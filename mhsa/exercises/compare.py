"""An answer beside the reference, case by case: the comparison is made here, once, and judge.py finds words for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch

from mhsa.exercises.difference import FLOAT32_TOLERANCE, Difference, first_difference
from mhsa.exercises.outcome import Gradients, Outcome, observe, observe_gradients, tensors_in, to_float32

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise


class Trial(NamedTuple):
    """One case of an exercise: what the answer did, what the reference did, and where they differ first."""

    inputs: list
    got: Outcome
    want: Outcome
    difference: Difference | None  # None: the same values


class WrongGradient(NamedTuple):
    inputs: list
    got: Gradients
    difference: Difference | None  # None: there is no gradient to compare


@dataclass
class Comparison:
    """An answer tried on every case. Gradients are computed where they are asked for: the answer runs once more."""

    exercise: Exercise
    answer: object
    trials: list[Trial]

    @property
    def got(self) -> list[Outcome]:
        return [trial.got for trial in self.trials]

    @property
    def first_wrong(self) -> Trial | None:
        """The first trial whose values are not those of the reference."""
        return next((trial for trial in self.trials if trial.difference), None)

    @property
    def tolerance(self) -> float:
        """The exercise's, wider where the answer has float32 in place of float64."""
        single = any(
            x.dtype != torch.float64
            for trial in self.trials
            for x, y in zip(tensors_in(trial.got.values), tensors_in(trial.want.values))
            if y.is_floating_point()
        )
        return max(self.exercise.tolerance, FLOAT32_TOLERANCE) if single else self.exercise.tolerance

    @cached_property
    def gradients(self) -> list[Gradients]:
        return self._gradients_of(self.answer)

    @cached_property
    def right_gradients(self) -> list[Gradients]:
        return self._gradients_of(self.exercise.reference)

    @cached_property
    def first_wrong_gradient(self) -> WrongGradient | None:
        """Where the values are right, a gradient may still be missing or another."""
        for trial, got, want in zip(self.trials, self.gradients, self.right_gradients):
            if want is None:  # a mask or a count has no gradient
                continue
            if not (isinstance(got, list) and isinstance(want, list)):
                return WrongGradient(trial.inputs, got, None)
            difference = first_difference(got, want, self.tolerance)
            if difference:
                return WrongGradient(trial.inputs, got, difference)
        return None

    def equals(self, other: object) -> bool:
        """Whether another answer, such as a known mistake, does on every case what this one does."""
        tolerance = self.exercise.tolerance
        return all(
            same_outcome(trial.got, _observe(self.exercise, other, trial.inputs), tolerance) for trial in self.trials
        )

    def equals_in_gradients(self, other: object) -> bool:
        tolerance = max(self.exercise.tolerance, FLOAT32_TOLERANCE)
        return all(
            not first_difference(ours, theirs, tolerance)
            if isinstance(ours, list) and isinstance(theirs, list)
            else type(ours) is type(theirs)
            for ours, theirs in zip(self.gradients, self._gradients_of(other))
        )

    def _gradients_of(self, answer: object) -> list[Gradients]:
        return [observe_gradients(runner(self.exercise), answer, trial.inputs) for trial in self.trials]


def compare(exercise: Exercise, answer: object) -> Comparison:
    """Try the answer and the reference on every case."""
    cases = exercise.cases
    got = [_observe(exercise, answer, inputs) for inputs in cases]
    if any(outcome.mixes_float_types for outcome in got):  # the cases' float64 met float32 of its own
        cases = to_float32(cases)
        got = [_observe(exercise, answer, inputs) for inputs in cases]
    want = [_observe(exercise, exercise.reference, inputs) for inputs in cases]
    differences = [first_difference(g.values, w.values, exercise.tolerance) for g, w in zip(got, want)]
    return Comparison(exercise, answer, [Trial(*parts) for parts in zip(cases, got, want, differences)])


def same_outcome(got: Outcome, other: Outcome, tolerance: float) -> bool:
    return (
        got.error == other.error
        and got.unwritten == other.unwritten
        and not first_difference(got.values, other.values, tolerance)
    )


def runner(exercise: Exercise) -> Callable:
    """(answer, *inputs) -> result."""
    return exercise.run or (lambda answer, *inputs: answer(*inputs) if callable(answer) else answer)


def _observe(exercise: Exercise, answer: object, inputs: list) -> Outcome:
    return observe(runner(exercise), answer, inputs, exercise.input_names)
