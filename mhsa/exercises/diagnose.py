"""What is wrong with an answer: the finders in their order, from a known mistake to the first difference."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import NamedTuple

import torch

from mhsa.exercises.compare import Comparison, runner
from mhsa.exercises.dependence import dependence, growth
from mhsa.exercises.letters import letter_sizes
from mhsa.exercises.mutants import one_edit, two_edits, written_here
from mhsa.exercises.outcome import Value, tensors_in
from mhsa.exercises.relations import NUMBERS, PARTS, PLACES, relation
from mhsa.exercises.stages import question, stage
from mhsa.exercises.steps import record
from mhsa.exercises.torch_errors import error_words
from mhsa.exercises.values import value_words
from mhsa.exercises.words import changed_input, describe, not_written, wrapped_result, wrong_gradient, wrong_result

ONE_EDIT, TWO_EDITS = 0.6, 1.5  # seconds for each search


class Finding(NamedTuple):
    way: str  # how it was found: form, listed, mutant, relation, stage, error, gradient, first difference
    words: str


def diagnose(comparison: Comparison) -> Finding | None:
    """What is wrong, or nothing."""
    exercise, got, wrong = comparison.exercise, comparison.got, comparison.first_wrong
    if all(outcome.unwritten for outcome in got):
        return Finding("form", not_written(exercise, error=bool(got[0].error)))
    wrapped = [wrapped_result(trial.got, trial.want) for trial in comparison.trials if trial.got.values]
    if wrapped and all(wrapped):
        return known_mistake(comparison) or Finding("form", f"Not yet. {wrapped[0]}")
    if wrong and exercise.given and comparison.equals(exercise.given):
        return Finding("form", f"Not written yet: {exercise.answer_name} still does what the given code does.")
    if wrong:
        return (
            known_mistake(comparison)
            or searched(comparison)
            or Finding("first difference", f"{wrong_result(exercise, wrong)} To go on: {question(comparison)}")
        )
    for trial in comparison.trials:
        if trial.got.changed:
            return Finding("form", changed_input(exercise, trial))
    if any(outcome.no_tensor for outcome in got):  # so no gradient: right_message() remarks on it
        return None
    gradient = wrong_gradient(comparison)
    return (known_mistake(comparison, in_gradients=True) or Finding("gradient", gradient)) if gradient else None


def known_mistake(comparison: Comparison, in_gradients: bool = False) -> Finding | None:
    """The known mistake that does what the answer does."""
    for mistake, message in comparison.exercise.mistakes:
        if in_gradients:
            same = comparison.same_values(mistake) and comparison.equals_in_gradients(mistake)
        else:
            same = comparison.equals(mistake)
        if same:
            return Finding("listed", f"Not yet. {message}")
    return None


def searched(comparison: Comparison) -> Finding | None:
    """What no list foresees: searched for, the surest first."""
    if not all(outcome.error or is_comparable(outcome.values) for outcome in comparison.got):
        return None
    if comparison.exercise.asks_value:
        return found("relation", value_words(comparison))
    return (
        found("relation", relation(comparison, PLACES))
        or found("mutant", edited(comparison))
        or found("relation", relation(comparison, NUMBERS))
        or found("mutant", two_edits(comparison, TWO_EDITS) if has_right_shapes(comparison) else "")
        or found("error", error_in_words(comparison))
        or found("stage", facts(comparison))
    )


def found(way: str, words: str) -> Finding | None:
    return Finding(way, f"Not yet. {words}") if words else None


def is_comparable(values: Sequence[Value]) -> bool:
    """Something came, and no more than a search can look at."""
    tensors = tensors_in(list(values))
    return bool(values) and sum(x.numel() for x in tensors) < 1_000_000 and all(x.dim() < 8 for x in tensors)


def has_right_shapes(comparison: Comparison) -> bool:
    """Of another shape, more is said by its letters than by two slips that would give it."""
    trials = [trial for trial in comparison.trials if trial.got.values]
    shapes = [[x.shape for x in tensors_in(list(t.got.values))] for t in trials]
    return shapes == [[x.shape for x in tensors_in(list(t.want.values))] for t in trials]


def edited(comparison: Comparison) -> str:
    """One edit, told as what it is: a possibility that explains all that came."""
    edit = one_edit(comparison, ONE_EDIT)
    if edit and all(outcome.error for outcome in comparison.got):
        return f"Your code stops as it does if {edit}.{where_it_stops(comparison)}"
    return f"Your result is what comes out if {edit}." if edit else ""


def facts(comparison: Comparison) -> str:
    """Two things that are known of the result, where nothing explains it; beside one alone, the first difference."""
    finders = [nan_words, growth, dependence, lambda comparison: relation(comparison, PARTS), stage, step_words]
    if comparison.seconds > 0.02:
        finders = [nan_words, lambda comparison: relation(comparison, PARTS), stage]  # the others run it many times
    known = [words for finder in finders if (words := finder(comparison))][:2]
    wrong = comparison.first_wrong
    if len(known) == 1 and wrong:
        known.append(wrong_result(comparison.exercise, wrong).removeprefix("Not yet. "))
    return " ".join(known)


def nan_words(comparison: Comparison) -> str:
    for trial in comparison.trials:
        if trial.difference and "nan" in trial.difference.came:
            inputs = describe(comparison.exercise, trial.inputs)
            return f"NaN comes from 0/0, inf - inf, 0 · inf, or a softmax over -inf alone. It comes on {inputs}."
    return ""


def step_words(comparison: Comparison) -> str:
    """Up to which of the learner's steps the numbers are those of a right answer; "" if none is, or it says nothing."""
    exercise, trial = comparison.exercise, comparison.first_wrong
    if trial is None or any(isinstance(x, str) for x in trial.want.values):
        return ""
    run = runner(exercise)
    mine, _ = record(run, comparison.answer, trial.inputs)
    right = []
    for answer in [exercise.reference, *written_here(exercise, exercise.also_right)]:
        right += [step.value for step in record(run, answer, trial.inputs)[0].steps if step.value.is_floating_point()]
    known = [x.double() for x in (*tensors_in(trial.inputs), *tensors_in(trial.want.values)) if x.is_floating_point()]
    last = None
    for step in mine.steps:
        x = step.value.double()
        if not step.line:
            continue
        says = step.value.is_floating_point() and x.unique().numel() > 3 and not any(same_numbers(x, y) for y in known)
        if says and any(x.shape == y.shape and x.allclose(y.double(), rtol=1e-6) for y in right):
            last = step
    if last is None:
        return ""
    source = linecache.getline(last.file, last.line).strip()
    where = f" in line {last.line}" + (f", `{source}`" if source else "")
    name = {"__get__": "mT", "__getitem__": "the index"}.get(last.name, last.name.strip("_"))
    return f"Your numbers are right up to {name} {tuple(last.value.shape)}{where}: look at the step behind it."


def same_numbers(x: torch.Tensor, y: torch.Tensor) -> bool:
    """In any order: a view of an input is no step."""
    return x.numel() == y.numel() and x.flatten().sort()[0].allclose(y.flatten().sort()[0])


def error_in_words(comparison: Comparison) -> str:
    """Where the code stops with an error: what it says, in plain words, and its line."""
    exercise = comparison.exercise
    trial = next((t for t in comparison.trials if t.got.error), None)
    if trial is None or comparison.first_wrong is not trial:
        return ""
    recorder, _ = record(runner(exercise), comparison.answer, trial.inputs)
    words = error_words(trial.got.error, recorder.failure, letter_sizes(exercise, trial.inputs))
    return f"{words}{where_it_stops(comparison)}" if words else ""


def where_it_stops(comparison: Comparison) -> str:
    trial = next(t for t in comparison.trials if t.got.error)
    inputs = describe(comparison.exercise, trial.inputs)
    return f"\n\nOn {inputs}:\n  {trial.got.error}{trial.got.failing_line}"
