"""All heads of a model on one sentence: a thumbnail each, named by its pattern, and the map of one of them."""

from collections.abc import Mapping, Sequence

import numpy as np

from mhsa.draw.arcs import HIGH, draw_arcs
from mhsa.draw.colors import KEY, QUERY
from mhsa.draw.heads import scale_legend
from mhsa.draw.image import FINE, contact_sheet, weight_image
from mhsa.draw.svg import INK, LINE, MUTED, PAPER, Svg, el, keyed, picture, text
from mhsa.draw.token_map import most, token_map, with_places

WIDTH, MARGIN, GUTTER, TOP = 940, 16, 24, 62
BESIDE = 64  # tokens whose map fits beside the thumbnails; more: below them
GAP, STRIP = 4, 13  # between thumbnails; the name over each
PATTERNS = {
    "previous": "prev",
    "next": "next",
    "first": "first",
    "separator": "sep",
    "punctuation": "punct",
    "same word": "same",
    "self": "self",
    "broad": "broad",
}


def thumbnails(weights: np.ndarray) -> Svg:
    """The maps of weights (L, h, T, T) as one image, with room for names: slow, so once for all pictures of a text."""
    L, h, T, _ = weights.shape
    side = _side(T)
    fine = FINE // side  # pixels of the sheet for one unit of the picture
    return weight_image(
        contact_sheet(weights, fine * GAP, fine * (STRIP + GAP)),
        MARGIN + GUTTER,
        TOP + STRIP,
        h * (side + GAP),
        L * (STRIP + side + GAP),
    )


def _side(T: int) -> int:
    return 30 if T <= BESIDE else FINE


def draw_real_heads(
    tokens: Sequence[str],
    weights: np.ndarray,
    maps: Svg,
    scores: Mapping[str, np.ndarray],
    names: Sequence[Sequence[str]],
    layer: int,
    head: int,
    note: str,
    query: int,
    card: tuple[Svg, float, float] | None = None,
) -> str:
    """weights (L, h, T, T), maps: their thumbnails(); scores: (L, h) for each of PATTERNS, NaN where no key is such.

    names (L, h): each head's pattern, "" is drawn pale. layer (from 1), head (from 0): the map that is read. note: a
    line over the thumbnails. query: the token whose arcs stand below; card: a drawing with its width and height, below
    them. Up to BESIDE tokens the map stands beside.
    """
    L, h, T, _ = weights.shape
    side = _side(T)
    below = TOP + L * (STRIP + side + GAP)
    name = names[layer - 1][head]
    title = f"Layer {layer}, head {head}" + (f": {name}" if name else "")
    left = [
        maps,
        *_overview(scores, names, side, layer, head),
        *_patterns(scores, names, layer, head, below + 14),
        _legend(below + 118),
    ]
    x, y = (MARGIN + GUTTER + h * (side + GAP) + 12, 26) if T <= BESIDE else (MARGIN, below + 172)
    read = weights[layer - 1, head]
    parts, bottom = token_map(tokens, read, x, y + 12, WIDTH - MARGIN)
    named = with_places(tokens)
    end = max(below + 136, bottom) + 12
    arcs = draw_arcs(tokens, read[query].tolist(), query, MARGIN, end, WIDTH - 2 * MARGIN)
    desc = f"{' '.join(tokens)}. {note} In this map {named[query]} reads most: {most(named, read[query])}."
    return picture(
        WIDTH,
        end + HIGH + (card[2] if card else 0),
        title,
        desc,
        text(f"{L * h} heads", MARGIN, 26, size=15, font_weight="600"),
        text(note, MARGIN, 42, size=12, fill=MUTED),
        *left,
        text(title, x, y, size=15, font_weight="600"),
        *parts,
        arcs,
        el("g", card[0], transform=f"translate({MARGIN},{end + HIGH:g})") if card else Svg(""),
    )


def _overview(
    scores: Mapping[str, np.ndarray], names: Sequence[Sequence[str]], side: int, layer: int, head: int
) -> list[Svg]:
    """What lies on the thumbnails and around them."""
    L, h = len(names), len(names[0])
    x, y, wide, tall = MARGIN + GUTTER, TOP, side + GAP, STRIP + side + GAP
    parts = [
        *(text(i, x + i * wide + side / 2, y - 5, size=11, anchor="middle") for i in range(h)),
        *(text(i + 1, x - 8, y + i * tall + STRIP + side / 2 + 4, size=11, anchor="end") for i in range(L)),
    ]
    for i in range(L):
        for j in range(h):
            label = f"layer {i + 1}, head {j}: {_strongest(scores, i, j)}"
            parts.append(keyed(f"{i + 1}.{j}", label, _thumbnail(names[i][j], x + j * wide, y + i * tall, side)))
    ring = el(
        "rect",
        x=x + head * wide - 2,
        y=y + (layer - 1) * tall - 2,
        width=side + 4,
        height=STRIP + side + 4,
        fill="none",
        stroke=INK,
        stroke_width=3,
    )
    return [*parts, ring]


def _thumbnail(name: str, x: float, y: float, side: int) -> Svg:
    """What lies on a thumbnail: the name of its pattern, or a veil."""
    square = {"x": x, "y": y + STRIP, "width": side, "height": side}
    veil = el("rect", **square, fill=PAPER, fill_opacity=0 if name else 0.66)
    word = text(PATTERNS[name], x + side / 2, y + 10, size=10, anchor="middle") if name else ""
    return Svg(veil + el("rect", **square, fill="none", stroke=LINE, stroke_width=0.5) + word)


def _patterns(
    scores: Mapping[str, np.ndarray], names: Sequence[Sequence[str]], layer: int, head: int, y: float
) -> list[Svg]:
    """The legend, with the scores of the head that is read; pointing at a pattern lights up its heads."""
    parts = [text(f"Scores of layer {layer}, head {head} on this sentence", MARGIN, y, size=12, font_weight="600")]
    for number, (name, short) in enumerate(PATTERNS.items()):
        x, line, score = MARGIN + number // 4 * 224, y + 20 + number % 4 * 19, scores[name][layer - 1, head]
        own = [f"{i + 1}.{j}" for i, row in enumerate(names) for j, other in enumerate(row) if other == name]
        says = f"{name}: {'no such key in this sentence' if np.isnan(score) else f'{score:.2f}'}"
        parts.append(
            keyed(
                " ".join(own) or f"no-{short}",
                f"{says}; its heads: {', '.join(own) or 'none'}",
                text(short, x, line, size=11, font_weight="600"),
                text(name, x + 42, line, size=12),
                el("rect", x=x + 124, y=line - 9, width=50, height=10, fill="none", stroke=LINE),
                el("rect", x=x + 124, y=line - 9, width=50 * float(np.nan_to_num(score)), height=10, fill=INK),
                text("–" if np.isnan(score) else f"{score:.2f}", x + 206, line, size=12, anchor="end"),
            )
        )
    return parts


def _legend(y: float) -> Svg:
    x = MARGIN + 60
    return Svg(
        "".join(
            [
                text("weight", MARGIN, y, size=12),
                text("0", x, y, size=12),
                *scale_legend(x + 14, y - 11, 132),
                text("1", x + 154, y, size=12),
                el("rect", x=x + 176, y=y - 10, width=4, height=12, fill=QUERY),
                text("row: query", x + 186, y, size=12),
                el("rect", x=x + 264, y=y - 10, width=4, height=12, fill=KEY),
                text("column: key", x + 274, y, size=12),
            ]
        )
    )


def _strongest(scores: Mapping[str, np.ndarray], i: int, j: int) -> str:
    """The two highest scores of a head."""
    known = {name: score[i, j] for name, score in scores.items() if not np.isnan(score[i, j])}
    best = sorted(known, key=lambda name: -known[name])[:2]
    return ", ".join(f"{name} {known[name]:.2f}" for name in best)
