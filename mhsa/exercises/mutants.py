"""The search: right answers of a lesson with one small edit, or two, until one does what the learner's answer does."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from mhsa.exercises.compare import Comparison, Trial, runner
from mhsa.exercises.difference import first_difference
from mhsa.exercises.edits import LIKELY
from mhsa.exercises.outcome import Outcome, observe, tensors_in
from mhsa.exercises.program import Program, grafted

if TYPE_CHECKING:
    from mhsa.exercises.exercise import Exercise


def one_edit(comparison: Comparison, seconds: float) -> str:
    """What was edited in a right answer that now does what the learner's does, on fresh inputs too; or nothing."""
    trial, end = telling(comparison), time.perf_counter() + seconds
    exercise = comparison.exercise
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for answer in written_here(exercise, [exercise.reference, *exercise.also_right]):
            program = Program(answer, exercise)
            for change in program.changes():
                mutant = program.build(change)
                if mutant and (fits(comparison, trial, mutant) if trial else comparison.fails_like(mutant)):
                    return change.words
                if time.perf_counter() > end:
                    return ""
    return ""


def two_edits(comparison: Comparison, seconds: float) -> str:
    """The words of two edits together: of a known mistake and one more edit, or of two; or nothing."""
    trial, end = telling(comparison), time.perf_counter() + seconds
    if trial is None:
        return ""
    exercise = comparison.exercise
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = Program(exercise.reference, exercise)
        alone = [grafted(c) for c in program.changes(LIKELY) if differs(comparison, trial, program.build(c))]
        slips, known = {change.words for change in alone}, {id(mistake): words for mistake, words in exercise.mistakes}
        for mistake in written_here(exercise, [mistake for mistake, _ in exercise.mistakes]):
            other = Program(mistake, exercise)
            for change in other.changes(LIKELY):
                if change.words in slips and fits(comparison, trial, other.build(change)):
                    also = f"your result is what comes out if {change.words}, too"
                    return f"{known[id(mistake)]} And that is not all: {also}."
                if time.perf_counter() > end:
                    return ""
        pairs = sorted(itertools.combinations(range(len(alone)), 2), key=sum)  # the likely ones first
        for one, two in ((alone[i], alone[j]) for i, j in pairs):
            if fits(comparison, trial, program.build(one, two)):
                return f"Your result is what comes out of two slips together: {one.words}, and {two.words}."
            if time.perf_counter() > end:
                break
    return ""


def written_here(exercise: Exercise, answers: list) -> list[Callable]:
    """Those with source code in the exercise's lesson."""
    module = exercise.reference.__module__
    own = [answer for answer in answers if inspect.isfunction(answer) and answer.__module__ == module]
    return [answer for answer in own if not answer.__closure__]


def telling(comparison: Comparison) -> Trial | None:
    """The case with the most numbers of which one is wrong; NaN tells nothing, since many slips end in it."""
    wrong = [trial for trial in comparison.trials if trial.got.values and trial.difference and has_numbers(trial)]
    return max(wrong, key=lambda trial: sum(x.numel() for x in tensors_in(trial.got.values)), default=None)


def has_numbers(trial: Trial) -> bool:
    """A text, or a number where another is due."""
    if not all(isinstance(x, torch.Tensor) for x in (*trial.got.values, *trial.want.values)):
        return True
    if [x.shape for x in tensors_in(trial.got.values)] != [x.shape for x in tensors_in(trial.want.values)]:
        return True
    pairs = zip(tensors_in(trial.got.values), tensors_in(trial.want.values))
    return any((g.double().isfinite() & ~g.double().isclose(w.double())).any() for g, w in pairs)


def outcome_of(comparison: Comparison, trial: Trial, mutant: Callable) -> Outcome:
    exercise = comparison.exercise
    return observe(runner(exercise), mutant, trial.inputs, exercise.input_names)


def fits(comparison: Comparison, trial: Trial, mutant: Callable | None) -> bool:
    """On one case, on all, and on fresh ones: it gives the answer's numbers wherever the answer gives some."""
    if mutant is None or not same_numbers(comparison, trial, mutant):
        return False
    return all(same_numbers(comparison, t, mutant) for t in comparison.trials if t.got.values) and all(
        same_numbers(comparison, t, mutant) for t in comparison.fresh if t.got.values
    )


def same_numbers(comparison: Comparison, trial: Trial, mutant: Callable) -> bool:
    values = outcome_of(comparison, trial, mutant).values
    return bool(values) and not first_difference(trial.got.values, values, comparison.exercise.tolerance)


def differs(comparison: Comparison, trial: Trial, mutant: Callable | None) -> bool:
    """An edit that gives a wrong result: a half of two."""
    values = outcome_of(comparison, trial, mutant).values if mutant else []
    return bool(values and first_difference(trial.want.values, values, comparison.exercise.tolerance))
