"""What a wrong result is to the right one. Each finder looks at all cases at once and gives words, or ""."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mhsa.exercises.compare import Comparison, Trial
from mhsa.exercises.difference import first_difference
from mhsa.exercises.letters import letter_sizes, result_axes
from mhsa.exercises.multiples import bounded, multiple, off_by, other_function
from mhsa.exercises.pairs import Pairs
from mhsa.exercises.places import alike, along_one_axis, elsewhere, lost_axis, other_axes, rows, sums, where

PLACES, NUMBERS, PARTS = range(3)  # right numbers in wrong places; wrong numbers that follow from the right; where


def relation(comparison: Comparison, kind: int) -> str:
    """A relation of this kind between the answer's results and the right ones, or nothing."""
    exercise = comparison.exercise
    trials = sorted((t for t in comparison.trials if t.got.values and t.want.values), key=lambda t: not t.difference)
    if not trials or not trials[0].difference or any("nan" in t.difference.came for t in trials if t.difference):
        return ""  # NaN is like nothing
    got, want = ([getattr(t, name).values for t in trials] for name in ("got", "want"))
    if any(isinstance(x, str) for values in (*got, *want) for x in values):
        return texts(got[0], want[0]) if kind == PLACES else ""
    same = unchanged(trials, exercise.input_names)
    if same:
        return same if kind == PLACES else ""
    results = whole_results(got, want, exercise.tolerance)
    if results or any(len(g) != len(want[0]) for g in got):
        return results if kind == PLACES else ""
    axes, n = result_axes(exercise), len(want[0])
    wrong = next(i for i in range(n) if first_difference([got[0][i]], [want[0][i]], exercise.tolerance))
    pairs = Pairs(
        [values[wrong] for values in got],
        [values[wrong] for values in want],
        [letter_sizes(exercise, t.inputs) for t in trials],
        axes[wrong] if len(axes) == n else [],
        max(exercise.tolerance, 1e-9),
    )
    words = of_one_result(pairs, kind)
    return f"Look at result {wrong + 1} of {n}. {words}" if words and n > 1 else words


def of_one_result(p: Pairs, kind: int) -> str:
    if all(w.dim() == 0 and g.numel() == 1 for g, w in p):
        p.got = [g.reshape(()) for g in p.got]  # tensor([4]) is a fine 4
    p.boolean = boolean = p.want[0].dtype == torch.bool
    if any((g.dtype == torch.bool) is not boolean for g in p.got):
        return other_kind(p) if kind == PLACES else ""
    p.got, p.want = ([x.double() for x in some] for some in (p.got, p.want))
    if not all(g.shape == w.shape for g, w in p):
        finders = {PLACES: [other_axes, along_one_axis, lost_axis], PARTS: [other_shape]}
    elif boolean:
        finders = {PLACES: [turned_round, other_axes], NUMBERS: [alike, along_one_axis], PARTS: [open_and_closed]}
    else:
        finders = {
            PLACES: [other_axes, along_one_axis],
            NUMBERS: [multiple, off_by, other_function, bounded, alike, elsewhere],
            PARTS: [rows, sums, where],
        }
    return next((words for finder in finders.get(kind, []) if (words := finder(p))), "")


def unchanged(trials: Sequence[Trial], names: Sequence[str]) -> str:
    def is_input(trial: Trial, i: int) -> bool:
        x = trial.inputs[i]
        return isinstance(x, Tensor) and not first_difference(trial.got.values, [x], 0)

    same = (name for i, name in enumerate(names) if all(is_input(trial, i) for trial in trials))
    return next((f"Your result is `{name}`, as it came in." for name in same), "")


def whole_results(got: list, want: list, tolerance: float) -> str:
    """Of several results: another order, one of them is enough, or a list to be put together."""

    def close(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
        return not first_difference(list(one), list(other), tolerance)

    n = len(want[0])
    for order in itertools.permutations(range(n)) if n <= 4 else ():
        right = all(len(g) == n and close(g, [w[i] for i in order]) for g, w in zip(got, want))
        if list(order) != sorted(order) and right:
            places = ", ".join(str(i + 1) for i in order)
            return f"The results are right, but in another order: yours are numbers {places} of those asked."
    for i in range(max(map(len, got)) if n == 1 else 0):
        if all(len(g) > max(i, 1) and close([g[i]], w) for g, w in zip(got, want)):
            return f"{len(got[0])} results came back, and one is asked: return number {i + 1} alone."
    if n == 1 and any(len(g) > 1 for g in got):
        for name, axis in itertools.product(("stack", "cat"), range(4)):
            if all(together(name, g, axis, lambda x, w=w: close([x], w)) for g, w in zip(got, want)):
                how = f"torch.{name}, axis {axis}"
                return f"A list of {len(got[0])} tensors came back; asked is one. Put them together: {how}."
    return ""


def together(name: str, tensors: list[Tensor], axis: int, right: Callable[[Tensor], bool]) -> bool:
    try:
        return right(getattr(torch, name)(tensors, axis))
    except (RuntimeError, IndexError):
        return False


def texts(got: list, want: list) -> str:
    """The parts of two sentences that differ: 4 heads came, 3 are asked."""
    if not all(isinstance(x, str) for x in (got[0], want[0])):
        return ""
    mine, right = (x[0].replace(";", ",").split(", ") for x in (got, want))
    apart = [(m, r) for m, r in zip(mine, right) if m != r]
    if len(mine) != len(right) or not apart or len(apart) == len(mine) > 1:
        return ""
    return f"In yours, {' and '.join(m for m, _ in apart)}; asked is: {' and '.join(r for _, r in apart)}."


def other_kind(p: Pairs) -> str:
    right = p.all(lambda g, w: p.close(g.double(), w.double()))
    if p.want[0].dtype == torch.bool:
        return "The numbers are right, but they are numbers: asked are Booleans, True and False." * right
    return "Booleans came, True and False; asked are numbers." + " As 0 and 1 they would be right." * right


def other_shape(p: Pairs) -> str:
    """Nothing else is known than both shapes, in letters."""
    axes = {g.dim() for g in p.got} | {w.dim() for w in p.want}
    end = "" if len(axes) == 1 else " Which axis is lost, or too much?"
    return f"The shape is not right: {p.shapes}.{end}" if len({g.dim() for g in p.got}) == 1 else ""


def turned_round(p: Pairs) -> str:
    round_about = p.all(lambda g, w: p.close(g, 1 - w))
    return "Yours is turned round: True where False is due, and False where True is." * round_about


def open_and_closed(p: Pairs) -> str:
    """Where a mask differs: too much or too little is open, with an example."""
    for sign, words in ((1, "True stands where it should, and in more places"), (-1, "True stands in too few places")):
        if p.all(lambda g, w, s=sign: bool((s * (g - w) >= 0).all())):
            g, w = p.wrong[0]
            index = (g != w).nonzero()[-1].tolist()
            place = ", ".join(p.one(i, j) for i, j in enumerate(index) if g.shape[i] > 1)
            what = f" in a mask {tuple(g.shape)}" if g.dim() > 1 else ""
            return f"{words}:{what} for example {place}."
    return ""
