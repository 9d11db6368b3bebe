"""explore.parameters() and explore.cost(), without a browser."""

import random
import re

import pytest
import torch
from helpers import controls, drawings

from mhsa import MultiHeadAttention, explore
from mhsa.count import PRESETS
from mhsa.draw.cost import in_units
from mhsa.draw.svg import describe


def slices(explorer):
    """{(matrix, heads): parameters} as the labels of the picture say."""
    labels = re.findall(r'aria-label="(W_\w), (heads? [^:]+): ([\d,]+) parameters"', explorer.view.svg)
    return {(matrix, who): int(count.replace(",", "")) for matrix, who, count in labels}


def test_the_slices_add_up_to_the_module():
    shown = slices(explore.parameters(24, 6, num_kv_heads=2, d_k=5))
    module = MultiHeadAttention(24, 6, num_kv_heads=2, d_k=5)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        own = [count for (matrix, _), count in shown.items() if matrix.lower() == name]
        assert len(own) == (2 if name in ("w_k", "w_v") else 6)
        assert sum(own) == getattr(module, name).weight.numel()
    assert shown["W_K", "head 1 of keys and values, read by heads 3 to 5"] == 24 * 5


def total(explorer):
    return int(re.search(r"layer: ([\d,]+)", describe(explorer.view.svg))[1].replace(",", ""))


def test_the_total_is_the_same_for_every_h_while_tied_and_not_when_free():
    explorer = explore.parameters(96, 6)
    tied, free = set(), []
    for h in (1, 2, 3, 8, 96):
        explorer.state.num_heads = h
        tied.add(total(explorer))
    explorer.state.free_d_k = True
    explorer.state.d_k = 7
    for h in (2, 5):
        explorer.state.num_heads = h
        free.append(total(explorer))
    assert tied == {4 * 96 * 96} and free == [4 * 96 * 7 * 2, 4 * 96 * 7 * 5]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_every_size_in_one_redraw(name):
    explorer = explore.parameters(24, 6)
    drawn, menu = drawings(explorer), controls(explorer)["preset"]
    menu.value = name
    d_model, h, g, d_k, bias = PRESETS[name]
    with torch.device("meta"):  # GPT-3's layer would take 2.4 GB
        layer = MultiHeadAttention(d_model, h, num_kv_heads=g, d_k=d_k, bias=bias)
    assert len(drawn) == 1 and menu.value == name
    assert total(explorer) == sum(p.numel() for p in layer.parameters())
    explorer.state.num_heads = 1 if h > 1 else 2
    assert menu.value == "own sizes"


def test_key_value_heads_follow_the_heads_or_stay_a_divisor():
    explorer = explore.parameters(48, 6)
    explorer.state.num_heads = 8
    assert explorer.state.num_kv_heads == 8  # as many as heads, as before
    explorer.state.num_kv_heads = 4
    explorer.state.num_heads = 6
    assert explorer.state.num_kv_heads == 3  # 4 does not divide 6
    assert list(controls(explorer)["KV heads"].options) == [1, 2, 3, 6]


@pytest.mark.parametrize("make", [explore.parameters, explore.cost])
def test_rapid_changes_never_show_an_invalid_pair_or_a_stale_picture(make):
    explorer, rng = make(), random.Random(11)
    sliders, drawn = controls(explorer), drawings(explorer)
    for _ in range(50):
        slider = sliders[rng.choice(["d_model", "heads"])]
        slider.value = rng.choice(slider.options)
        d_model, h = explorer.state.d_model, explorer.state.num_heads
        assert (sliders["d_model"].value, sliders["heads"].value) == (d_model, h) and d_model % h == 0
        assert f"d_model {d_model:,}, {h} head" in explorer.view.svg
    assert len(drawn) <= 50 and not any("No picture" in svg for svg in drawn)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: explore.parameters(7, 2), "num_heads=2 does not divide d_model=7; these do: 1, 7"),
        (lambda: explore.parameters(8, 0), "num_heads=0"),
        (lambda: explore.parameters(8, 4, num_kv_heads=3), "num_kv_heads=3"),
        (lambda: explore.parameters(1024, 512), "num_heads=512 is more than"),
        (lambda: explore.cost(T=0), "T=0 is not on the axis"),
        (lambda: explore.cost(T=1_000_000), "T=1000000"),
        (lambda: explore.cost(B=-1), "B=-1"),
        (lambda: explore.cost(d_model=7, num_heads=2), "these do: 1, 7"),
    ],
)
def test_what_cannot_be_shown_is_said_and_the_explorer_goes_on(make, sentence):
    explorer = make()
    assert sentence in describe(explorer.view.svg)
    for name, value in {"d_model": 24, "num_heads": 3, "num_kv_heads": 3, "B": 2, "T": 64}.items():
        if name in explorer.state.trait_names():
            setattr(explorer.state, name, value)
    assert "3 heads" in describe(explorer.view.svg)


def test_cost_shows_bytes_flops_and_the_crossing():
    explorer = explore.cost(B=2, T=256, d_model=96, num_heads=3, dtype="bfloat16")
    assert "scores at T = 256: " + in_units(2 * 2 * 3 * 256 * 256, "B") in explorer.view.svg
    assert f"q, k and v: {2 * 2 * 256 * 3 * 96:,} bytes" in explorer.view.svg
    assert f"projections: {2 * 2 * 256 * 96 * 3 * 96:,} FLOPs" in explorer.view.svg
    crossing = next(T for T in range(1, 999) if 2 * 3 * T * T > 4 * 96 * 96)
    assert f"outgrow the parameters at T = {crossing}." in describe(explorer.view.svg)


def test_cost_answers_up_to_the_end_of_the_axis():
    explorer = explore.cost(B=64, T=131_072, d_model=12288, num_heads=12288)
    assert f"scores: {4 * 64 * 12288 * 131_072**2:,} bytes" in explorer.view.svg
    assert "explicit 54 PB" in describe(explorer.view.svg)


@pytest.mark.parametrize(
    "number, words", [(0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (33_554_432, "33.6 MB"), (5.4e19, "54,000 PB")]
)
def test_units(number, words):
    assert in_units(number, "B") == words
