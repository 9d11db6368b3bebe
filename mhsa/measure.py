"""Time and memory of one pass of a layer: ours, torch's and the floor. Who measures: mhsa.bench and mhsa.sweeps.

All contestants do self-attention on one input with the same weights and biases. "f" (forward) is eval mode without
gradients, where nn.MultiheadAttention takes its own compiled fast path if h is even; "f+b" (and backward) is training
mode, with gradients of the input and of every parameter. The floor is the work that cannot be left out, each piece on
inputs that lie ready: four matrix products and the fused kernel, with no split, merge or check between them.
"""

import os
import platform
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import accumulate, product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

from mhsa.checks import check_size
from mhsa.count import count_flops, count_memory
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop

ASSETS = Path(__file__).parents[1] / "assets"  # where what was measured is recorded

SPEED_NAMES = ("ours", "ours, weights", "torch", "torch, weights", "floor")
KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
LARGEST_MAP = 2**30  # bytes of the maps of one pass, B·h·T·T numbers


class Cell(NamedTuple):
    """One shape, in one direction: forward, or forward and backward."""

    B: int
    T: int
    d_model: int
    num_heads: int
    backward: bool

    def __str__(self) -> str:
        return f"{self.B:3} {self.T:6} {self.d_model:8} {self.num_heads:3} {'f+b' if self.backward else 'f':>5}"

    @property
    def map_fits(self) -> bool:
        return count_memory(self.B, self.T, self.d_model, self.num_heads).scores <= LARGEST_MAP

    @property
    def gflop(self) -> float:
        """Of the forward pass."""
        return count_flops(self.B, self.T, self.d_model, self.num_heads).total / 1e9


def cells_of(
    *,
    B: Iterable[int],
    T: Iterable[int],
    d_model: Iterable[int],
    num_heads: Iterable[int],
    backward: Iterable[bool] = (False, True),
) -> list[Cell]:
    """Every combination in which num_heads divides d_model."""
    return [Cell(*sizes) for sizes in product(B, T, d_model, num_heads, backward) if sizes[2] % sizes[3] == 0]


def about(device: str) -> dict[str, str]:
    """When and where something was measured, and with what."""
    cpu = f"CPU {platform.machine()} ({torch.backends.cpu.get_cpu_capability()}), {torch.get_num_threads()} threads"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if device == "cuda" else cpu,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def check_writable(file: Path) -> None:
    """Ends the program with a sentence if the file could not be written: before work that would be lost."""
    try:
        TemporaryFile(dir=file.parent).close()
        if file.exists():
            open(file, "r+b").close()
    except OSError as error:
        sys.exit(
            f"{file} cannot be written ({error.strerror}), so nothing was run. Copy the course, or name another place."
        )


# What runs


@torch.random.fork_rng(range(torch.cuda.device_count()))
def contestants(cell: Cell, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> dict[str, Callable[[], Any]]:
    """name -> a call that runs one pass of the cell. A forward cell's calls are meant to run without gradients.

    The session's own random numbers go on as if none had been drawn here.
    """
    torch.manual_seed(0)
    loop = MultiHeadAttentionLoop(cell.d_model, cell.num_heads, bias=True).to(device, dtype).train(cell.backward)
    ours = MultiHeadAttention.from_loop(loop)
    theirs = ours.to_torch()
    x = torch.randn(cell.B, cell.T, cell.d_model, device=device, dtype=dtype, requires_grad=cell.backward)
    forwards: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(x),
        "ours, causal": lambda: ours(x, is_causal=True),
        "ours, weights": lambda: ours(x, need_weights=True)[0],
        "looped": lambda: loop.w_o(torch.cat([head(x) for head in loop.heads], -1)),  # one map at a time
        "torch": lambda: theirs(x, x, x, need_weights=False)[0],
        "torch, weights": lambda: theirs(x, x, x, average_attn_weights=False)[0],
    }
    floor, ready, results = _floor(ours, x)
    if not cell.backward:
        return forwards | {"floor": floor}
    layers = {"looped": loop, "torch": theirs, "torch, weights": theirs}
    return {
        name: _with_backward(forward, [x, *layers.get(name, ours).parameters()], [x])
        for name, forward in forwards.items()
    } | {"floor": _with_backward(floor, ready, results)}


def _floor(ours: MultiHeadAttention, x: Tensor) -> tuple[Callable[[], Any], list[Tensor], list[Tensor]]:
    """(call, the inputs it has gradients for, tensors shaped as its outputs)"""
    heads = split_heads(torch.randn_like(x), ours.num_heads)
    q, k, v = (heads.clone().requires_grad_(x.requires_grad) for _ in range(3))
    merged = torch.randn_like(x, requires_grad=x.requires_grad)

    def call() -> tuple[Tensor, ...]:
        return (
            F.linear(x, ours.w_q.weight, ours.w_q.bias),
            F.linear(x, ours.w_k.weight, ours.w_k.bias),
            F.linear(x, ours.w_v.weight, ours.w_v.bias),
            F.scaled_dot_product_attention(q, k, v),
            F.linear(merged, ours.w_o.weight, ours.w_o.bias),
        )

    return call, [x, q, k, v, merged, *ours.parameters()], [x, x, x, heads, x]


def _with_backward(forward: Callable[[], Any], inputs: list[Tensor], like: list[Tensor]) -> Callable[[], Any]:
    torch.manual_seed(1)  # the same for every contestant
    gradients = [torch.randn_like(out) for out in like]
    return lambda: torch.autograd.grad(forward(), inputs, gradients)


# Kernels


def named_kernels(call: Callable[[], Any]) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """(name -> call held to that one kernel, name -> torch's reason for refusing it)"""

    def held_to(backend: SDPBackend) -> Callable[[], Any]:
        def held() -> Any:
            with sdpa_kernel(backend):
                return call()

        return held

    calls, refused = {}, {}
    for name, backend in KERNELS.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                held_to(backend)()
            except RuntimeError as error:  # on a GPU it warns of the reason
                reasons = [
                    text
                    for text in map(lambda warning: str(warning.message), said)
                    if "because" not in text and "disabled" not in text
                ]  # of the kernels not held to
                refused[name] = (reasons or [str(error)])[0].splitlines()[0]
            else:
                calls[name] = held_to(backend)
    return calls, refused


def chosen_kernel(call: Callable[[], Any]) -> str:
    """torch's own name of the attention kernel that call() runs, or "none": it was written out in single steps."""
    with _record() as record:
        call()
    prefix = "aten::_scaled_dot_product_"
    return next(
        (event.key.removeprefix(prefix) for event in record.key_averages() if event.key.startswith(prefix)), "none"
    )


# Time


def time_interleaved(
    calls: dict[str, Callable[[], Any]], *, repeats: int = 15, warmup: int = 2, device: str = "cpu"
) -> dict[str, float]:
    """Median seconds of each call. Each round runs every call once, in a new order: a slow moment slows them all.

    On device="cuda" the time between two CUDA events. The first `warmup` rounds are not counted.
    """
    check_size("repeats", repeats)
    seconds_of = _cuda_seconds if device == "cuda" else _cpu_seconds
    order = random.Random(0)
    rounds = [
        {name: seconds_of(calls[name]) for name in order.sample(list(calls), len(calls))}
        for _ in range(warmup + repeats)
    ]
    return {name: statistics.median(times[name] for times in rounds[warmup:]) for name in calls}


def _cpu_seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _cuda_seconds(call: Callable[[], Any]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000  # it counts milliseconds


def measure_speed(
    cell: Cell, *, device: str = "cpu", dtype: torch.dtype = torch.float32, repeats: int = 15
) -> dict[str, Any]:
    """The cell's sizes and median seconds by name; on a GPU the named kernels too, with those that torch refused."""
    with torch.set_grad_enabled(cell.backward):
        every, refused = contestants(cell, device=device, dtype=dtype), {}
        calls = {name: every[name] for name in SPEED_NAMES}
        if device == "cuda":
            kernels, refused = named_kernels(calls["ours"])
            calls |= kernels
        seconds = time_interleaved(calls, repeats=repeats, device=device)
    return {**cell._asdict(), "seconds": seconds, "refused": refused}


# Memory


def peak_extra_bytes(call: Callable[[], Any], *, device: str = "cpu") -> int:
    """The most bytes of new tensors alive at once during call(), by torch's own record of every allocation."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    with _record(profile_memory=True) as record:
        call()
    assert record.profiler and record.profiler.kineto_results
    events: list[Any] = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    return max(accumulate((e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())), initial=0))


def measure_memory(cell: Cell, name: str, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The cell's sizes and the peak extra bytes of one contestant's pass."""
    with torch.set_grad_enabled(cell.backward):
        call = contestants(cell, device=device, dtype=dtype)[name]
        return {**cell._asdict(), "name": name, "bytes": peak_extra_bytes(call, device=device)}


def in_fresh_process(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs) in a new Python process that ends with it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def _record(profile_memory: bool = False) -> profile:
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the profiler writes on stderr
    return profile(activities=[ProfilerActivity.CPU], profile_memory=profile_memory)
