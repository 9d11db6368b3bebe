"""Speed and memory of MultiHeadAttention beside nn.MultiheadAttention and the floor. `python -m mhsa.bench --help`.

Who is compared, and how, stands in mhsa/measure.py. --lesson runs the sweeps of lesson 9 (mhsa/sweeps.py) instead.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from mhsa import sweeps
from mhsa.measure import (
    KERNELS,
    SPEED_NAMES,
    about,
    cells_of,
    check_writable,
    in_fresh_process,
    measure_memory,
    measure_speed,
)

GRID = dict(B=(1, 8, 32), T=(16, 128, 512, 1024, 4096), d_model=(64, 256, 512, 768), num_heads=(1, 8, 12))
RATIOS = {
    "ours / torch": ("ours", "torch"),
    "ours / floor": ("ours", "floor"),
    "w: ours / torch": ("ours, weights", "torch, weights"),
}
MEMORY_GRID = dict(B=(1,), T=(1024, 2048, 4096, 8192, 16384), d_model=(512,), num_heads=(8,))
MEMORY_NAMES = ("ours", "ours, causal", "ours, weights", "looped", "torch", "torch, weights")
HEADER = "  B      T  d_model   h  pass"


def main(arguments: list[str] | None = None) -> None:
    args = _parse(arguments)
    if args.device == "cuda" and not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device"
        sys.exit(
            f"--device cuda: there is no GPU to measure ({why}; torch {torch.__version__}). Nothing was run; "
            "without --device the CPU is measured."
        )
    if args.json:
        check_writable(args.json)
    if args.lesson:
        result = sweeps.run(args.device)
        print(sweeps.report(result))
    else:
        dtype_name = args.dtype or ("bfloat16" if args.device == "cuda" else "float32")
        options = dict(device=args.device, dtype=getattr(torch, dtype_name))
        result = about(args.device) | {"dtype": dtype_name}
        print(", ".join(f"{name} {value}" for name, value in result.items()))
        result |= _report_memory(args, options) if args.memory else _report_speed(args, options)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m mhsa.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="store_true", help="measure peak extra memory instead of time")
    parser.add_argument(
        "--lesson",
        action="store_true",
        help="run the sweeps of lesson 9, with sizes of their own; stored in assets/, or in the file of --json",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="cuda: timed by CUDA events, and our layer held to each of torch's kernels by name",
    )
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="default: float32; cuda: bfloat16")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write device, date, versions and every figure there")
    parser.add_argument("--repeats", type=int, default=15, help="timed rounds a cell (default: 15)")
    parser.add_argument(
        "--gflop",
        type=float,
        default=30.0,
        help="leave out cells whose forward pass takes more GFLOP "
        "(default: 30, about a quarter of an hour on two cores; inf leaves none out)",
    )
    for name in GRID:
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            nargs="+",
            metavar="N",
            help=f"default: {GRID[name]}, with --memory {MEMORY_GRID[name]}",
        )
    args = parser.parse_args(arguments)
    defaults = MEMORY_GRID if args.memory else GRID
    if args.lesson:
        args.json = args.json or sweeps.path_of(args.device)
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
    print(
        f"median milliseconds of {args.repeats} interleaved rounds after 2 of warm-up; the last three are ratios\n\n"
        + _line(HEADER, (*names, *RATIOS))
    )
    for cell in tqdm([cell for cell in cells if cell not in too_large + too_long], unit="cell"):
        row = measure_speed(cell, repeats=args.repeats, **options)
        seconds = row["seconds"]
        tqdm.write(
            _line(
                cell,
                [f"{1000 * seconds[name]:.3f}" if name in seconds else "refused" for name in names]
                + [f"{seconds[a] / seconds[b]:.2f}" for a, b in RATIOS.values()],
            )
        )
        rows.append(row)
        refused |= row["refused"]
    for name, reason in refused.items():
        print(f"\n{name} was refused: {reason}")
    for why, left_out in ((f"forward above {args.gflop:g} GFLOP", too_long), ("a score map above 1 GiB", too_large)):
        if left_out:
            shapes = dict.fromkeys(f"{c.B}x{c.T}x{c.d_model}x{c.num_heads}" for c in left_out)
            print(f"\nleft out, {why} (B x T x d_model x h): {', '.join(shapes)}")
    return {
        "repeats": args.repeats,
        "cells": rows,
        "left_out": [cell._asdict() for cell in too_long + too_large],
        "geometric_means": _report_means(rows),
    }


def geometric_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Of each of RATIOS over the rows of measure_speed."""
    return {
        title: statistics.geometric_mean(row["seconds"][a] / row["seconds"][b] for row in rows)
        for title, (a, b) in RATIOS.items()
    }


def _report_means(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    passes = {
        "forward": [row for row in rows if not row["backward"]],
        "forward+backward": [row for row in rows if row["backward"]],
        "all": rows,
    }
    means = {name: geometric_means(some) for name, some in passes.items() if some}
    print("\n" + _line("geometric mean".ljust(len(HEADER)), RATIOS))
    for name, by_title in means.items():
        print(_line(f"{name} ({len(passes[name])} cells)".ljust(len(HEADER)), [f"{x:.3f}" for x in by_title.values()]))
    return means


def _report_memory(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    print(
        "peak extra MiB of one pass, each in a fresh process, and its growth from the T above\n\n"
        + _line(HEADER, ("", "MiB", "growth"))
    )
    cells, rows, previous = cells_of(**args.sizes), [], {}
    runs = [
        (cell, name)
        for backward in (False, True)
        for name in MEMORY_NAMES
        for cell in cells
        if cell.backward == backward
    ]
    for cell, name in tqdm(runs, unit="process"):
        stores_map = name == "looped" or "weights" in name or (name == "torch" and not cell.backward)
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


if __name__ == "__main__":
    main()
