"""Bytes and FLOPs of a layer against the number of tokens."""

from collections.abc import Callable, Mapping, Sequence
from math import log2, log10

from mhsa.draw.svg import INK, LINE, MUTED, Svg, el, keyed, picture, text

LEFT, TOP, WIDTH, HEIGHT = 76, 54, 470, 300
LINES = {
    "weights": (MUTED, "8 4"),
    "qkv": (MUTED, "2 3"),
    "scores": (INK, None),
    "kv_cache": (MUTED, "12 3 2 3"),
}  # colour and dashes; each line is named at its end
NAMES = {"weights": "parameters", "qkv": "q, k and v", "scores": "scores", "kv_cache": "KV cache"}

Scale = Callable[[float], float]  # a number of tokens or bytes -> where it stands


def in_units(number: float, unit: str) -> str:
    """1,234,567 B -> 1.23 MB; powers of 1000."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if number < 1000 or prefix == "P":
            break
        number /= 1000
    return f"{number:.3g} {prefix}{unit}" if number < 1000 else f"{number:,.0f} {prefix}{unit}"


def draw_cost(
    tokens: Sequence[int],
    series: Mapping[str, Sequence[int]],
    T: int,
    crossing: int | None,
    flops: dict[str, int],
    title: str,
    note: str,
) -> str:
    """series: bytes by part at each of `tokens` (powers of 2); T: the chosen one; flops: by part at T.

    crossing: the smallest T at which the scores outgrow the parameters, None beyond the axis.
    """
    now = {name: values[list(tokens).index(T)] for name, values in series.items()}
    says = _says(T, now, crossing)
    bottom = TOP + HEIGHT + 56
    return picture(
        872,
        bottom + 56,
        title,
        " ".join([*says, note]),
        text(title, 16, 26, size=17, font_weight="600"),
        *_chart(tokens, series, T, crossing),
        *_table(now, flops),
        *(text(line, 16, bottom + 18 * i, size=13) for i, line in enumerate(says)),
        text(note, 16, bottom + 40, size=12, fill=MUTED),
    )


def _says(T: int, now: Mapping[str, int], crossing: int | None) -> list[str]:
    fused = now["weights"] + now["qkv"]
    explicit = in_units(fused + now["scores"], "B")
    where = f"at T = {crossing:,}." if crossing is not None else "beyond this axis."
    return [
        f"T = {T:,}: explicit {explicit}, fused {in_units(fused, 'B')} (a fused kernel stores no scores).",
        f"The scores outgrow the parameters {where}",
    ]


def _chart(tokens: Sequence[int], series: Mapping[str, Sequence[int]], T: int, crossing: int | None) -> list[Svg]:
    """Bytes over tokens, both by powers: a line a part, and marks at T and where two lines cross."""
    low = int(log10(min(map(min, series.values()))))
    high = int(log10(max(map(max, series.values())))) + 1
    first, last = log2(tokens[0]), log2(tokens[-1])

    def x(t: float) -> float:
        return LEFT + WIDTH * (log2(t) - first) / (last - first)

    def y(size: float) -> float:
        return TOP + HEIGHT * (1 - (log10(size) - low) / (high - low))

    parts = _axes(tokens, range(low, high + 1), x, y)
    for name, values in series.items():
        parts += _line(name, dict(zip(tokens, values)), T, x, y)
    parts.append(el("line", x1=x(T), y1=TOP, x2=x(T), y2=TOP + HEIGHT, stroke=INK, stroke_dasharray="3 3"))
    if crossing is not None and crossing >= tokens[0]:
        same = y(series["weights"][0])  # the weights are the same for every T
        ring = el("circle", cx=x(crossing), cy=same, r=9, fill="none", stroke=INK, stroke_width=2)
        parts.append(keyed("crossing", f"the scores outgrow the parameters at T = {crossing:,}", ring))
    return parts


def _axes(tokens: Sequence[int], powers: range, x: Scale, y: Scale) -> list[Svg]:
    parts = [
        text("bytes, tenfold from line to line", 16, TOP - 8, size=12),
        text("tokens T, doubled from mark to mark", LEFT + WIDTH, TOP + HEIGHT + 34, size=12, anchor="end"),
    ]
    for power in powers:
        parts += [
            el("line", x1=LEFT, x2=LEFT + WIDTH, y1=y(10**power), y2=y(10**power), stroke=LINE, stroke_width=0.5),
            text(in_units(10**power, "B"), LEFT - 6, y(10**power) + 4, size=11, anchor="end"),
        ]
    return parts + [text(f"{t:,}", x(t), TOP + HEIGHT + 18, size=11, anchor="middle") for t in tokens[::3]]


def _line(name: str, sizes: Mapping[int, int], T: int, x: Scale, y: Scale) -> list[Svg]:
    color, dashes = LINES[name]
    path = "M" + "L".join(f"{x(t):.1f},{y(size):.1f}" for t, size in sizes.items())
    parts = [el("path", d=path, fill="none", stroke=color, stroke_width=2.5, stroke_dasharray=dashes)]
    for t, size in sizes.items():
        dot = el("circle", cx=x(t), cy=y(size), r=6 if t == T else 3, fill=color)
        parts.append(keyed(name, f"{NAMES[name]} at T = {t:,}: {in_units(size, 'B')}", dot))
    return parts


def _table(now: Mapping[str, int], flops: Mapping[str, int]) -> list[Svg]:
    """Beside the chart: bytes and FLOPs by part, each row below the one before."""
    left, right, y, total = LEFT + WIDTH + 30, 860, TOP + 4, sum(flops.values())
    parts = [text("bytes at this T", left, y, size=12, font_weight="600")]
    for name, size in now.items():
        y += 20
        color, dashes = LINES[name]
        ends = dict(x1=left, x2=left + 30, y1=y - 4, y2=y - 4)
        words = text(NAMES[name], left + 38, y), text(in_units(size, "B"), right, y, anchor="end")
        parts += [
            el("line", **ends, stroke=color, stroke_width=3, stroke_dasharray=dashes),
            keyed(name, f"{NAMES[name]}: {size:,} bytes", *words),
        ]
    y += 36
    parts.append(text("FLOPs, one forward pass", left, y, size=12, font_weight="600"))
    for name, count in flops.items():
        y += 20
        bar = el("rect", x=left + 90, y=y - 9, width=70 * count / total, height=9, fill=MUTED)
        words = text(name, left, y), bar, text(in_units(count, ""), right, y, anchor="end")
        parts.append(keyed(f"flops-{name}", f"{name}: {count:,} FLOPs, {100 * count / total:.1f} %", *words))
    y += 22
    return [
        *parts,
        text("total", left, y, font_weight="600"),
        text(in_units(total, ""), right, y, anchor="end", font_weight="600"),
    ]
