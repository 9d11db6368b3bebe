"""What all explorers share, and explore.heads(), without a browser."""

import random
import re
import subprocess
import sys

import pytest
import torch
from helpers import controls, drawings
from ipywidgets import IntSlider
from traitlets import HasTraits, Int

from mhsa import MultiHeadAttention, explore
from mhsa.draw.svg import describe, picture
from mhsa.explore.base import Explorer, tie
from mhsa.toys import SENTENCE, embed


class Pair(HasTraits):
    a, b = Int(3), Int(5)


def pair_explorer():
    state, slider = Pair(), IntSlider(min=1, max=11)
    tie(state, "a", slider)
    return Explorer(state, lambda s: picture(7, 7, f"{s.a} over {s.b}", f"= {s.a / s.b:.2f}"), [slider]), slider


def test_control_and_state_move_each_other_and_draw_once():
    explorer, slider = pair_explorer()
    drawn = drawings(explorer)
    slider.value = 7
    assert explorer.state.a == 7 and len(drawn) == 1 and "7 over 5" in drawn[-1]
    explorer.state.a = 2
    assert slider.value == 2 and len(drawn) == 2


def test_an_error_shows_its_text_and_the_explorer_goes_on():
    explorer, _ = pair_explorer()
    explorer.state.b = 0
    assert describe(explorer.view.svg) == "No picture. ZeroDivisionError: division by zero"
    explorer.state.b = 13
    assert describe(explorer.view.svg) == "3 over 13. = 0.23"


def test_one_action_that_changes_two_traits_draws_once():
    class Tied(Pair):
        def __init__(self):
            super().__init__()
            self.observe(lambda _: setattr(self, "b", self.a + 1), names="a")

    calls, state = [], Tied()
    Explorer(state, lambda s: calls.append((s.a, s.b)) or picture(7, 7, "", ""), [])
    state.a = 7
    assert calls == [(3, 5), (7, 8)]  # a second drawing of the same would flicker


def test_an_output_holds_the_live_view_the_still_and_its_words():
    explorer, _ = pair_explorer()
    bundle = explorer._repr_mimebundle_()
    assert bundle["image/svg+xml"] == explorer.view.svg and bundle["text/plain"] == "3 over 5. = 0.60"
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id


def shown(explorer):
    """(h, T, T) of hundredths, read off the picture; None where it may not attend."""
    labels = re.findall(
        r'aria-label="head (\d+): (\w+) (?:\(query\) reads (\w+) \(key\), weight ([\d.]+)|may not)', explorer.view.svg
    )
    return {(int(head), query, key): float(weight) for head, query, key, weight in labels if weight}


def test_heads_shows_the_weights_of_the_layer_it_names():
    explorer = explore.heads(12, 3, numbers="random", seed=4)
    layer = MultiHeadAttention(12, 3)
    torch.manual_seed(4)
    for parameter in layer.parameters():  # N(0, 1/12), one matrix after another
        parameter.data = torch.randn(parameter.shape) / 12**0.5
    weights = layer(embed(SENTENCE, 12), need_weights=True)[1][0]
    values = shown(explorer)
    assert len(values) == 3 * 16
    for (head, query, key), value in values.items():
        assert value == pytest.approx(weights[head, SENTENCE.index(query), SENTENCE.index(key)].item(), abs=0.0051)


def test_the_causal_mask_crosses_out_what_comes_later():
    explorer = explore.heads(8, 2, is_causal=True)
    places = {(SENTENCE.index(query), SENTENCE.index(key)) for _, query, key in shown(explorer)}
    assert places == {(i, j) for i in range(4) for j in range(i + 1)}
    assert explorer.view.svg.count("Mia may not read keys") == 2


def test_heads_keeps_its_value_when_it_still_divides():
    explorer = explore.heads(24, 6)
    sliders, drawn = controls(explorer), drawings(explorer)
    sliders["d_model"].value = 48
    assert explorer.state.num_heads == sliders["heads"].value == 6 and len(drawn) == 1
    sliders["d_model"].value = 16  # 6 does not divide 16: the next smaller is 4
    assert explorer.state.num_heads == sliders["heads"].value == 4 and len(drawn) == 2
    assert list(sliders["heads"].options) == [1, 2, 4, 8, 16]


def test_rapid_changes_never_show_an_invalid_pair_or_a_stale_picture():
    explorer, rng = explore.heads(), random.Random(7)
    sliders, drawn = controls(explorer), drawings(explorer)
    for _ in range(50):
        slider = sliders[rng.choice(["d_model", "heads"])]
        slider.value = rng.choice(slider.options)
        d_model, h = sliders["d_model"].value, sliders["heads"].value
        heads, columns = f"{h} head{'s' * (h > 1)}", f"{d_model // h} column{'s' * (d_model > h)}"
        assert d_model % h == 0 and f"d_model = {d_model} = {heads} × {columns} of Q, K and V" in explorer.view.svg
        assert explorer.view.svg.count("lost (query) reads keys (key)") == h
    assert not any("No picture" in svg for svg in drawn) and len(drawn) <= 50


def test_a_choice_among_options_just_replaced_is_put_right_in_the_browser(monkeypatch):
    explorer, sent = explore.heads(64, 8), []
    slider = controls(explorer)["heads"]
    monkeypatch.setattr(slider, "send_state", lambda key=None: sent.append((slider.value, slider.index)))
    explorer.state.d_model = 12  # 1, 2, 3, 4, 6, 12; the browser still shows 1 … 64
    sent.clear()
    slider.set_state({"index": 6})
    assert sent == [(6, 4)] and explorer.state.num_heads == 6


def test_a_slider_gets_its_new_options_and_its_new_place_in_two_messages(monkeypatch):
    explorer, rng = explore.heads(), random.Random(3)
    slider = controls(explorer)["heads"]
    browser, mixed = dict(_options_labels=slider._options_labels, index=slider.index), []

    def send(message, buffers=None):
        changes = {name: value for name, value in message["state"].items() if browser.get(name, value) != value}
        browser.update(changes)
        mixed.append(len(changes) > 1 or browser["index"] >= len(browser["_options_labels"]))

    monkeypatch.setattr(slider, "_send", send)
    for _ in range(50):
        explorer.state.d_model = rng.choice([8, 12, 16, 24, 32, 48, 64])
        explorer.state.num_heads = rng.choice(slider.options)
        assert browser == dict(_options_labels=slider._options_labels, index=slider.index)
    assert len(mixed) > 50 and not any(mixed)


@pytest.mark.parametrize(
    "d_model, num_heads, sentence",
    [
        (7, 2, "num_heads=2 does not divide d_model=7; these do: 1, 7"),
        (0, 2, "d_model=0 is not a whole number"),
        (8, -3, "num_heads=-3 is not a whole number"),
        (1_000_000, 2, "d_model=1000000 is more than this picture"),
    ],
)
def test_what_cannot_be_shown_is_said_and_the_explorer_goes_on(d_model, num_heads, sentence):
    explorer = explore.heads(d_model, num_heads)
    assert sentence in describe(explorer.view.svg)
    explorer.state.d_model, explorer.state.num_heads = 12, 3
    assert describe(explorer.view.svg).startswith("Attention maps of 3 heads. Mia lost her keys")
    assert controls(explorer)["heads"].value == 3


def test_importing_mhsa_brings_neither_widgets_nor_matplotlib():
    program = "import mhsa, sys; print({'matplotlib', 'ipywidgets', 'IPython', 'tokenizers'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


def test_embed_gives_the_same_word_the_same_vector():
    x = embed(["her", "keys", "her"], 997)
    assert x.shape == (1, 3, 997) and torch.equal(x[0, 0], x[0, 2]) and torch.equal(embed(SENTENCE, 997)[0, 2], x[0, 0])
    assert abs(x[0, 1].mean()) < 0.15 and x[0, 1].std() == pytest.approx(1, abs=0.1)
    with pytest.raises(ValueError, match="tokens='her'"):
        embed("her", 5)
