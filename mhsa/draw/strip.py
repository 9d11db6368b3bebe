"""Numbers as a strip of shaded cells, wide enough to be compared and too small to be read one by one."""

from collections.abc import Callable, Sequence
from html import escape
from math import sqrt

from mhsa.draw.svg import INK, LINE, PAPER, Svg, el, text

MOST = 24  # cells of a strip; what is left out is named by "…"
TALL = 16
Numbers = Sequence[float]


def strip(
    values: Numbers, x: float, y: float, width: float, color: str, scale: float, key: str, label: Callable[[int], str]
) -> Svg:
    """Numbers as shaded cells, 0 the ground and `scale` the full colour; a dash, if it fits, marks a negative one.

    key: how the keys of the cells begin; label: of the number i. Written as text at once: a picture has hundreds of
    cells.
    """
    shown = values if len(values) <= MOST else values[: MOST - 1]
    side = width / (len(shown) + (len(shown) < len(values)))
    top, cells, marks = y - TALL / 2, [], []
    for i, value in enumerate(shown):
        left, shade = x + i * side, 0.6 * sqrt(abs(value) / scale) if scale else 0
        cells.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{side:.1f}" height="{TALL}" fill-opacity="{shade:.2f}" '
            f'role="img" data-key="{key}{i}" aria-label="{escape(label(i))}"/>'
        )
        if side >= 24:
            marks.append(text(_short(value), left + side / 2, y + 4, size=10, anchor="middle"))
        elif value < 0 and side >= 6:  # else the dashes of neighbours touch
            marks.append(f'<path d="M{left + side / 4:.1f},{y:.1f}h{side / 2:.1f}" stroke="{INK}"/>')
    if len(shown) < len(values):
        marks.append(text("…", x + width - side / 2, y + 4, size=12, anchor="middle"))
    ground = el("rect", x=x, y=top, width=width, height=TALL, fill=PAPER)
    return Svg(f'{ground}<g fill="{color}" stroke="{LINE}" stroke-width="0.6">{"".join(cells)}</g>{"".join(marks)}')


def largest(numbers) -> float:
    """The largest size among numbers nested in lists."""
    return abs(numbers) if isinstance(numbers, (int, float)) else max(map(largest, numbers), default=0.0)


def _short(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0: no minus before a zero
