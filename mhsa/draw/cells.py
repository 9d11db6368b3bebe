"""The numbers of a tensor as cells: what is written on one, and where some of them stand side by side."""

from collections.abc import Iterable
from typing import NamedTuple

from mhsa.draw.colors import head_color, text_on
from mhsa.draw.svg import Svg, el, text
from mhsa.trace import Step

MARGIN, ROOM = 16, 840  # of the whole picture
WIDE, TALL = 36, 30  # a cell


class Cell(NamedTuple):
    """A number of a tensor: its index, its offset in memory, what is written on it. head: the owner of its column."""

    key: str
    index: tuple[int, ...]
    offset: int
    number: str
    word: str
    head: int | None
    label: str


class Stage(NamedTuple):
    """A step, and those of its numbers that are drawn."""

    step: Step
    cells: list[Cell]

    @property
    def axes(self) -> list[str]:
        return self.step.axes.split()

    @property
    def memory(self) -> str:
        """A step computes numbers, copies them, or looks at the same memory in another way."""
        return "new" if self.step.kind != "layout" else "copied" if self.step.copies else "same"

    @property
    def copied_first(self) -> str:
        """What a product copied before it multiplied: "q and k", or nothing."""
        return " and ".join(self.step.copied) if self.memory == "new" else ""


def spread(values: Iterable[int], count: int, size: float) -> tuple[dict[int, float], list[float], float]:
    """Some of 0, 1, …, count - 1 side by side, half a cell for "…" where others are left out, and the whole width."""
    places, gaps, x, expected = {}, [], 0.0, 0
    for value in [*sorted(set(values)), count]:
        if value != expected:
            gaps.append(x + size / 4)
            x += size / 2
        if value < count:
            places[value] = x
            x += size
        expected = value + 1
    return places, gaps, x


def cell_color(cell: Cell) -> str:
    return "#dddddd" if cell.head is None else head_color(cell.head)


def draw_cell(cell: Cell, x: float, y: float, width: float) -> Svg:
    color, middle = cell_color(cell), x + width / 2
    size = 11 if len(cell.number) < 5 else 10
    parts = [
        el("rect", x=x, y=y, width=width - 1, height=TALL - 1, fill=color),
        text(cell.number, middle, y + (13 if cell.word else 19), size=size, anchor="middle", fill=text_on(color)),
    ]
    if cell.word:
        parts.append(text(cell.word, middle, y + 25, size=9.5, anchor="middle", fill=text_on(color)))
    return Svg("".join(parts))
