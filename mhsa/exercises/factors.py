"""What a wrong number is to the right one, over several cases: times √d_k, in MiB, off by the term 2·T·d_model, …"""

import itertools
import math
from collections.abc import Sequence

Sizes = Sequence[dict[str, int]]  # what each letter stands for, case by case

UNITS = {2.0**-10: "KiB", 2.0**-20: "MiB", 2.0**-30: "GiB", 1e-3: "kB", 1e-6: "MB", 1e-9: "GB"}
PLAIN = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 100, 1000]
EXPONENTS = {1: "{}", 0.5: "√{}", 2: "{}²", -1: "{}", -0.5: "√{}", -2: "{}²"}


def factor(ratios: Sequence[float], sizes: Sizes) -> str:
    """√d_k, or 1/(2·h): what these ratios are in all cases; "" if nothing short fits."""
    if not ratios or not all(math.isfinite(r) and r for r in ratios):
        return ""
    names = common(sizes)
    powers = [(name, e) for name in names for e in EXPONENTS]
    for terms in [(), *((p,) for p in powers), *itertools.combinations(powers, 2)]:
        if len({name for name, _ in terms}) < len(terms):
            continue
        rest = [r / math.prod(s[name] ** e for name, e in terms) for r, s in zip(ratios, sizes)]
        if all(math.isclose(r, rest[0], rel_tol=1e-6) for r in rest) and (terms or len(ratios) > 1):
            number = plain(rest[0])
            if number and (terms or number != (1, 1)) and not (len(terms) == 2 and number != (1, 1)):
                return written(number, terms)
    return ""


def term(differences: Sequence[float], sizes: Sizes) -> str:
    """2·T·d_model: what these differences are, up to their common sign; "" if no product of whole powers fits."""
    names = common(sizes)
    if len(differences) < 2 or not all(differences) or len({d > 0 for d in differences}) > 1:
        return ""
    found = []
    for exponents in itertools.product((0, 1, 2), repeat=len(names)):
        if 0 < sum(exponents) <= 5:
            rest = [abs(d) / math.prod(s[n] ** e for n, e in zip(names, exponents)) for d, s in zip(differences, sizes)]
            number = plain(rest[0]) if all(math.isclose(r, rest[0], rel_tol=1e-9) for r in rest) else None
            if number and number[1] == 1:
                terms = [(n, e) for n, e in zip(names, exponents) if e]
                found.append((sum(exponents) + (number[0] != 1), written(number, terms)))
    return min(found, default=(0, ""))[1]


def common(sizes: Sizes) -> list[str]:
    """The letters that have a size above 1 in some case, each size once."""
    names, seen = [], []
    for name in sorted(set.intersection(*map(set, sizes)), key=lambda name: (len(name), name)) if sizes else []:
        values = [s[name] for s in sizes]
        if values not in seen and min(values) > 0 and max(values) > 1:
            names.append(name)
            seen.append(values)
    return names


def plain(number: float) -> tuple[int, int] | None:
    """(2, 1) for 2, (1, 3) for a third; None for a number that nobody would write."""
    for top, bottom in itertools.product(PLAIN, PLAIN):
        if math.isclose(number, top / bottom, rel_tol=1e-6) and (top == 1 or bottom == 1):
            return top, bottom
    return None


def written(number: tuple[int, int], terms: Sequence[tuple[str, float]]) -> str:
    top = [str(number[0])] * (number[0] > 1) + [EXPONENTS[e].format(name) for name, e in terms if e > 0]
    bottom = [str(number[1])] * (number[1] > 1) + [EXPONENTS[e].format(name) for name, e in terms if e < 0]
    below = "·".join(bottom)
    return ("·".join(top) or "1") + (f"/({below})" if len(bottom) > 1 else f"/{below}" if bottom else "")


def unit(ratios: Sequence[float]) -> str:
    """MiB, if each number is that many times too small."""
    for ratio, name in UNITS.items():
        if all(math.isclose(r, ratio, rel_tol=1e-3) for r in ratios):
            return name
    return ""
