"""What one call of an answer did, and how two such outcomes differ."""

import copy
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mhsa.exercises.timeout import StopThread

Leaf = Tensor | str
SINGLE = 1e-5  # the least tolerance for a result in float32
NOT_THE_LEARNERS = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))


@dataclass
class Outcome:
    leaves: list[Leaf] = field(default_factory=list)  # the result, flat; empty if it holds no numbers
    kind: str = ""  # its type
    plain: bool = False  # it holds no tensor
    changed: list[str] = field(default_factory=list)  # names of inputs written over
    unwritten: bool = False  # nothing came back
    error: str = ""  # what was raised
    where: str = ""  # on which line, with which shapes


def observe(run: Callable, answer: object, inputs: Sequence, names: Sequence[str]) -> Outcome:
    """Call run(answer, *inputs) on copies, with the same random numbers every time."""
    given = copy.deepcopy(inputs)
    torch.default_generator.manual_seed(0)
    try:
        value = run(answer, *given)
    except StopThread:
        raise
    except BaseException as error:  # a learner's sys.exit() is an answer like any other
        unwritten = isinstance(error, NotImplementedError) or (
            isinstance(error, (AttributeError, TypeError)) and "ellipsis" in str(error)
        )
        return Outcome(error=say(error), where=place(error), unwritten=unwritten)
    if value is None or value is ...:
        return Outcome(unwritten=True)
    changed = [name for name, before, after in zip(names, inputs, given) if not untouched(before, after)]
    try:
        return Outcome(flatten(value), type(value).__name__, plain=not tensors(value), changed=changed)
    except Exception:  # whatever it is, it holds no numbers
        return Outcome(kind=type(value).__name__, changed=changed)


def gradients(run: Callable, answer: object, inputs: Sequence) -> list[Tensor] | str | None:
    """Of a fixed weighted sum of the result, in every float input; None if none flows, a text if it fails."""
    given = copy.deepcopy(inputs)
    wanted = [x.requires_grad_() for x in tensors(given) if x.is_floating_point()]
    torch.default_generator.manual_seed(0)
    try:
        results = [x.double() for x in tensors(run(answer, *given)) if x.requires_grad]
        if not results:
            return None
        total = torch.stack([(x * torch.arange(x.numel()).cos().view(x.shape)).sum() for x in results]).sum()
        found = torch.autograd.grad(total, wanted, allow_unused=True)
    except StopThread:
        raise
    except BaseException as error:
        return say(error)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, found)]


def flatten(value: object) -> list[Leaf]:
    """Tensors and texts in order; numbers, arrays and lists of numbers become tensors. Raises for anything else."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_meta or value.is_complex():
            raise TypeError(f"{value.dtype}, {value.layout}, {value.device}")
        return [value.detach().cpu()]
    if isinstance(value, (list, tuple)) and holds(value, (str, Tensor)):
        return [leaf for item in value for leaf in flatten(item)]
    number = torch.as_tensor(value)
    if number.is_complex():
        raise TypeError(f"{value} is complex")
    return [number]


def holds(value: Sequence, kinds: tuple) -> bool:
    return any(isinstance(x, kinds) or isinstance(x, (list, tuple)) and holds(x, kinds) for x in value)


def tensors(value: object) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in tensors(item)]
    return [value] if isinstance(value, Tensor) else []


def in_float32(x: object) -> object:
    if isinstance(x, (list, tuple)):
        return [in_float32(item) for item in x]
    if isinstance(x, torch.nn.Module):
        return copy.deepcopy(x).float()
    return x.float() if isinstance(x, Tensor) and x.is_floating_point() else x


def untouched(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return torch.equal(before, after)
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(untouched, before, after))
    if isinstance(before, torch.nn.Module):  # its numbers, and settings such as batch_first
        pairs = zip(before.modules(), after.modules(), strict=True)
        return all(map(torch.equal, before.parameters(), after.parameters())) and all(
            settings(one) == settings(other) for one, other in pairs
        )
    return before == after


def settings(module: torch.nn.Module) -> dict:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def difference(got: list[Leaf], want: list[Leaf], tolerance: float) -> tuple[str, str] | None:
    """The first difference as (what came, what is expected), or None."""
    if len(got) != len(want):
        return f"{len(got)} result{'s' * (len(got) != 1)} came back", str(len(want))
    for i, (g, w) in enumerate(zip(got, want)):
        found = text_difference(g, w) if isinstance(g, str) or isinstance(w, str) else leaf_difference(g, w, tolerance)
        if found:
            return (f"result {i + 1} of {len(want)}: {found[0]}" if len(want) > 1 else found[0]), found[1]
    return None


def text_difference(got: Leaf, want: Leaf) -> tuple[str, str] | None:
    if isinstance(want, Tensor):
        return f"a text, {got!r}: numbers have no quotation marks", "a number" if want.numel() == 1 else "numbers"
    same = str(got).strip().lower() == want.strip().lower()
    return None if same else (repr(got) if isinstance(got, str) else "a number", repr(want))


def leaf_difference(got: Tensor, want: Tensor, tolerance: float) -> tuple[str, str] | None:
    if want.dim() == 0 and got.numel() == 1:  # tensor([4]) is a fine 4
        got = got.reshape(())
    if got.dim() == 0 and want.dim() == 1:
        return "a single number", f"{len(want)} numbers"
    if got.dim() == want.dim() == 1 and len(got) != len(want):
        return f"{len(got)} numbers are too {'many' if len(got) > len(want) else 'few'}", str(len(want))
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)}", f"shape {tuple(want.shape)}"
    if (got.dtype == torch.bool) != (want.dtype == torch.bool):
        return kind(got), kind(want)
    if not want.is_floating_point():
        tolerance = 0
    elif got.dtype != torch.float64:
        tolerance = max(tolerance, SINGLE)
    wrong = ~got.double().isclose(want.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if not wrong.any():
        return None
    index = tuple(wrong.nonzero()[0].tolist())
    g, w = got[index].item(), want[index].item()
    came, due = apart(g, w)
    if want.dim() == 0:
        return f"{came}{' is too small' * (g < w)}{' is too large' * (g > w)}", due
    return f"{came} at {list(index)} ({wrong.sum()} of {wrong.numel()} differ)", due


def kind(x: Tensor) -> str:
    return "Booleans" if x.dtype == torch.bool else f"numbers ({x.dtype})"


def apart(got: bool | int | float, want: bool | int | float) -> tuple[str, str]:
    """Both numbers with four digits, or with as many as it takes to see that they differ."""
    for digits in range(4, 18):
        texts = show(got, digits), show(want, digits)
        if texts[0] != texts[1]:
            break
    return texts


def show(number: bool | int | float, digits: int) -> str:
    if isinstance(number, bool):
        return str(number)
    return f"{number:.{digits}g}" if isinstance(number, float) and not number.is_integer() else f"{number:,.0f}"


def describe(inputs: Sequence, names: Sequence[str]) -> str:
    """q (2, 3, 5), num_heads=4: shapes of tensors, values of the rest."""
    return ", ".join(
        f"{name} {shape(x)}"
        if tensors(x)
        else f"{name}={x}"
        if not isinstance(x, torch.nn.Module)
        else f"{name} {type(x).__name__}"
        for name, x in zip(names, inputs)
    )


def shape(x: Tensor | Sequence) -> str:
    return str(tuple(x.shape)) if isinstance(x, Tensor) else f"{len(x)} times {shape(x[0])}"


def say(error: BaseException) -> str:
    """One line, without addresses, which differ from run to run."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}".rstrip(": ")


def place(error: BaseException) -> str:
    """The last line of the learner's own code, and the tensors it could see."""
    own = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(NOT_THE_LEARNERS)
    ]
    if not own:
        return ""
    frame, line = own[-1]
    source = traceback.FrameSummary(frame.f_code.co_filename, line, "").line
    seen = [
        f"{name} {tuple(x.shape)}{'' if x.dtype == torch.float64 else f' {x.dtype}'}"
        for name, x in frame.f_locals.items()
        if isinstance(x, Tensor)
    ][:8]
    return f"\n  in line {line}:  {source}" + (f"\n  shapes there:  {', '.join(seen)}" if seen else "")
