"""An answer beside the reference, case by case: the comparison is made here, once, and judge.py finds words for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch

from mhsa.exercises.difference import FLOAT32_TOLERANCE, Difference, first_difference
from mhsa.exercises.outcome import Gradients, Outcome, observe, observe_gradients, tensors_in, to_float32
from mhsa.exercises.steps import Recorder, record

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
    as_float32: bool = False
    seconds: float = 0  # a call of the answer takes, on average

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
        """Whether another answer, such as a known mistake, makes the same mistake.

        Where both give numbers they are the same, and somewhere not the right ones. An error tells nothing, unless each
        error of this answer is the same operation that fails on the same numbers.
        """
        tells, others = False, [_observe(self.exercise, other, trial.inputs) for trial in self.trials]
        for trial, outcome in zip(self.trials, others):
            if trial.got.values and outcome.values:
                if first_difference(trial.got.values, outcome.values, self.exercise.tolerance):
                    return False
                tells = tells or trial.difference is not None
        return tells or self.fails_like(other)

    def fails_like(self, other: object) -> bool:
        """Whether each error of the answer is one of the other's: the same operation stops on the same numbers."""
        failed = [(trial, _observe(self.exercise, other, trial.inputs)) for trial in self.trials if trial.got.error]
        run = runner(self.exercise)
        return (
            bool(failed)
            and all(trial.got.error == outcome.error for trial, outcome in failed)
            and all(same_failure(*(record(run, x, t.inputs) for x in (self.answer, other))) for t, _ in failed)
        )

    def same_values(self, other: object) -> bool:
        """On every case, right or wrong."""
        others = [_observe(self.exercise, other, trial.inputs) for trial in self.trials]
        return not any(
            first_difference(trial.got.values, outcome.values, self.exercise.tolerance)
            for trial, outcome in zip(self.trials, others)
        )

    @cached_property
    def fresh(self) -> list[Trial]:
        """On inputs that no check has shown: what a search has found must hold on them too."""
        cases = self.exercise.fresh_cases
        return _trials(self.exercise, self.answer, to_float32(cases) if self.as_float32 else cases)

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
    start = time.perf_counter()
    got = [_observe(exercise, answer, inputs) for inputs in exercise.cases]
    seconds = (time.perf_counter() - start) / len(got)
    if any(outcome.mixes_float_types for outcome in got):  # the cases' float64 met float32 of its own
        trials = _trials(exercise, answer, to_float32(exercise.cases))
        return Comparison(exercise, answer, trials, as_float32=True, seconds=seconds)
    return Comparison(exercise, answer, _beside_the_reference(exercise, exercise.cases, got), seconds=seconds)


def _trials(exercise: Exercise, answer: object, cases: list[list]) -> list[Trial]:
    return _beside_the_reference(exercise, cases, [_observe(exercise, answer, inputs) for inputs in cases])


def _beside_the_reference(exercise: Exercise, cases: list[list], got: list[Outcome]) -> list[Trial]:
    want = [_observe(exercise, exercise.reference, inputs) for inputs in cases]
    differences = [first_difference(g.values, w.values, exercise.tolerance) for g, w in zip(got, want)]
    return [Trial(*parts) for parts in zip(cases, got, want, differences)]


def same_failure(mine: tuple[Recorder, object], other: tuple[Recorder, object]) -> bool:
    """The same operation failed on the same numbers; or a view was refused, and a reshape would have given the same."""
    (one, result), (two, another) = mine, other
    if one.refused_view and two.refused_view and result is not None and another is not None:
        return not first_difference(tensors_in(result), tensors_in(another), FLOAT32_TOLERANCE)
    a, b = one.failure, two.failure
    return a is not None and b is not None and not first_difference(a.given, b.given, FLOAT32_TOLERANCE)


def runner(exercise: Exercise) -> Callable:
    """(answer, *inputs) -> result."""
    return exercise.run or (lambda answer, *inputs: answer(*inputs) if callable(answer) else answer)


def _observe(exercise: Exercise, answer: object, inputs: list) -> Outcome:
    return observe(runner(exercise), answer, inputs, exercise.input_names)
