"""explore.masks(), without a browser: what the picture says is held to masks and a softmax written out by hand."""

import math
import random
from xml.etree import ElementTree

import pytest
import torch
from helpers import controls

from mhsa import explore
from mhsa.draw.svg import describe
from mhsa.toys import embed

G, RECT, TEXT = (f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ("g", "rect", "text"))
WORDS = ("Mia", "lost", "her", "keys", "t4", "t5")


def cells(svg):
    """The three parts of each cell (query, key): in the mask, the scores and the weights."""
    found = {}
    for part in ElementTree.fromstring(svg).iter(G):
        if part.get("data-key"):
            found.setdefault(tuple(map(int, part.get("data-key").split(","))), []).append(part)
    return found


def written(part):
    return [text.text for text in part.findall(TEXT)]


def is_filled(part):
    """A mask's cell that may attend holds a filled square on its ground."""
    return len(part.findall(TEXT.replace("text", "rect"))) == 2


def press(explorer, q, k):
    explorer.view._handle_custom_msg({"press": f"{q},{k}"}, [])


def scores(queries, keys):
    w_q, w_k = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0)) / 8**0.5
    q, k = embed(queries, 8)[0] @ w_q, embed(keys, 8)[0] @ w_k
    return [[sum(a * b for a, b in zip(row, column)) / 8**0.5 for column in k.tolist()] for row in q.tolist()]


@pytest.mark.parametrize(
    "T_q, T_k, is_causal, length, closed",
    [
        (4, 4, False, 4, []),
        (4, 4, True, 3, [(3, 1), (0, 0)]),
        (2, 5, True, 5, []),
        (5, 3, True, 2, [(4, 1)]),
        (1, 6, False, 0, []),
        (6, 6, True, 6, [(5, j) for j in range(6)]),
    ],
)
def test_mask_scores_and_weights_are_those_worked_out_by_hand(T_q, T_k, is_causal, length, closed):
    explorer = explore.masks(T_q, T_k, is_causal=is_causal, length=length)
    for cell in closed:
        press(explorer, *cell)
    queries = WORDS[T_k - T_q : T_k] if T_q <= T_k else [f"q{i}" for i in range(T_q)]
    values, shown = scores(queries, WORDS[:T_k]), cells(explorer.view.svg)
    assert len(shown) == T_q * T_k
    for (q, k), (mask, score, weight) in shown.items():
        by = [is_causal and k > q + T_k - T_q, k >= length, (q, k) in closed]
        letters = "".join(letter for letter, closes in zip("CPH", by) if closes)
        open_keys = [
            j for j in range(T_k) if not (is_causal and j > q + T_k - T_q) and j < length and (q, j) not in closed
        ]
        assert written(mask) == ([letters] if letters else []) and is_filled(mask) == (not letters)
        assert float(written(score)[0]) == pytest.approx(values[q][k], abs=0.0051)
        if letters:
            assert written(weight) == [] and "weight 0.00" in weight.get("aria-label")
        else:
            total = sum(math.exp(values[q][j]) for j in open_keys)
            assert float(written(weight)[0]) == pytest.approx(math.exp(values[q][k]) / total, abs=0.0051)


def test_a_press_closes_and_opens_one_cell():
    explorer = explore.masks(is_causal=True)
    drawn, first = [], explorer.view.svg
    explorer.view.observe(lambda change: drawn.append(change["new"]), names="svg")
    press(explorer, 2, 1)
    assert explorer.state.painted == [[True] * 4, [True] * 4, [True, False, True, True], [True] * 4]
    changed = [key for key, parts in cells(drawn[0]).items() if written(parts[0]) != written(cells(first)[key][0])]
    assert len(drawn) == 1 and changed == [(2, 1)]
    moved = [key for key, parts in cells(drawn[0]).items() if written(parts[2]) != written(cells(first)[key][2])]
    assert moved == [(2, 0), (2, 1), (2, 2)]  # the other weights of that row, no other row
    explorer.state.press("3,4")  # comes late: that key is gone
    press(explorer, 2, 1)
    assert [written(p) for parts in cells(explorer.view.svg).values() for p in parts] == [
        written(p) for parts in cells(first).values() for p in parts
    ]


def test_a_cell_says_who_closed_it_and_what_a_press_does():
    explorer = explore.masks(is_causal=True, length=2)
    press(explorer, 1, 3)
    label = cells(explorer.view.svg)[1, 3][0].get("aria-label")
    assert label.startswith("lost may not read keys, closed by the causal mask and by padding and by hand: score ")
    assert label.endswith("weight 0.00; press to take your mark away")
    assert cells(explorer.view.svg)[1, 2][1].get("aria-label").endswith("press to close it by hand as well")
    assert cells(explorer.view.svg)[1, 0][2].get("aria-label").startswith("lost may read Mia: score ")
    assert "mask = causal_mask(4) &amp; padding_mask([2], 4)[0, 0] &amp; painted" in explorer.view.svg


def test_a_row_that_may_read_nothing_is_named():
    explorer = explore.masks()
    assert "reads nothing" not in explorer.view.svg and "May read nothing" not in describe(explorer.view.svg)
    press(explorer, 1, 3)
    for k in range(4):
        press(explorer, 2, k)
    assert "May read nothing, so every weight is 0: her." in describe(explorer.view.svg)
    texts = [text.text for text in ElementTree.fromstring(explorer.view.svg).iter(TEXT)]
    assert texts.count("reads nothing") == texts.count("sum 0.00") == 1 and texts.count("sum 1.00") == 3
    controls(explorer)["padding length"].value = 0
    assert "every weight is 0: Mia, lost, her, keys." in describe(explorer.view.svg)


def test_with_a_cache_the_last_tokens_ask():
    explorer = explore.masks(1, 4, is_causal=True)
    assert "The last 1 of 4 tokens ask, as with a cache that holds 3." in describe(explorer.view.svg)
    assert [is_filled(parts[0]) for parts in cells(explorer.view.svg).values()] == [True] * 4
    assert "keys may read Mia" in explorer.view.svg and "causal_mask(1, 4)" in explorer.view.svg


def test_a_full_length_stays_full_and_another_grid_is_blank():
    explorer = explore.masks(4, 4)
    press(explorer, 1, 2)
    moves = controls(explorer)
    moves["T_k"].value = 6
    assert explorer.state.length == 6 == moves["padding length"].value == moves["padding length"].options[-1]
    assert explorer.state.painted is None
    assert all(is_filled(parts[0]) for parts in cells(explorer.view.svg).values())
    moves["padding length"].value = 5
    moves["T_k"].value = 3
    assert explorer.state.length == 3
    moves["T_k"].value = 5
    assert explorer.state.length == 5
    moves["padding length"].value = 2
    moves["T_k"].value = 4
    assert explorer.state.length == 2


def test_clear_takes_the_painting_away():
    explorer = explore.masks()
    first = explorer.view.svg
    press(explorer, 1, 2)
    controls(explorer)["clear the painting"].click()
    assert explorer.view.svg == first


def test_rapid_changes_and_presses_never_show_an_error_or_a_stale_picture():
    explorer, rng, drawn = explore.masks(), random.Random(5), []
    explorer.view.observe(lambda change: drawn.append(change["new"]), names="svg")
    moves = controls(explorer)
    for _ in range(80):
        name = rng.choice(["T_q", "T_k", "padding length", "causal mask", "press"])
        if name == "press":  # some come late, for a cell that is gone
            press(explorer, rng.randrange(6), rng.randrange(6))
        elif name == "causal mask":
            moves[name].value = not moves[name].value
        else:
            moves[name].value = rng.choice(getattr(moves[name], "options", range(1, 7)))
        state = explorer.state
        assert len(cells(explorer.view.svg)) == state.T_q * state.T_k
        assert ("causal_mask" in explorer.view.svg) == state.is_causal
        assert (f"padding_mask([{state.length}]" in explorer.view.svg) == (state.length != state.T_k)
    assert not any("No picture" in svg for svg in drawn) and len(drawn) <= 80


@pytest.mark.parametrize(
    "trait, value, sentence",
    [
        ("T_q", 0, "T_q=0 is not a whole number"),
        ("T_k", -2, "T_k=-2 is not a whole number"),
        ("T_k", 1_000_000, "T_k=1000000 is more than this picture can show; 1 to 6 will do"),
        ("length", 7, "=7 is more than T=4"),
        ("painted", torch.ones(3, 4, dtype=torch.bool), "mask has shape (3, 4), which does not broadcast"),
        ("painted", torch.ones(2, 4, 4, dtype=torch.bool), "mask has shape (2, 4, 4)"),
        ("painted", torch.ones(4, 4), "mask holds torch.float32; torch.bool is needed, True = may attend"),
        ("painted", [[True] * 4, [True] * 3], "expected sequence of length 4"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_the_explorer_goes_on(trait, value, sentence, as_a_user):
    explorer = explore.masks()
    setattr(explorer.state, trait, value)
    assert describe(explorer.view.svg).startswith("No picture") and sentence in describe(explorer.view.svg)
    explorer.state.T_q, explorer.state.T_k, explorer.state.length, explorer.state.painted = 3, 4, 4, None
    press(explorer, 0, 1)
    assert describe(explorer.view.svg).startswith("Mask, scores and weights. mask = painted. ")


def test_a_mask_of_one_row_stands_for_all_queries():
    explorer = explore.masks(painted=torch.tensor([[True, False, True, True]]))
    assert [key for key, parts in cells(explorer.view.svg).items() if written(parts[0]) == ["H"]] == [
        (q, 1) for q in range(4)
    ]
    press(explorer, 2, 1)
    assert is_filled(cells(explorer.view.svg)[2, 1][0])


def test_every_cell_lies_inside_the_picture():
    for T_q, T_k in ((1, 1), (6, 6), (1, 6), (6, 1)):
        root = ElementTree.fromstring(explore.masks(T_q, T_k, is_causal=True).view.svg)
        for rect in root.iter(RECT):
            assert float(rect.get("x", 0)) + float(rect.get("width")) <= float(root.get("width")) <= 872
            assert float(rect.get("y", 0)) + float(rect.get("height")) <= float(root.get("height"))
