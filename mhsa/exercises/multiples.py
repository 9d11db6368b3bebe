"""Wrong numbers that follow from the right ones: a factor, a term, a sign, another function of it, a bound."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mhsa.exercises import factors
from mhsa.exercises.pairs import Pairs

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "1 over the right one": lambda w: 1 / w,
    "1 minus the right one": lambda w: 1 - w,
    "the right one without its sign": torch.abs,
    "the square of the right one": torch.square,
    "the root of the right one": torch.sqrt,
    "the logarithm of the right one": torch.log,
    "the exponential of the right one": torch.exp,
    "the right one rounded down": torch.floor,
    "the right one rounded up": torch.ceil,
    "the right one rounded": torch.round,
    "the right one after a softmax": lambda w: w.softmax(-1),
}


def multiple(p: Pairs) -> str:
    """The same multiple of the right number everywhere; in words where the factor is a unit or a size."""
    ratios, sizes = [], []
    for g, w, size in zip(p.got, p.want, p.sizes):
        some = w.abs() > 1e-9
        ratio = g[some] / w[some]
        if (g[~some].abs() > 1e-9).any() or not torch.allclose(ratio, ratio[:1], rtol=1e-5, atol=0):
            return rounded(p)
        if some.any():
            ratios.append(ratio[0].item())
            sizes.append(size)
    if all(abs(ratio + 1) < 1e-9 for ratio in ratios):
        return "The sign is turned round; the rest is right."
    unit = factors.unit(ratios)
    if unit:
        return f"Yours is in {unit}: look at what is asked."
    times = factors.factor(ratios, sizes)
    if times:
        return f"{each(p)} is {times} times the right one: what is multiplied, or divided, that should not be?"
    return rounded(p)


def rounded(p: Pairs) -> str:
    """A unit, or a plain factor, of a number that was rounded down before or behind it."""
    if not p.scalar or len(p.want) < 3:
        return ""
    for ratio, unit in factors.UNITS.items():
        if p.all(lambda g, w, r=ratio: p.close(g, torch.floor(w * r))):
            return f"Yours is in {unit}: look at what is asked."
    for n in (2, 3, 4, 8, 16, 1024):
        if p.all(lambda g, w, n=n: bool(0 <= g - n * w < n)):
            return f"Your number is {n} times the right one, but for rounding: what is counted too often?"
        if p.all(lambda g, w, n=n: bool(0 <= w - n * g < n)):
            return f"Your number is 1/{n} of the right one, but for rounding: what is left out?"
    return ""


def off_by(p: Pairs) -> str:
    """Too large or too small by the same number, or by a product of sizes."""
    differences = []
    for g, w in p:
        step = (g - w).flatten()
        if not torch.allclose(step, step[:1], rtol=1e-9, atol=1e-9):
            return ""
        differences.append(step[0].item())
    side = "large" if sum(differences) > 0 else "small"
    if len({round(d, 9) for d in differences}) == 1 and len(differences) > 1:
        return f"{each(p)} is too {side} by {abs(differences[0]):g}, always: is something counted from 0, or from 1?"
    known = [(d, s) for d, s in zip(differences, p.sizes) if abs(d) > 1e-9]
    term = factors.term([d for d, _ in known], [s for _, s in known])
    if term:
        where = "in each case" if len(known) == len(differences) else "in some cases"
        part = "a part that is too much" if side == "large" else "a part that is missing"
        return f"{each(p)} is too {side} by {term}, {where}: {part}."
    return ""


def other_function(p: Pairs) -> str:
    for words, function in FUNCTIONS.items():
        if p.all(lambda g, w, f=function: p.close(g, f(w))):
            return f"{each(p)} is {words}."
    return ""


def bounded(p: Pairs) -> str:
    """Right, but never above or below some number."""
    if not p.scalar or len(p.want) < 4:
        return ""
    numbers = [g.item() for g in p.got]
    for bound, words, clamp in ((max(numbers), "above", torch.minimum), (min(numbers), "below", torch.maximum)):
        limit = torch.tensor(bound, dtype=torch.float64)
        if p.all(lambda g, w, c=clamp, b=limit: p.close(g, c(w, b))):
            return f"Yours never gets {words} {bound:g}; otherwise it is right."
    return ""


def each(p: Pairs) -> str:
    return "Your number" if p.scalar else "Each number of yours"
