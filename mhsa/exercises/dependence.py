"""What a result depends on: which inputs, which sentences, which tokens. One part of an input is changed at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor

from mhsa.exercises.compare import Comparison, Trial, runner
from mhsa.exercises.letters import argument_axes, axis_word, letter_sizes, result_axes
from mhsa.exercises.outcome import flatten, tensors_in
from mhsa.exercises.timeout import StopThread

ORDER = {"B": 0, "T_k": 1, "T": 1, "T_q": 2}  # what is told first


def dependence(comparison: Comparison) -> str:
    """The first dependence that only one of the two has, the answer or the right one; "" if there is none."""
    exercise = comparison.exercise
    results = [x for trial in comparison.trials for x in trial.want.values]
    if not all(isinstance(x, Tensor) and x.is_floating_point() for x in results):
        return ""  # a count or a choice may stay the same by chance
    case = next((inputs for inputs in by_size(comparison) if well_behaved(inputs)), None)
    if case is None:
        return ""
    run, axes, results = runner(exercise), argument_axes(exercise), result_axes(exercise)
    due = results[0] if results else []
    names = [name for name, x in zip(exercise.input_names, case) if any(t.is_floating_point() for t in tensors_in(x))]
    places = {name: exercise.input_names.index(name) for name in names}

    def changed(answer: object, name: str, axis: int | None = None, index: int = 0) -> Tensor | None:
        return what_changes(run, answer, case, places[name], axis, index)

    for name in names:
        mine, right = changed(comparison.answer, name), changed(exercise.reference, name)
        if mine is None or right is None or not mine.numel():
            return ""
        if right.any() and not mine.any():
            return f"Your result does not change with `{name}`: is it used?"
        if mine.any() and not right.any():
            return f"Your result changes with `{name}`, and it should not."
    found = []
    for name in names:
        x = case[places[name]]
        for axis, letter in enumerate(axes.get(name, []) if isinstance(x, Tensor) else []):
            if axis < x.dim():
                mine, right = (
                    [changed(answer, name, axis, j) for j in range(min(x.shape[axis], 12))]
                    for answer in (comparison.answer, exercise.reference)
                )
                words = along(name, axis_word(axes[name], axis), letter, due, mine, right)
                found += [(ORDER.get(letter, 3), words)] if words else []
    return min(found, key=lambda one: one[0], default=(0, ""))[1]


def along(name: str, word: str, letter: str, due: list[str], mine: list, right: list) -> str:
    """Words for what changes in the result where one index of an axis of an input changes."""
    if any(x is None or not x.numel() for x in (*mine, *right)):
        return ""
    other = next((one for one in ("T_q", "T") if one in due), "") if letter == "T_k" else letter
    if other in due and all(m.dim() == len(due) for m in (*mine, *right)):
        words = crosswise(name, word, axis_word(due, due.index(other)), due.index(other), letter == other, mine, right)
        if words:
            return words + " Sentences must stay apart." * (letter == "B" and "should not" in words)
    for j, (m, r) in enumerate(zip(mine, right)):
        if m.any() != r.any():
            change = "changes with" if m.any() else "does not change with"
            return f"Your result {change} {word} {j} of `{name}`, and it should{' not' if m.any() else ''}."
    return ""


def crosswise(name: str, word: str, own: str, axis: int, alike: bool, mine: list, right: list) -> str:
    """Which tokens of the result change with which tokens of an input, or sentences with sentences."""
    if mine[0].shape[axis] != right[0].shape[axis]:
        return ""
    others = [i for i in range(mine[0].dim()) if i != axis]
    ours, theirs = (torch.stack([m.double().amax(others) if others else m for m in x], 1).bool() for x in (mine, right))
    if torch.equal(ours, theirs):
        return ""
    if alike and ours.shape[0] == ours.shape[1] > 1 and theirs.all():  # every token should read every token
        if torch.equal(ours, torch.eye(len(ours)).bool()):
            return f"In your result a {word} does not change with any other {word} of `{name}`: it reads itself alone."
        if torch.equal(ours, torch.ones_like(ours).tril()):
            return f"In your result no {word} changes with a later {word} of `{name}`: is there a causal mask?"
    i, j = (ours != theirs).nonzero()[0].tolist()
    change = "does not change with" if theirs[i, j] else "changes with"
    should = "should" if theirs[i, j] else "should not"
    return f"{own.capitalize()} {i} of your result {change} {word} {j} of `{name}`, and it {should}."


def growth(comparison: Comparison) -> str:
    """Of a count of several sizes: which does not enter, or with another power. One is doubled at a time."""
    exercise, run = comparison.exercise, runner(comparison.exercise)
    for i, name in enumerate(exercise.input_names):
        for trial in comparison.trials:
            counts = [x for x in trial.inputs if type(x) is int and x > 0]
            if len(counts) < 3 or not counts_something(trial) or type(trial.inputs[i]) is not int:
                continue
            doubled = [2 * x if j == i else x for j, x in enumerate(trial.inputs)]
            ours, theirs = (
                times(run, answer, trial.inputs, doubled) for answer in (comparison.answer, exercise.reference)
            )
            if not ours or not theirs:
                continue
            if math.isclose(ours, theirs, rel_tol=1e-6):
                continue
            if 1 in (ours, theirs):
                change = "changes with" if ours != 1 else "does not change with"
                return f"Your number {change} `{name}`, and it should{' not' if ours != 1 else ''}."
            return (
                f"With twice the `{name}` yours becomes {ours:.4g} times as large; it should become {theirs:.4g} times."
            )
    return ""


def times(run: Callable, answer: object, inputs: list, other: list) -> float:
    """How many times as large the result becomes on other inputs; 0 if it cannot be told."""
    before, after = result_of(run, answer, inputs), result_of(run, answer, other)
    return float(after / before) if before is not None and after is not None and before else 0


def counts_something(trial: Trial) -> bool:
    return bool(trial.got.values) and all(
        isinstance(x, Tensor) and x.numel() == 1 and x.dtype != torch.bool
        for x in (*trial.got.values, *trial.want.values)
    )


def by_size(comparison: Comparison) -> list[list]:
    """The inputs: first those with several sentences, heads and tokens, of different numbers."""

    def several(inputs: list) -> int:
        sizes = letter_sizes(comparison.exercise, inputs).values()
        return sum(size > 1 for size in sizes) + len({*sizes})

    usable = [trial.inputs for trial in comparison.trials if trial.got.values and not trial.got.error]
    return sorted(usable, key=several, reverse=True)


def well_behaved(inputs: list) -> bool:
    """No input that is there to be extreme."""
    floats = [x for x in tensors_in(inputs) if x.is_floating_point()]
    return bool(floats) and all(x.abs().max() < 20 for x in floats if x.numel())


def what_changes(
    run: Callable, answer: object, inputs: list, place: int, axis: int | None, index: int
) -> Tensor | None:
    """Which numbers of the first result change where this part of an input does; None if there is none to compare."""
    inputs = copy.deepcopy(inputs)
    for x in tensors_in(inputs):
        if x.is_floating_point():
            x *= 0.3  # so that no softmax is all or nothing, where a change of its inputs may change nothing
    before, other = result_of(run, answer, inputs), copy.deepcopy(inputs)
    noise = torch.Generator().manual_seed(1)
    for x in tensors_in(other[place]):
        if x.is_floating_point():
            some = x if axis is None else x.select(axis, index)
            some += 0.3 * torch.rand(some.shape, generator=noise, dtype=torch.float64).to(some) + 0.1
    after = result_of(run, answer, other)
    if before is None or after is None or before.shape != after.shape:
        return None
    return ~before.isclose(after, rtol=1e-9, atol=1e-12, equal_nan=True)


def result_of(run: Callable, answer: object, inputs: list) -> Tensor | None:
    torch.default_generator.manual_seed(0)
    try:
        found = [x for x in flatten(run(answer, *copy.deepcopy(inputs))) if isinstance(x, Tensor)]
    except StopThread:
        raise
    except BaseException:
        return None
    return found[0].detach().double() if found else None
