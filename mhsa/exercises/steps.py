"""The steps of an answer: what each torch operation made, in which line, and which one failed on what."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from mhsa.exercises.outcome import NOT_THE_LEARNERS, tensors_in
from mhsa.exercises.timeout import StopThread

MOST = 300  # a slow loop has thousands: its first steps are enough


class Step(NamedTuple):
    name: str  # of the operation
    value: Tensor
    line: int  # of the code that called it; 0 if it is not known
    file: str


class Failure(NamedTuple):
    """The operation that raised: its name, what it was given, and how."""

    name: str
    given: list[Tensor]
    rest: str  # arguments that are no tensors


class Recorder(TorchFunctionMode):
    """Keeps what torch makes. A view that torch refuses becomes a reshape, so that the code behind it is seen too."""

    def __init__(self, given: Sequence):
        super().__init__()
        self.given = {x.untyped_storage().data_ptr() for x in tensors_in(given)}
        self.steps: list[Step] = []
        self.failure: Failure | None = None
        self.refused_view = False

    def __torch_function__(self, func: Callable, types: Any, args: Sequence = (), kwargs: dict | None = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        try:
            result = func(*args, **kwargs)
        except StopThread:
            raise
        except Exception as error:
            if "view size is not compatible" in str(error):
                self.refused_view = True
                return args[0].reshape(*args[1:], **kwargs)
            given = [x.detach() for x in tensors_in([*args, *kwargs.values()])]
            rest = [x for x in (*args, *kwargs.values()) if not isinstance(x, (Tensor, list, tuple))]
            self.failure = Failure(name, given, repr(rest))
            raise
        if len(self.steps) < MOST:
            for value in tensors_in(result):
                if value.layout == torch.strided and not value.is_meta and not self.is_view_of_input(value):
                    self.steps.append(Step(name, value.detach().clone(), *line_of_learner()))
        return result

    def is_view_of_input(self, value: Tensor) -> bool:
        return value.untyped_storage().data_ptr() in self.given


def line_of_learner() -> tuple[int, str]:
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(NOT_THE_LEARNERS):
        frame = frame.f_back
    return (frame.f_lineno, frame.f_code.co_filename) if frame else (0, "")


def record(run: Callable, answer: object, inputs: Sequence) -> tuple[Recorder, Any]:
    """What the answer does on these inputs, step by step, and its result; None if it raises."""
    given = copy.deepcopy(inputs)
    torch.default_generator.manual_seed(0)
    recorder = Recorder(given)
    try:
        with recorder:
            return recorder, run(answer, *given)
    except StopThread:
        raise
    except BaseException:  # it is known from the outcome that it fails
        return recorder, None
