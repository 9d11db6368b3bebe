"""A tensor in each step of the head split: all of them small, and one large with its memory."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mhsa.draw.cells import MARGIN, ROOM, TALL, WIDE, Cell, Stage, cell_color, draw_cell, spread
from mhsa.draw.memory import draw_memory, memory_height, what_happened
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, picture, text

GUTTER, HEADER = 50, 36  # room for names left of a table and above it
PER_LINE, SMALL = 6, 7  # small pictures in a line, their cells
MONO = {"font_family": "monospace", "font_weight": "600"}


class Table(NamedTuple):
    """The last two axes of a tensor as a table: its leading index and its corner."""

    lead: tuple[int, ...]
    x: float
    y: float


class Plan(NamedTuple):
    """Where tables stand, rows and columns inside a table, and "…" for those left out; width and height of a table."""

    tables: list[Table]
    rows: dict[int, float]
    columns: dict[int, float]
    row_gaps: list[float]
    column_gaps: list[float]
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.tables[-1].y + self.height

    def places(self, cells: Iterable[Cell]) -> list[tuple[Cell, float, float]]:
        corner = {table.lead: table for table in self.tables}
        return [
            (
                cell,
                corner[cell.index[:-2]].x + self.columns[cell.index[-1]],
                corner[cell.index[:-2]].y + self.rows[cell.index[-2]],
            )
            for cell in cells
        ]


def draw_shapes(stages: Sequence[Stage], current: int, words: Sequence[str], about: str, notes: Sequence[str]) -> str:
    """All stages in small, stages[current] large, and its memory. words: the tokens drawn; notes: lines at the foot."""
    stage = stages[current]
    overview, top = _overview(stages, current)
    plans = [_plan(s, WIDE, TALL, ROOM, GUTTER, HEADER) for s in stages]
    heights = [plan.bottom + memory_height(stages, i) for i, plan in enumerate(plans)]
    foot = top + 104 + max(heights)  # the same in each step: nothing jumps
    title = f"Split and merge, step {current + 1} of {len(stages)}: {stage.step.name}"
    desc = (
        f"{stage.step.code}. Shape {stage.step.shape}, strides {stage.step.strides}. Memory: "
        f"{what_happened(stage)}. {about} {' '.join(notes)}"
    )
    return picture(
        ROOM + 2 * MARGIN,
        foot + 8 + 17 * len(notes),
        title,
        desc,
        overview,
        _facts(stage, current, top, about),
        _tensor(stage, plans[current], top + 104, words),
        draw_memory(stages, current, top + 104 + plans[current].bottom),
        *(text(note, MARGIN, foot + 14 + 17 * i, size=12, fill=MUTED) for i, note in enumerate(notes)),
    )


def _plan(stage: Stage, width: float, height: float, room: float, gutter: float, header: float) -> Plan:
    """A table for each index of the leading axes, in lines of this room."""
    rows, row_gaps, table_height = spread((cell.index[-2] for cell in stage.cells), stage.step.shape[-2], height)
    columns, column_gaps, table_width = spread((cell.index[-1] for cell in stage.cells), stage.step.shape[-1], width)
    x, y, tables = 0.0, header, []
    for lead in sorted({cell.index[:-2] for cell in stage.cells}):
        if x and x + gutter + table_width > room:
            x, y = 0.0, y + table_height + max(header, height / 2)
        tables.append(Table(lead, x + gutter, y))
        x += gutter + table_width + width / 2
    return Plan(tables, rows, columns, row_gaps, column_gaps, table_width, table_height)


def _overview(stages: Sequence[Stage], current: int) -> tuple[Svg, float]:
    """Every stage in small; pressing its name goes there. And where it ends."""
    width = ROOM / PER_LINE
    parts, y = [], 8.0
    for first in range(0, len(stages), PER_LINE):
        line = stages[first : first + PER_LINE]
        plans = [_plan(stage, _side(stage), SMALL, width - 12, 0, 0) for stage in line]
        height = 40 + max(plan.bottom for plan in plans)
        for i, (stage, plan) in enumerate(zip(line, plans), start=first):
            parts.append(_small(i, stage, plan, i == current, MARGIN + (i - first) * width, y, width - 6, height))
        y += height + 6
    return Svg("".join(parts)), y


def _side(stage: Stage) -> int:
    return SMALL if len({cell.index[-1] for cell in stage.cells}) <= 16 else 5


def _small(i: int, stage: Stage, plan: Plan, is_current: bool, x: float, y: float, width: float, height: float) -> Svg:
    cells = [
        el(
            "rect",
            x=dx,
            y=dy,
            width=_side(stage) - 1,
            height=SMALL - 1,
            fill=cell_color(cell),
            role="img",
            data_key=cell.key,
            aria_label=f"step {i + 1}: {list(cell.index)}, offset {cell.offset}",
        )
        for cell, dx, dy in plan.places(stage.cells)
    ]
    name = text(f"{i + 1}. {stage.step.name}", 5, 14, size=10, font_weight="600" if is_current else "400")
    shape = text(
        stage.step.shape,
        5,
        27,
        size=min(10, width / 0.62 / len(str(stage.step.shape))),
        fill=MUTED,
        font_family="monospace",
    )
    return el(
        "g",
        el(
            "rect",
            width=width,
            height=height,
            fill="none",
            rx=3,
            stroke=INK if is_current else LINE,
            stroke_width=3 if is_current else 1,
        ),
        keyed(
            f"step{i + 1}",
            f"step {i + 1}, {stage.step.name}: {stage.step.code}; press to go there",
            el("rect", x=2, y=2, width=width - 4, height=29, fill=PAPER),
            name,
            shape,
        ),
        el("g", *cells, transform="translate(5,34)"),
        transform=f"translate({x:.0f},{y:.0f})",
    )


def _facts(stage: Stage, current: int, top: float, about: str) -> Svg:
    facts = [
        ("shape", f"{stage.step.shape} = ({', '.join(stage.axes)})", MARGIN, 54),
        ("strides", stage.step.strides, 450, 54),
        ("contiguous", "yes" if stage.step.is_contiguous else "no", MARGIN, 74),
        ("copied", "YES" if stage.memory == "copied" else stage.copied_first or "no", 170, 74),
        ("bytes", f"{stage.step.nbytes:,}", 290, 74),
        ("FLOPs", f"{stage.step.flops:,}", 500, 74),
    ]
    parts = [
        text(f"{current + 1}. {stage.step.name}", MARGIN, 28, size=15, font_weight="600"),
        text(stage.step.code, 240, 28, size=16, **MONO),
        text(about, MARGIN, 96, size=13),
    ]
    for name, value, x, y in facts:
        parts += [text(name, x, y, size=12, fill=MUTED), text(value, x + 10 + 6.5 * len(name), y, size=13, **MONO)]
    return el("g", *parts, transform=f"translate(0,{top:.0f})")


def _tick(stage: Stage, axis: int, i: int, words: Sequence[str]) -> str:
    """What index i of an axis is called."""
    if stage.axes[axis] == "T":
        return f"row {i}" if stage.step.mixed else words[i]
    return {"B": f"sentence {i}", "h": f"head {i}"}.get(stage.axes[axis], str(i))


def _tensor(stage: Stage, plan: Plan, top: float, words: Sequence[str]) -> Svg:
    heads = {i // stage.step.d_k: x for i, x in reversed(plan.columns.items())} if stage.axes[-1] == "d_model" else {}
    if stage.cells[0].head is None:  # x and out: no head owns a column
        heads = {}
    parts = []
    for lead, x, y in plan.tables:
        named = [_tick(stage, axis, i, words) for axis, i in enumerate(lead) if axis or stage.step.shape[0] > 1]
        if named:
            parts.append(text(", ".join(named), x - 48, y - 18, size=10, font_weight="600"))
        parts += [text(f"head {i}", x + dx, y - 18, size=11, font_weight="600") for i, dx in heads.items()]
        parts += [
            text(_tick(stage, -2, i, words), x - 6, y + dy + TALL / 2 + 4, size=11, anchor="end")
            for i, dy in plan.rows.items()
        ]
        parts += [
            text(_tick(stage, -1, i, words), x + dx + WIDE / 2, y - 4, size=10, fill=MUTED, anchor="middle")
            for i, dx in plan.columns.items()
        ]
        parts += [text("…", x + dx, y + plan.height / 2, anchor="middle") for dx in plan.column_gaps]
        parts += [text("…", x + plan.width / 2, y + dy + 4, anchor="middle") for dy in plan.row_gaps]
    parts += [keyed(cell.key, cell.label, draw_cell(cell, x, y, WIDE)) for cell, x, y in plan.places(stage.cells)]
    return el("g", *parts, transform=f"translate({MARGIN},{top:.0f})")
