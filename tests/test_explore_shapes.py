"""explore.shapes(), without a browser: what the picture says is held to tensors that torch really splits and merges."""

import random
import re
from collections import defaultdict
from xml.etree import ElementTree

import pytest
import torch
from helpers import controls, drawings

from mhsa import explore, trace_shapes
from mhsa.draw.colors import HEADS
from mhsa.draw.svg import describe

G, RECT, TEXT = (f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ("g", "rect", "text"))
ELEMENT = re.compile(r"(\w+), column (\d+): \[([\d, ]+)\], offset (\d+)\. In step (.*)")


def tensors(B, T, d_model, h, wrong_split=False):
    """The numbers 0, 1, 2, … on their way: the tensor of each step, None for scores and weights.

    A product makes new numbers in new memory; here each keeps the number of its place.
    """
    x = torch.arange(B * T * d_model).view(B, T, d_model)
    cut = (
        [x.view(B, h, T, d_model // h)]
        if wrong_split
        else [x.view(B, T, h, d_model // h), x.view(B, T, h, d_model // h).transpose(1, 2)]
    )
    z = cut[-1].contiguous()
    back = z.transpose(1, 2)
    merged = back.contiguous().view(B, T, d_model)
    return [x, x.clone(), *cut, None, None, z, back, back.contiguous(), merged, merged.clone()]


def memory(tensor):
    return torch.as_strided(tensor, (tensor.numel(),), (1,)).tolist()


def groups(svg):
    """Each group of the picture with those keyed parts that it holds itself."""
    found = []
    for group in ElementTree.fromstring(svg).iter(G):
        parts = [part for part in group if part.get("data-key") and ELEMENT.match(part.get("aria-label"))]
        if parts:
            found.append(parts)
    return found


def number(part):
    return int(part.find(TEXT).text)


def place(part):
    return float(part.find(RECT).get("y")), float(part.find(RECT).get("x"))


@pytest.mark.parametrize("wrong_split", [False, True])
@pytest.mark.parametrize("sizes", [(2, 3, 10, 5), (1, 5, 6, 3), (1, 7, 9, 1), (3, 1, 14, 2)])
def test_every_step_shows_each_number_where_it_is(sizes, wrong_split):
    explorer, batch = explore.shapes(*sizes, wrong_split=wrong_split), tensors(*sizes, wrong_split)
    for step, tensor in enumerate(batch, start=1):
        explorer.state.step = step
        if tensor is None:
            assert groups(explorer.view.svg) == []
            continue
        table, *strips = groups(explorer.view.svg)
        assert len(table) == tensor.numel() and len(strips) in (1, 2)
        for part in table + strips[-1]:
            word, column, index, offset, _ = ELEMENT.match(part.get("aria-label")).groups()
            assert tensor[tuple(map(int, index.split(", ")))] == number(part) == memory(tensor)[int(offset)]
            assert number(part) % sizes[2] == int(column)
        assert [number(part) for part in sorted(strips[-1], key=place)] == memory(tensor)


def test_the_table_follows_the_last_two_axes():
    explorer = explore.shapes(1, 5, 6, 3, step=4)
    table = sorted(groups(explorer.view.svg)[0], key=place)  # three heads of 5 tokens × 2 columns, in one line
    assert [number(part) for part in table[:6]] == [0, 1, 2, 3, 4, 5]
    explorer.state.step = 3  # five tokens of 3 heads × 2 columns
    assert [number(part) for part in sorted(groups(explorer.view.svg)[0], key=place)[:4]] == [0, 1, 6, 7]


def test_colour_and_name_say_which_head_owns_a_column():
    explorer = explore.shapes(1, 4, 6, 3)
    for step, owners in ((1, {None}), (2, {0, 1, 2}), (7, {0, 1, 2}), (11, {None})):
        explorer.state.step = step
        for part in sum(groups(explorer.view.svg), []):
            column = int(ELEMENT.match(part.get("aria-label"))[2])
            assert part.find(RECT).get("fill") == ("#dddddd" if owners == {None} else HEADS[column // 2])
        texts = [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(TEXT)]
        assert {f"head {i}" for i in owners - {None}} == {text for text in texts if text.startswith("head ")}
    explorer.state.step = 1
    assert "Memory: new numbers." in describe(explorer.view.svg)


@pytest.mark.parametrize("T, h, copies", [(4, 2, True), (4, 1, False), (1, 2, False)])
def test_the_copy_is_seen_as_a_reordering(T, h, copies):
    explorer = explore.shapes(1, T, 8, h, step=9)
    before_and_after = groups(explorer.view.svg)[1:]
    assert ("copied, the same numbers in another order" in explorer.view.svg) == copies
    assert explorer.view.svg.count("<line ") == (32 if copies else 0)
    if copies:
        before, after = ([number(part) for part in sorted(strip, key=place)] for strip in before_and_after)
        assert before[:6] == [0, 1, 2, 3, 8, 9] and after == list(range(32))


def test_what_a_product_copies_is_said():
    """With one sentence nothing; with two the heads of q, k and v have no common stride."""
    for batch, scores, mix in ((1, "no", "no"), (2, "q and k", "v")):
        explorer = explore.shapes(batch, 4, 8, 2, step=5)
        for step, copied in ((5, scores), (7, mix)):
            explorer.state.step = step
            texts = [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(TEXT)]
            assert texts[texts.index("copied") + 1] == copied
            first = "" if copied == "no" else f"; {copied} copied first"
            assert f"Memory: new numbers{first}." in describe(explorer.view.svg)
            assert f"memory after step {step}: new numbers{first}" in texts
            assert ("copied" in describe(explorer.view.svg)) == (copied != "no")


@pytest.mark.parametrize("wrong_split", [False, True])
def test_steps_are_counted_not_typed(wrong_split):
    names = [step.name for step in trace_shapes(2, 3, 10, 5, wrong_split=wrong_split)]
    explorer = explore.shapes(wrong_split=wrong_split)
    assert list(controls(explorer)["step"].options) == list(range(1, len(names) + 1))
    assert controls(explorer)["play the steps"].max == len(names)
    for number, name in enumerate(names, start=1):
        explorer.state.step = number
        assert f"step {number} of {len(names)}: {name}. " in describe(explorer.view.svg)


def test_the_other_split_stays_with_the_same_tensor():
    """By name where both have the step; the right split's two steps answer the wrong one's single one."""
    right, wrong = (
        [step.name for step in trace_shapes(2, 3, 10, 5, wrong_split=wrong_split)] for wrong_split in (False, True)
    )
    for number, name in enumerate(right, start=1):
        explorer = explore.shapes(step=number)
        explorer.state.wrong_split = True
        assert wrong[explorer.state.step - 1] == (name if name in wrong else "wrong split")
        explorer.state.wrong_split = False
        assert right[explorer.state.step - 1] == (name if name in wrong else "heads forward")


def lit(svg, key):
    parts = [part for part in ElementTree.fromstring(svg).iter() if part.get("data-key") == key]
    return [part.get("aria-label") for part in parts]


def test_pointing_at_an_element_lights_it_up_in_every_step():
    labels = lit(explore.shapes(1, 4, 6, 3, step=7).view.svg, "0,2,3")
    small = [label for label in labels if label.startswith("step ")]
    assert small == [
        f"step {i}: {place}"
        for i, place in (
            (1, "[0, 2, 3], offset 15"),
            (2, "[0, 2, 3], offset 15"),
            (3, "[0, 2, 1, 1], offset 15"),
            (4, "[0, 1, 2, 1], offset 15"),
            (7, "[0, 1, 2, 1], offset 13"),
            (8, "[0, 2, 1, 1], offset 13"),
            (9, "[0, 2, 1, 1], offset 15"),
            (10, "[0, 2, 3], offset 15"),
            (11, "[0, 2, 3], offset 15"),
        )
    ]
    assert [label for label in labels if label not in small] == 2 * [
        "her, column 3: [0, 1, 2, 1], offset 13. In step 1, 2, 10, 11: [0, 2, 3], offset 15; "
        "3, 9: [0, 2, 1, 1], offset 15; 4: [0, 1, 2, 1], offset 15; 7: [0, 1, 2, 1], offset 13; "
        "8: [0, 2, 1, 1], offset 13"
    ]


def test_scores_are_maps_of_two_tokens():
    explorer = explore.shapes(1, 4, 6, 3, step=5)
    *small, cell, in_memory = lit(explorer.view.svg, "score0,1,2,3")
    assert small == ["step 5: [0, 1, 2, 3], offset 27", "step 6: [0, 1, 2, 3], offset 27"]
    assert (
        cell
        == in_memory
        == ("head 1, query her, key keys: [0, 1, 2, 3], offset 27. It belongs to two tokens, not to one element")
    )


def words_of(svg):
    """The words in each head, read off the table of a (B, h, T, d_k) tensor."""
    heads = defaultdict(set)
    for part in groups(svg)[0]:
        heads[int(ELEMENT.match(part.get("aria-label"))[3].split(", ")[1])].add(part.findall(TEXT)[1].text)
    return heads


def test_the_wrong_split_mixes_the_tokens():
    explorer = explore.shapes(1, 4, 8, 2, step=4)
    assert words_of(explorer.view.svg) == {0: {"Mia", "lost", "her", "keys"}, 1: {"Mia", "lost", "her", "keys"}}
    controls(explorer)["wrong split"].value = True
    assert explorer.state.step == 3 and words_of(explorer.view.svg) == {0: {"Mia", "lost"}, 1: {"her", "keys"}}
    assert "Here head 0: Mia, lost; head 1: her, keys." in describe(explorer.view.svg)
    explorer.state.step = 9
    assert "Here row 0: Mia, her; row 1: Mia, her; row 2: lost, keys; row 3: lost, keys." in describe(explorer.view.svg)
    controls(explorer)["wrong split"].value = False
    assert explorer.state.step == 10 and "Heads and columns become one axis again." in describe(explorer.view.svg)


@pytest.mark.parametrize("T, h", [(4, 1), (1, 4)])
def test_a_wrong_split_of_one_head_or_token_is_not_called_wrong(T, h):
    explorer = explore.shapes(1, T, 8, h, step=3, wrong_split=True)
    assert "this split is not wrong" in describe(explorer.view.svg)
    explorer.state.step = 9
    assert "Wrong" not in describe(explorer.view.svg)


def test_the_trace_of_a_wrong_split_knows_where_each_number_went():
    for i, (step, tensor) in enumerate(zip(trace_shapes(2, 3, 10, 5, wrong_split=True), tensors(2, 3, 10, 5, True))):
        assert step.mixed == (i > 1)
        for flat in range(60) if tensor is not None else ():
            index, offset = step.where(flat // 30, flat // 10 % 3, flat % 10)
            assert tensor[index] == flat == memory(tensor)[offset]


def test_step_play_and_press_go_to_a_step():
    explorer = explore.shapes()
    moves, drawn = controls(explorer), drawings(explorer)
    moves["step"].value = 4
    moves["play the steps"].value = 5
    explorer.view._handle_custom_msg({"press": "step9"}, [])
    assert explorer.state.step == moves["step"].value == moves["play the steps"].value == 9 and len(drawn) == 3
    assert describe(drawn[-1]).startswith("Split and merge, step 9 of 11: lay out anew. z = z.contiguous()")
    explorer.view._handle_custom_msg({"press": "0,2,3"}, [])
    moves["step"].value = 11
    moves["wrong split"].value = True  # one step less: one drawing, no step too many
    assert explorer.state.step == moves["step"].value == moves["play the steps"].max == 10 and len(drawn) == 5
    moves["wrong split"].value = False
    assert explorer.state.step == moves["play the steps"].value == moves["play the steps"].max == 11


def test_rapid_changes_never_show_an_invalid_pair_or_a_stale_picture():
    explorer, rng = explore.shapes(), random.Random(11)
    moves, drawn = controls(explorer), drawings(explorer)
    for _ in range(50):
        control = moves[rng.choice(["d_model", "d_model", "heads", "heads", "T", "B", "step", "wrong split"])]
        control.value = rng.choice([True, False] if control.description == "wrong split" else control.options)
        B, T, d_model, h, step = (moves[name].value for name in ("B", "T", "d_model", "heads", "step"))
        shapes = {
            "B T d_model": (B, T, d_model),
            "B T h d_k": (B, T, h, d_model // h),
            "B h T d_k": (B, h, T, d_model // h),
            "B h T T": (B, h, T, T),
        }
        axes = trace_shapes(1, 2, h, h, wrong_split=moves["wrong split"].value)[step - 1].axes
        assert d_model % h == 0 and f"Shape {shapes[axes]}, strides" in describe(explorer.view.svg)
    assert not any("No picture" in svg for svg in drawn) and len(drawn) <= 50


@pytest.mark.parametrize(
    "sizes, sentence",
    [
        ((1, 4, 7, 2), "num_heads=2 does not divide d_model=7; these do: 1, 7"),
        ((1, 0, 8, 2), "tokens=0 is not a whole"),
        ((0, 4, 8, 2), "batch=0 is not a whole"),
        ((1, 4, -8, 2), "d_model=-8 is not a whole"),
        ((1, 4, 8, 0), "num_heads=0 is not a whole"),
        ((10**6, 10**6, 8, 8), "more bytes than 64-bit addresses"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_the_explorer_goes_on(sizes, sentence):
    explorer = explore.shapes(*sizes)
    assert describe(explorer.view.svg).startswith("No picture") and sentence in describe(explorer.view.svg)
    explorer.state.step = 12
    explorer.state.batch, explorer.state.tokens, explorer.state.d_model, explorer.state.num_heads = 1, 5, 6, 3
    assert "step=12 is not one of the steps; 1 to 11 will do" in describe(explorer.view.svg)
    controls(explorer)["step"].value = 4
    assert "Shape (1, 3, 5, 2), strides (30, 2, 6, 1)" in describe(explorer.view.svg)


def test_a_million_tokens_are_abbreviated_honestly():
    explorer = explore.shapes(2, 1_000_000, 768, 12, step=7)
    assert "Drawn: 1 of 2 sentences, 4 of 1,000,000 tokens, 12 of 768 columns, 3 of 12 heads." in explorer.view.svg
    table, strip = groups(explorer.view.svg)
    assert len(table) == len(strip) == 4 * 12
    for part in table:  # (B, h, T, d_k) in this order in memory
        word, column, index, offset, _ = ELEMENT.match(part.get("aria-label")).groups()
        _, head, token, j = map(int, index.split(", "))
        assert (number(part), int(column)) == (token * 768 + head * 64 + j, head * 64 + j)
        assert int(offset) == head * 64_000_000 + token * 64 + j and word == ("Mia", "lost", "her", "keys")[token]
    controls(explorer)["wrong split"].value = True
    explorer.state.step = 3
    assert "Here head 0: Mia, lost, her, keys; no other head has a number that is drawn." in describe(explorer.view.svg)


def test_long_offsets_are_written_once_a_run():
    explorer = explore.shapes(1, 1_000_000, 768, 12, step=7)
    ticks = [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(TEXT)]
    assert {"64000000", "128000192"} <= set(ticks) and "…" in ticks


SIZES = [
    (B, T, d_model, h)
    for B in (1, 2, 3, 5)
    for T in (1, 2, 4, 6, 12, 1_000_000)
    for d_model in (1, 8, 12, 24, 768)
    for h in (1, 2, 4, 8, 24, 768)
    if d_model % h == 0
]


@pytest.mark.parametrize("wrong_split", [False, True])
def test_every_cell_lies_inside_a_picture_of_bearable_size(wrong_split):
    explorer, rng = explore.shapes(wrong_split=wrong_split), random.Random(13)
    for sizes in rng.sample(SIZES, 40):
        with explorer.state.hold_trait_notifications():
            explorer.state.batch, explorer.state.tokens, explorer.state.d_model, explorer.state.num_heads = sizes
            explorer.state.step = rng.randint(1, 10)
        svg = explorer.view.svg
        assert len(svg.encode()) <= 250_000, sizes
        root = ElementTree.fromstring(svg)
        check_inside(root, 0, 0, float(root.get("width")), float(root.get("height")))


def check_inside(node, x, y, width, height):
    dx, dy = map(float, re.findall(r"[\d.]+", node.get("transform", "0,0")))
    for child in node:
        if child.tag == RECT:
            left, top = x + dx + float(child.get("x", 0)), y + dy + float(child.get("y", 0))
            assert 0 <= left <= left + float(child.get("width")) <= width
            assert 0 <= top <= top + float(child.get("height")) <= height
        check_inside(child, x + dx, y + dy, width, height)
