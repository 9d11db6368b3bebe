"""One word through the whole layer: its query parts into h strands, each head reads the sentence, W_O joins them."""

from collections.abc import Sequence
from typing import Any

from mhsa.draw.colors import VALUE, head_color
from mhsa.draw.lane import FIRST, LAST, THUMBNAILS, curve, draw_lane, seen, sums_to
from mhsa.draw.strip import largest, strip
from mhsa.draw.svg import INK, MUTED, PAPER, Svg, el, keyed, picture, text
from mhsa.follow import Flow

STEPS = ("project", "split", "compare", "softmax", "mix", "join", "W_O", "add")
WIDTH, TOP, LEFT, WIDE, PARTS, RIGHT, SUM = 940, 44, 16, 112, 158, 784, 144
ROPE = 36  # the thickness of d_model numbers: of the whole rope, however many strands it has
HEADINGS = {
    LEFT: ("words", 0),
    132: ("1 project", 1),
    FIRST + 14: ("2 split", 2),
    360: ("3 compare", 3),
    458: ("4 softmax", 4),
    544: ("5 mix", 5),
    RIGHT: ("6 join", 6),
    RIGHT + 52: ("7 W_O", 7),
    RIGHT + 104: ("8 add", 8),
}


def draw_flow(flow: Flow, *, step: int = 0, head: int = 0, lines: Sequence[str] = (), note: str = "") -> str:
    """step: 0 shows all, 1 to 8 the way up to STEPS[step - 1]. head: the framed one. lines: what stands below, the
    first in words, the others in code; note: whose numbers these are."""
    h, T = len(flow.q), len(flow.tokens)
    shown = step or len(STEPS)
    tall = max(330 / h, 14 if h >= THUMBNAILS else 18 + 13.5 * T)  # a lane
    lanes = [TOP + (i + 0.5) * tall for i in range(h)]
    middle, bottom = TOP + h * tall / 2, TOP + h * tall
    words = [middle + (t - (T - 1) / 2) * min(62, h * tall / T) for t in range(T)]
    parts = [
        text(label, x, 26, size=12, font_weight="600", fill=INK if number in (step, 0) else MUTED)
        for x, (label, number) in HEADINGS.items()
    ]
    parts += [_word(flow, t, y) for t, y in enumerate(words)]
    parts += [_strand(i, h, words[flow.word], y, shown) for i, y in enumerate(lanes)]
    scale = {"q": largest(flow.q), "k": largest(flow.k), "v": largest(flow.v)}
    parts += [draw_lane(flow, i, y, tall, shown, scale, framed=i == head) for i, y in enumerate(lanes)]
    parts.append(_right(flow, lanes, middle - 104, shown))
    for i, line in enumerate([*lines, note] if note else lines):
        how: dict[str, Any] = (
            {"size": 12, "fill": MUTED} if line is note else {"font_family": "monospace" if i else None}
        )
        parts.append(text(line, LEFT, bottom + 30 + 19 * i, **how))
    title = f"The word {flow.name} and its {h} head{'s' * (h > 1)}"
    height = bottom + 26 + 19 * (len(lines) + bool(note))
    return picture(WIDTH, height, title, " ".join([_in_words(flow, step), *lines, note]), *parts)


def _in_words(flow: Flow, step: int) -> str:
    h, d_k = len(flow.q), len(flow.q[0])
    says = [f"Step {step}, {STEPS[step - 1]}."] if step else []
    says.append(f"{flow.name} asks {h} question{'s' * (h > 1)}, each {d_k} of {h * d_k} numbers wide.")
    for i, row in enumerate(flow.weights[:4]):
        best = max(range(len(row)), key=row.__getitem__)
        says.append(f"Head {i} reads {flow.tokens[best]} most, {row[best]:.2f}.")
    return " ".join(says + ([f"{h - 4} more heads."] if h > 4 else []))


def _word(flow: Flow, t: int, y: float) -> Svg:
    token, asks = flow.tokens[t], t == flow.word
    frame = el("rect", x=LEFT - 8, y=y - 24, width=WIDE + 20, height=48, rx=8, fill=PAPER, stroke=INK, stroke_width=2)
    touch = el("rect", x=LEFT - 8, y=y - 24, width=WIDE + 20, height=28, fill=PAPER)
    style = {"font_weight": "700"} if asks else {"fill": MUTED}
    label = f"{token}: the word that asks" if asks else f"{token}: press to let this word ask"
    name = keyed(f"word{t}", label, frame if asks else touch, text(token, LEFT, y - 8, size=14, **style))
    return Svg(name + _x(flow, t, LEFT, y + 8, WIDE))


def _x(flow: Flow, t: int, x: float, y: float, width: float) -> Svg:
    scale = largest([flow.x, flow.total])
    return strip(flow.x[t], x, y, width, INK, scale, f"x{t},", lambda c: f"{flow.tokens[t]}, number {c} of x")


def _strand(i: int, h: int, y_word: float, y: float, shown: int) -> Svg:
    """Head i's part of the rope, from the word to its lane."""
    own, style = y_word + (i - (h - 1) / 2) * ROPE / h, {"stroke": head_color(i), "stroke_opacity": 0.85}
    rope = el("line", x1=LEFT + WIDE + 12, x2=PARTS, y1=own, y2=own, stroke_width=ROPE / h, **style)
    return Svg(seen(1, shown, rope) + seen(2, shown, curve(PARTS, own, FIRST + 12, y, ROPE / h, head_color(i))))


def _right(flow: Flow, lanes: Sequence[float], y: float, shown: int) -> Svg:
    """Side by side, times W_O, plus the word."""
    h, d_v, end, middle = len(lanes), len(flow.z[0]), FIRST + LAST, RIGHT + SUM / 2
    strands = [
        curve(end - 2, lane, RIGHT - 6, y + (i - (h - 1) / 2) * ROPE / h, ROPE / h, head_color(i))
        for i, lane in enumerate(lanes)
    ]
    frames = [
        el("rect", x=RIGHT + i * SUM / h + 1, y=y - 10, width=SUM / h - 2, height=20, fill="none", **stroke)
        for i, stroke in enumerate({"stroke": head_color(i), "stroke_width": 2} for i in range(h))
    ]
    z, scale = [number for numbers in flow.z for number in numbers], largest([flow.x, flow.total])
    join = strip(
        z, RIGHT, y, SUM, VALUE, largest(flow.v), "side", lambda c: f"from head {c // d_v}, its number {c % d_v}"
    )
    out = strip(
        flow.out, RIGHT, y + 72, SUM, INK, largest(flow.out), "out", lambda c: f"number {c} of z W_O, made of all heads"
    )
    new = strip(
        flow.total,
        *(RIGHT, y + 188, SUM, INK, scale, "new"),
        lambda c: f"{flow.name}, number {c}: {sums_to([flow.x[flow.word][c], flow.out[c]], flow.total[c])}",
    )
    small: dict[str, Any] = {"size": 11, "fill": MUTED}
    large: dict[str, Any] = {"anchor": "middle", "font_weight": "700"}
    box = el("rect", x=RIGHT, y=y + 22, width=SUM, height=28, rx=5, fill=PAPER, stroke=INK)
    ring = el("rect", x=RIGHT - 2, y=y + 178, width=SUM + 4, height=20, rx=3, fill="none", stroke=INK, stroke_width=2)
    parts = {
        6: [*strands, text("side by side", RIGHT, y - 16, **small), join, *frames],
        7: [box, text("× W_O", middle, y + 41, **large), out, text("what the heads found", RIGHT, y + 94, **small)],
        8: [
            text("+", middle, y + 114, size=16, **large),
            _x(flow, flow.word, RIGHT, y + 130, SUM),
            text(f"{flow.name} as it was", RIGHT, y + 152, **small),
            text("=", middle, y + 170, size=16, **large),
            new,
            ring,
            text(f"the new {flow.name}", RIGHT, y + 213, size=11, font_weight="600"),
        ],
    }
    return Svg("".join(seen(stage, shown, *drawn) for stage, drawn in parts.items()))
