"""Colours, the same in every picture. Each also stands beside a number or a word: colour is never the only sign."""

from functools import cache

QUERY, KEY, VALUE = "#0072B2", "#E69F00", "#009E73"
# Okabe and Ito's palette, safe for colour-blind eyes (https://jfly.uni-koeln.de/color/), grey for its black.
HEADS = ("#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#E69F00", "#999999")
# cividis, perceptually uniform and made for colour-blind eyes (Nuñez et al. 2018), at 0, 0.1, …, 1.
_CIVIDIS = (
    "#00224e",
    "#083370",
    "#35456c",
    "#4f576c",
    "#666970",
    "#7d7c78",
    "#948e77",
    "#aea371",
    "#c8b866",
    "#e5cf52",
    "#fee838",
)


def head_color(head: int) -> str:
    return HEADS[head % len(HEADS)]


@cache
def weight_color(weight: float) -> str:
    """The colour of a weight from 0 to 1. Raises ValueError for NaN."""
    if weight != weight:
        raise ValueError("a weight is NaN, which has no colour; it comes from a row whose scores are all -inf, or NaN")
    step = min(int(10 * weight), 9)
    low, high = (bytes.fromhex(color[1:]) for color in _CIVIDIS[step : step + 2])
    return "#" + "".join(f"{round(a + (b - a) * (10 * weight - step)):02x}" for a, b in zip(low, high))


def luminance(color: str) -> float:
    """Relative luminance, 0 black to 1 white (WCAG 2.2)."""
    channels = [byte / 255 for byte in bytes.fromhex(color[1:])]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def text_on(color: str) -> str:
    """Black or white, whichever reads better on this colour."""
    return "#000000" if luminance(color) > 0.179 else "#ffffff"
