"""Speed and memory of MultiHeadAttention beside nn.MultiheadAttention and the floor. `python -m mhsa.bench --help`.

All contestants do self-attention on one input with the same weights and biases. "f" (forward) is eval mode without
gradients, where nn.MultiheadAttention takes its own compiled fast path if h is even; "f+b" (and backward) is training
mode, with gradients of the input and of every parameter. The floor is the work that cannot be left out, each piece on
inputs that lie ready: four matrix products and the fused kernel, with no split, merge or check between them.
"""
import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from itertools import accumulate, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from tqdm import tqdm

from mhsa.count import count_flops, count_memory
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention

GRID = dict(B=(1, 8, 32), T=(16, 128, 512, 1024, 4096), d_model=(64, 256, 512, 768), num_heads=(1, 8, 12))
SPEED_NAMES = ("ours", "ours, weights", "torch", "torch, weights", "floor")
RATIOS = {"ours / torch": ("ours", "torch"), "ours / floor": ("ours", "floor"),
          "w: ours / torch": ("ours, weights", "torch, weights")}
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
           "math": SDPBackend.MATH}
MEMORY_GRID = dict(B=(1,), T=(1024, 2048, 4096, 8192, 16384), d_model=(512,), num_heads=(8,))
MEMORY_NAMES = ("ours", "ours, causal", "ours, weights", "torch", "torch, weights")
LARGEST_MAP = 2**30                                     # bytes of one B·h·T·T score map; an explicit pass holds a few
HEADER = "  B      T  d_model   h  pass"


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


def cells_of(*, B: Iterable[int], T: Iterable[int], d_model: Iterable[int], num_heads: Iterable[int]) -> list[Cell]:
    """Every combination in which num_heads divides d_model, forward and forward+backward."""
    return [Cell(*sizes) for sizes in product(B, T, d_model, num_heads, (False, True)) if sizes[2] % sizes[3] == 0]


# What runs

def contestants(cell: Cell, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> dict[str, Callable[[], Any]]:
    """name -> a call that runs one pass of the cell. A forward cell's calls are meant to run without gradients."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(cell.d_model, cell.num_heads, bias=True).to(device, dtype).train(cell.backward)
    theirs = ours.to_torch()
    x = torch.randn(cell.B, cell.T, cell.d_model, device=device, dtype=dtype, requires_grad=cell.backward)
    forwards: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(x),
        "ours, causal": lambda: ours(x, is_causal=True),
        "ours, weights": lambda: ours(x, need_weights=True)[0],
        "torch": lambda: theirs(x, x, x, need_weights=False)[0],
        "torch, weights": lambda: theirs(x, x, x, average_attn_weights=False)[0],
    }
    floor, ready, results = _floor(ours, x)
    if not cell.backward:
        return forwards | {"floor": floor}
    return {name: _with_backward(forward, [x, *(theirs if "torch" in name else ours).parameters()], [x])
            for name, forward in forwards.items()} | {"floor": _with_backward(floor, ready, results)}


def _floor(ours: MultiHeadAttention, x: Tensor) -> tuple[Callable[[], Any], list[Tensor], list[Tensor]]:
    """(call, the inputs it has gradients for, tensors shaped as its outputs)"""
    heads = split_heads(torch.randn_like(x), ours.num_heads)
    q, k, v = (heads.clone().requires_grad_(x.requires_grad) for _ in range(3))
    merged = torch.randn_like(x, requires_grad=x.requires_grad)

    def call() -> tuple[Tensor, ...]:
        return (F.linear(x, ours.w_q.weight, ours.w_q.bias), F.linear(x, ours.w_k.weight, ours.w_k.bias),
                F.linear(x, ours.w_v.weight, ours.w_v.bias), F.scaled_dot_product_attention(q, k, v),
                F.linear(merged, ours.w_o.weight, ours.w_o.bias))
    return call, [x, q, k, v, merged, *ours.parameters()], [x, x, x, heads, x]


def _with_backward(forward: Callable[[], Any], inputs: list[Tensor], like: list[Tensor]) -> Callable[[], Any]:
    torch.manual_seed(1)                                                            # the same for every contestant
    gradients = [torch.randn_like(out) for out in like]
    return lambda: torch.autograd.grad(forward(), inputs, gradients)


def named_kernels(call: Callable[[], Any]) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """(name -> call held to that one fused kernel, name -> torch's reason for refusing it)"""
    def held_to(backend: SDPBackend) -> Callable[[], Any]:
        def held() -> Any:
            with sdpa_kernel(backend):
                return call()
        return held

    calls, refused = {}, {}
    for name, backend in KERNELS.items():
        try:
            held_to(backend)()
        except RuntimeError as error:
            refused[name] = str(error).splitlines()[0]
        else:
            calls[name] = held_to(backend)
    return calls, refused


# Time

def time_interleaved(calls: dict[str, Callable[[], Any]], *, repeats: int = 15, warmup: int = 2, device: str = "cpu"
                     ) -> dict[str, float]:
    """Median seconds of each call. Each round runs every call once, in a new order: a slow moment slows them all.

    On device="cuda" the time between two CUDA events. The first `warmup` rounds are not counted.
    """
    seconds_of = _cuda_seconds if device == "cuda" else _cpu_seconds
    order = random.Random(0)
    rounds = [{name: seconds_of(calls[name]) for name in order.sample(list(calls), len(calls))}
              for _ in range(warmup + repeats)]
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
    return start.elapsed_time(end) / 1000                                           # it counts milliseconds


def measure_speed(cell: Cell, *, device: str = "cpu", dtype: torch.dtype = torch.float32, repeats: int = 15
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


def geometric_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Of each of RATIOS over the rows of measure_speed."""
    return {title: statistics.geometric_mean(row["seconds"][a] / row["seconds"][b] for row in rows)
            for title, (a, b) in RATIOS.items()}


# Memory

def peak_extra_bytes(call: Callable[[], Any], *, device: str = "cpu") -> int:
    """The most bytes of new tensors alive at once during call(), by torch's own record of every allocation."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")                                  # the profiler writes on stderr
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
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


# The command

def main(arguments: list[str] | None = None) -> None:
    args = _parse(arguments)
    if args.device == "cuda" and not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device"
        sys.exit(f"--device cuda: there is no GPU to measure ({why}; torch {torch.__version__}). Nothing was run; "
                 "without --device the CPU is measured.")
    dtype_name = args.dtype or ("bfloat16" if args.device == "cuda" else "float32")
    options = dict(device=args.device, dtype=getattr(torch, dtype_name))
    result = {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
              "device": torch.cuda.get_device_name() if args.device == "cuda" else _cpu_name(),
              "dtype": dtype_name, "python": platform.python_version(), "torch": torch.__version__}
    print(", ".join(f"{name} {value}" for name, value in result.items()))
    result |= _report_memory(args, options) if args.memory else _report_speed(args, options)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mhsa.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", action="store_true", help="measure peak extra memory instead of time")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: timed by CUDA events, and our "
                        "layer held to each of torch's fused kernels (flash, memory-efficient, math)")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="default: float32; cuda: bfloat16")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write device, date, versions and every figure there")
    parser.add_argument("--repeats", type=int, default=15, help="timed rounds a cell (default: 15)")
    parser.add_argument("--gflop", type=float, default=30.0, help="leave out cells whose forward pass takes more GFLOP "
                        "(default: 30, about a quarter of an hour on two cores; inf leaves none out)")
    for name in GRID:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, nargs="+", metavar="N",
                            help=f"default: {GRID[name]}, with --memory {MEMORY_GRID[name]}")
    args = parser.parse_args(arguments)
    defaults = MEMORY_GRID if args.memory else GRID
    args.sizes = {name: getattr(args, name) or default for name, default in defaults.items()}
    if min(args.repeats, *(n for sizes in args.sizes.values() for n in sizes)) < 1:
        parser.error("sizes and --repeats must be at least 1")
    return args


def _report_speed(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    cells = cells_of(**args.sizes)
    too_large = [cell for cell in cells if not cell.map_fits]
    too_long = [cell for cell in cells if cell.map_fits and cell.gflop > args.gflop]
    names = SPEED_NAMES + (tuple(KERNELS) if args.device == "cuda" else ())
    rows, refused = [], {}
    print(f"median milliseconds of {args.repeats} interleaved rounds after 2 of warm-up; the last three are ratios\n\n"
          + _line(HEADER, (*names, *RATIOS)))
    for cell in tqdm([cell for cell in cells if cell not in too_large + too_long], unit="cell"):
        row = measure_speed(cell, repeats=args.repeats, **options)
        seconds = row["seconds"]
        tqdm.write(_line(cell, [f"{1000 * seconds[name]:.3f}" if name in seconds else "refused" for name in names]
                         + [f"{seconds[a] / seconds[b]:.2f}" for a, b in RATIOS.values()]))
        rows.append(row)
        refused |= row["refused"]
    for name, reason in refused.items():
        print(f"\n{name} was refused: {reason}")
    for why, left_out in ((f"forward above {args.gflop:g} GFLOP", too_long), ("a score map above 1 GiB", too_large)):
        if left_out:
            shapes = dict.fromkeys(f"{c.B}x{c.T}x{c.d_model}x{c.num_heads}" for c in left_out)
            print(f"\nleft out, {why} (B x T x d_model x h): {', '.join(shapes)}")
    return {"repeats": args.repeats, "cells": rows, "left_out": [cell._asdict() for cell in too_long + too_large],
            "geometric_means": _report_means(rows)}


def _report_means(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    passes = {"forward": [row for row in rows if not row["backward"]],
              "forward+backward": [row for row in rows if row["backward"]], "all": rows}
    means = {name: geometric_means(some) for name, some in passes.items() if some}
    print("\n" + _line("geometric mean".ljust(len(HEADER)), RATIOS))
    for name, by_title in means.items():
        print(_line(f"{name} ({len(passes[name])} cells)".ljust(len(HEADER)), [f"{x:.3f}" for x in by_title.values()]))
    return means


def _report_memory(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    print("peak extra MiB of one pass, each in a fresh process, and its growth from the T above\n\n"
          + _line(HEADER, ("", "MiB", "growth")))
    cells, rows, previous = cells_of(**args.sizes), [], {}
    runs = [(cell, name) for backward in (False, True) for name in MEMORY_NAMES for cell in cells
            if cell.backward == backward]
    for cell, name in tqdm(runs, unit="process"):
        stores_map = "weights" in name or (name == "torch" and not cell.backward)
        if stores_map and not cell.map_fits:
            tqdm.write(_line(cell, [name]) + "  left out: a score map above 1 GiB")
            continue
        row = in_fresh_process(measure_memory, cell, name, **options)
        before = previous.get((name, cell._replace(T=0)))
        growth = "-" if before is None else f"{row['bytes'] / before:.2f}"
        tqdm.write(_line(cell, (name, f"{row['bytes'] / 2**20:.1f}", growth)))
        previous[name, cell._replace(T=0)] = row["bytes"]
        rows.append(row)
    return {"memory": rows}


def _line(first: object, values: Iterable[str]) -> str:
    return str(first) + "".join(f"{value:>16}" for value in values)


def _cpu_name() -> str:
    return f"CPU {platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    main()
