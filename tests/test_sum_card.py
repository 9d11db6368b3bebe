"""The sum behind one cell of a map: every step of it is that of the layer."""

import re
from math import exp, sqrt
from xml.etree import ElementTree

import pytest
import torch

from mhsa import explore
from mhsa.draw.svg import describe
from mhsa.explore.numbers import toy_layer
from mhsa.toys import SENTENCE

SVG = "{http://www.w3.org/2000/svg}"


def parts(explorer):
    found = ElementTree.fromstring(explorer.view.svg).iter()
    return {
        part.get("data-key"): part.get("aria-label") for part in found if part.get("data-key", "").startswith("sum-")
    }


def words(explorer):
    return [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(f"{SVG}text")]


def press(explorer, head, query, key):
    explorer.view._handle_custom_msg({"press": f"{query},{key} {head}:{query},{key}"}, [])


@pytest.mark.parametrize(
    "d_model, h, numbers, is_causal, cell", [(12, 3, "trained", False, (2, 3, 2)), (8, 2, "random", True, (1, 2, 0))]
)
def test_the_card_works_the_weight_out_from_the_layers_numbers(d_model, h, numbers, is_causal, cell):
    explorer = explore.heads(d_model, h, numbers=numbers, is_causal=is_causal)
    press(explorer, *cell)
    (head, query, key), d_k = cell, d_model // h
    x, layer, _ = toy_layer(numbers, d_model, h, 0)
    with torch.no_grad():
        q, k, v = (w(x)[0].view(4, h, d_k)[:, head] for w in (layer.w_q, layer.w_k, layer.w_v))
    score = sum(a * b for a, b in zip(q[query].tolist(), k[key].tolist()))
    open_keys = range(query + 1) if is_causal else range(4)
    total = sum(exp(float(q[query] @ k[j]) / sqrt(d_k)) for j in open_keys)
    weight = exp(score / sqrt(d_k)) / total
    says = parts(explorer)
    for c in range(d_k):
        for kind, values in (("q", q[query]), ("k", k[key]), ("v", v[key]), ("p", weight * v[key])):
            assert float(says[f"sum-{kind}{c}"].rpartition(" ")[2]) == pytest.approx(float(values[c]), abs=0.0051), kind
    assert f"{score:.2f} / √{d_k} = {score / sqrt(d_k):.2f}" in words(explorer)
    assert says[f"sum-w{key}"] == f"{SENTENCE[key]}: {weight:.2f} of the row"
    z = sum(exp(float(q[query] @ k[j]) / sqrt(d_k)) / total * v[j] for j in open_keys)
    assert float(says["sum-z1"].rpartition(" ")[2]) == pytest.approx(float(z[1]), abs=0.0051)


def test_a_press_shows_the_sum_of_that_cell_and_a_second_one_puts_it_away():
    explorer = explore.heads(12, 2)
    assert explorer.state.chosen == (0, 1, 3) and "head 0: lost reads keys" in words(explorer)
    press(explorer, 1, 3, 2)
    assert explorer.state.chosen == (1, 3, 2) and "head 1: keys reads her" in words(explorer)
    press(explorer, 1, 3, 2)
    assert explorer.state.chosen is None and not parts(explorer)


def test_a_closed_cell_says_so_and_a_head_that_is_gone_has_no_card():
    explorer = explore.heads(12, 4, is_causal=True)
    press(explorer, 3, 0, 2)
    assert "closed by the mask: weight 0" in words(explorer)
    explorer.state.num_heads = 3
    assert not parts(explorer) and describe(explorer.view.svg).startswith("Attention maps of 3 heads")


def test_the_card_stands_beside_the_maps_if_there_is_room_and_else_below():
    def place(h):
        [x, y] = re.findall(r"translate\(([\d.]+),([\d.]+)\)", explore.heads(12, h).view.svg)[-1]
        return float(x), float(y)

    assert place(2)[0] > 400 and place(2)[1] < 30
    assert place(6)[0] < 30 and place(6)[1] > 200
