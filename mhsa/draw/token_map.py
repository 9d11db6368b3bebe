"""One attention map of a sentence, its tokens beside rows and columns: cell by cell, or for a long one row by row."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mhsa.draw.heads import sides, weight_cell
from mhsa.draw.image import weight_image
from mhsa.draw.svg import LINE, PAPER, Svg, el, keyed, text

FEW = 24  # tokens drawn cell by cell; more: row by row
WORD = 62  # room for a token's name


def token_map(tokens: Sequence[str], weights: np.ndarray, x: float, y: float, right: float) -> tuple[list[Svg], float]:
    """The map of weights (T, T) from x, y up to right at most, and where it ends below."""
    draw = _by_cell if len(tokens) <= FEW else _by_row
    return draw(tokens, with_places(tokens), weights, x, y, right)


def with_places(tokens: Sequence[str]) -> list[str]:
    """A token that comes more than once is named with its place, from 0."""
    count = Counter(tokens)
    return [f"{token} ({i})" if count[token] > 1 else token for i, token in enumerate(tokens)]


def most(named: Sequence[str], weights: np.ndarray) -> str:
    order = np.argsort(-weights, kind="stable")[:3]
    return ", ".join(f"{named[i]} {weights[i]:.2f}" for i in order)


def _by_cell(
    tokens: Sequence[str], named: Sequence[str], weights: np.ndarray, x: float, y: float, right: float
) -> tuple[list[Svg], float]:
    T, left, top = len(tokens), x + WORD + 8, y + WORD + 8
    cell = min(36, int((right - left) // T))
    rows, columns = _words(tokens, left, top, cell)
    parts = _edges(left, top, cell * T)
    for i in range(T):
        parts += [
            keyed(" ".join(f"{i},{k}" for k in range(T)), _row_label(named, weights, i), rows[i]),
            keyed(" ".join(f"{q},{i}" for q in range(T)), _column_label(named, weights, i), columns[i]),
        ]
    for q, row in enumerate(weights.tolist()):
        parts += [
            keyed(
                f"{q},{k}",
                f"{named[q]} (query) reads {named[k]} (key), weight {weight:.2f}",
                weight_cell(weight, left + k * cell, top + q * cell, cell),
            )
            for k, weight in enumerate(row)
        ]
    return parts, top + cell * T


def _by_row(
    tokens: Sequence[str], named: Sequence[str], weights: np.ndarray, x: float, y: float, right: float
) -> tuple[list[Svg], float]:
    """One picture for the cells; what is pointed at is a row, or the name of a column."""
    T = len(tokens)
    tiers = 1 if (right - x - WORD - 8) / T >= 9 else 2  # each word needs its height
    left, top = x + tiers * WORD + 8, y + tiers * WORD + 8
    cell = min(20, (right - left) / T)
    rows, columns = _words(tokens, left, top, cell, tiers)
    parts = [
        weight_image(weights, left, top, cell * T, cell * T, image_rendering="pixelated"),
        *_edges(left, top, cell * T),
    ]
    clear = {"fill": PAPER, "fill_opacity": 0}
    for i in range(T):
        strip = el("rect", x=left + i * cell, y=y, width=cell, height=top - y + cell * T, **clear)
        parts.append(keyed(f"k{i}", _column_label(named, weights, i), strip, columns[i]))
    for i in range(T):  # over the columns: in the map a row is meant
        strip = el("rect", x=x, y=top + i * cell, width=left - x + cell * T, height=cell, **clear)
        parts.append(keyed(f"q{i}", _row_label(named, weights, i), strip, rows[i]))
    return parts, top + cell * T


def _words(tokens: Sequence[str], left: float, top: float, cell: float, tiers: int = 1) -> tuple[list[Svg], list[Svg]]:
    """The tokens beside the rows and, upright, over the columns; in two tiers every second one stands further out."""
    rows, columns, size = [], [], 12 if cell >= 16 else 11 if tiers == 1 else 10
    for i, token in enumerate(tokens):
        word, away = token if len(token) <= 9 else token[:8] + "…", 6 + i % tiers * WORD
        x, y = left + (i + 0.5) * cell, top + (i + 0.5) * cell
        row, column = (
            text(word, at, base, size=size, anchor=anchor, transform=turn)
            for at, base, anchor, turn in (
                (left - away, y + size / 3, "end", None),
                (x + size / 3, top - away, "start", f"rotate(-90 {x + size / 3:.2f} {top - away:.2f})"),
            )
        )
        if i % tiers:
            row = Svg(el("line", x1=left - away + 2, x2=left - 4, y1=y, y2=y, stroke=LINE, stroke_width=0.5) + row)
            column = Svg(el("line", x1=x, x2=x, y1=top - away + 2, y2=top - 4, stroke=LINE, stroke_width=0.5) + column)
        rows.append(row)
        columns.append(column)
    return rows, columns


def _edges(left: float, top: float, length: float) -> list[Svg]:
    return sides(left, top, length, length)


def _row_label(named: Sequence[str], weights: np.ndarray, q: int) -> str:
    return f"{named[q]} (query) reads most: {most(named, weights[q])}"


def _column_label(named: Sequence[str], weights: np.ndarray, k: int) -> str:
    return f"{named[k]} (key) is read most by: {most(named, weights[:, k])}; mean {weights[:, k].mean():.2f}"
