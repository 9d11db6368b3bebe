"""assets/lenses: one input, four heads side by side, one output. The roles of the heads are examples."""

from mhsa.draw.colors import text_on
from mhsa.draw.diagram import GREY, INK, NAVY, SERIF, arrow, box
from mhsa.draw.svg import el, picture, standalone, text
from mhsa.layers import MultiHeadAttention
from mhsa.toys import SENTENCE

SIDE, GROUND = 1000, "#fcf0db"
TITLE = "Multi-Head Attention: Parallel Semantic Lenses"
# role, what it might read, query and key: blue, teal, gold and coral among the colours of heads
LENSES = (
    ("syntactic role", "a verb reads its subject", "lost", "Mia", "#56B4E9"),
    ("positional proximity", "a word reads the one before", "keys", "her", "#009E73"),
    ("coreference", "a pronoun reads its noun", "her", "Mia", "#E69F00"),
    ("semantic topic", "a word reads a related one", "keys", "lost", "#D55E00"),
)


def draw_lenses() -> str:
    layer = MultiHeadAttention(512, len(LENSES))
    h, d_model, d_k = layer.num_heads, layer.d_model, layer.d_k
    wide, gap, left = 215, 16, 46
    middles = [left + i * (wide + gap) + wide / 2 for i in range(h)]
    parts = [
        el("rect", x=4, y=4, width=SIDE - 8, height=SIDE - 8, fill=GROUND, stroke=NAVY, stroke_width=8),
        _line(TITLE, 74, 32, NAVY, font_weight="700"),
        _line("Splitting d_model into h subspaces of size d_k = d_model / h", 110, 21, NAVY),
        _line(
            f"What is split are the projections: every head reads all d_model columns. Here {d_model} / {h} = {d_k}.",
            138,
            16,
            INK,
        ),
        box(
            250,
            162,
            500,
            62,
            f"X: {' '.join(SENTENCE)}",
            f"T × d_model = {len(SENTENCE)} × {d_model}",
            size=17,
            fill="#ffffff",
        ),
        box(
            left,
            640,
            4 * wide + 3 * gap,
            30,
            f"Concat: T × (h · d_k) = {len(SENTENCE)} × {h * d_k}",
            size=15,
            fill="#ffffff",
        ),
        *(arrow(x, 670, 500 + (x - 500) * 0.4, 722, lens[-1]) for x, lens in zip(middles, LENSES)),
        box(
            250,
            724,
            500,
            62,
            "W_O adds the heads up",
            f"(h · d_k) × d_model = {h * d_k} × {d_model}",
            size=17,
            fill="#ffffff",
        ),
        arrow(500, 786, 500, 814, NAVY),
        _line(f"output: T × d_model = {len(SENTENCE)} × {d_model}", 834, 16, INK),
        _line("MHA(Q, K, V) = Concat(head₁, …, head_h) W_O", 882, 24, NAVY),
        _line("head_i = Attention(Q W_Qⁱ, K W_Kⁱ, V W_Vⁱ); here Q = K = V = X", 910, 18, NAVY),
        _line("The four roles are examples, named by hand: nothing in the layer makes a head take one.", 950, 16, INK),
    ]
    for i, (x, lens) in enumerate(zip(middles, LENSES)):
        parts += _lens(i, x, wide, lens, d_model, d_k)
    roles = "; ".join(
        f"head {i}: {role}, {query} reads {key}" for i, (role, _, query, key, _) in enumerate(LENSES, start=1)
    )
    desc = (
        f"X with {d_model} columns goes whole into four heads side by side. Each projects it to {d_k} columns and "
        f"attends. Their outputs are concatenated and multiplied by W_O. Roles, as examples: {roles}."
    )
    return standalone(picture(SIDE, SIDE, TITLE, desc, *parts))


def _line(words: str, y: float, size: float, fill: str, **style) -> str:
    return text(words, SIDE / 2, y, size=size, fill=fill, anchor="middle", font_family=SERIF, **style)


def _lens(i: int, x: float, wide: float, lens: tuple, d_model: int, d_k: int) -> list:
    """One head: what comes in, its projections, its role with an example, what goes out."""
    role, reads, query, key, color = lens
    top, middle, up = 290, {"anchor": "middle"}, "¹²³⁴"[i]
    return [
        arrow(500 + (x - 500) * 0.5, 224, x, top, color),
        el("rect", x=x - wide / 2, y=top, width=wide, height=280, rx=10, fill="#ffffff", stroke=color, stroke_width=4),
        el("rect", x=x - wide / 2, y=top, width=wide, height=66, rx=10, fill=color),
        text(f"Head {i + 1}", x, top + 27, size=20, fill=text_on(color), font_weight="700", **middle),
        text(f"e.g. {role}", x, top + 52, size=15, fill=text_on(color), **middle),
        text(f"W_Q{up}, W_K{up}, W_V{up}", x, top + 100, size=17, fill=INK, **middle),
        text("d_model × d_k each", x, top + 123, size=14, fill=GREY, **middle),
        text(f"{d_model} × {d_k}", x, top + 142, size=14, fill=GREY, **middle),
        text("softmax(q kᵀ / √d_k) v", x, top + 180, size=16, fill=INK, **middle),
        text(f"{query} → {key}", x, top + 232, size=22, fill=INK, font_weight="700", **middle),
        text(reads, x, top + 258, size=14, fill=GREY, **middle),
        arrow(x, top + 280, x, 600, color),
        box(x - wide / 2, 600, wide, 40, f"head{'₁₂₃₄'[i]}: T × d_k = {len(SENTENCE)} × {d_k}", fill=color, size=15),
    ]
