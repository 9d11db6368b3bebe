"""What one call of an answer did: its result as a flat list of values, its gradients, or its error in words."""

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

Value = Tensor | str
Gradients = list[Tensor] | str | None  # one for each float input; a text if the backward pass fails; None if none flows
NOT_THE_LEARNERS = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))


@dataclass
class Outcome:
    values: list[Value] = field(default_factory=list)  # the result, flat; empty if it holds no numbers
    type_name: str = ""  # of the result
    no_tensor: bool = False  # it holds none
    whole: bool = False  # it is one whole number
    changed: list[str] = field(default_factory=list)  # names of inputs written over
    unwritten: bool = False  # nothing came back
    error: str = ""  # what was raised, in one line
    failing_line: str = ""  # of the learner's code, with the shapes there
    mixes_float_types: bool = False  # the error says that float64 met float32


def observe(run: Callable, answer: object, inputs: Sequence, names: Sequence[str]) -> Outcome:
    """Call run(answer, *inputs) on copies, with the same random numbers every time."""
    given = copy.deepcopy(inputs)
    torch.default_generator.manual_seed(0)
    try:
        value = stacked(run(answer, *given))
    except StopThread:
        raise
    except BaseException as error:  # a learner's sys.exit() is an answer like any other
        unwritten = isinstance(error, NotImplementedError) or (
            isinstance(error, (AttributeError, TypeError)) and "ellipsis" in str(error)
        )
        return Outcome(
            error=error_line(error),
            failing_line=failing_line(error),
            unwritten=unwritten,
            mixes_float_types=names_two_float_types(str(error)),
        )
    if value is None or value is ...:
        return Outcome(unwritten=True)
    changed = [name for name, before, after in zip(names, inputs, given) if not is_unchanged(before, after)]
    try:
        values = flatten(value)
        whole = all(isinstance(x, Tensor) and x.numel() == 1 and not x.is_floating_point() for x in values)
        return Outcome(values, type(value).__name__, not tensors_in(value), whole, changed)
    except Exception:  # whatever it is, it holds no numbers
        return Outcome(type_name=type(value).__name__, changed=changed)


def observe_gradients(run: Callable, answer: object, inputs: Sequence) -> Gradients:
    """Of a fixed weighted sum of the result, in every float input."""
    given = copy.deepcopy(inputs)
    wanted = [x.requires_grad_() for x in tensors_in(given) if x.is_floating_point()]
    torch.default_generator.manual_seed(0)
    try:
        results = [x.double() for x in tensors_in(stacked(run(answer, *given))) if x.requires_grad]
        if not results:
            return None
        total = torch.stack([(x * torch.arange(x.numel()).cos().view(x.shape)).sum() for x in results]).sum()
        found = torch.autograd.grad(total, wanted, allow_unused=True)
    except StopThread:
        raise
    except BaseException as error:
        return error_line(error)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, found)]


def stacked(value: Any) -> Any:
    """Nested lists of numbers, of which some are tensors, as one tensor: a gradient flows through it."""
    if isinstance(value, list) and value and all(isinstance(x, (list, int, float, Tensor)) for x in value):
        parts = [stacked(x) for x in value]
        if any(isinstance(x, Tensor) for x in parts):
            nested = any(isinstance(x, list) for x in value)
            numbers = [torch.as_tensor(x) for x in parts if not isinstance(x, list)]
            if len(numbers) == len(parts) and len({x.shape for x in numbers}) == 1 and (nested or not numbers[0].dim()):
                return torch.stack(numbers)
    return value


def flatten(value: object) -> list[Value]:
    """Tensors and texts in order; numbers, arrays and lists of numbers become tensors. Raises for anything else."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_meta or value.is_complex():
            raise TypeError(f"{value.dtype}, {value.layout}, {value.device}")
        return [value.detach().cpu()]
    if isinstance(value, (list, tuple)) and contains(value, (str, Tensor)):
        return [part for item in value for part in flatten(item)]
    number = torch.as_tensor(value)
    if number.is_complex():
        raise TypeError(f"{value} is complex")
    return [number]


def contains(value: Sequence, types: tuple) -> bool:
    """Whether something of these types lies in nested lists and tuples."""
    return any(isinstance(x, types) or isinstance(x, (list, tuple)) and contains(x, types) for x in value)


def tensors_in(value: object) -> list[Tensor]:
    """The tensors in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in tensors_in(item)]
    return [value] if isinstance(value, Tensor) else []


def to_float32(x: Any) -> Any:
    """Tensors, layers, and lists of them, in float32; anything else as it is."""
    if isinstance(x, (list, tuple)):
        return [to_float32(item) for item in x]
    if isinstance(x, torch.nn.Module):
        return copy.deepcopy(x).float()
    return x.float() if isinstance(x, Tensor) and x.is_floating_point() else x


def is_unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return torch.equal(before, after)
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(is_unchanged, before, after))
    if isinstance(before, torch.nn.Module):  # its numbers, and settings such as batch_first
        pairs = zip(before.modules(), after.modules(), strict=True)
        return all(map(torch.equal, before.parameters(), after.parameters())) and all(
            settings(one) == settings(other) for one, other in pairs
        )
    return before == after


def settings(module: torch.nn.Module) -> dict:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def error_line(error: BaseException) -> str:
    """One line, without addresses, which differ from run to run."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}".rstrip(": ")


def failing_line(error: BaseException) -> str:
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


def names_two_float_types(message: str) -> bool:
    """Whether an error speaks of float64 and of float32; torch calls them double and float, in large or small."""
    words = {*re.findall(r"\w+", message.lower())}
    return bool(words & {"double", "float64"} and words & {"float", "float32"})
