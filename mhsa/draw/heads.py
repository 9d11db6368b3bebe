"""One attention map a head."""

from collections.abc import Sequence
from textwrap import wrap

from mhsa.draw.colors import HEADS, KEY, QUERY, head_color, text_on, weight_opacity
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, picture, text

WIDTH, GAP, HEADER = 940, 16, 26


def draw_heads(
    tokens: Sequence[str],
    weights: Sequence[Sequence[Sequence[float]]],
    keys: Sequence[str] | None = None,
    *,
    allowed: Sequence[Sequence[bool]] | None = None,
    d_k: int | None = None,
    chosen: tuple[int, int, int] | None = None,
    card: tuple[Svg, float, float] | None = None,
    note: str = "",
) -> str:
    """Weights (h, T_q, T_k) as h heat maps: rows are queries, columns keys, the scale is fixed at 0–1.

    tokens: the queries; keys: default to them. allowed (T_q, T_k), True = may attend: the other cells are crossed out.
    d_k: a head's columns of Q, K and V are named above its map. chosen (head, query, key): that cell has a frame. card:
    a drawing with its width and height, beside the maps if there is room, else below. note: a line under the maps.
    Raises ValueError where the names are not as many as the weights.
    """
    keys = tokens if keys is None else keys
    h = len(weights)
    maps: list[tuple[str, Sequence[Sequence[object]]]] = [(f"weights[{i}]", rows) for i, rows in enumerate(weights)]
    for name, rows in maps + ([] if allowed is None else [("allowed", allowed)]):
        lengths = sorted({len(row) for row in rows})
        if len(rows) != len(tokens) or lengths != [len(keys)]:
            raise ValueError(
                f"{name} is {len(rows)} × {' or '.join(map(str, lengths)) or 0}, but there are {len(tokens)} queries "
                f"and {len(keys)} keys; name every row in tokens and every column in keys"
            )
    gutter = 12 + 8 * max(map(len, tokens)) if h <= 16 else 0  # room for the words
    largest = {1: 56, 2: 44}.get(h, 38 if h <= 8 else 30 if h <= 16 else 13)
    cell = max(min(largest, (WIDTH - 2 * GAP - gutter) // len(keys)), 4)
    panel = gutter + len(keys) * cell
    columns = min(h, max(1, (WIDTH - GAP) // (panel + GAP)))
    height = HEADER + (20 if gutter else 0) + len(tokens) * cell + GAP
    rows = -(-h // columns)
    panels = [
        el(
            "g",
            _panel(i, tokens, keys, weights[i], allowed, d_k, cell, gutter, chosen),
            transform=f"translate({GAP + i % columns * (panel + GAP)},{GAP + i // columns * height})",
        )
        for i in range(h)
    ]
    bottom, right = GAP + rows * height, GAP + columns * (panel + GAP)
    beside = card is not None and right + 8 + card[1] <= WIDTH
    width = max(right, 560, right + 8 + card[1] if card and beside else 0)
    lines = wrap(note, int((width - 2 * GAP) / 6.3))  # a character of size 12 is about 6.3 wide
    end = bottom + 46 + 17 * len(lines)
    if card:
        x, y = (right + 8, GAP) if beside else (GAP, end)
        panels.append(el("g", card[0], transform=f"translate({x},{y})"))
        end = max(end, y + card[2] + 8)
    title = f"Attention maps of {h} head{'s' if h > 1 else ''}"
    names = " ".join(tokens) if keys is tokens else f"Queries {' '.join(tokens)}, keys {' '.join(keys)}"
    desc = f"{names}: rows are queries, columns are keys, weights from 0 to 1. {_in_words(tokens, keys, weights)}{note}"
    says = [text(line, GAP, bottom + 56 + 17 * i, size=12, fill=MUTED) for i, line in enumerate(lines)]
    return picture(width, end, title, desc, *panels, _legend(bottom), *says)


def _panel(
    head: int,
    tokens: Sequence[str],
    keys: Sequence[str],
    weights: Sequence[Sequence[float]],
    allowed: Sequence[Sequence[bool]] | None,
    d_k: int | None,
    cell: int,
    gutter: int,
    chosen: tuple[int, int, int] | None,
) -> Svg:
    parts = [_header(head, d_k, gutter + cell * len(keys))]
    top = HEADER + (16 if gutter else 0)
    if gutter:
        size = 12 if cell > 30 else 10
        parts += [
            text(key, gutter + (i + 0.5) * cell, top - 6, anchor="middle", size=size) for i, key in enumerate(keys)
        ]
        parts += [
            text(token, gutter - 6, top + (i + 0.5) * cell + 4, size=12, anchor="end") for i, token in enumerate(tokens)
        ]
        parts += sides(gutter, top, cell * len(keys), cell * len(tokens))
    for q, query in enumerate(tokens):
        for k, key in enumerate(keys):
            may = allowed is None or allowed[q][k]
            label = f"head {head}: {query} (query) reads {key} (key), weight {weights[q][k]:.2f}"
            square = weight_cell(weights[q][k] if may else None, gutter + k * cell, top + q * cell, cell, head)
            parts.append(
                keyed(f"{q},{k} {head}:{q},{k}", label if may else f"head {head}: {query} may not read {key}", square)
            )
    if chosen and chosen[0] == head:
        x, y = gutter + chosen[2] * cell, top + chosen[1] * cell
        parts.append(
            el("rect", x=x + 1, y=y + 1, width=cell - 2, height=cell - 2, fill="none", stroke=INK, stroke_width=2)
        )
    return Svg("".join(parts))


def _header(head: int, d_k: int | None, width: float) -> Svg:
    color = head_color(head)
    bar, ink = el("rect", width=width, height=HEADER - 6, rx=3, fill=color), text_on(color)
    if width < 150 or d_k is None:
        name = f"head {head}" if width >= 80 else str(head)
        return Svg(bar + text(name, width / 2, 15, anchor="middle", font_weight="600", fill=ink))
    first, last = head * d_k, head * d_k + d_k - 1
    columns = f"column {first}" if d_k == 1 else f"columns {first}–{last}"
    return Svg(
        bar
        + text(f"head {head}", 8, 15, font_weight="600", fill=ink)
        + text(columns, width - 8, 15, size=11, anchor="end", fill=ink)
    )


def weight_cell(weight: float | None, x: float, y: float, side: int, head: int = 0) -> Svg:
    """A weight as a square in its head's colour, with its number if that fits; None, may not attend, is crossed out."""
    ground = el("rect", x=x, y=y, width=side, height=side, fill=PAPER, stroke=LINE, stroke_width=0.5)
    if weight is None:
        return Svg(ground + el("line", x1=x, y1=y + side, x2=x + side, y2=y, stroke=MUTED))
    weight, color = round(weight, 2), head_color(head)  # rounded: the same picture on every CPU
    shade = {"fill": color, "fill_opacity": weight_opacity(weight, color)}
    square = el("rect", x=x, y=y, width=side, height=side, **shade)
    if side < 30:
        return Svg(ground + square)
    size = 12 if side > 30 else 11
    return Svg(ground + square + text(f"{weight:.2f}", x + side / 2, y + side / 2 + 4, size=size, anchor="middle"))


def scale_legend(x: float, y: float, width: int) -> list[Svg]:
    """The scale of weights, ten steps from 0 to 1."""
    side = width / 11
    ground = el("rect", x=x, y=y, width=width, height=14, fill=PAPER, stroke=LINE)
    steps = [
        el("rect", x=x + side * i, y=y, width=side, height=14, fill=HEADS[0], fill_opacity=weight_opacity(i / 10))
        for i in range(11)
    ]
    return [ground, *steps]


def sides(x: float, y: float, width: float, height: float) -> list[Svg]:
    """A blue rule along the rows, the queries, and an orange one along the columns, the keys."""
    rows = el("rect", x=x - 4, y=y, width=3, height=height, fill=QUERY)
    return [rows, el("rect", x=x, y=y - 4, width=width, height=3, fill=KEY)]


def _legend(y: float) -> Svg:
    parts = [
        text("weight", GAP, y + 18, size=12),
        *scale_legend(GAP + 60, y + 6, 176),
        text("0", GAP + 60, y + 33, size=11),
        text("1", GAP + 236, y + 33, size=11, anchor="end"),
        text("row: query", GAP + 270, y + 18, size=12, font_weight="600"),
        el("rect", x=GAP + 262, y=y + 8, width=4, height=12, fill=QUERY),
        text("column: key", GAP + 360, y + 18, size=12, font_weight="600"),
        el("rect", x=GAP + 352, y=y + 8, width=4, height=12, fill=KEY),
    ]
    return Svg("".join(parts))


def _in_words(tokens: Sequence[str], keys: Sequence[str], weights: Sequence[Sequence[Sequence[float]]]) -> str:
    """For the last token of the first heads: which key it reads most."""
    says = []
    for head, rows in enumerate(weights[:4]):
        k = max(range(len(keys)), key=lambda k: rows[-1][k])
        says.append(f"head {head} {keys[k]} {rows[-1][k]:.2f}")
    return f"{tokens[-1]} reads most: " + ", ".join(says) + ("…. " if len(weights) > 4 else ". ")
