"""assets/course_map: the braid with the letters of the course on its parts, and the lessons as pins where they work."""

from mhsa.draw.braid import D_MODEL, WORD
from mhsa.draw.flow import draw_flow
from mhsa.draw.svg import INK, PAPER, Svg, el, standalone, text
from mhsa.follow import follow
from mhsa.lessons import LESSONS
from mhsa.toys import SENTENCE
from mhsa.train.example import load_examples

# symbol -> where it stands, on the picture of two heads
LETTERS = {
    "x (B, T, d_model)": (16, 42),
    "W_Q": (132, 42),
    "q (B, h, T, d_k)": (236, 42),
    "k": (402, 42),
    "weights (B, h, T, T)": (416, 42),
    "v": (544, 42),
    "z (B, h, T, d_v)": (630, 42),
    "out (B, T, d_model)": (784, 42),
}
# lesson -> where its pins stand
PINS = {
    1: [(300, 60)],
    2: [(212, 208), (752, 116)],
    3: [(176, 122), (766, 172)],
    4: [(150, 208), (918, 142)],
    5: [(338, 310)],
    6: [(324, 60)],
    7: [(524, 254)],
    8: [(212, 360)],
    9: [(524, 328)],
    10: [(918, 312)],
}


def draw_course_map() -> str:
    """Two heads of a trained layer; each pin's title is the lesson's."""
    example = load_examples()[D_MODEL, 2]
    flow = follow(example.layer, example.x, SENTENCE, WORD)
    line = "Letters as in the table; a pin is the number of the lesson that works there."
    svg = standalone(draw_flow(flow, head=-1, lines=[line]))
    words = "Its parts carry the letters of the course, and pins the numbers of the lessons: " + ", ".join(
        lesson.title for lesson in LESSONS[1:]
    )
    over = Svg("".join([*map(_letter, LETTERS), *(_pin(n, x, y) for n, places in PINS.items() for x, y in places)]))
    return svg.replace("</desc>", f" {words}.</desc>").replace("</svg>", standalone(over) + "</svg>")


def _letter(symbol: str) -> Svg:
    x, y = LETTERS[symbol]
    return text(symbol, x, y, size=11)


def _pin(number: int, x: float, y: float) -> Svg:
    spot = el("circle", cx=x, cy=y, r=10, fill=INK, stroke=PAPER, stroke_width=2)
    return Svg(spot + text(number, x, y + 4, size=12, fill=PAPER, anchor="middle", font_weight="700"))
