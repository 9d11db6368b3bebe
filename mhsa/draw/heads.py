"""One attention map a head."""

from collections.abc import Sequence
from textwrap import wrap

from mhsa.draw.colors import KEY, QUERY, head_color, text_on, weight_color
from mhsa.draw.svg import LINE, MUTED, PAPER, Svg, el, keyed, picture, text

WIDTH, GAP, HEADER = 872, 16, 26


def draw_heads(
    tokens: Sequence[str],
    weights: Sequence[Sequence[Sequence[float]]],
    *,
    allowed: Sequence[Sequence[bool]] | None = None,
    d_k: int | None = None,
    note: str = "",
) -> str:
    """Weights (h, T_q, T_k) as h heat maps: rows are queries, columns keys, the scale is fixed at 0–1.

    allowed (T_q, T_k), True = may attend: the other cells are crossed out. d_k: a head's columns of Q, K and V are
    named above its map. note: a line under the maps.
    """
    h, T = len(weights), len(tokens)
    cell = 38 if h <= 8 else 30 if h <= 16 else 13
    gutter = 12 + 8 * max(map(len, tokens)) if cell >= 30 else 0  # room for the words
    panel = gutter + T * cell
    columns = min(h, max(1, (WIDTH - GAP) // (panel + GAP)))
    height = HEADER + (20 if gutter else 0) + T * cell + GAP
    rows = -(-h // columns)
    panels = [
        el(
            "g",
            _panel(i, tokens, weights[i], allowed, d_k, cell, gutter),
            transform=f"translate({GAP + i % columns * (panel + GAP)},{GAP + i // columns * height})",
        )
        for i in range(h)
    ]
    bottom = GAP + rows * height
    width = max(GAP + columns * (panel + GAP), 560)
    title = f"Attention maps of {h} head{'s' if h > 1 else ''}"
    desc = (
        f"{' '.join(tokens)}: rows are queries, columns are keys, weights from 0 to 1. "
        f"{_in_words(tokens, weights)}{note}"
    )
    lines = wrap(note, int((width - 2 * GAP) / 6.3))  # a character of size 12 is about 6.3 wide
    return picture(
        width,
        bottom + 46 + 17 * len(lines),
        title,
        desc,
        *panels,
        _legend(bottom),
        *(text(line, GAP, bottom + 56 + 17 * i, size=12, fill=MUTED) for i, line in enumerate(lines)),
    )


def _panel(
    head: int,
    tokens: Sequence[str],
    weights: Sequence[Sequence[float]],
    allowed: Sequence[Sequence[bool]] | None,
    d_k: int | None,
    cell: int,
    gutter: int,
) -> Svg:
    parts = [_header(head, d_k, gutter + cell * len(tokens))]
    top = HEADER + (16 if gutter else 0)
    for i, token in enumerate(tokens if gutter else ()):
        middle = (i + 0.5) * cell
        parts += [
            text(token, gutter + middle, top - 6, size=12 if cell > 30 else 10, anchor="middle"),
            text(token, gutter - 6, top + middle + 4, size=12, anchor="end"),
        ]
    for q, query in enumerate(tokens):
        for k, key in enumerate(tokens):
            may = allowed is None or allowed[q][k]
            label = f"head {head}: {query} (query) reads {key} (key), weight {weights[q][k]:.2f}"
            parts.append(
                keyed(
                    f"{q},{k}",
                    label if may else f"head {head}: {query} may not read {key}",
                    weight_cell(weights[q][k] if may else None, gutter + k * cell, top + q * cell, cell),
                )
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


def weight_cell(weight: float | None, x: float, y: float, side: int) -> Svg:
    """A weight as a coloured square with its number, if that fits; None, may not attend, is crossed out."""
    if weight is None:
        return Svg(
            el("rect", x=x, y=y, width=side, height=side, fill=PAPER, stroke=LINE)
            + el("line", x1=x, y1=y + side, x2=x + side, y2=y, stroke=MUTED)
        )
    weight = round(weight, 2)  # the same picture on every CPU
    color = weight_color(weight)
    square = el("rect", x=x, y=y, width=side, height=side, fill=color)
    if side < 30:
        return square
    return Svg(
        square
        + text(
            f"{weight:.2f}",
            x + side / 2,
            y + side / 2 + 4,
            size=12 if side > 30 else 11,
            anchor="middle",
            fill=text_on(color),
        )
    )


def _legend(y: float) -> Svg:
    swatches = [
        el("rect", x=GAP + 60 + 16 * i, y=y + 6, width=16, height=14, fill=weight_color(i / 10)) for i in range(11)
    ]
    return Svg(
        "".join(
            [
                text("weight", GAP, y + 18, size=12),
                *swatches,
                text("0", GAP + 60, y + 33, size=11),
                text("1", GAP + 236, y + 33, size=11, anchor="end"),
                text("row: query", GAP + 270, y + 18, size=12, font_weight="600"),
                el("rect", x=GAP + 262, y=y + 8, width=4, height=12, fill=QUERY),
                text("column: key", GAP + 360, y + 18, size=12, font_weight="600"),
                el("rect", x=GAP + 352, y=y + 8, width=4, height=12, fill=KEY),
            ]
        )
    )


def _in_words(tokens: Sequence[str], weights: Sequence[Sequence[Sequence[float]]]) -> str:
    """For the last token of the first heads: which key it reads most."""
    says = []
    for head, rows in enumerate(weights[:4]):
        k = max(range(len(tokens)), key=lambda k: rows[-1][k])
        says.append(f"head {head} {tokens[k]} {rows[-1][k]:.2f}")
    return f"{tokens[-1]} reads most: " + ", ".join(says) + ("…. " if len(weights) > 4 else ". ")
