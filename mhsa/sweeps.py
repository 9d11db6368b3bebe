"""The measurements of lesson 9, on the CPU or a GPU. `python -m mhsa.bench --lesson` runs and records them all.

"explicit" writes out the score maps, "fused" runs the attention kernel that torch chooses; both compute the same.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import torch
from tqdm import tqdm

from mhsa.cache import KVCache
from mhsa.checks import check_choice, check_size, check_type
from mhsa.count import count_flops
from mhsa.layers import MultiHeadAttention
from mhsa.measure import (
    ASSETS,
    KERNELS,
    Cell,
    about,
    cells_of,
    chosen_kernel,
    contestants,
    named_kernels,
    peak_extra_bytes,
    time_interleaved,
)

NAMES = {"explicit": "ours, weights", "fused": "ours"}  # here: among the contestants
NUMBERS = {
    "float32": (torch.float32, "ieee"),
    "float32 in TF32": (torch.float32, "tf32"),
    "bfloat16": (torch.bfloat16, "ieee"),
}  # dtype, and how a GPU multiplies float32
PRODUCT = {"cpu": 1024, "cuda": 8192}  # n of the n×n product that shows a machine's speed
SWEEPS: dict[str, dict[str, dict[str, Any]]] = {
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
        "numbers": dict(B=[32], T=[1024], d_model=[512], num_heads=[8], numbers=[*NUMBERS], kernels=True),
    },
}


def sweep(
    *,
    device: str = "cpu",
    numbers: Sequence[str] = ("float32",),
    repeats: int = 5,
    kernels: bool = False,
    **sizes: Sequence[int],
) -> list[dict[str, Any]]:
    """One row for each kind of NUMBERS and each shape (sizes as for cells_of), forward only.

    Raises ValueError, before anything is measured, for what does not exist and if no num_heads divides a d_model.
    """
    numbers = [numbers] if isinstance(numbers, str) else numbers
    for name in numbers:
        check_choice("numbers", name, NUMBERS)
    for name, values in sizes.items():
        check_type(name, values, Sequence)
        for value in values:
            check_size(name, value)
    cells = cells_of(**sizes, backward=[False])
    if not cells:
        raise ValueError(f"num_heads={sizes['num_heads']} and d_model={sizes['d_model']}: none divides one of these")
    return [
        measure_pass(cell, name, device=device, repeats=repeats, kernels=kernels) for name in numbers for cell in cells
    ]


def measure_pass(
    cell: Cell, numbers: str = "float32", *, device: str = "cpu", repeats: int = 5, kernels: bool = False
) -> dict[str, Any]:
    """The cell, the kernel that torch chose, and by name the median seconds and the peak extra bytes of a pass.

    kernels: time our layer held to each named kernel too; "refused" has torch's reasons. The explicit pass is left out
    where its map would be above 1 GiB. "product" is one large matrix product, timed in the same rounds.
    Raises ValueError for numbers or a device that are not listed here, and for repeats below 1.
    """
    check_choice("numbers", numbers, NUMBERS)
    check_choice("device", device, PRODUCT)
    check_size("repeats", repeats)
    dtype, precision = NUMBERS[numbers]
    n = PRODUCT[device]
    with torch.no_grad(), float32_products(precision):
        every = contestants(cell, device=device, dtype=dtype)
        calls = {name: every[ours] for name, ours in NAMES.items() if cell.map_fits or name == "fused"}
        held, refused = named_kernels(calls["fused"]) if kernels else ({}, {})
        generator = torch.Generator(device).manual_seed(0)
        square = torch.randn(n, n, device=device, dtype=dtype, generator=generator)
        # No round to warm up: when the clock starts, all but the product have run once for the other columns
        return {
            **cell._asdict(),
            "numbers": numbers,
            "kernel": chosen_kernel(calls["fused"]),
            "refused": refused,
            "bytes": {name: peak_extra_bytes(call, device=device) for name, call in calls.items()},
            "product": n,
            "seconds": time_interleaved(
                {**calls, **held, "product": lambda: square @ square}, repeats=repeats, warmup=0, device=device
            ),
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


def decode(layer: MultiHeadAttention, x: torch.Tensor, *, cached: bool = True) -> torch.Tensor:
    """The causal outputs of x (B, T, d_model), token by token, as when each is new; like x.

    cached: a step computes one token, and the keys and values of those before lie ready; else it computes all again.
    """
    if cached:
        cache = KVCache()
        steps = [layer(token, cache=cache) for token in x.split(1, 1)]
    else:
        steps = [layer(x[:, :t], is_causal=True)[:, -1:] for t in range(1, x.shape[1] + 1)]
    return torch.cat(steps, 1)


# What is recorded


def run(device: str) -> dict[str, Any]:
    """Every sweep of the device, with device, date and versions."""
    return about(device) | {
        name: sweep(device=device, **settings)
        for name, settings in tqdm(SWEEPS[device].items(), unit="sweep", disable=None)
    }


def path_of(device: str) -> Path:
    return ASSETS / f"fast_attention_{device}.json"


def recorded(device: str) -> dict[str, Any] | None:
    """What `python -m mhsa.bench --lesson` stored of a run, or None if there is none."""
    path = path_of(device)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def report(result: dict[str, Any]) -> str:
    """A line about the machine, and for each sweep a table, and one more where kernels were named."""
    parts = [", ".join(f"{name} {result[name]}" for name in ("device", "date", "torch", "python"))]
    for name in SWEEPS["cpu"]:
        rows = result[name]
        parts += [name, table(rows)]
        refused = {kernel: reason for row in rows for kernel, reason in row["refused"].items()}
        if refused or any(kernel in row["seconds"] for row in rows for kernel in KERNELS):
            parts += [f"{name}: our layer held to one kernel", kernel_table(rows)]
            parts += [fill(f"{kernel} was refused: {reason}", 100) for kernel, reason in refused.items()]
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
    """Milliseconds with each named kernel; "refused" by torch for this shape."""
    return _table(rows, {f"{name} ms": [_milliseconds(row, name) for row in rows] for name in KERNELS})


def _milliseconds(row: dict[str, Any], name: str) -> str:
    missing = "refused" if name in row["refused"] else "-"
    return f"{1000 * row['seconds'][name]:.2f}" if name in row["seconds"] else missing


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
