"""explore.one_vs_many(), without a browser."""

import random
import re

import pytest
import torch
from helpers import controls, drawings

from mhsa import explore
from mhsa.draw.svg import describe
from mhsa.explore.one_vs_many import plane
from mhsa.toys import RELATIONS, STORY
from mhsa.train import load_story_runs

RUNS = load_story_runs()
STORY_TOKENS = torch.arange(len(STORY))[None]
NUMBERS = re.compile(r'aria-label="head (\d+): (\w+) \(query\) reads (\w+) \(key\), weight ([\d.]+)')


def panels(explorer):
    """The two halves of the picture: one head, and several."""
    _, one, many = explorer.view.svg.split('transform="translate(')
    return one, many


def shown(panel):
    """{(head, key word): weight} as the labels say."""
    return {(int(head), key): float(weight) for head, _, key, weight in NUMBERS.findall(panel)}


def by_hand(h, query):
    """Weights (h, T) and values (h, T, d_v) of one query from the stored matrices, head by head."""
    w = {name: value[0] for name, value in RUNS[h].weights.items()}
    x = w["tokens"][STORY_TOKENS[0]] + w["places"]
    d_k = 16 // h
    q, k, v = (x @ m.T for m in w["w_qkv"][0].split(16))
    heads = [slice(i * d_k, (i + 1) * d_k) for i in range(h)]
    weights = torch.stack([torch.softmax(q[query, own] @ k[:, own].T / d_k**0.5, 0) for own in heads])
    return weights, torch.stack([v[:, own] for own in heads])


@pytest.mark.parametrize("h, query", [(1, 3), (2, 7), (4, 2), (8, 7), (16, 5)])
def test_the_weights_are_those_of_the_stored_matrices(h, query):
    one, many = panels(explore.one_vs_many(h, query=STORY[query]))
    for panel, heads in ((one, 1), (many, h)):
        weights, _ = by_hand(heads, query)
        values = shown(panel)
        assert len(values) == heads * len(STORY)
        for (head, key), value in values.items():
            assert value == pytest.approx(weights[head, STORY.index(key)].item(), abs=0.0051)


@pytest.mark.parametrize(
    "h, word, relation", [(2, "them", "subject"), (4, "them", "neighbour"), (8, "her", "antecedent")]
)
def test_the_averaged_vector_lies_as_far_from_the_right_words_as_it_says(h, word, relation):
    explorer = explore.one_vs_many(h, query=word, relation=relation)
    query = STORY.index(word)
    sentences = re.findall(r"hands over z: (.*?)\. (?:\d|$)", describe(explorer.view.svg) + " ")
    for heads, sentence in zip((1, h), sentences, strict=True):
        weights, values = by_hand(heads, query)
        reader = weights[:, RELATIONS[relation][query]].argmax()
        v = values[reader]
        z = (weights[reader, :, None] * v).sum(0)
        unit = torch.stack([(a - b).norm() for i, a in enumerate(v) for j, b in enumerate(v) if i != j]).mean()
        said = re.findall(r"([\d.]+) from (\w+)", sentence)
        assert {name for _, name in said} == {STORY[table[query]] for table in RELATIONS.values()}
        for far, name in said:
            assert float(far) == pytest.approx(((z - v[STORY.index(name)]).norm() / unit).item(), abs=0.0051)


@pytest.mark.parametrize("h", [1, 4, 16])
def test_what_is_read_out_is_what_the_run_answers(h):
    answers = RUNS[h].logits(STORY_TOKENS, 0)[0].argmax(-1)
    for query, word in enumerate(STORY):
        _, many = panels(explore.one_vs_many(h, query=word))
        for i, (name, table) in enumerate(RELATIONS.items()):
            right, answer = STORY[table[query]], STORY[answers[query, i]]
            assert re.search(rf"{name}: the right word is {right}; largest .* reads out {answer}\"", many)
            assert f"{answer} {'✓' if answer == right else '✗'}" in many


def test_one_head_averages_three_words_and_four_heads_find_each():
    """What the explorer is there to show, with room for another training."""
    one, _ = by_hand(1, 7)
    many, _ = by_hand(4, 7)
    places = [table[7] for table in RELATIONS.values()]
    assert one[0, places].max() < 0.6 and one[0, places].sum() > 0.7
    assert many[:, places].max(0).values.min() > one[0, places].max()


def test_a_plane_keeps_the_distances_of_three_points():
    points = torch.randn(3, 11, generator=torch.Generator().manual_seed(2))
    flat = torch.tensor(plane(points))
    assert torch.allclose(torch.cdist(flat, flat), torch.cdist(points, points), atol=0.02)
    assert flat[0].tolist() == [0, 0] and flat[1, 0] > 0 and flat[1, 1] == 0 and flat[2, 1] >= 0
    assert plane(points[:, :1])[2][1] == 0  # one column: a line
    assert plane(points[:1].repeat(2, 1)) == [(0, 0), (0, 0)]


def test_fifty_changes_draw_once_each_and_never_fail():
    explorer, rng = explore.one_vs_many(), random.Random(5)
    sliders, drawn = controls(explorer), drawings(explorer)
    for _ in range(50):
        slider = sliders[rng.choice(["heads", "query", "question"])]
        before, slider.value = (len(drawn), slider.value), rng.choice(slider.options)
        assert len(drawn) == before[0] + (slider.value != before[1])
        h, query = sliders["heads"].value, sliders["query"].value
        assert describe(explorer.view.svg).startswith(f"“{query}” with 1 head and with {h} head")
        assert explorer.view.svg.count(f": {query} (query) reads Mia") == 1 + h
        assert f"For the {sliders['question'].value}, head" in explorer.view.svg
    assert not any("No picture" in svg for svg in drawn) and max(map(len, drawn)) < 250_000


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("num_heads", 3, "num_heads=3 is not there; these are: 1, 2, 4, 8, 16"),
        ("num_heads", -7, "num_heads=-7"),
        ("query", "cat", "query='cat' is not there; these are: Mia, lost"),
        ("relation", "<b>", "these are: subject"),
    ],
)
def test_what_cannot_be_shown_is_said_and_the_explorer_goes_on(name, value, words):
    explorer = explore.one_vs_many()
    still = explorer.view.svg
    before = getattr(explorer.state, name)
    setattr(explorer.state, name, value)
    assert words in describe(explorer.view.svg) and "<b>" not in explorer.view.svg
    setattr(explorer.state, name, before)
    assert explorer.view.svg == still
