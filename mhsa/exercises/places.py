"""Right numbers in wrong places: axes exchanged, shifted, cut short, added up, all alike; or wrong in one place."""

import itertools

from torch import Tensor

from mhsa.exercises.pairs import Pairs

REDUCTIONS = {
    "sum": lambda x, i: x.sum(i, keepdim=True),
    "mean": lambda x, i: x.mean(i, keepdim=True),
    "largest": lambda x, i: x.amax(i, keepdim=True),
    "first": lambda x, i: x.narrow(i, 0, 1),
    "last": lambda x, i: x.narrow(i, x.shape[i] - 1, 1),
}


def other_axes(p: Pairs) -> str:
    """The axes in another order, or the same numbers in another shape."""
    n = p.want[0].dim()
    for order in itertools.permutations(range(n)):
        if list(order) != sorted(order) and p.all(lambda g, w, o=order: p.close(g, w.permute(o))):
            if n == 2:
                return "The numbers are right, but rows and columns are exchanged."
            now = f"({', '.join(p.due[i] for i in order)})" if len(p.due) == n else f"in the order {order}"
            return f"The numbers are right, their axes are not: yours are {now}" + (
                f", asked is ({', '.join(p.due)})." if len(p.due) == n else "."
            )
    if all(g.shape == w.shape for g, w in p):
        return ""
    if p.all(lambda g, w: g.numel() == w.numel() and p.close(g.flatten(), w.flatten())):
        return f"The numbers are right and in the right order, only the shape is not: {p.shapes}."
    return ""


def along_one_axis(p: Pairs) -> str:
    """Turned round, shifted, in another order, cut short, or too long."""
    for i in range(min(w.dim() for w in p.want)):
        if p.all(lambda g, w, i=i: p.close(g, w.flip(i))):
            return f"The numbers are right, but the {p.word(i, True)} come in reverse order."
        for step in (1, -1, 2, -2):
            if p.all(lambda g, w, i=i, s=step: p.close(g, w.roll(s, i))):
                places = "one place" if abs(step) == 1 else "two places"
                return f"The numbers are right, but the {p.word(i, True)} are shifted by {places}, in a ring."
        if not p.boolean and any(w.shape[i] > 2 for _, w in p.wrong):
            for step, words in ((1, "the one before it"), (-1, "the one behind it")):
                if p.all(lambda g, w, i=i, s=step: is_shifted(p, g, w, i, s)):
                    return f"You are off by one: in place of each {p.word(i)} stands {words}."
        orders = [order_along(p, g, w, i) for g, w in p]
        unsorted = [order for order in orders if order and order != sorted(order)]
        if all(orders) and unsorted:
            order = unsorted[0]
            return (
                f"The numbers are right, but the {p.word(i, True)} come in another order: {', '.join(map(str, order))}."
            )
        for front, end in ((True, "last"), (False, "first")):
            if p.all(lambda g, w, i=i, f=front: is_part(p, g, w, i, f)):
                return f"What is there is right, but the {end} {p.word(i, True)} are missing: {p.shapes}."
            if p.all(lambda g, w, i=i, f=front: is_part(p, w, g, i, f)):
                where = "at the end" if front else "in front"
                return f"The right result is in yours, but {where} there are {p.word(i, True)} too many: {p.shapes}."
    if p.all(lambda g, w: w.dim() > 1 and p.close(g, w.flip(0, 1))):
        return f"The numbers are right, but both {p.word(0, True)} and {p.word(1, True)} come in reverse order."
    return ""


def is_shifted(p: Pairs, g: Tensor, w: Tensor, i: int, step: int) -> bool:
    n = w.shape[i] - 1
    return n < 1 or p.close(g.narrow(i, max(step, 0), n), w.narrow(i, max(-step, 0), n))


def is_part(p: Pairs, g: Tensor, w: Tensor, i: int, front: bool) -> bool:
    n = g.shape[i]
    return 0 < n < w.shape[i] and p.close(g, w.narrow(i, 0 if front else w.shape[i] - n, n))


def order_along(p: Pairs, g: Tensor, w: Tensor, i: int) -> list[int] | None:
    """[2, 0, 1]: which slice of the right result each slice of the other is. Slices of one number tell nothing."""
    if p.close(g, w):
        return [*range(w.shape[i])]
    if g.shape != w.shape or g.dim() < 2 or p.boolean:
        return None
    order = []
    for j in range(g.shape[i]):
        same = [k for k in range(w.shape[i]) if p.close(g.select(i, j), w.select(i, k))]
        if not same or g.select(i, j).numel() < 2:
            return None
        order.append(j if j in same else same[0])
    return order


def lost_axis(p: Pairs) -> str:
    """One is the sum, the mean, or a part, of the other along an axis."""
    for name, reduce in REDUCTIONS.items():
        for i in range(max(x.dim() for pair in p for x in pair)):
            if p.all(lambda g, w, r=reduce, i=i: g.numel() < w.numel() and p.close(g.flatten(), r(w, i).flatten())):
                over = (
                    f"over the {p.word(i, True)}" if name in ("sum", "mean", "largest") else f"of the {p.word(i, True)}"
                )
                return f"Yours is the {name} {over} of the right result: {p.shapes}."
            if p.all(lambda g, w, r=reduce, i=i: g.numel() > w.numel() and p.close(r(g, i).flatten(), w.flatten())):
                return f"One step is missing: the {name} of yours over axis {i} is the right result."
    return ""


def alike(p: Pairs) -> str:
    """All heads alike, all sentences alike: a loop variable that is not used, an average that is repeated."""
    for i in range(p.want[0].dim()):
        many = [(g, w) for g, w in p if g.shape[i] > 1]
        if not many or not all(p.close(g, g.narrow(i, 0, 1).expand_as(g)) for g, _ in many):
            continue
        if not any(p.close(w, w.narrow(i, 0, 1).expand_as(w)) for _, w in many):
            words = f"In your result all {p.word(i, True)} are alike, and they should differ."
            for name, reduce in REDUCTIONS.items() if not p.boolean else ():
                if all(p.close(g, reduce(w, i).expand_as(w)) for g, w in many):
                    return f"{words} Each is the {name} of the right ones."
            return words
    return ""


def elsewhere(p: Pairs) -> str:
    def same_numbers(g: Tensor, w: Tensor) -> bool:
        return p.close(g.flatten().sort()[0], w.flatten().sort()[0])

    if not any(w.numel() > 5 for _, w in p.wrong) or not p.all(same_numbers):
        return ""
    return (
        "The right numbers are all there, but in other places: an axis is cut, joined or swapped in the wrong order. "
        "Which axis must be outermost, and which numbers are neighbours?"
    )


def rows(p: Pairs) -> str:
    """Each row is right up to a factor of its own."""

    def scaled(g: Tensor, w: Tensor) -> bool:
        return g.shape[-1] < 2 or p.close(g / g.norm(dim=-1, keepdim=True), w / w.norm(dim=-1, keepdim=True))

    several = any(w.dim() and 2 < w.shape[-1] < w.numel() for _, w in p.wrong)
    if not several or not p.all(scaled):
        return ""
    return "Each row of yours is right up to a factor of its own: by which sum, or which number, is it divided?"


def sums(p: Pairs) -> str:
    """Rows that must sum to 1: whether yours do, or columns do."""

    def to_one(x: Tensor, i: int) -> bool:
        return x.dim() > 1 and x.sum(i).allclose(x.sum(i).new_ones(()), atol=1e-6)

    if not all(to_one(w, -1) for w in p.want) or not any(w.shape[-1] > 1 for _, w in p.wrong):
        return ""
    if all(to_one(g, -1) for g in p.got):
        negative = " Some numbers are negative." if any((g < 0).any() for g in p.got) else ""
        return f"Your rows sum to 1, as they should, but they share it out in another way.{negative}"
    if all(to_one(g, -2) for g in p.got):
        return "In yours each column sums to 1; each row should."
    return "Each row should sum to 1; yours do not."


def where(p: Pairs) -> str:
    """What is wrong lies at a few places of one axis, the same in all cases: the first, the last, one head."""
    for i in range(p.want[0].dim()):
        wrong = [[not p.close(g.select(i, j), w.select(i, j)) for j in range(w.shape[i])] for g, w in p.wrong]
        longest = max(wrong, key=len)
        if len(longest) < 3:
            continue
        word = p.word(i)
        for bad, good, ends in (("wrong", "right", True), ("right", "wrong", False)):
            if all(one[0] is ends and not any(x is ends for x in one[1:]) for one in wrong):
                return f"Only the first {word} of your result is {bad}, the others are {good}."
            if all(one[-1] is ends and not any(x is ends for x in one[:-1]) for one in wrong):
                return f"Only the last {word} of your result is {bad}, the others are {good}."
        if sum(longest) <= len(longest) / 2:
            which = ", ".join(str(j) for j, bad in enumerate(longest) if bad)
            return f"Most is right: of {len(longest)} {p.word(i, True)} these are wrong: {which}."
    return ""
