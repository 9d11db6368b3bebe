"""Boxes and arrows, for the pictures in assets/."""

from mhsa.draw.colors import text_on
from mhsa.draw.svg import Svg, el, text

NAVY, INK, GREY, PALE = "#1f2a5c", "#1b1b1b", "#555555", "#eef1f4"
SANS, SERIF = "DejaVu Sans, system-ui, sans-serif", "Georgia, DejaVu Serif, serif"
CODE = "DejaVu Sans Mono, ui-monospace, monospace"


def box(
    x: float, y: float, width: float, height: float, *lines: str, fill: str = PALE, size: float = 14, font: str = SANS
) -> Svg:
    """A box with lines of text in its middle, in black or white, whichever reads better."""
    first = y + height / 2 - (len(lines) - 1) * 0.65 * size + 0.35 * size
    return Svg(
        el("rect", x=x, y=y, width=width, height=height, rx=6, fill=fill, stroke=GREY)
        + "".join(
            text(
                line,
                x + width / 2,
                first + i * 1.3 * size,
                size=size,
                anchor="middle",
                fill=text_on(fill),
                font_family=font,
            )
            for i, line in enumerate(lines)
        )
    )


def arrow(x1: float, y1: float, x2: float, y2: float, color: str = GREY) -> Svg:
    """A line down from (x1, y1), with its head at (x2, y2)."""
    return Svg(
        el("line", x1=x1, y1=y1, x2=x2, y2=y2 - 8, stroke=color, stroke_width=2)
        + el("path", d=f"M{x2:g} {y2:g}l-5 -9h10z", fill=color)
    )
