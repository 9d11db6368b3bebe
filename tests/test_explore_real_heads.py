"""explore.real_heads(), without a browser, on a made-up model whose patterns are known."""

import random
import re
from base64 import b64decode
from importlib import import_module
from io import BytesIO
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from helpers import controls, drawings
from PIL import Image

from mhsa import MultiHeadAttention, explore
from mhsa.draw.colors import HEADS, weight_opacity
from mhsa.draw.image import contact_sheet, weight_image
from mhsa.draw.svg import describe
from mhsa.pretrained import ModelFilesError

SVG = "{http://www.w3.org/2000/svg}"
L, H = 3, 5


class MadeUp:
    """3 layers of 5 heads. Layer 1: previous, next, first, uniform, self; the others spread over keys at random."""

    num_layers, num_heads = L, H

    def __init__(self):
        self.layers = [SimpleNamespace(attention=MultiHeadAttention(2 * H, H)) for _ in range(L)]
        self.tokenizer, self.read = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=self.tokens(text))), []

    def tokens(self, text):
        return ["[CLS]", *text.split(), "[SEP]"]

    def encode(self, text):
        self.read.append(text)
        tokens = self.tokens(text)
        T = len(tokens)
        place, eye = torch.arange(T), torch.eye(T)
        noise = torch.randn(L, 1, H, T, T, generator=torch.Generator().manual_seed(T)).softmax(-1)
        noise[0, 0] = torch.stack(
            [
                eye[(place - 1).clamp(0)],
                eye[(place + 1).clamp(max=T - 1)],
                eye[place * 0],
                torch.full((T, T), 1 / T),
                eye,
            ]
        )
        hidden = [torch.randn(1, T, 2 * H, generator=torch.Generator().manual_seed(layer)) for layer in range(L)]
        return SimpleNamespace(tokens=[tokens], weights=list(noise), hidden=hidden)


VEIL = '#ffffff)" fill-opacity="0.66"'  # ground laid over a thumbnail without a name


def made_up(text="a b , c b .", **how):
    return explore.real_heads(text, how.pop("layer", 2), how.pop("head", 3), model=MadeUp(), **how)


def parts(explorer, pattern):
    """{label: keys} of the parts whose key is like the pattern."""
    groups = [g for g in ElementTree.fromstring(explorer.view.svg).iter(f"{SVG}g") if g.get("data-key")]
    return {g.get("aria-label"): g.get("data-key") for g in groups if re.fullmatch(pattern, g.get("data-key"))}


def family(explorer, name):
    """The heads that the legend lights up for a pattern."""
    heads = ElementTree.fromstring(explorer.view.svg).iter(f"{SVG}g")
    return next(g.get("data-key").split() for g in heads if (g.get("aria-label") or "").startswith(f"{name}: "))


def test_the_map_shows_the_weights_of_the_head_that_is_named():
    explorer = made_up()
    weights = MadeUp().encode("a b , c b .").weights[1][0, 3]
    names = ["[CLS]", "a", "b (2)", ",", "c", "b (5)", ".", "[SEP]"]
    cells = parts(explorer, r"\d+,\d+")
    assert cells == {
        f"{q} (query) reads {k} (key), weight {weights[i, j]:.2f}": f"{i},{j}"
        for i, q in enumerate(names)
        for j, k in enumerate(names)
    }
    assert describe(explorer.view.svg).startswith("Layer 2, head 3. [CLS] a b , c b . [SEP]. ")


def test_heads_are_named_by_their_strongest_pattern_or_not_at_all():
    explorer = made_up()
    assert [family(explorer, name)[0] for name in ("previous", "next", "first", "self")] == ["1.0", "1.1", "1.2", "1.4"]
    assert "1.3" in family(explorer, "broad") and family(explorer, "same word") == ["no-same"]
    words = [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(f"{SVG}text")]
    assert {"prev", "next", "first", "sep", "punct", "same", "self", "broad"} <= set(words)


def test_a_pattern_and_a_score_filter_the_heads():
    explorer = made_up(pattern="previous", least=0.9)
    assert family(explorer, "previous") == ["1.0"] and family(explorer, "next") == ["no-next"]
    assert explorer.view.svg.count(VEIL) == L * H - 1
    assert "1 of 15 have “previous” at 0.90 or more." in describe(explorer.view.svg)
    controls(explorer)["score from"].value = 0
    assert explorer.view.svg.count(VEIL) == 0
    controls(explorer)["pattern"].value = "next"
    controls(explorer)["score from"].value = 1
    assert family(explorer, "next") == ["1.1"]


def test_a_pattern_without_any_key_has_no_score():
    explorer = made_up("a b c", pattern="same word", least=0)
    assert family(explorer, "same word") == ["no-same"]
    assert "same word: no such key in this sentence; its heads: none" in explorer.view.svg


def test_a_press_reads_another_head_in_one_redraw():
    explorer = made_up()
    drawn = drawings(explorer)
    explorer.view._handle_custom_msg({"press": "1.4"}, [])
    assert (explorer.state.layer, explorer.state.head) == (1, 4) and len(drawn) == 1
    assert controls(explorer)["layer"].value == 1 and controls(explorer)["head"].value == 4
    assert describe(drawn[0]).startswith("Layer 1, head 4: self.")
    explorer.view._handle_custom_msg({"press": "3.2 3.4"}, [])  # the name of a pattern: its first head
    for key in ("2,3", "q5", "no-self"):
        explorer.view._handle_custom_msg({"press": key}, [])
    assert (explorer.state.layer, explorer.state.head, explorer.state.query) == (3, 2, 5)
    assert len(drawn) == 4  # the last is the name of a pattern that no head has


def test_a_sentence_is_read_once_and_only_when_sent():
    model = MadeUp()
    explorer = explore.real_heads("one two", model=model)
    box = controls(explorer)["sentence"]
    assert box.continuous_update is False
    box.value = "three four five"
    controls(explorer)["head"].value = 4
    box.value = "one two"
    assert model.read == ["one two", "three four five"] and "[CLS] one two [SEP]" in describe(explorer.view.svg)


def test_many_tokens_are_read_row_by_row_in_a_small_picture():
    text = " ".join(f"w{i}" for i in range(126))
    explorer = made_up(text, layer=1, head=0)
    rows = parts(explorer, r"q\d+")
    assert len(rows) == len(parts(explorer, r"k\d+")) == 128 and not parts(explorer, r"\d+,\d+")
    assert rows["w6 (query) reads most: w5 1.00, [CLS] 0.00, w0 0.00"] == "q7"
    assert "w5 (key) is read most by: w6 1.00" in explorer.view.svg
    assert len(explorer.view.svg.encode()) <= 250_000


def pixels(svg):
    data = ElementTree.fromstring(svg).get("href").removeprefix("data:image/png;base64,")
    return np.array(Image.open(BytesIO(b64decode(data))).convert("RGBA"))


def test_an_embedded_picture_has_the_colours_of_the_weights():
    found = pixels(weight_image(np.array([[0.0, 0.37, 1.0], [0.123, np.nan, 0.5]]), 1, 2, 30, 20))
    wanted = [[0.0, 0.37, 1.0], [0.12, None, 0.5]]
    for row, line in zip(found, wanted, strict=True):
        for pixel, weight in zip(row, line, strict=True):
            assert pixel[3] == (0 if weight is None else round(255 * weight_opacity(weight)))
            assert weight is None or "#" + bytes(pixel[:3]).hex() == HEADS[0]


@pytest.mark.parametrize("T", [2, 7, 60, 61, 128])
def test_no_weight_is_lost_in_a_thumbnail(T):
    maps = np.zeros((2, 3, T, T))
    maps[1, 2, T - 1, T // 2], maps[0, 1, 0, T - 1] = 0.9, 0.4
    sheet = contact_sheet(maps, 5, 11)
    assert sheet.shape == (2 * 71, 3 * 65)
    assert np.isnan(sheet[60:71]).all() and np.isnan(sheet[:, 60:65]).all()
    lit = np.argwhere(sheet == 0.9)
    assert len(lit) and (lit[:, 0] - 71).max() == 59 and lit[:, 1].min() >= 130
    assert abs((lit[:, 1].mean() - 130 + 0.5) / 60 - (T // 2 + 0.5) / T) < 0.02
    assert (sheet[:60, 65:125] == 0.4).any() and not (sheet[:60, :60] > 0).any()


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "There is nothing to read yet."),
        (" \n ", "There is nothing to read yet."),
        ("cat", "This is a single token"),
        ("a" * 10_000, "This is a single token"),
        ("a [CLS] b", "[CLS] is a mark that the model sets by itself"),
        ("a b [PAD]", "[PAD] is a mark"),
        ("w " * 127, "This text has 129 tokens, and up to 128 are drawn"),
        ("w " * 498, "This text has 500 tokens"),
    ],
)
def test_what_cannot_be_read_is_said_and_the_explorer_goes_on(text, sentence):
    explorer = made_up(text)
    assert describe(explorer.view.svg).startswith("No picture") and sentence in describe(explorer.view.svg)
    explorer.state.text = '🙂 你好 ?! <b>&"'
    root = ElementTree.fromstring(explorer.view.svg)
    assert {"🙂", "你好", "?!", '<b>&"'} <= {text.text for text in root.iter(f"{SVG}text")}


def test_half_a_character_is_read_as_a_question_mark():
    assert describe(made_up("a \ud83d b").view.svg).startswith("Layer 2, head 3. [CLS] a ? b [SEP]. ")


@pytest.mark.parametrize("least", [2.0, -0.1, float("nan")])
def test_a_score_that_none_can_have_is_said(least):
    explorer = made_up(least=least)
    assert describe(explorer.view.svg) == f"No picture. least={least} is not a score; 0 to 1 are"
    explorer.state.least = 1.0
    assert describe(explorer.view.svg).startswith("Layer 2, head 3")


@pytest.mark.parametrize(
    "layer, head, sentence", [(0, 2, "layer=0 does not exist; 1 to 3 do"), (3, 5, "head=5 does not exist; 0 to 4 do")]
)
def test_a_head_that_does_not_exist_is_said(layer, head, sentence):
    explorer = made_up(layer=layer, head=head)
    assert sentence in describe(explorer.view.svg)
    explorer.state.layer, explorer.state.head = 3, 1
    assert describe(explorer.view.svg).startswith("Layer 3, head 1")


def test_missing_model_files_show_their_sentence(monkeypatch):
    def fail():
        raise ModelFilesError("The files are not here yet. This command fetches them: python -m mhsa.pretrained")

    module = import_module("mhsa.explore.real_heads")  # mhsa.explore.real_heads is the function
    module.minilm.cache_clear()
    monkeypatch.setattr(module, "load_minilm", fail)
    says = describe(explore.real_heads().view.svg)
    assert says == "No picture. The files are not here yet. This command fetches them: python -m mhsa.pretrained"


def test_the_buttons_send_a_picture_that_needs_no_theme(monkeypatch):
    explorer, sent = made_up("var(--a, b) c"), []
    monkeypatch.setattr(explorer.view, "send", sent.append)
    controls(explorer)["save as SVG"].click()
    controls(explorer)["save as PNG"].click()
    assert [message["save"] for message in sent] == ["layer_2_head_3.svg", "layer_2_head_3.png"]
    assert "var(--jp" in explorer.view.svg and "var(--jp" not in sent[0]["svg"]
    assert ElementTree.fromstring(sent[1]["svg"]).find(f"{SVG}rect").get("fill") == "#ffffff"
    assert describe(sent[0]["svg"]) == describe(explorer.view.svg)  # what was typed stays


def test_rapid_changes_never_show_an_error_or_a_stale_picture():
    explorer, rng = made_up(), random.Random(7)
    drawn, moves = drawings(explorer), controls(explorer)
    for _ in range(50):
        name = rng.choice(["sentence", "layer", "head", "pattern", "score from"])
        moves[name].value = rng.choice(
            {
                "sentence": ["a b", "c " * 30, "d e f"],
                "layer": [1, 2, 3],
                "head": range(5),
                "pattern": moves["pattern"].options,
                "score from": [0, 0.5, 1],
            }[name]
        )
        state = explorer.state
        says = describe(explorer.view.svg)
        assert says.startswith(f"Layer {state.layer}, head {state.head}")
        assert f"[CLS] {state.text.strip()} [SEP]" in says
    assert not any("No picture" in svg for svg in drawn) and len(drawn) <= 50


@pytest.mark.parametrize("T", [4, 24, 25, 70, 71, 128])
def test_everything_lies_inside_the_picture(T):
    explorer = made_up(" ".join(["antidisestablishment"] * (T - 2)))
    root = ElementTree.fromstring(explorer.view.svg)
    width, height = float(root.get("width")), float(root.get("height"))
    assert width <= 940
    for box in [*root.iter(f"{SVG}rect"), *root.iter(f"{SVG}image")]:
        assert float(box.get("x", 0)) >= 0 and float(box.get("x", 0)) + float(box.get("width")) <= width + 0.01
        assert float(box.get("y", 0)) >= 0 and float(box.get("y", 0)) + float(box.get("height")) <= height + 0.01
    assert all(0 < float(text.get("y")) <= height for text in root.iter(f"{SVG}text"))


def test_arcs_are_as_thick_as_what_the_word_reads_and_a_press_lets_another_word_ask():
    explorer = made_up()
    weights = MadeUp().encode("a b , c b .").weights[1][0, 3]
    for key, query in ((None, 6), ("ask1", 1), ("3,0", 3), ("q0", 0)):
        if key:
            explorer.view._handle_custom_msg({"press": key}, [])
        arcs = {
            part.get("data-key"): part
            for part in ElementTree.fromstring(explorer.view.svg).iter()
            if part.get("data-key")
        }
        read = weights[query]
        for k, weight in enumerate(read):
            assert (f"arc{k}" in arcs) == (weight >= 0.02)
            if weight >= 0.02:
                width = float(arcs[f"arc{k}"].find(f"{SVG}path").get("stroke-width"))
                assert width == pytest.approx(max(12 * float(weight), 0.8), abs=0.006)
                assert arcs[f"arc{k}"].get("aria-label").endswith(f"weight {weight:.2f}")
    explorer.state.text = "a b"
    assert "No picture" not in describe(explorer.view.svg)


def test_a_press_on_a_cell_shows_the_sum_behind_it_from_the_layers_own_numbers():
    model = MadeUp()
    explorer = explore.real_heads("a b , c b .", 2, 3, model=model)
    assert "sum-q0" not in explorer.view.svg
    explorer.view._handle_custom_msg({"press": "4,1"}, [])
    layer, x = model.layers[1].attention, model.encode("a b , c b .").hidden[1]
    q, k = (w(x)[0].detach().view(8, H, 2)[:, 3] for w in (layer.w_q, layer.w_k))
    shown = {p.get("data-key"): p.get("aria-label") for p in ElementTree.fromstring(explorer.view.svg).iter()}
    for c in range(2):
        assert float(shown[f"sum-q{c}"].rpartition(" ")[2]) == pytest.approx(float(q[4, c]), abs=0.0051)
        assert float(shown[f"sum-k{c}"].rpartition(" ")[2]) == pytest.approx(float(k[1, c]), abs=0.0051)
    explorer.view._handle_custom_msg({"press": "ask3"}, [])
    assert "sum-q0" not in explorer.view.svg and explorer.state.query == 3
