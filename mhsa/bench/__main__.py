"""Speed and memory of MultiHeadAttention beside nn.MultiheadAttention and the floor. `python -m mhsa.bench --help`.

Who is compared, and how, stands in mhsa/bench/baselines.py. --lesson runs the grids of lesson 9 instead, which are in
mhsa/bench/fast_attention.py.
"""

import argparse
import json
import sys
from pathlib import Path

import torch

from mhsa.bench import fast_attention
from mhsa.bench.baselines import half_type, shapes_of
from mhsa.bench.speed import GRID, MEMORY_GRID, report_memory, report_speed
from mhsa.recording import check_writable, environment_info


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
        result = fast_attention.measure_all(args.device)
        print(fast_attention.report(result))
    else:
        dtype_name = args.dtype or (half_type("cuda") if args.device == "cuda" else "float32")
        device, dtype, shapes = args.device, getattr(torch, dtype_name), shapes_of(**args.sizes)
        result = environment_info(device) | {"dtype": dtype_name}
        print(", ".join(f"{name} {value}" for name, value in result.items()))
        if args.memory:
            result |= report_memory(shapes, device=device, dtype=dtype)
        else:
            result |= report_speed(shapes, repeats=args.repeats, gflop=args.gflop, device=device, dtype=dtype)
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
        help="run the grids of lesson 9, with sizes of their own; stored in mhsa/bench/recorded, or the file of --json",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="cuda: timed by CUDA events, and our layer held to each of torch's kernels by name",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16", "bfloat16"),
        help="default: float32; cuda: bfloat16, or float16 before Ampere",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write device, date, versions and every figure there")
    parser.add_argument("--repeats", type=int, default=15, help="timed rounds a shape (default: 15)")
    parser.add_argument(
        "--gflop",
        type=float,
        help="leave out shapes whose forward pass takes more GFLOP "
        "(default: 30, about a quarter of an hour on two cores; cuda: inf, which leaves none out)",
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
    if args.gflop is None:
        args.gflop = 30.0 if args.device == "cpu" else float("inf")
    if args.lesson:
        args.json = args.json or Path(str(fast_attention.path_of(args.device)))
    args.sizes = {name: getattr(args, name) or default for name, default in defaults.items()}
    if min(args.repeats, *(n for sizes in args.sizes.values() for n in sizes)) < 1:
        parser.error("sizes and --repeats must be at least 1")
    return args


if __name__ == "__main__":
    main()
