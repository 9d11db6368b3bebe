"""The memory of a tensor as a strip: what lies at offset 0, 1, 2, …"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from mhsa.draw.cells import MARGIN, ROOM, TALL, WIDE, Stage, cell_color, draw_cell, spread
from mhsa.draw.svg import MUTED, Svg, el, keyed, text

LINE_HEIGHT = TALL + 16  # with the offsets below
NARROW = 26  # a cell whose number is short
MEMORY = {
    "same": "that of the step before, nothing moved",
    "new": "new numbers",
    "copied": "copied, the same numbers in another order",
}


def what_happened(stage: Stage) -> str:
    first = f"; {stage.copied_first} copied first" if stage.copied_first else ""
    return MEMORY[stage.memory] + first


class Strip(NamedTuple):
    """The cells in the order of memory, in lines: x and line by key; "…" at gaps; the width of a cell."""

    places: dict[str, tuple[float, int]]
    gaps: list[tuple[float, int]]
    size: int

    @property
    def height(self) -> int:
        return (1 + max(line for _, line in self.places.values())) * LINE_HEIGHT


def _strip(stage: Stage) -> Strip:
    size = NARROW if all(len(cell.number) < 4 for cell in stage.cells) else WIDE
    along, gaps, _ = spread((cell.offset for cell in stage.cells), math.prod(stage.step.shape), size)
    places, dots, start, line = {}, [], 0.0, 0
    for x, offset in sorted([*((x, offset) for offset, x in along.items()), *((x, None) for x in gaps)]):
        if offset is None:
            dots.append((x - start, line))
            continue
        if x + size - start > ROOM:
            start, line = x, line + 1
        places[offset] = x - start, line
    return Strip({cell.key: places[cell.offset] for cell in stage.cells}, dots, size)


def memory_height(stages: Sequence[Stage], i: int) -> float:
    before = _strip(stages[i - 1]).height + 34 if stages[i].memory == "copied" else 0
    return 34 + before + _strip(stages[i]).height


def draw_memory(stages: Sequence[Stage], current: int, top: float) -> Svg:
    """The memory of a stage; if it was copied, above it that of the stage before, with lines to the new places."""
    stage, after = stages[current], _strip(stages[current])
    parts = [text(f"memory after step {current + 1}: {what_happened(stage)}", 0, 24, size=12, font_weight="600")]
    below = 30.0
    if stage.memory == "copied":
        before = _strip(stages[current - 1])
        below += before.height + 34
        if before.height == after.height == LINE_HEIGHT:  # more lines of cells would hide these
            parts += [
                el(
                    "line",
                    x1=before.places[cell.key][0] + before.size / 2,
                    y1=44 + TALL,
                    x2=after.places[cell.key][0] + after.size / 2,
                    y2=below,
                    stroke=cell_color(cell),
                    stroke_width=2,
                )
                for cell in stage.cells
            ]
        parts.append(_draw_strip(stages[current - 1], before, 44, -4))
    parts.append(_draw_strip(stage, after, below, TALL + 10))
    return el("g", *parts, transform=f"translate({MARGIN},{top:.0f})")


def _draw_strip(stage: Stage, strip: Strip, top: float, tick: float) -> Svg:
    """tick: where the offsets stand, counted from the top of a cell."""
    parts = [text("…", x, line * LINE_HEIGHT + 18, anchor="middle") for x, line in strip.gaps]
    offsets = {cell.offset for cell in stage.cells}
    for cell in stage.cells:
        x, line = strip.places[cell.key]
        y = line * LINE_HEIGHT
        if cell.offset < 10_000:
            parts.append(text(cell.offset, x + strip.size / 2, y + tick, size=10, fill=MUTED, anchor="middle"))
        elif cell.offset - 1 not in offsets:  # wider than a cell: the first of a run says it
            parts.append(text(cell.offset, x, y + tick, size=10, fill=MUTED))
        parts.append(keyed(cell.key, cell.label, draw_cell(cell, x, y, strip.size)))
    return el("g", *parts, transform=f"translate(0,{top:.0f})")
