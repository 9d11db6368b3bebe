"""Where two results differ first, in words: what came, and what is expected."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mhsa.exercises.outcome import Value

FLOAT32_TOLERANCE = 1e-5  # the least for a result in float32


class Difference(NamedTuple):
    came: str
    expected: str


def first_difference(got: Sequence[Value], want: Sequence[Value], tolerance: float) -> Difference | None:
    """None where they are the same; the tolerance is relative and absolute."""
    if len(got) != len(want):
        return Difference(f"{len(got)} result{'s' * (len(got) != 1)} came back", str(len(want)))
    for i, (g, w) in enumerate(zip(got, want)):
        if isinstance(g, str) or isinstance(w, str):
            found = text_difference(g, w)
        else:
            found = tensor_difference(g, w, tolerance)
        if found:
            return found if len(want) == 1 else found._replace(came=f"result {i + 1} of {len(want)}: {found.came}")
    return None


def text_difference(got: Value, want: Value) -> Difference | None:
    """Large and small letters are the same."""
    if isinstance(want, Tensor):
        return Difference(
            f"a text, {got!r}: numbers have no quotation marks", "a number" if want.numel() == 1 else "numbers"
        )
    if str(got).strip().lower() == want.strip().lower():
        return None
    return Difference(repr(got) if isinstance(got, str) else "a number", repr(want))


def tensor_difference(got: Tensor, want: Tensor, tolerance: float) -> Difference | None:
    """In number of axes, shape, Boolean or number, then the first number."""
    if want.dim() == 0 and got.numel() == 1:  # tensor([4]) is a fine 4
        got = got.reshape(())
    if got.dim() == 0 and want.dim() == 1:
        return Difference("a single number", f"{len(want)} numbers")
    if got.dim() == want.dim() == 1 and len(got) != len(want):
        return Difference(f"{len(got)} numbers are too {'many' if len(got) > len(want) else 'few'}", str(len(want)))
    if got.shape != want.shape:
        return Difference(f"shape {tuple(got.shape)}", f"shape {tuple(want.shape)}")
    if (got.dtype == torch.bool) != (want.dtype == torch.bool):
        return Difference(name_dtype(got), name_dtype(want))
    if not want.is_floating_point():
        tolerance = 0
    elif got.dtype != torch.float64:
        tolerance = max(tolerance, FLOAT32_TOLERANCE)
    wrong = ~got.double().isclose(want.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if not wrong.any():
        return None
    index = tuple(wrong.nonzero()[0].tolist())
    g, w = got[index].item(), want[index].item()
    came, expected = format_apart(g, w)
    if want.dim() == 0:
        return Difference(f"{came}{' is too small' * (g < w)}{' is too large' * (g > w)}", expected)
    return Difference(f"{came} at {list(index)} ({wrong.sum()} of {wrong.numel()} differ)", expected)


def name_dtype(x: Tensor) -> str:
    return "Booleans" if x.dtype == torch.bool else f"numbers ({x.dtype})"


def format_apart(got: bool | int | float, want: bool | int | float) -> tuple[str, str]:
    """Both numbers with four digits, or with as many as it takes to see that they differ."""
    for digits in range(4, 18):
        texts = format_number(got, digits), format_number(want, digits)
        if texts[0] != texts[1]:
            break
    return texts


def format_number(number: bool | int | float, digits: int) -> str:
    if isinstance(number, bool):
        return str(number)
    return f"{number:.{digits}g}" if isinstance(number, float) and not number.is_integer() else f"{number:,.0f}"
