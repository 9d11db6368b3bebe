"""Wrong values, where no function is asked: what is right in it, which known mistake, what a number is made of."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from mhsa.exercises.compare import Comparison, runner
from mhsa.exercises.difference import first_difference
from mhsa.exercises.factors import UNITS
from mhsa.exercises.outcome import Value, flatten
from mhsa.exercises.program import Program

Part = float | str


def value_words(comparison: Comparison) -> str:
    """What can be said of a wrong value without telling the right one; "" if nothing can."""
    [trial] = comparison.trials
    got, want = parts(trial.got.values), parts(trial.want.values)
    if not got or any(isinstance(g, str) is not isinstance(want[0], str) for g in got):
        return ""
    if len(want) == 1:
        if len(got) != 1:
            return ""
        (g,), (w,) = got, want
        if isinstance(g, str) or isinstance(w, str):
            return letters(comparison, str(g), str(w))
        return number(comparison, g, w)
    if len(got) != len(want):
        return too_many(got, want)
    if sorted(map(str, got)) == sorted(map(str, want)):
        return "The right ones are all there, but in another order."
    wrong = [i for i, (g, w) in enumerate(zip(got, want)) if not same(g, w)]
    for slips, words in known_in(comparison, got, want, wrong):
        more = f" And that is not all: {len(want) - len(wrong)} of {len(want)} are right." * (slips < len(wrong))
        return f"{words}{more}"
    edit = edited(comparison)
    if edit:
        return f"Yours is what comes out if {edit}."
    right = len(want) - len(wrong)
    which = ", ".join(str(i + 1) for i in wrong)
    many = "numbers" if len(wrong) > 1 else "number"
    return f"{right} of {len(want)} are right: look again at {many} {which}." if right else ""


def parts(values: Sequence[Value]) -> list[Part]:
    found: list[Part] = []
    for value in values:
        found += [value.strip().lower()] if isinstance(value, str) else value.double().flatten().tolist()
    return found


def same(one: Part, other: Part, tolerance: float = 0.006) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def known(comparison: Comparison) -> Iterator[tuple[list[Part], str]]:
    """The values of the known mistakes, with their words."""
    run = runner(comparison.exercise)
    return ((parts(flatten(run(mistake))), words) for mistake, words in comparison.exercise.mistakes)


def known_in(comparison: Comparison, got: list, want: list, wrong: list[int]) -> list[tuple[int, str]]:
    """The known mistake that makes the most of these slips, and no other: how many, and its words."""
    found = []
    for values, words in known(comparison):
        slips = [i for i, w in enumerate(want) if len(values) != len(want) or not same(values[i], w)]
        if slips and len(values) == len(want) and all(i in wrong and same(values[i], got[i]) for i in slips):
            found.append((len(slips), words))
    return sorted(found, key=lambda one: -one[0])[:1]


def too_many(got: list, want: list) -> str:
    """Another count: what is too much, or missing, if the rest is right; else how many are right."""
    more, less = (got, want) if len(got) > len(want) else (want, got)
    for gone in itertools.combinations(range(len(more)), len(more) - len(less)):
        if [x for i, x in enumerate(more) if i not in gone] == less:
            which = " and ".join(str(i + 1) for i in gone)
            missing = "one is" if len(gone) == 1 else f"{len(gone)} are"
            return (
                f"Without number {which} yours is right."
                if more is got
                else f"Right as far as it goes: {missing} missing."
            )
    right, extra, lost = (len(x) for x in (set(got) & set(want), set(got) - set(want), set(want) - set(got)))
    said = [f"{n} {words}" for n, words in ((right, "right"), (extra, "too many"), (lost, "missing")) if n]
    return f"{len(got)} came: {', '.join(said)}."


def letters(comparison: Comparison, got: str, want: str) -> str:
    """Of letters in one text: which known mistake is in them, else how many are too many or missing."""
    more, less = set(got) - set(want), set(want) - set(got)
    best = []
    for (value, *_), words in known(comparison):
        extra, lost = set(str(value)) - set(want), set(want) - set(str(value))
        if (extra or lost) and extra <= more and lost <= less:
            best.append((len(extra) + len(lost), words))
    if best:
        slips, words = max(best)
        return words + " And that is not all." * (slips < len(more) + len(less))
    said = [f"{len(more)} too many"] * bool(more) + [f"{len(less)} missing"] * bool(less)
    return f"{len(set(got) & set(want))} of your letters are right, {' and '.join(said)}." * (
        max(map(len, got.split())) > 0
    )


def number(comparison: Comparison, got: float, want: float) -> str:
    """A ratio that everybody knows, or what the number is made of; never the right one."""
    if not (math.isfinite(got) and got and want):
        return ""
    ratio, made = got / want, made_of(comparison.exercise.task, got)
    made = f" Yours is {made}: what does each part count?" if made else ""
    if got == -want:
        return "The sign is turned round."
    for times, unit in UNITS.items():
        if math.isclose(ratio, times, rel_tol=1e-2):
            return f"Is that in {unit}? Look at what is asked."
    if abs(got - want) == 1 and want > 3:
        return f"Nearly: yours is one too {'many' if got > want else 'few'}.{made}"
    if 0.95 < ratio < 1.05 and want > 20:
        return f"Very near: a slip of arithmetic, or something small that is counted, or left out?{made}"
    for n in (2, 3, 4, 8):
        if math.isclose(ratio, n, rel_tol=1e-9) or math.isclose(ratio, 1 / n, rel_tol=1e-9):
            bytes_too = " Are you counting bytes?" if ratio in (2, 4) and want > 1000 else ""
            return f"Yours is too {'large' if ratio > 1 else 'small'} by the factor {n}.{bytes_too or made}"
    return made.strip()


def made_of(task: str, got: float) -> str:
    """4·640·64, or 1600 - 48: the shortest way to this number from those in the task; "" if there is none."""
    given = {float(n) for n in re.findall(r"(?<![\w.-])\d+(?:\.\d+)?", task.replace(",", "").replace("_", ""))}
    given = sorted(n for n in given if n > 1)[-7:]
    numbers = {f"{n:g}": n for n in given}
    products = dict(numbers)
    for (one, a), (two, b) in itertools.combinations_with_replacement(numbers.items(), 2):
        products[f"{one}·{two}"] = a * b
        if b % a == 0 and a < b:
            products[f"{two}/{one}"] = b // a
    found = []
    for text, n in products.items():
        for c in (1, 2, 3, 4, 5, 6, 8, 10, 12):
            if math.isclose(c * n, got, rel_tol=1e-9):
                found.append(f"{c}·{text}" if c > 1 else text)
    for (one, a), (two, b) in itertools.product(products.items(), repeat=2):
        for c, sign in itertools.product(range(1, 6), (1, -1)):
            if math.isclose(c * a + sign * b, got, rel_tol=1e-9) and one != two:
                found.append(f"{f'{c}·' * (c > 1)}{one} {'+' if sign > 0 else '-'} {two}")
        if math.isclose(a * b, got, rel_tol=1e-9) and "/" not in two:
            found.append(f"{one}·{two}")
    return min(found, key=len, default="")


def edited(comparison: Comparison) -> str:
    """The slip that leads to this table of numbers; not asked of a single number, which it would give away."""
    [trial] = comparison.trials
    program = Program(comparison.exercise.reference, comparison.exercise)
    for change in program.changes():
        mutant = program.build(change)
        try:
            values = flatten(runner(comparison.exercise)(mutant)) if mutant else []
        except Exception:  # an edit that does not run
            continue
        if values and not first_difference(trial.got.values, values, comparison.exercise.tolerance):
            return change.words
    return ""
