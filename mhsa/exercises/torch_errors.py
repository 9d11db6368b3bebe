"""Errors of torch and of Python in words, with the shapes in letters: what did not fit, and where to look."""

import re
from collections.abc import Callable

from mhsa.exercises.steps import Failure

Words = Callable[[re.Match, list[str], str], str]  # (match in the error, shapes given, name of the operation) -> words


def error_words(error: str, failure: Failure | None, letters: dict[str, int]) -> str:
    """One or two sentences; "" for an error that is not in the table."""
    given = [shape(tuple(x.shape), letters) for x in failure.given] if failure else []
    for pattern, words in TABLE:
        found = re.search(pattern, error)
        if found:
            return words(found, given, failure.name if failure else "") if callable(words) else words
    return ""


def shape(sizes: tuple[int, ...], letters: dict[str, int]) -> str:
    """(B, T_q, d_k): a letter for each size that belongs to one letter alone, else the number."""
    known = [[name for name, value in letters.items() if value == size] for size in sizes]
    axes = [names[0] if len(names) == 1 else str(size) for names, size in zip(known, sizes)]
    return f"({', '.join(axes)}{',' * (len(axes) == 1)})"


def product(found: re.Match, given: list[str], name: str) -> str:
    if len(given) < 2:
        return "In this product two inner sizes differ: write both shapes side by side."
    left, right = given[-2:]
    if name == "linear":
        return f"`linear` multiplies {left} by the transpose of {right}: the last sizes of both must be equal."
    return f"The product meets {left} and {right}: the last size on the left must be the second-last on the right."


def broadcast(found: re.Match, given: list[str], name: str) -> str:
    if len(given) < 2:
        return "Two sizes do not fit: read from the right, they must be equal, or one of them 1."
    left, right = given[-2:]
    end = " Has one lost an axis? `keepdim=True` keeps it." if left.count(",") != right.count(",") else ""
    return f"{left} and {right} do not fit: read from the right, two sizes must be equal, or one of them 1.{end}"


def letter(found: re.Match, given: list[str], name: str) -> str:
    both = f"The letter {found[1]} of einsum stands for two sizes, {found[3]} and {found[2]}"
    return f"{both}. One letter is one axis: give the second a letter of its own, or look which axis you mean."


def pieces(found: re.Match, given: list[str], name: str) -> str:
    different = " and ".join(dict.fromkeys(given))
    return f"The pieces to put together differ in size: {different}. Along which axis do they join, and were they cut?"


def sizes(found: re.Match, given: list[str], name: str) -> str:
    what = f"{found[1]} does not hold the {found[2]} numbers" + (f" of {given[0]}" if given else "")
    return f"{what}. Which axis do you cut, and into which two sizes?"


def dimension(found: re.Match, given: list[str], name: str) -> str:
    tensor = given[0] if given else "the tensor"
    return f"`{name}` is told an axis that {tensor} does not have: count axes from 0, or from -1 backwards."


PRODUCT = (
    r"mat1 and mat2 shapes|first two dimensions of batch2|size mismatch, got|inconsistent tensor size|both arguments"
)
BROADCAST = r"size of tensor a .* must match the size of tensor b|not broadcastable|shape mismatch"
PIECES = r"stack expects each tensor|Sizes of tensors must match except|must have the same number of dimensions"
TABLE: list[tuple[str, Words | str]] = [
    (PRODUCT, product),
    (r"einsum\(\): subscript (\w+) has size (\d+) .* previously seen size (\d+)", letter),
    (r"einsum\(\)", "Count the letters of einsum: one for each axis of each tensor."),
    (BROADCAST, broadcast),
    (PIECES, pieces),
    (r"shape '(.+?)' is invalid for input of size (\d+)", sizes),
    (r"view size is not", "`view` cannot join or cut axes whose numbers lie apart in memory, as after a transpose."),
    (
        r"Boolean value of Tensor|truth value of an array",
        "`and`, `or`, `not` and `if` ask for one answer, and a tensor has many: write `&`, `|`, `~`, or torch.where.",
    ),
    (r"Dimension out of range", dimension),
    (r"out of bounds|out of range", "An index lies beyond the end: the last of n is n - 1."),
    (
        r"tensors used as indices|only integer tensors|indices must be",
        "An index is a whole number or a Boolean: `.long()` or `.bool()` makes one.",
    ),
    (
        r"unexpected keyword|no overload|one of the following|invalid combination",
        "This call takes no such argument: `help(...)` of the function lists the names there are.",
    ),
    (
        r"NameError|UnboundLocalError|cannot access (local|free) variable",
        "The name is not known there: is it spelled as in the line that makes it, and does that line run before?",
    ),
    (r"converted to (a )?(Python )?[Ss]calar", "One number is expected there, and a tensor with several came."),
    (
        r"'(list|tuple)' object has no attribute",
        "A list of tensors is no tensor: torch.stack makes one with a new axis, torch.cat joins along an old one.",
    ),
    (
        r"unsupported operand|bad operand|not implemented for|only implemented on|not supported",
        "This operation is not made for that kind of thing: print the type, and the dtype, of both sides.",
    ),
    (
        r"unflatten|split_with_sizes|split expects",
        "The pieces must add up, or multiply, to the size of the axis that you cut.",
    ),
    (r"ZeroDivisionError", "Something is divided by 0: which input makes it 0, and what should come out there?"),
]
