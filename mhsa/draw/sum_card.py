"""How one cell of an attention map comes about, and what becomes of it: from query and key to a part of z."""

from math import sqrt

from mhsa.draw.colors import KEY, QUERY, VALUE, head_color, weight_opacity
from mhsa.draw.lane import products
from mhsa.draw.strip import largest, strip
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, text
from mhsa.follow import Flow

WIDE, HIGH = 400, 216
LEFT, ROOM = 96, 296  # of strips and bars


def draw_sum(flow: Flow, head: int, key: int, color: str | None = None) -> tuple[Svg, float, float]:
    """(the drawing, its width, its height) for the word of flow and the key at this place. color: of the map it
    belongs to, the head's own unless told otherwise."""
    q, k, v = flow.q[head], flow.k[head][key], flow.v[head][key]
    score, weight, name = flow.scores[head][key], flow.weights[head][key], flow.tokens[key]
    d_k, may = len(q), flow.allowed[key]
    width, scale = min(ROOM, 30 * d_k), {"q": largest(flow.q), "k": largest(flow.k), "v": largest(flow.v)}
    part = [weight * number for number in v]

    def row(label: str, y: float, values, color: str, kind: str, which: str) -> Svg:
        cells = strip(values, LEFT, y - 4, width, color, scale[kind], which, lambda c: f"{label}, {c}: {values[c]:.2f}")
        return Svg(text(label, 0, y, size=12) + cells)

    divided = f"{score:.2f} / √{d_k} = {score / sqrt(d_k):.2f}"
    parts = [
        text(f"head {head}: {flow.name} reads {name}", 0, 14, size=14, font_weight="600"),
        row("its query", 40, q, QUERY, "q", "sum-q"),
        row(f"key of {name}"[:14], 62, k, KEY, "k", "sum-k"),
        text("score", 0, 86, size=12),
        text(products(q, k, score, most=3), LEFT, 86, size=12),
        text(divided if may else "closed by the mask: weight 0", LEFT, 104, size=12),
        text("softmax", 0, 130, size=12),
        *_shares(flow, head, key, 118, color or head_color(head)),
        row(f"value of {name}"[:14], 168, v, VALUE, "v", "sum-v"),
        row(f"its part, {weight:.2f}", 188, part, VALUE, "v", "sum-p"),
        row(f"z of head {head}", 210, flow.z[head], VALUE, "v", "sum-z"),
    ]
    return Svg("".join(parts)), WIDE, HIGH


def _shares(flow: Flow, head: int, key: int, y: float, color: str) -> list[Svg]:
    """The weights of the row as parts of one bar, the chosen one in full colour."""
    parts, x = [el("rect", x=LEFT, y=y, width=ROOM, height=16, fill=PAPER, stroke=LINE)], float(LEFT)
    for t, weight in enumerate(flow.weights[head]):
        wide = ROOM * weight
        shade = weight_opacity(1.0 if t == key else 0.04, color)
        piece = el("rect", x=x, y=y, width=wide, height=16, fill=color, fill_opacity=shade, stroke=LINE)
        parts.append(keyed(f"sum-w{t}", f"{flow.tokens[t]}: {weight:.2f} of the row", piece))
        if wide > 9 * len(flow.tokens[t]):
            style = {"fill": INK, "font_weight": "600"} if t == key else {"fill": MUTED}
            parts.append(text(flow.tokens[t], x + wide / 2, y + 28, size=11, anchor="middle", **style))
        x += wide
    return parts
