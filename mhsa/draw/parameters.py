"""The four matrices of a layer, to scale."""

from textwrap import wrap

from mhsa.draw.colors import HEADS, head_color, text_on
from mhsa.draw.svg import INK, LINE, MUTED, Svg, el, keyed, picture, text

SIDE, GAP, TOP = 170, 30, 56  # the longest side of a matrix, in pixels
THIN = 6  # slices narrower than this shade into each other: so many colours side by side would flicker


def draw_parameters(
    d_model: int,
    num_heads: int,
    num_kv_heads: int,
    d_k: int,
    counts: dict[str, int],
    per_head: int,
    comparison: str,
    note: str,
) -> str:
    """The matrices, their slices coloured by head, above a table of formula, parameters and share.

    counts: parameters by part, "W_Q" first; comparison: a line on other choices; note: a line on this one.
    """
    h, g, total = num_heads, num_kv_heads, sum(counts.values())
    scale = SIDE / max(d_model, h * d_k)
    parts = []
    for i, (name, slices) in enumerate((("W_Q", h), ("W_K", g), ("W_V", g), ("W_O", h))):
        rows, columns = (d_model, slices * d_k) if name != "W_O" else (slices * d_k, d_model)
        parts.append(
            el(
                "g",
                _matrix(name, rows, columns, slices, h, g, scale),
                transform=f"translate({16 + i * (SIDE + GAP)},{TOP})",
            )
        )
    y = TOP + max(d_model, h * d_k) * scale + 34
    formulas = {
        "W_Q": f"d_model · h · d_k = {d_model:,} · {h} · {d_k}",
        "W_K": f"d_model · g · d_k = {d_model:,} · {g} · {d_k}",
        "W_V": f"d_model · g · d_v = {d_model:,} · {g} · {d_k}",
        "W_O": f"h · d_v · d_model = {h} · {d_k} · {d_model:,}",
        "a head": f"d_model · (d_k + d_k + d_v + d_v) = {d_model:,} · 4 · {d_k}",
        "total": "",
        "biases": f"h · d_k + g · d_k + g · d_v + d_model = {h * d_k:,} + 2 · {g * d_k:,} + {d_model:,}",
    }
    rows = counts | {"total": total, "a head": per_head}
    table = [_row(y + 22 * i, name, formulas[name], n, n / total) for i, (name, n) in enumerate(rows.items())]
    y += 22 * len(rows) + 6
    title = f"Parameters of one layer: {total:,}"
    each = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    desc = (
        f"d_model {d_model:,}, {h} head{'s' * (h > 1)} of width {d_k}, {g} head{'s' * (g > 1)} of keys and values. "
        f"{each}; one head uses {per_head:,}. {note}"
    )
    lines = wrap(note, 130)
    heading = text(title, 16, 26, size=17, font_weight="600")
    return picture(
        872,
        y + 34 + 17 * len(lines),
        title,
        desc,
        heading,
        *parts,
        *table,
        text(comparison, 16, y + 10, size=12),
        *(text(line, 16, y + 34 + 17 * i, size=12, fill=MUTED) for i, line in enumerate(lines)),
    )


def _matrix(name: str, rows: int, columns: int, slices: int, h: int, g: int, scale: float) -> Svg:
    """A rectangle cut into its heads: columns of W_Q, W_K and W_V, rows of W_O; those that share keys in one colour."""
    width, height = max(columns * scale, 2.0), max(rows * scale, 2.0)
    across = name != "W_O"
    side = (width if across else height) / slices
    parts = [text(f"{name}  {rows:,} × {columns:,}", 0, -8, size=13, font_weight="600")]
    for i in range(slices):
        heads = range(i * h // slices, (i + 1) * h // slices)  # the query heads that use this slice
        color = head_color(heads[0] * g // h)
        x, y, wide, high = (i * side, 0, side, height) if across else (0, i * side, width, side)
        thin = side < THIN
        style = {"fill": HEADS[0], "fill_opacity": 0.25 + 0.7 * (heads[0] * g // h) / g} if thin else {"fill": color}
        edge = None if thin else LINE
        inside = [el("rect", x=x, y=y, width=wide, height=high, **style, stroke=edge, stroke_width=0.5)]
        if min(wide, high) >= 14:
            inside.append(text(i, x + wide / 2, y + high / 2 + 4, size=11, anchor="middle", fill=text_on(color)))
        who = f"head {heads[0]}"
        if len(heads) > 1:
            who = f"head {i} of keys and values, read by heads {heads[0]} to {heads[-1]}"
        label = f"{name}, {who}: {rows * columns // slices:,} parameters"
        parts.append(keyed(" ".join(f"head{n}" for n in heads), label, *inside))
    return Svg("".join(parts) + el("rect", width=width, height=height, fill="none", stroke=INK))


def _row(y: float, name: str, formula: str, count: int, share: float) -> Svg:
    weight = "600" if name == "total" else None
    return Svg(
        text(name, 16, y, font_weight=weight)
        + text(formula, 90, y, fill=MUTED)
        + text(f"{count:,}", 640, y, anchor="end", font_weight=weight)
        + text(f"{100 * share:.1f} %", 720, y, anchor="end")
        + el("rect", x=736, y=y - 10, width=120 * share, height=10, fill=MUTED)
    )
