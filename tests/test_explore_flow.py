"""explore.flow(): every number shown is the layer's, the rope keeps its thickness, the steps build up."""

import re
from math import sqrt
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import torch

from mhsa import MultiHeadAttention, attention, causal_mask, explore
from mhsa.draw.flow import ROPE, STEPS
from mhsa.draw.lane import THICK, THUMBNAILS, products
from mhsa.draw.svg import describe
from mhsa.explore.numbers import SOURCES, toy_layer
from mhsa.follow import follow
from mhsa.toys import SENTENCE
from mhsa.train.example import SIZES, load_examples, train_example

SVG = "{http://www.w3.org/2000/svg}"


def labels(svg):
    """key -> the label of each part that can be pointed at."""
    return {
        part.get("data-key"): part.get("aria-label")
        for part in ElementTree.fromstring(svg).iter()
        if part.get("data-key")
    }


def last_number(label):
    return float(re.findall(r"-?\d+\.\d+", label)[-1])


def words(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def strokes(svg, tag="path"):
    return [
        float(path.get("stroke-width"))
        for path in ElementTree.fromstring(svg).iter(f"{SVG}{tag}")
        if path.get("stroke-width")
    ]


def plainly(numbers, d_model, h, word, is_causal, temperature):
    """The same layer by MultiHeadAttention itself, and what it does not give away by hand."""
    x, layer = toy_layer(numbers, d_model, h, 0)[:2]
    mask = causal_mask(len(SENTENCE)) if is_causal else None
    with torch.no_grad():
        q, k, v = (w(x)[0].view(len(SENTENCE), h, d_model // h) for w in (layer.w_q, layer.w_k, layer.w_v))
        scores = torch.einsum("hd,thd->ht", q[word], k)
        warm = MultiHeadAttention(d_model, h)
        warm.load_state_dict(layer.state_dict())
        warm.w_q.weight /= temperature
        out, weights = warm(x, mask=mask, need_weights=True)
    z = torch.einsum("ht,thd->hd", weights[0, :, word], v)
    return x[0], q[word], k, v, scores, weights[0, :, word], z, out[0, word]


@pytest.mark.parametrize(
    "numbers, d_model, h, word, is_causal, temperature",
    [
        ("trained", 12, 3, 1, False, 1.0),
        ("trained", 8, 2, 2, True, 2.0),
        ("random", 6, 2, 3, False, 0.5),
        ("random", 16, 8, 0, True, 4.0),
    ],
)
def test_every_number_shown_is_the_layers(numbers, d_model, h, word, is_causal, temperature):
    explorer = explore.flow(h, d_model, numbers=numbers, word=word, is_causal=is_causal)
    explorer.state.temperature = temperature
    x, q, k, v, scores, weights, z, out = plainly(numbers, d_model, h, word, is_causal, temperature)
    shown, d_k = labels(explorer.view.svg), d_model // h
    checked = 0

    def equal(key, value):
        nonlocal checked
        assert last_number(shown[key]) == pytest.approx(float(value), abs=0.0051), key
        checked += 1

    for t in range(len(SENTENCE)):
        for i in range(h):
            for c in range(d_k):
                equal(f"k{i},{t},{c}", k[t, i, c])
                equal(f"v{i},{t},{c}", v[t, i, c])
            if not is_causal or t <= word:
                equal(f"w{i},{t}", weights[i, t])
                assert f"score {scores[i, t]:.2f}" in shown[f"w{i},{t}"]
            else:
                assert shown[f"w{i},{t}"] == f"head {i}: {SENTENCE[word]} may not read {SENTENCE[t]}"
    for i in range(h):
        for c in range(d_k):
            equal(f"q{i},{c}", q[i, c])
            equal(f"z{i},{c}", z[i, c])
    for c in range(d_model):
        equal(f"new{c}", x[word, c] + out[c])
    assert checked >= 10 * d_model


@pytest.mark.parametrize("h", [1, 2, 3, 4, 6, 12])
def test_the_rope_never_gets_thicker(h):
    lines = strokes(explore.flow(h).view.svg, "line")
    rope = [width for width in lines if width == pytest.approx(ROPE / h, abs=0.006)]
    assert len(rope) >= h and sum(rope[:h]) == pytest.approx(ROPE, abs=0.1)


def test_a_fan_is_as_thick_as_its_weight():
    svg = explore.flow(2, 8, numbers="random").view.svg
    weights = plainly("random", 8, 2, 1, False, 1.0)[5]
    for i in range(2):
        for t in range(4):
            out, back = re.findall(rf'data-key="w{i},{t}".*?stroke-width="([\d.]+)"', svg)
            assert out == back and float(out) == pytest.approx(max(THICK * float(weights[i, t]), 0.8), abs=0.006)


def test_in_training_two_heads_have_learned_who_and_what():
    """`lost` reads Mia with one head and keys with the other; that is what the first screen of the course shows."""
    x, layer = toy_layer("trained", 12, 2, 0)[:2]
    weights = layer(x, need_weights=True)[1][0, :, SENTENCE.index("lost")]
    assert sorted(SENTENCE[i] for i in weights.argmax(-1)) == ["Mia", "keys"] and weights.max(-1).values.min() > 0.95


def test_the_stored_layers_are_what_training_gives():
    examples = load_examples()
    assert {size: heads for size, heads in SIZES.items()} == {
        d: tuple(h for d_model, h in examples if d_model == d) for d in SIZES
    }
    again, stored = train_example(8, 2), examples[8, 2]
    torch.testing.assert_close(stored.x, again.x, atol=0.05, rtol=0)  # another CPU rounds elsewhere
    assert stored.accuracy == pytest.approx(again.accuracy, abs=0.02)


@pytest.mark.parametrize("step, heading", [*enumerate(STEPS, start=1)])
def test_the_steps_build_up(step, heading):
    explorer = explore.flow(step=step)
    faint = explorer.view.svg.count('opacity="0.12"')
    before = explore.flow(step=step - 1).view.svg.count('opacity="0.12"')
    gone = {1: -1, 4: 0}.get(step)  # from nothing faint to all but the rope; the softmax turns scores to weights
    assert (before > faint) if gone is None else (before < faint if gone else before == faint)
    assert f"Step {step}, {heading}." in describe(explore.flow(step=step).view.svg)


def test_the_lines_give_the_very_numbers():
    explorer = explore.flow(3, 12, step=5)
    explorer.state.head = 1
    *_, weights, z, _ = plainly("trained", 12, 3, 1, False, 1.0)
    v = plainly("trained", 12, 3, 1, False, 1.0)[3]
    terms = " + ".join(f"{w:.2f} · {n:.2f}" for w, n in zip(weights[1].tolist(), v[:, 1, 0].tolist()))
    assert f"head 1, first number: {terms} = {z[1, 0]:.2f}".replace("+ -", "- ") in words(explorer.view.svg)
    explorer.state.step = 4
    assert f"(√{4})" in " ".join(words(explorer.view.svg)) and sqrt(4) == 2
    explorer.state.temperature = 0.5
    assert "(√4 · 0.5)" in " ".join(words(explorer.view.svg))


def test_long_sums_are_cut():
    assert products([1, 2], [3, -4], -5) == "1.00 · 3.00 + 2.00 · -4.00 = -5.00"
    assert products([1] * 7, [2] * 7, 14) == "1.00 · 2.00" + " + 1.00 · 2.00" * 4 + " + … = 14.00"


def test_a_press_on_a_word_lets_it_ask_and_one_on_a_head_spells_it_out():
    explorer = explore.flow(step=5)
    explorer.view._handle_custom_msg({"press": "word3"}, [])
    explorer.view._handle_custom_msg({"press": "head1"}, [])
    explorer.view._handle_custom_msg({"press": "v0,2,1"}, [])
    assert (explorer.state.word, explorer.state.head) == (3, 1)
    assert (
        "The word keys and its 2 heads" in describe(explorer.view.svg) and "head 1, first number" in explorer.view.svg
    )


def test_from_nine_heads_on_lanes_are_thumbnails():
    few, many = explore.flow(8, 24, numbers="random"), explore.flow(THUMBNAILS + 3, 24, numbers="random")
    assert "head 7" in words(few.view.svg) and "head 7" not in words(many.view.svg)
    assert "w11,3" in labels(many.view.svg) and "k11,3,0" not in labels(many.view.svg)


def test_at_a_size_that_was_not_trained_the_numbers_are_random_and_it_says_so():
    explorer = explore.flow(2, 16)
    assert "Trained at d_model = 8, 12 alone. Random numbers (seed 0)" in describe(explorer.view.svg)
    explorer.state.d_model = 8
    assert explorer.state.num_heads == 2 and "Trained until each word" in describe(explorer.view.svg)


@pytest.mark.parametrize(
    "how, words",
    [({"word": 4}, "word=4 does not exist; 0 to 3"), ({"step": 9}, "step=9")],
)
def test_what_does_not_exist_is_said_in_the_picture(how, words):
    assert words in describe(explore.flow(**how).view.svg)


def test_numbers_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="numbers='magic'.*trained, by hand, random"):
        explore.flow(numbers="magic")


def test_the_picture_says_whose_numbers_these_are():
    for numbers in SOURCES:
        note = toy_layer(numbers, 12, 2, 0)[2]
        assert note.startswith({"by hand": "Picked by hand"}.get(numbers, numbers.title())) and note in words(
            explore.flow(numbers=numbers).view.svg
        )


def test_all_that_a_word_may_read_adds_up_under_any_mask():
    x, layer = toy_layer("random", 12, 4, 0)[:2]
    for word in range(4):
        flow = follow(layer, x, SENTENCE, word, causal_mask(4))
        assert all(sum(row) == pytest.approx(1, abs=1e-5) and sum(row[word + 1 :]) == 0 for row in flow.weights)


def cell(stem, start):
    """The source of the lesson's cell that begins so."""
    cells = nbformat.read(Path(__file__).parents[1] / f"notebooks/{stem}.ipynb", as_version=4).cells
    [found] = [cell.source for cell in cells if cell.cell_type == "code" and cell.source.startswith(start)]
    return found


def test_the_numbers_picked_by_hand_are_those_of_the_lessons():
    space = {"torch": torch, "attention": attention}
    for start in ("#                 person", "W_Q ="):
        exec(cell("01_one_head", start), space)
    x, layer, _ = toy_layer("by hand", 12, 1, 0)
    flow = follow(layer, x, SENTENCE, 1)
    torch.testing.assert_close(x[0], space["x"])
    torch.testing.assert_close(torch.tensor(flow.q[0]), space["q"][1])
    torch.testing.assert_close(torch.tensor(flow.k[0]), space["k"])
    torch.testing.assert_close(torch.tensor(flow.v[0]), space["v"])
    assert flow.z[0] == pytest.approx([2.30, 1.71], abs=0.005)  # as lesson 1 works out
    exec(cell("02_many_heads", "sentence ="), space)
    exec(cell("02_many_heads", "W_Q_what =").partition("\nshow")[0], space)
    x, layer, _ = toy_layer("by hand", 12, 2, 0)
    z = torch.tensor(follow(layer, x, SENTENCE, 1).z)
    torch.testing.assert_close(z, torch.stack([space["who"][0, 1], space["what"][0, 1]]))


def test_by_hand_there_are_one_head_and_two():
    explorer = explore.flow(2, numbers="by hand")
    assert "Head 0 reads Mia most, 0.89. Head 1 reads keys most" in describe(explorer.view.svg)
    explorer.state.num_heads = 3
    assert "Picked by hand for 1 and 2 heads alone. Random numbers" in describe(explorer.view.svg)
