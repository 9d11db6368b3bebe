"""Speed and memory of MultiHeadAttention beside nn.MultiheadAttention and the floor, over a grid of shapes, printed."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tqdm import tqdm

from mhsa.bench.baselines import KERNELS, Shape, shown
from mhsa.bench.measure import SPEED_NAMES, in_fresh_process, measure_memory, measure_speed

GRID = dict(B=(1, 8, 32), T=(16, 128, 512, 1024, 4096), d_model=(64, 256, 512, 768), num_heads=(1, 8, 12))
RATIOS = {
    "ours / torch": ("ours", "torch"),
    "ours / floor": ("ours", "floor"),
    "w: ours / torch": ("ours, weights", "torch, weights"),
}
MEMORY_GRID = dict(B=(1,), T=(1024, 2048, 4096, 8192, 16384), d_model=(512,), num_heads=(8,))
MEMORY_NAMES = ("ours", "ours, causal", "ours, weights", "looped", "torch", "torch, weights")
HEADER = "  B      T  d_model   h  pass"


def report_speed(
    shapes: Sequence[Shape], *, repeats: int, gflop: float, device: str, dtype: torch.dtype
) -> dict[str, Any]:
    """Time each shape and print a line, but leave out what takes more gflop or a map above 1 GiB; return it all."""
    too_large = [shape for shape in shapes if not shape.map_fits]
    too_long = [shape for shape in shapes if shape.map_fits and shape.gflop > gflop]
    names = SPEED_NAMES + (tuple(KERNELS) if device == "cuda" else ())
    rows, refused = [], {}
    print(
        f"median milliseconds of {repeats} interleaved rounds after 2 of warm-up; the last three are ratios\n\n"
        + _line(HEADER, (*names, *RATIOS))
    )
    for shape in tqdm([shape for shape in shapes if shape not in too_large + too_long], unit="shape"):
        row = measure_speed(shape, repeats=repeats, device=device, dtype=dtype)
        seconds = row["seconds"]
        tqdm.write(
            _line(
                shape,
                [shown(seconds.get(name), row["refused"].get(name), digits=3) for name in names]
                + [f"{seconds[a] / seconds[b]:.2f}" for a, b in RATIOS.values()],
            )
        )
        rows.append(row)
        refused |= row["refused"]
    for name, reason in refused.items():
        print(f"\n{name} did not run: {reason}")
    for why, left_out in ((f"forward above {gflop:g} GFLOP", too_long), ("a score map above 1 GiB", too_large)):
        if left_out:
            sizes_of_each = dict.fromkeys(f"{s.B}x{s.T}x{s.d_model}x{s.num_heads}" for s in left_out)
            print(f"\nleft out, {why} (B x T x d_model x h): {', '.join(sizes_of_each)}")
    return {
        "repeats": repeats,
        "speed": rows,
        "left_out": [shape._asdict() for shape in too_long + too_large],
        "geometric_means": _report_means(rows),
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
        print(_line(f"{name} ({len(passes[name])} shapes)".ljust(len(HEADER)), [f"{x:.3f}" for x in by_title.values()]))
    return means


def geometric_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Of each of RATIOS over the rows of measure_speed."""
    return {
        title: statistics.geometric_mean(row["seconds"][a] / row["seconds"][b] for row in rows)
        for title, (a, b) in RATIOS.items()
    }


def report_memory(shapes: Sequence[Shape], *, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Measure the peak extra memory of each shape and print a line; return it all."""
    print(
        "peak extra MiB of one pass, each in a fresh process, and its growth from the T above\n\n"
        + _line(HEADER, ("", "MiB", "growth"))
    )
    rows, previous = [], {}
    runs = [
        (shape, name)
        for backward in (False, True)
        for name in MEMORY_NAMES
        for shape in shapes
        if shape.backward == backward
    ]
    for shape, name in tqdm(runs, unit="process"):
        stores_map = name == "looped" or "weights" in name or (name == "torch" and not shape.backward)
        if stores_map and not shape.map_fits:
            tqdm.write(_line(shape, [name]) + "  left out: a score map above 1 GiB")
            continue
        row = in_fresh_process(measure_memory, shape, name, device=device, dtype=dtype)
        before = previous.get((name, shape._replace(T=0)))
        growth = "-" if before is None else f"{row['bytes'] / before:.2f}"
        tqdm.write(_line(shape, (name, f"{row['bytes'] / 2**20:.1f}", growth)))
        previous[name, shape._replace(T=0)] = row["bytes"]
        rows.append(row)
    return {"memory": rows}


def _line(first: object, values: Iterable[str]) -> str:
    return str(first) + "".join(f"{value:>16}" for value in values)
