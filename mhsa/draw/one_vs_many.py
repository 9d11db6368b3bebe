"""One head and several beside each other: the weights of one query, its output, and each head's part of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mhsa.draw.colors import KEY, VALUE, head_color, text_on, weight_opacity
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, picture, text

WIDTH, MARGIN, PANEL, GUTTER, CELL = 872, 16, 430, 62, 40
ROWS_AT, TALL = 196, 190  # where the rows of weights begin; a plane's height


class Side(NamedTuple):
    """What one layer does for the query.

    rows:     the query's weights, one row a head
    answers:  relation -> the word that is read out
    readers:  relation -> the head with the most weight on its right word
    far:      right place -> distance from the value there of what the chosen relation's reader hands over, the vector
              z; 1 is the mean distance of two words' values
    plane:    the same values, and last z, as points of a plane
    """

    rows: Sequence[Sequence[float]]
    answers: Mapping[str, str]
    readers: Mapping[str, int]
    far: Mapping[int, float]
    plane: Sequence[tuple[float, float]]


def draw_one_vs_many(
    words: Sequence[str], query: str, right: Mapping[str, int], relation: str, one: Side, many: Side
) -> str:
    """right: relation -> the place of its right word; relation: the chosen one."""
    titles = ["1 head", _heads(len(many.rows))]
    panels = [
        el("g", _panel(name, words, query, right, relation, side), transform=f"translate({x},0)")
        for name, x, side in zip(titles, (MARGIN, MARGIN + PANEL), (one, many))
    ]
    asks = ", ".join(f"{name} {words[place]}" for name, place in right.items())
    desc = f"{query} asks for: {asks}. " + " ".join(
        f"{title}: {_in_words(words, right, relation, side)}" for title, side in zip(titles, (one, many))
    )
    height = ROWS_AT + max(len(side.rows) * _row_height(side) for side in (one, many)) + TALL + 24
    note = (
        "A row a head: its weights for the query. Framed: the right words, thick for the chosen question. "
        "Distance 1: the mean of two words."
    )
    return picture(
        WIDTH,
        height,
        f"“{query}” with 1 head and with {titles[1]}",
        desc,
        *panels,
        text(f"“{query}” asks {len(right)} questions at once", MARGIN, 26, size=16, font_weight="600"),
        text(note, MARGIN, height - 10, size=12, fill=MUTED),
    )


def _heads(h: int) -> str:
    return f"{h} head{'s' * (h > 1)}"


def _row_height(side: Side) -> int:
    return 34 if len(side.rows) <= 4 else 22


def _in_words(words: Sequence[str], right: Mapping[str, int], relation: str, side: Side) -> str:
    says = []
    for name, place in right.items():
        head = side.readers[name]
        says.append(f"{name} weight {side.rows[head][place]:.2f} (head {head}), reads out {side.answers[name]}")
    return f"{'; '.join(says)}. For the {relation}, head {side.readers[relation]} hands over z: {_far(words, side)}."


def _far(words: Sequence[str], side: Side) -> str:
    return ", ".join(f"{distance:.2f} from {words[place]}" for place, distance in side.far.items())


def _panel(title: str, words: Sequence[str], query: str, right: Mapping[str, int], relation: str, side: Side) -> Svg:
    parts = [
        text(title, 0, 54, size=14, font_weight="600"),
        text("largest weight", 170, 54, size=12, fill=MUTED),
        text("reads out", 300, 54, size=12, fill=MUTED),
    ]
    for i, (name, place) in enumerate(right.items()):
        parts.append(_question(name, words[place], place, side, name == relation, 74 + 20 * i))
        parts.append(
            text(
                name,
                GUTTER + (place + 0.5) * CELL,
                142 + 12 * i,
                size=10,
                anchor="middle",
                fill=INK if name == relation else MUTED,
                font_weight="600" if name == relation else None,
            )
        )
    parts += [text(word, GUTTER + (k + 0.5) * CELL, 185, size=12, anchor="middle") for k, word in enumerate(words)]
    parts.append(el("rect", x=GUTTER, y=ROWS_AT - 6, width=CELL * len(words), height=3, fill=KEY))
    high = _row_height(side)
    for head, row in enumerate(side.rows):
        y = ROWS_AT + head * high
        parts += [
            el("rect", x=0, y=y + 2, width=GUTTER - 6, height=high - 4, rx=3, fill=head_color(head)),
            text(
                f"head {head}",
                (GUTTER - 6) / 2,
                y + high / 2 + 4,
                size=11,
                anchor="middle",
                fill=text_on(head_color(head)),
                font_weight="700" if head == side.readers[relation] else None,
            ),
        ]
        for k, weight in enumerate(row):
            names = [name for name, place in right.items() if place == k]
            label = f"head {head}: {query} (query) reads {words[k]} (key), weight {weight:.2f}" + (
                f"; the right word for {' and '.join(names)}" if names else ""
            )
            frame = 3 if relation in names else 1 if names else 0
            parts.append(keyed(str(k), label, _cell(weight, head, GUTTER + k * CELL, y, high, frame)))
    below = ROWS_AT + high * len(side.rows)
    return Svg("".join(parts) + _plane(words, side.readers[relation], right[relation], side, below))


def _question(name: str, word: str, place: int, side: Side, is_chosen: bool, y: float) -> Svg:
    head, answer = side.readers[name], side.answers[name]
    weight, mark = side.rows[head][place], "✓" if answer == word else "✗"
    label = f"{name}: the right word is {word}; largest weight {weight:.2f} in head {head}; reads out {answer}"
    bold = "600" if is_chosen else None
    return keyed(
        str(place),
        label,
        text(f"{name}: {word}", 0, y, font_weight=bold),
        el(
            "rect",
            x=170,
            y=y - 10,
            width=max(70 * weight, 1.0),
            height=10,
            fill=head_color(head),
            stroke=LINE,
            stroke_width=0.5,
        ),
        text(f"{weight:.2f}", 246, y, size=12),
        text(f"{answer} {mark}", 300, y, font_weight=bold),
    )


def _cell(weight: float, head: int, x: float, y: float, high: float, frame: int) -> Svg:
    color = head_color(head)
    parts = [
        el("rect", x=x, y=y, width=CELL, height=high, fill=PAPER, stroke=LINE, stroke_width=0.5),
        el("rect", x=x, y=y, width=CELL, height=high, fill=color, fill_opacity=weight_opacity(weight, color)),
        text(f"{weight:.2f}", x + CELL / 2, y + high / 2 + 4, size=11, anchor="middle"),
    ]
    if frame:
        inset = frame / 2 + 0.5
        parts += [
            el(
                "rect",
                x=x + inset,
                y=y + inset,
                width=CELL - 2 * inset,
                height=high - 2 * inset,
                fill="none",
                stroke=stroke,
                stroke_width=width,
            )
            for stroke, width in ((PAPER, frame + 1.5), (INK, frame))
        ]
    return Svg("".join(parts))


def _plane(words: Sequence[str], head: int, chosen: int, side: Side, top: float) -> Svg:
    """The values of the right words as points, the vector z that the head hands over, and how far they lie apart."""
    xs, ys = zip(*side.plane)
    scale = min(250 / max(max(xs) - min(xs), 0.1), 72 / max(max(ys) - min(ys), 0.1), 160)
    points = [(70 + scale * (x - min(xs)), top + 132 - scale * (y - min(ys))) for x, y in side.plane]
    z_x, z_y = points[-1]
    parts = [text(f"z: what head {head} hands over, among its own values", 0, top + 26, size=12, font_weight="600")]
    for (place, distance), (x, y) in zip(side.far.items(), points):
        parts += [
            el(
                "line",
                x1=z_x,
                y1=z_y,
                x2=x,
                y2=y,
                stroke=INK if place == chosen else MUTED,
                stroke_width=2 if place == chosen else 1,
            ),
            keyed(
                str(place),
                f"the value of {words[place]}; z lies {distance:.2f} from it, where 1 is the mean "
                "distance of two words' values",
                el("circle", cx=x, cy=y, r=6, fill=VALUE),
            ),
            text(words[place], x, y - 10, size=12, anchor="middle"),
        ]
    parts += [
        el("rect", x=z_x - 5, y=z_y - 5, width=10, height=10, fill=INK),
        text("z", z_x, z_y + 18, size=12, anchor="middle", font_weight="600"),
    ]
    return Svg("".join(parts) + text(f"z lies {_far(words, side)}", 0, top + 168, size=12))
