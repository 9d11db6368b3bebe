"""Colours, the same in every picture. Each also stands beside a number or a word: colour is never the only sign.

Query, key and value have theirs, and these mean nothing else; heads have eight others; all else is ink. A weight is its
head's colour laid over the ground: nothing at 0, full at 1, and the square root in between, so that 0.1 and 0.4 differ
at sight. Ink reads on it, on light ground and on dark (4.5 to 1 or better, WCAG 2.2).
"""

from functools import cache
from math import sqrt

QUERY, KEY, VALUE = "#0072B2", "#E69F00", "#009E73"  # of Okabe and Ito's palette, https://jfly.uni-koeln.de/color/
HEADS = ("#8a6af5", "#c8345f", "#a8762b", "#66788a", "#d892c8", "#7a4a28", "#4543a0", "#b3aee8")
STEPS = (("#ffffff", 0.0), ("#ffffff", 0.4), ("#000000", 0.4))  # heads 0–7, 8–15, 16–23
THEMES = (("#ffffff", "#1b1b1b"), ("#111111", "#ffffff"))  # ground and ink


def mixed(color: str, other: str, share: float) -> str:
    """The colour with a share of the other, as if laid over it."""
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other[1:]))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


@cache
def head_color(head: int) -> str:
    """From the ninth head on the colours come again, lighter and darker: its number must stand beside it."""
    other, share = STEPS[head // len(HEADS) % len(STEPS)]
    return mixed(HEADS[head % len(HEADS)], other, share)


@cache
def full(color: str) -> float:
    """The opacity at which ink still reads on the colour, whatever the theme."""
    return next(
        level / 100
        for level in range(85, 0, -1)
        if all(contrast(ink, mixed(ground, color, level / 100)) >= 4.5 for ground, ink in THEMES)
    )


@cache
def weight_opacity(weight: float, color: str = HEADS[0]) -> float:
    """How thick the colour of a weight from 0 to 1 lies on the ground. Raises ValueError for NaN."""
    if weight != weight:
        raise ValueError("a weight is NaN, which has no colour; it comes from a row whose scores are all -inf, or NaN")
    return round(full(color) * sqrt(min(max(weight, 0.0), 1.0)), 3)


def luminance(color: str) -> float:
    """Relative luminance, 0 black to 1 white (WCAG 2.2)."""
    channels = [byte / 255 for byte in bytes.fromhex(color[1:])]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """1 for equal colours to 21 for black and white (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@cache
def text_on(color: str) -> str:
    """Black or white, whichever reads better on this colour."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, color))
