"""assets/parameter_count_comparison: what built layers of one width hold, by matrix."""

from typing import Any

import torch

from mhsa.draw.colors import KEY, QUERY, VALUE, text_on
from mhsa.draw.diagram import GREY, INK
from mhsa.draw.svg import el, picture, standalone, text
from mhsa.layers import MultiHeadAttention

D_MODEL = 512
LAYERS = {
    "1 head of 512": dict(num_heads=1),
    "8 heads of 64": dict(num_heads=8),
    "64 heads of 8": dict(num_heads=64),
    "8 heads, 2 of keys and values": dict(num_heads=8, num_kv_heads=2),
    "8 heads, 1 of keys and values": dict(num_heads=8, num_kv_heads=1),
    "8 heads of 16 (d_k chosen)": dict(num_heads=8, d_k=16),
    "8 heads of 128 (d_k chosen)": dict(num_heads=8, d_k=128),
}
COLORS = {"w_q": QUERY, "w_k": KEY, "w_v": VALUE, "w_o": "#777777"}
LEFT, LONGEST, TOP, PITCH = 240, 560, 104, 44


def counted(**sizes: Any) -> dict[str, int]:
    """The numbers in each matrix of a built layer, without biases."""
    with torch.device("meta"):  # shapes only, no memory
        layer = MultiHeadAttention(D_MODEL, **sizes)
    return {name: getattr(layer, name).weight.numel() for name in COLORS}


def draw_parameter_count() -> str:
    counts = {label: counted(**sizes) for label, sizes in LAYERS.items()}
    usual = 4 * D_MODEL**2
    scale = LONGEST / max(sum(parts.values()) for parts in counts.values())
    bottom = TOP + len(counts) * PITCH
    title = f"Parameters of one attention layer, d_model = {D_MODEL}"
    parts = [
        text(title, 20, 34, size=20, fill=INK, font_weight="700"),
        text(
            f"4 · d_model² = {usual:,} for every h, as long as h · d_k = d_model and each head has its own keys "
            "and values. No biases.",
            20,
            60,
            size=14,
            fill=GREY,
        ),
    ]
    parts += [
        el(
            "line",
            x1=LEFT + usual * scale,
            y1=TOP - 14,
            x2=LEFT + usual * scale,
            y2=bottom - 8,
            stroke=INK,
            stroke_width=2,
            stroke_dasharray="5 4",
        ),
        text("4 · d_model²", LEFT + usual * scale, TOP - 20, size=13, fill=INK, anchor="middle"),
    ]
    for row, (label, matrices) in enumerate(counts.items()):
        parts += _bar(TOP + row * PITCH, label, matrices, scale, usual)
    desc = "; ".join(f"{label}: {sum(matrices.values()):,}" for label, matrices in counts.items())
    return standalone(picture(1000, bottom + 8, title, desc, *parts))


def _bar(y: float, label: str, matrices: dict[str, int], scale: float, usual: int) -> list:
    """A bar cut into the four matrices, with the total behind it."""
    parts, x, total = [text(label, LEFT - 12, y + 20, size=14, fill=INK, anchor="end")], LEFT, sum(matrices.values())
    for name, count in matrices.items():
        parts.append(el("rect", x=x, y=y, width=count * scale, height=30, fill=COLORS[name], stroke="#ffffff"))
        if count * scale > 34:
            parts.append(
                text(name.upper(), x + count * scale / 2, y + 20, size=13, fill=text_on(COLORS[name]), anchor="middle")
            )
        x += count * scale
    return [
        *parts,
        text(
            f"{total:,} ({total / usual:g} ×)",
            x + 10,
            y + 20,
            size=14,
            fill=INK,
            stroke="#ffffff",
            stroke_width=6,
            paint_order="stroke",
        ),
    ]  # a white rim, over the dashed line
