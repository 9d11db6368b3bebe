"""The colours: ink reads on all of them, in both themes; no two are one to a colour-blind eye, or printed in grey."""

from itertools import combinations

import numpy as np
import pytest

from mhsa.draw.colors import (
    HEADS,
    KEY,
    QUERY,
    THEMES,
    VALUE,
    contrast,
    full,
    head_color,
    mixed,
    text_on,
    weight_opacity,
)

# What a dichromat sees, in linear RGB: Machado, Oliveira and Fernandes 2009, severity 1
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Linear RGB to OKLab, where distance is difference to the eye: Ottosson 2020
LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
LMS += [[0.0883024619, 0.2817188376, 0.6299787005]]
LAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099]]
LAB += [[0.0259040371, 0.7827717662, -0.8086757660]]


def seen(color, sight):
    rgb = np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return LAB @ np.cbrt(LMS @ np.clip(np.array(SIGHT[sight]) @ linear, 0, 1))


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_colours_are_one_to_the_eye(sight):
    """A difference of 0.02 is just seen side by side; these are at least twice as far apart."""
    colors = [QUERY, KEY, VALUE, *HEADS]
    assert len(set(colors)) == 11
    near = [(a, b) for a, b in combinations(colors, 2) if np.linalg.norm(seen(a, sight) - seen(b, sight)) < 0.04]
    assert not near


@pytest.mark.parametrize("color", [QUERY, KEY, VALUE, *(head_color(i) for i in range(24))])
def test_text_on_a_bar_is_legible(color):
    assert contrast(text_on(color), color) >= 4.5


@pytest.mark.parametrize("ground, ink", THEMES)
def test_ink_reads_on_every_weight_of_every_head(ground, ink):
    for head in range(24):
        color = head_color(head)
        for hundredths in range(0, 101, 5):
            assert contrast(ink, mixed(ground, color, weight_opacity(hundredths / 100, color))) >= 4.49, (
                head,
                hundredths,
            )


def test_more_weight_is_more_colour_and_small_weights_differ_at_sight():
    levels = [weight_opacity(i / 100) for i in range(101)]
    assert levels == sorted(levels) and levels[0] == 0 and levels[100] == full(HEADS[0])
    assert weight_opacity(0.4) == pytest.approx(2 * weight_opacity(0.1), abs=1e-3)
    for ground, _ in THEMES:
        a, b = (seen(mixed(ground, HEADS[0], weight_opacity(w)), "normal") for w in (0.1, 0.4))
        assert np.linalg.norm(a - b) > 0.1, "five times what is just seen"


def test_from_the_ninth_head_on_a_colour_comes_again_lighter_then_darker():
    assert len({head_color(i) for i in range(24)}) == 24 and head_color(8) != HEADS[0] == head_color(24)
    assert contrast(head_color(8), "#ffffff") < contrast(HEADS[0], "#ffffff") < contrast(head_color(16), "#ffffff")


def test_nan_has_no_colour():
    with pytest.raises(ValueError, match="NaN"):
        weight_opacity(float("nan"))
