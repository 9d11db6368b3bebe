"""explore.shapes(): every element on its way through split and merge."""

import math
from collections import defaultdict
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from ipywidgets import Checkbox, HBox, Play
from traitlets import Bool, Int

from mhsa.draw.cells import Cell, Stage
from mhsa.draw.shapes import draw_shapes
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie
from mhsa.toys import words
from mhsa.trace import Step, trace_shapes

BATCHES = (1, 2, 3)
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 1_000_000)
WIDTHS = (4, 6, 8, 12, 16, 24, 48, 768, 12288)
MOST = 64  # elements that are drawn


@lru_cache
def step_names(wrong_split: bool) -> list[str]:
    """They are the same for all sizes."""
    return [step.name for step in trace_shapes(1, 1, 1, 1, wrong_split=wrong_split)]


class ShapesState(TiedHeads):
    """The sizes, the step shown (from 1), and whether the split is the wrong one."""

    batch = Int()
    tokens = Int()
    step = Int()
    wrong_split = Bool()

    def __init__(self, **values):
        super().__init__(**values)
        self.observe(self._stay, names="wrong_split")

    def _stay(self, change):
        """The wrong split has fewer steps: stay with the same tensor."""
        before, after = step_names(change["old"]), step_names(change["new"])
        first = next(number for number, (a, b) in enumerate(zip(before, after), start=1) if a != b)
        if self.step >= first:
            self.step = max(first, self.step + len(after) - len(before))


class Drawn(NamedTuple):
    """How many sentences, tokens and heads are drawn, which columns, and for how many tokens each score."""

    sentences: int
    tokens: int
    columns: list[int]
    heads: int

    @property
    def pairs(self) -> int:
        return min(self.tokens, math.isqrt(MOST // (self.sentences * self.heads)))


def drawn(batch: int, tokens: int, d_model: int, num_heads: int) -> Drawn:
    """All if they are few, else the first columns of the first heads for the first tokens."""
    d_k = d_model // num_heads
    if batch * tokens * d_model <= MOST and tokens <= 12 and d_model <= 24 and num_heads <= 8:
        return Drawn(batch, tokens, list(range(d_model)), num_heads)
    heads = min(num_heads, max(3, 12 // d_k))
    columns = [i * d_k + j for i in range(heads) for j in range(min(d_k, 12 // heads))]
    return Drawn(1, min(tokens, 4), columns, heads)


@lru_cache(8)
def walk(batch: int, tokens: int, d_model: int, num_heads: int, wrong_split: bool) -> list[Stage]:
    """The steps of trace_shapes with their cells. Raises ValueError as it does."""
    steps = trace_shapes(batch, tokens, d_model, num_heads, wrong_split=wrong_split)
    some = drawn(batch, tokens, d_model, num_heads)
    return [Stage(step, cells or score_cells(step, some)) for step, cells in zip(steps, element_cells(steps, some))]


def draw(state: ShapesState) -> str:
    B, T, d_model, h = state.batch, state.tokens, state.d_model, state.num_heads
    stages = walk(B, T, d_model, h, state.wrong_split)
    if not 1 <= state.step <= len(stages):
        raise ValueError(f"step={state.step} is not one of the steps; 1 to {len(stages)} will do")
    some, current = drawn(B, T, d_model, h), stages[state.step - 1]
    is_score = current.step.axes == "B h T T"
    notes = [
        "In a cell: its offset, the number of the score in memory."
        if is_score
        else "In a cell: its number in the first tensor, and its token. Colour: the head that owns the column."
    ]
    counts = [
        (some.sentences, B, "sentences"),
        (some.pairs if is_score else some.tokens, T, "tokens"),
        *([] if is_score else [(len(some.columns), d_model, "columns")]),
        (some.heads, h, "heads"),
    ]
    left_out = [f"{n} of {of:,} {what}" for n, of, what in counts if n < of]
    if left_out:
        notes.append(f"Drawn: {', '.join(left_out)}. … stands for the rest.")
    named = words(some.tokens)
    return draw_shapes(stages, state.step - 1, named, about(current, named), notes)


def element_cells(steps: list[Step], some: Drawn) -> list[list[Cell]]:
    """For each step a cell for each element drawn; none in the scores."""
    cells: list[list[Cell]] = [[] for _ in steps]
    _, T, d_model = steps[0].shape
    for b, (t, word), c in product(range(some.sentences), enumerate(words(some.tokens)), some.columns):
        places = [step.where(b, t, c) for step in steps]
        when = defaultdict(list)
        for i, place in enumerate(places):
            if place:
                when[place].append(i + 1)
        way = "; ".join(
            f"{', '.join(map(str, numbers))}: {list(index)}, offset {offset}"
            for (index, offset), numbers in when.items()
        )
        for i, (step, place) in enumerate(zip(steps, places)):
            if place:
                index, offset = place
                head = c // step.d_k if step.has_heads else None
                label = f"{word}, column {c}: {list(index)}, offset {offset}. In step {way}"
                cells[i].append(Cell(f"{b},{t},{c}", index, offset, str((b * T + t) * d_model + c), word, head, label))
    return cells


def score_cells(step: Step, some: Drawn) -> list[Cell]:
    cells, named = [], words(some.pairs)
    for index in product(range(some.sentences), range(some.heads), range(some.pairs), range(some.pairs)):
        b, head, q, k = index
        offset = sum(i * stride for i, stride in zip(index, step.strides))
        who = f"row {q} and row {k}" if step.mixed else f"query {named[q]}, key {named[k]}"
        label = f"head {head}, {who}: {list(index)}, offset {offset}. It belongs to two tokens, not to one element"
        cells.append(Cell(f"score{b},{head},{q},{k}", index, offset, str(offset), "", head, label))
    return cells


def about(stage: Stage, named: list[str]) -> str:
    """What there is to see in a stage."""
    step = stage.step
    if step.mixed and step.axes != "B h T T":
        return mixture(stage)
    return {
        "input": "Grey: every head reads all columns of x, so none belongs to a head.",
        "project": "Each number of q is a sum over all columns of x. From here on a head owns each column.",
        "split the columns": "Each row is cut into one piece for each head. Only shape and strides are new.",
        "heads forward": f"Two strides change places. Every head holds {', '.join(named)}.",
        "wrong split": "With one head or one token this split is not wrong: nothing mixes.",
        "scores": (
            "One map for each head. A product takes its matrices at equal distances in memory: it copied q and k first."
            if step.copied
            else "One map for each head. A score belongs to a query and a key, so no single element of q is here."
        ),
        "weights": "The softmax of each row, in new memory.",
        "mix the values": "v copied first. " * bool(step.copied) + "The product writes its numbers head by head.",
        "heads back": (
            "Contiguous: with one head or one token there is nothing to reorder."
            if step.is_contiguous
            else "The strides change places again. The columns of a token lie apart: no view can join them."
        ),
        "lay out anew": (
            "Copied: token by token, its heads side by side."
            if step.copies
            else "It was contiguous: nothing is copied."
        ),
        "merge the columns": "Heads and columns become one axis again.",
        "output": "W_O mixes the columns of all heads, so none belongs to one head.",
    }[step.name]


def mixture(stage: Stage) -> str:
    """Which tokens are found in each head, or in each row, after the wrong split."""
    groups: dict[int, dict[str, None]] = defaultdict(dict)  # a dict keeps the order
    for cell in sorted(stage.cells, key=lambda cell: cell.index):
        groups[cell.index[1]][cell.word] = None
    what, rule = (
        ("head", "each head should hold every token")
        if stage.axes[1] == "h"
        else ("row", "each row should be one token, in order")
    )
    found = [f"{what} {i}: {', '.join(tokens)}" for i, tokens in groups.items()]
    rest = "; …" if len(found) > 4 else "; no other head has a number that is drawn." if len(found) == 1 else "."
    return f"Wrong: {rule}. Here {'; '.join(found[:4])}{rest}"


def shapes(
    batch: int = 1, tokens: int = 4, d_model: int = 8, num_heads: int = 2, *, step: int = 1, wrong_split: bool = False
) -> Explorer:
    """Split and merge step by step: the tensor, its memory, and where each element goes. step counts from 1."""
    state = ShapesState(
        batch=batch, tokens=tokens, d_model=d_model, num_heads=num_heads, step=step, wrong_split=wrong_split
    )
    last = lambda: len(step_names(state.wrong_split))  # noqa: E731
    length, width, heads, batches, steps = (
        Choices(options=[1], description=name) for name in ("T", "d_model", "heads", "B", "step")
    )
    play = Play(min=1, max=last(), interval=1500, show_repeat=False, description="play the steps")
    wrong = Checkbox(description="wrong split", indent=False)
    tie(state, "batch", batches, options=lambda: sorted({*BATCHES, state.batch}))
    tie(state, "tokens", length, options=lambda: sorted({*LENGTHS, state.tokens}))
    tie(state, "d_model", width, options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(state, "num_heads", heads, options=lambda: divisors(state.d_model))
    tie(state, "step", steps, options=lambda: range(1, last() + 1))
    state.observe(lambda _: setattr(play, "max", last()), names=["step", "wrong_split"])
    tie(state, "step", play)
    tie(state, "wrong_split", wrong)
    explorer = Explorer(state, draw, [HBox([batches, length]), HBox([width, heads]), HBox([steps, play, wrong])])
    explorer.view.on_msg(lambda _, content, __: jump(state, content["press"]))
    return explorer


def jump(state: ShapesState, key: str) -> None:
    """A press on the name of a small picture goes to its step."""
    if key.startswith("step"):
        state.step = int(key.removeprefix("step"))
