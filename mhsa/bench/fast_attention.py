"""The measurements of lesson 9, on the CPU or a GPU. `python -m mhsa.bench --lesson` runs and records them all.

"explicit" writes out the score maps, "fused" runs the attention kernel that torch chooses; both compute the same.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from textwrap import fill
from typing import Any

import torch
from tqdm import tqdm

from mhsa.bench.baselines import KERNELS, Shape, contestants, half_type, named_kernels, shapes_of, shown
from mhsa.bench.measure import chosen_kernel, page_faults, peak_extra_bytes, time_interleaved
from mhsa.checks import check_choice, check_size, check_type
from mhsa.count import count_flops
from mhsa.recording import environment_info

RECORDED = files("mhsa.bench") / "recorded"
NAMES = {"explicit": "ours, weights", "fused": "ours"}  # here: among the contestants
NUMBERS = {
    "float32": (torch.float32, "ieee"),
    "float32 in TF32": (torch.float32, "tf32"),
    "bfloat16": (torch.bfloat16, "ieee"),
    "float16": (torch.float16, "ieee"),
}  # dtype, and how a GPU multiplies float32: in the projections, and between tokens where no fused kernel runs
PRODUCT = {"cpu": 1024, "cuda": 8192}  # n of the n×n product that shows a machine's speed
GRIDS: dict[str, dict[str, dict[str, Any]]] = {
    "cpu": {
        "tokens": dict(B=[1], T=[512, 1024, 2048, 4096, 8192, 16384], d_model=[512], num_heads=[8]),
        "heads": dict(B=[32], T=[512], d_model=[512], num_heads=[1, 2, 4, 8, 16, 32], kernels=True),
        "numbers": dict(B=[8], T=[512], d_model=[512], num_heads=[8], numbers=["float32", "bfloat16"]),
    },
    "cuda": {
        "tokens": dict(B=[1], T=[2**n for n in range(10, 18)], d_model=[512], num_heads=[8], numbers=["bfloat16"]),
        "heads": dict(
            B=[32], T=[1024], d_model=[512], num_heads=[1, 2, 4, 8, 16, 32], numbers=["bfloat16"], kernels=True
        ),
        "numbers": dict(
            B=[32],
            T=[1024],
            d_model=[512],
            num_heads=[8],
            numbers=["float32", "float32 in TF32", "bfloat16"],
            kernels=True,
        ),
    },
}  # bfloat16 stands for half_type()


def measure_grid(
    *,
    device: str = "cpu",
    numbers: Sequence[str] = ("float32",),
    repeats: int = 5,
    kernels: bool = False,
    **sizes: Sequence[int],
) -> list[dict[str, Any]]:
    """One row for each kind of NUMBERS and each shape (sizes as for shapes_of), forward only.

    Raises ValueError, before anything is measured, for what does not exist and if no num_heads divides a d_model.
    """
    numbers = [numbers] if isinstance(numbers, str) else numbers
    for name in numbers:
        check_choice("numbers", name, NUMBERS)
    for name, values in sizes.items():
        check_type(name, values, Sequence)
        for value in values:
            check_size(name, value)
    shapes = shapes_of(**sizes, backward=[False])
    if not shapes:
        raise ValueError(f"num_heads={sizes['num_heads']} and d_model={sizes['d_model']}: none divides one of these")
    return [
        measure_pass(shape, name, device=device, repeats=repeats, kernels=kernels)
        for name in numbers
        for shape in shapes
    ]


def measure_pass(
    shape: Shape, numbers: str = "float32", *, device: str = "cpu", repeats: int = 5, kernels: bool = False
) -> dict[str, Any]:
    """The shape, the kernel that torch chose, and by name the median seconds and the peak extra bytes of a pass.

    kernels: time our layer held to each named kernel too; "refused" says why one did not run. Where the map would be
    above 1 GiB, the explicit pass is left out, and the fused one if torch does not fuse. "product" is one large matrix
    product, timed in the same rounds; "pages" counts new pages of memory, on a CPU.
    Raises ValueError for numbers or a device that are not listed here, and for repeats below 1.
    """
    check_choice("numbers", numbers, NUMBERS)
    check_choice("device", device, PRODUCT)
    check_size("repeats", repeats)
    dtype, precision = NUMBERS[numbers]
    n = PRODUCT[device]
    with torch.no_grad(), float32_products(precision):
        every = contestants(shape, device=device, dtype=dtype)
        short = contestants(shape._replace(B=1, T=1), device=device, dtype=dtype)
        fuses = chosen_kernel(short["ours"]) != "attention_math"  # asked of a text that fits in any case
        calls = {name: every[ours] for name, ours in NAMES.items() if shape.map_fits or (fuses and name == "fused")}
        held, refused = named_kernels(every["ours"]) if kernels else ({}, {})
        generator = torch.Generator(device).manual_seed(0)
        square = torch.randn(n, n, device=device, dtype=dtype, generator=generator)
        # No round to warm up: when the clock starts, all but the product have run once for the other columns
        return {
            **shape._asdict(),
            "numbers": numbers,
            "kernel": chosen_kernel(calls["fused"]) if "fused" in calls else "attention_math",
            "refused": refused,
            "bytes": {name: peak_extra_bytes(call, device=device) for name, call in calls.items()},
            "pages": {name: page_faults(call) for name, call in calls.items()} if device == "cpu" else {},
            "product": n,
            "seconds": time_interleaved(
                {**calls, **held, "product": lambda: square @ square}, repeats=repeats, warmup=0, device=device
            ),
        }


def explicit_steps(B: int, T: int, d_model: int, num_heads: int) -> dict[str, Callable[[], Any]]:
    """The steps of explicit attention, each writing into memory that lies ready; the softmax into new memory as well.

    "copy" moves the maps as the softmax does, and computes nothing.
    """
    q, k, v = torch.randn(3, B, num_heads, T, d_model // num_heads)
    q /= q.shape[-1] ** 0.5  # unscaled, wide heads have weights below 1e-38, which are slow to compute
    scores = torch.zeros(B, num_heads, T, T)
    weights, mixed = scores.clone(), q.clone()
    return {
        "products": lambda: (torch.matmul(q, k.mT, out=scores), torch.matmul(weights, v, out=mixed)),
        "copy": lambda: weights.copy_(scores),
        "softmax, ready": lambda: torch.softmax(scores, -1, out=weights),
        "softmax, new": lambda: torch.softmax(scores, -1),
    }


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """How a GPU multiplies float32: "ieee", or "tf32", which rounds the factors to 10 bits after the point."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def share_of_speed(row: dict[str, Any], name: str) -> float:
    """FLOPs a second of a pass of measure_pass()'s row, as a share of those of the large product beside it."""
    flops = count_flops(row["B"], row["T"], row["d_model"], row["num_heads"]).total
    return flops / row["seconds"][name] / (2 * row["product"] ** 3 / row["seconds"]["product"])


# What is recorded


def measure_all(device: str) -> dict[str, Any]:
    """Every grid of the device, with device, date and versions."""
    result: dict[str, Any] = dict(environment_info(device))
    for name, grid in tqdm(GRIDS[device].items(), unit="grid", disable=None):
        numbers = [half_type(device) if kind == "bfloat16" else kind for kind in grid.get("numbers", ["float32"])]
        result[name] = measure_grid(device=device, **{**grid, "numbers": numbers})
    return result


def path_of(device: str) -> Traversable:
    return RECORDED / f"fast_attention_{device}.json"


def recorded(device: str) -> dict[str, Any] | None:
    """What `python -m mhsa.bench --lesson` stored of a run, or None if there is none."""
    path = path_of(device)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def report(result: dict[str, Any]) -> str:
    """A line about the machine, and for each grid a table, and one more where kernels were named."""
    parts = [", ".join(f"{name} {result[name]}" for name in ("device", "date", "torch", "python"))]
    for name in GRIDS["cpu"]:
        rows = result[name]
        parts += [name, table(rows)]
        refused = {kernel: reason for row in rows for kernel, reason in row["refused"].items()}
        if refused or any(kernel in row["seconds"] for row in rows for kernel in KERNELS):
            parts += [f"{name}: our layer held to one kernel", kernel_table(rows)]
            parts += [fill(f"{kernel} did not run: {reason}", 100) for kernel, reason in refused.items()]
    return "\n\n".join(parts)


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds, peak extra MB and torch's choice; "-" was not run."""
    columns = {f"{name} ms": [_milliseconds(row, name) for row in rows] for name in NAMES}
    columns |= {
        f"{name} MB": [f"{row['bytes'][name] / 1e6:.1f}" if name in row["bytes"] else "-" for row in rows]
        for name in NAMES
    }
    return _table(rows, columns | {"kernel chosen": [row["kernel"] for row in rows]})


def kernel_table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds with each named kernel; "refused" by torch for this shape, or "no memory"."""
    return _table(rows, {f"{name} ms": [_milliseconds(row, name) for row in rows] for name in KERNELS})


def _milliseconds(row: dict[str, Any], name: str) -> str:
    return shown(row["seconds"].get(name), row["refused"].get(name))


def _table(rows: list[dict[str, Any]], columns: dict[str, list[str]]) -> str:
    lines = [
        f"{row['B']:3} {row['T']:7,} {row['num_heads']:3} {row['d_model'] // row['num_heads']:4}  {row['numbers']:15}"
        for row in rows
    ]
    lines = [f"{'B':>3} {'T':>7} {'h':>3} {'d_k':>4}  {'numbers':15}", *lines]
    for head, values in columns.items():
        width = max(map(len, [head, *values]))
        lines = [f"{line}  {value:>{width}}" for line, value in zip(lines, [head, *values])]
    return "\n".join(lines)
