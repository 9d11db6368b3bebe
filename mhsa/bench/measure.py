"""Time and memory of one pass, and the kernel that torch chose for it."""

import os
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import accumulate
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from mhsa.bench.baselines import Shape, contestants, named_kernels
from mhsa.checks import check_size

try:
    import resource
except ImportError:  # Windows
    resource = None

SPEED_NAMES = ("ours", "ours, weights", "torch", "torch, weights", "floor")


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

    On device="cuda" it is the GPU's own time, without Python's. The first `warmup` rounds are not counted.
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
    """Between two events in the GPU's queue. It is kept busy first, so that the whole call waits there when the first
    event comes: a short pass would else be timed by how fast Python asks for its kernels."""
    square = _square()
    _ = square @ square, square @ square
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000  # it counts milliseconds


@cache
def _square() -> Tensor:
    return torch.zeros(4096, 4096, device="cuda")


def measure_speed(
    shape: Shape, *, device: str = "cpu", dtype: torch.dtype = torch.float32, repeats: int = 15
) -> dict[str, Any]:
    """The shape's sizes and median seconds by name; on a GPU the named kernels too, with those that torch refused."""
    with torch.set_grad_enabled(shape.backward):
        every, refused = contestants(shape, device=device, dtype=dtype), {}
        calls = {name: every[name] for name in SPEED_NAMES}
        if device == "cuda":
            kernels, refused = named_kernels(calls["ours"])
            calls |= kernels
        seconds = time_interleaved(calls, repeats=repeats, device=device)
    return {**shape._asdict(), "seconds": seconds, "refused": refused}


# Memory


def peak_extra_bytes(call: Callable[[], Any], *, device: str = "cpu") -> int:
    """The most bytes of new tensors alive at once during call(), by torch's own record of every allocation."""
    if device == "cuda":
        call()  # torch keeps what a first product reserves for cuBLAS: it is no part of the pass
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    with _record(profile_memory=True) as record:
        call()
    assert record.profiler and record.profiler.kineto_results
    events: list[Any] = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    return max(accumulate((e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())), initial=0))


def page_faults(call: Callable[[], Any]) -> int | None:
    """How many pages of new memory the operating system gave to this process during call(); None on Windows, which
    keeps no such count. A first call asks for more than those after it."""
    if resource is None:
        return None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def measure_memory(
    shape: Shape, name: str, *, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """The shape's sizes and the peak extra bytes of one contestant's pass."""
    with torch.set_grad_enabled(shape.backward):
        call = contestants(shape, device=device, dtype=dtype)[name]
        return {**shape._asdict(), "name": name, "bytes": peak_extra_bytes(call, device=device)}


def in_fresh_process(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs) in a new Python process that ends with it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def _record(profile_memory: bool = False) -> profile:
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the profiler writes on stderr
    return profile(activities=[ProfilerActivity.CPU], profile_memory=profile_memory)
