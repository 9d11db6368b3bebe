"""What one token reads, as arcs over its sentence: as thick as the weights."""

from collections.abc import Sequence

from mhsa.draw.colors import HEADS, KEY, QUERY
from mhsa.draw.svg import INK, MUTED, Svg, el, keyed, text

HIGH, THICK, LEAST = 84, 12, 0.02  # of the drawing; of a weight of 1; the smallest weight with an arc
WIDE_WORD = 40  # room for a token's name; in longer sentences only those that matter are named


def draw_arcs(tokens: Sequence[str], row: Sequence[float], query: int, x: float, y: float, width: float) -> Svg:
    """row: the weights of tokens[query], one a token. The words stand at y + HIGH - 14."""
    pitch, base = width / len(tokens), y + HIGH - 28
    middles = [x + (i + 0.5) * pitch for i in range(len(tokens))]
    parts = []
    for k, weight in enumerate(row):
        if weight >= LEAST:
            start, end = middles[query], middles[k]
            top = base - 1.33 * min(12 + 0.14 * abs(end - start), 52)
            shape = f"M{start:.1f},{base}C{start:.1f},{top:.1f} {end:.1f},{top:.1f} {end:.1f},{base}"
            if k == query:
                shape = f"M{start - 6:.1f},{base}c-8,-22 20,-22 12,0"
            arc = el(
                "path", d=shape, fill="none", stroke=HEADS[0], stroke_width=max(THICK * weight, 0.8), stroke_opacity=0.8
            )
            parts.append(keyed(f"arc{k}", f"{tokens[query]} reads {tokens[k]}, weight {weight:.2f}", arc))
    for i, (token, middle) in enumerate(zip(tokens, middles)):
        if pitch >= WIDE_WORD or i == query or row[i] >= 0.1:
            style = {"fill": INK, "font_weight": "700"} if i == query else {"fill": INK if row[i] >= 0.1 else MUTED}
            word = token if len(token) <= 9 else token[:8] + "…"
            parts.append(
                keyed(
                    f"ask{i}",
                    f"{token}: press to let it ask",
                    text(word, middle, base + 16, size=12, anchor="middle", **style),
                )
            )
        rule = QUERY if i == query else KEY if row[i] >= LEAST else "none"
        parts.append(el("rect", x=middle - 3, y=base + 1, width=6, height=3, fill=rule))
    return Svg("".join(parts))
