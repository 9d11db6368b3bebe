"""A mask, the scores and the weights it leaves, side by side."""

from collections.abc import Sequence

from mhsa.draw.heads import sides, weight_cell
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, picture, text

WIDTH, MARGIN, GUTTER, SUM = 872, 16, 44, 84  # SUM: room for the sum of a row of weights
BY = {"C": "by the causal mask", "P": "by padding", "H": "by hand"}


def draw_masks(
    queries: Sequence[str],
    keys: Sequence[str],
    closed_by: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float]],
    weights: Sequence[Sequence[float]],
    code: str,
) -> str:
    """Three tables, (T_q, T_k) each: rows are queries, columns keys.

    closed_by: letters of the masks that close a cell (BY says which), "" where it may attend. code: how the mask was
    made.
    """
    panel = (WIDTH - 2 * MARGIN - SUM) // 3
    cell = min(44, (panel - GUTTER - 10) // len(keys))
    left = [MARGIN + i * panel + GUTTER for i in range(3)]
    top, bottom = 98, 98 + cell * len(queries)
    parts = [text(code, MARGIN, 28, size=14, font_family="monospace", font_weight="600")]
    for x, title, note in zip(
        left, ("mask", "scores", "weights"), ("filled: True, may attend", "before the mask", "after the mask")
    ):
        parts += [text(title, x, 60, size=14, font_weight="600"), text(note, x + 68, 60, size=12, fill=MUTED)]
        parts += _names(queries, keys, x, top, cell)
    for q, query in enumerate(queries):
        y = top + q * cell
        for k, key in enumerate(keys):
            why, weight = closed_by[q][k], weights[q][k]
            x = [left[i] + k * cell for i in range(3)]
            label = _label(query, key, why, scores[q][k], weight)
            parts += [
                keyed(f"{q},{k}", label, part)
                for part in (
                    _mask_cell(why, x[0], y, cell),
                    _score_cell(scores[q][k], bool(why), x[1], y, cell),
                    weight_cell(None if why else weight, x[2], y, cell),
                )
            ]
        parts += _sum(sum(weights[q]), all(closed_by[q]), left[2] + cell * len(keys) + 8, y + cell / 2)
    notes = _notes(queries, keys, closed_by)
    return picture(
        WIDTH,
        bottom + 18 + 18 * len(notes),
        "Mask, scores and weights",
        f"{code}. {' '.join(notes)}",
        *parts,
        *(text(note, MARGIN, bottom + 26 + 18 * i, size=12) for i, note in enumerate(notes)),
    )


def _label(query: str, key: str, why: str, score: float, weight: float) -> str:
    if not why:
        return f"{query} may read {key}: score {score:.2f}, weight {weight:.2f}; press to close it by hand"
    by = " and ".join(BY[letter] for letter in why)
    hand = "press to take your mark away" if "H" in why else "press to close it by hand as well"
    return f"{query} may not read {key}, closed {by}: score {score:.2f}, weight {weight:.2f}; {hand}"


def _notes(queries: Sequence[str], keys: Sequence[str], closed_by: Sequence[Sequence[str]]) -> list[str]:
    notes = ["Rows are queries, columns keys. Press a cell, or Enter or space on it, to close or open it by hand."]
    letters = [letter for letter in BY if any(letter in why for row in closed_by for why in row)]
    if letters:
        notes.append("Closed " + ", ".join(f"{letter}: {BY[letter]}" for letter in letters) + ".")
    if len(queries) < len(keys):
        past = len(keys) - len(queries)
        notes.append(f"The last {len(queries)} of {len(keys)} tokens ask, as with a cache that holds {past}.")
    empty = [query for query, row in zip(queries, closed_by) if all(row)]
    if empty:
        notes.append(f"May read nothing, so every weight is 0: {', '.join(empty)}.")
    return notes


def _sum(total: float, is_empty: bool, x: float, y: float) -> list[Svg]:
    if not is_empty:
        return [text(f"sum {total:.2f}", x, y + 4, size=11, fill=MUTED)]
    return [text(f"sum {total:.2f}", x, y - 2, size=11), text("reads nothing", x, y + 11, size=11, font_weight="600")]


def _names(queries: Sequence[str], keys: Sequence[str], x: float, top: float, cell: int) -> list[Svg]:
    size = 12 if cell >= 36 else 10
    return [
        *(text(key, x + (k + 0.5) * cell, top - 8, size=size, anchor="middle") for k, key in enumerate(keys)),
        *(text(query, x - 6, top + (q + 0.5) * cell + 4, size=12, anchor="end") for q, query in enumerate(queries)),
        *sides(x, top, cell * len(keys), cell * len(queries)),
    ]


def _mask_cell(why: str, x: float, y: float, side: int) -> Svg:
    """Open: a filled square. Closed: empty, with the letters of the masks that close it."""
    parts = [el("rect", x=x, y=y, width=side, height=side, fill=PAPER, stroke=LINE)]
    if why:
        parts.append(text(why, x + side / 2, y + side / 2 + 4, size=12, anchor="middle", font_weight="600"))
    else:
        parts.append(el("rect", x=x + 5, y=y + 5, width=side - 10, height=side - 10, rx=3, fill=MUTED))
    return Svg("".join(parts))


def _score_cell(score: float, is_closed: bool, x: float, y: float, side: int) -> Svg:
    parts = [el("rect", x=x, y=y, width=side, height=side, fill=PAPER, stroke=LINE)]
    if is_closed:  # a corner cut off: the number stays readable
        parts.append(el("path", d=f"M{x + side - 12},{y}h12v12z", fill=MUTED))
    parts.append(
        text(
            f"{score:.2f}",
            x + side / 2,
            y + side / 2 + 4,
            size=12 if side >= 36 else 10,
            anchor="middle",
            fill=MUTED if is_closed else INK,
        )
    )
    return Svg("".join(parts))
