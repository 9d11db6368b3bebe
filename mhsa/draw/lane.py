"""The lane of one head in draw_flow: its query meets every key, and the values come back, as thick as their weights."""

from mhsa.draw.colors import KEY, QUERY, VALUE, head_color
from mhsa.draw.strip import Numbers, strip
from mhsa.draw.svg import INK, MUTED, Svg, el, keyed, text
from mhsa.follow import Flow

THUMBNAILS = 9  # from so many heads on, a lane has no room for words and numbers
THICK = 14  # a weight of 1
FIRST, LAST = 222, 500  # where lanes begin, and how long they are
Q, OUT, WORD, K, NUMBER, V, BACK, Z = 236, 300, 360, 402, 500, 544, 602, 658


def seen(stage: int, shown: int, *parts: Svg) -> Svg:
    """What comes after the stage shown is there, faint."""
    return el("g", *parts, opacity=None if stage <= shown else 0.12)


def curve(x0: float, y0: float, x1: float, y1: float, width: float, color: str, opacity: float = 0.85) -> Svg:
    middle = (x0 + x1) / 2
    path = f"M{x0:.1f},{y0:.1f}C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    return el("path", d=path, fill="none", stroke=color, stroke_width=max(width, 0.8), stroke_opacity=opacity)


def sums_to(terms: list[float], total: float) -> str:
    """0.40 + 0.10 - 0.20 = 0.30"""
    return f"{' + '.join(f'{term:.2f}' for term in terms)} = {total:.2f}".replace("+ -", "- ")


def products(a: Numbers, b: Numbers, total: float, most: int = 6) -> str:
    """0.40 · 4.00 + 0.10 · 0.00 = 1.60; of more than `most` products the first ones."""
    terms = [f"{x:.2f} · {y:.2f}" for x, y in zip(a, b)]
    terms = terms if len(terms) <= most else [*terms[: most - 1], "…"]
    return f"{' + '.join(terms)} = {total:.2f}".replace("+ -", "- ")


def draw_lane(flow: Flow, i: int, y: float, tall: float, shown: int, scale: dict[str, float], *, framed: bool) -> Svg:
    """Head i, its middle at y. scale: the largest size of a number in all queries, keys and values."""
    color, T, small = head_color(i), len(flow.tokens), len(flow.q) >= THUMBNAILS
    style = {"fill": color, "fill_opacity": 0.1, "stroke": color if framed else "none", "stroke_width": 1.5}
    ground = el("rect", x=FIRST, y=y - tall / 2 + 2, width=LAST, height=tall - 4, rx=0 if small else 8, **style)
    title = [] if small else [text(f"head {i}", FIRST + 8, y - tall / 2 + 16, size=11, font_weight="700")]
    pitch = (tall - (8 if small else 16)) / T
    rows = [y + pitch * (t - (T - 1) / 2) for t in range(T)]
    read = _thin if small else _read
    meets, mixes = zip(*(read(flow, i, t, y, row, shown, scale) for t, row in enumerate(rows)))
    parts = [
        keyed(f"head{i}", f"head {i}: press to spell out its numbers", ground, *title),
        seen(3, shown, *meets),
        seen(5, shown, *mixes),
    ]
    if not small:
        q, z = flow.q[i], flow.z[i]
        parts += [
            seen(2, shown, strip(q, Q, y, 56, QUERY, scale["q"], f"q{i},", lambda c: f"head {i}, query: {q[c]:.2f}")),
            seen(5, shown, strip(z, Z, y, 56, VALUE, scale["v"], f"z{i},", lambda c: _made_of(flow, i, c))),
        ]
    return el("g", *parts, class_="mhsa-lane")


def _made_of(flow: Flow, i: int, c: int) -> str:
    column = [v[c] for v in flow.v[i]]
    return f"head {i}, number {c} of z: {products(flow.weights[i], column, flow.z[i][c])}"


def _label(flow: Flow, i: int, t: int) -> str:
    if not flow.allowed[t]:
        return f"head {i}: {flow.name} may not read {flow.tokens[t]}"
    return (
        f"head {i}: {flow.name} reads {flow.tokens[t]}, score {flow.scores[i][t]:.2f}, weight {flow.weights[i][t]:.2f}"
    )


def _fans(flow: Flow, i: int, t: int, places: tuple[float, ...], y: float, row: float, thick: float) -> tuple[Svg, Svg]:
    """(to the key, back from the value); what may not be read is cut by a bar."""
    start, end, again, last = places
    if flow.allowed[t]:
        out = curve(start, y, end, row, thick, head_color(i))
        back = curve(again, row, last, y, thick, head_color(i))
    else:
        bar = el("line", x1=end - 6, x2=end - 6, y1=row - 5, y2=row + 5, stroke=INK, stroke_width=2)
        out, back = Svg(curve(start, y, end - 6, row, 0.8, MUTED, 0.5) + bar), Svg("")
    key, label = f"w{i},{t}", _label(flow, i, t)
    return keyed(key, label, out), keyed(key, label, back) if back else back


def _thin(flow: Flow, i: int, t: int, y: float, row: float, shown: int, scale: dict[str, float]) -> tuple[Svg, Svg]:
    thick = THICK / 2 * flow.weights[i][t] if shown >= 4 else 0
    return _fans(flow, i, t, (Q, V, V, FIRST + LAST), y, row, thick)


def _read(flow: Flow, i: int, t: int, y: float, row: float, shown: int, scale: dict[str, float]) -> tuple[Svg, Svg]:
    token, weight, k, v = flow.tokens[t], flow.weights[i][t], flow.k[i][t], flow.v[i][t]
    weighed = shown >= 4  # before the softmax the score stands there
    thick = THICK * weight if weighed else 0
    out, back = _fans(flow, i, t, (OUT - 4, WORD - 4, BACK - 4, Z - 4), y, row, thick)
    number = "–" if not flow.allowed[t] else f"{weight:.2f}" if weighed else f"{flow.scores[i][t]:.1f}"
    bold = "700" if weighed and weight > 0.4 else None
    meets = [
        out,
        text(token, WORD, row + 4, size=11, font_weight=bold),
        strip(k, K, row, 50, KEY, scale["k"], f"k{i},{t},", lambda c: f"head {i}, key of {token}: {k[c]:.2f}"),
        text(number, NUMBER, row + 4, size=11, anchor="end", font_weight=bold),
    ]
    value = strip(v, V, row, 50, VALUE, scale["v"], f"v{i},{t},", lambda c: f"head {i}, value of {token}: {v[c]:.2f}")
    return Svg("".join(meets)), Svg(value + back)
