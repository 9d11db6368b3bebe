"""explore.one_vs_many(): the same story through one trained head and through several."""

from functools import cache
from typing import NamedTuple

import torch
from ipywidgets import HBox
from torch import Tensor
from traitlets import HasTraits, Int, Unicode

from mhsa.checks import short
from mhsa.draw.one_vs_many import Side, draw_one_vs_many
from mhsa.explore.base import Choices, Explorer, tie
from mhsa.heads import split_heads
from mhsa.toys import RELATIONS, STORY
from mhsa.train import load_story_runs


class OneVsManyState(HasTraits):
    """num_heads, one that was trained; query, a word of STORY; relation, one of RELATIONS."""

    num_heads = Int()
    query = Unicode()
    relation = Unicode()


class Trained(NamedTuple):
    """What a trained layer does with STORY: weights (h, T, T), values (h, T, d_v), answers (T, m), places of words."""

    weights: Tensor
    values: Tensor
    answers: list[list[int]]


@cache
def trained() -> dict[int, Trained]:
    """By number of heads."""
    story, found = torch.arange(len(STORY))[None], {}
    with torch.no_grad():
        for h, run in load_story_runs().items():
            layer, x = run.layer(0), run.embed(story, 0)
            weights = layer(x, need_weights=True)[1][0]
            values = split_heads(layer.w_v(x), h)[0]
            found[h] = Trained(weights, values, run.logits(story, 0)[0].argmax(-1).tolist())
    return found


def side(layer: Trained, query: int, relation: str) -> Side:
    """One layer's part of the picture, in plain numbers."""
    rows = layer.weights[:, query]  # (h, T)
    readers = {name: int(rows[:, table[query]].argmax()) for name, table in RELATIONS.items()}
    reader = readers[relation]
    values = layer.values[reader]  # (T, d_v)
    z = rows[reader] @ values
    T = len(STORY)
    unit = torch.cdist(values, values).sum() / (T * (T - 1))
    places = list(dict.fromkeys(table[query] for table in RELATIONS.values()))
    far = {place: round(((z - values[place]).norm() / unit).item(), 2) for place in places}
    answers = {name: STORY[word] for name, word in zip(RELATIONS, layer.answers[query])}
    points = torch.cat([values[places], z[None]]) / unit
    return Side([[round(w, 2) for w in row] for row in rows.tolist()], answers, readers, far, plane(points))


def plane(points: Tensor) -> list[tuple[float, float]]:
    """Points (n, d) in the plane of the first three that span one: the first at (0, 0), the second to its right."""
    moved, axes = points - points[0], []
    for direction in moved[1:]:
        for axis in axes:
            direction = direction - (direction @ axis) * axis
        if len(axes) < 2 and direction.norm() > 1e-4:
            axes.append(direction / direction.norm())
    x, y = [*(moved @ axis for axis in axes), *[torch.zeros(len(points))] * 2][:2]
    return [(round(a, 2), round(b, 2)) for a, b in zip(x.tolist(), y.tolist())]


def draw(state: OneVsManyState) -> str:
    layers = trained()
    for name, value, choices in (
        ("num_heads", state.num_heads, layers),
        ("query", state.query, STORY),
        ("relation", state.relation, RELATIONS),
    ):
        if value not in choices:
            raise ValueError(f"{name}={short(value)} is not there; these are: {', '.join(map(str, choices))}")
    query = STORY.index(state.query)
    right = {name: table[query] for name, table in RELATIONS.items()}
    return draw_one_vs_many(
        STORY,
        state.query,
        right,
        state.relation,
        side(layers[1], query, state.relation),
        side(layers[state.num_heads], query, state.relation),
    )


def one_vs_many(num_heads: int = 4, *, query: str = "them", relation: str = "antecedent") -> Explorer:
    """The story through one trained head and through several: weights on the right words, what is read out, and how far
    the averaged vector lies from each answer. num_heads: 1, 2, 4, 8 or 16."""
    state = OneVsManyState(num_heads=num_heads, query=query, relation=relation)
    heads, words, relations = (Choices(options=[1], description=label) for label in ("heads", "query", "question"))
    tie(state, "num_heads", heads, options=lambda: [*trained()])
    tie(state, "query", words, options=lambda: STORY)
    tie(state, "relation", relations, options=lambda: [*RELATIONS])
    return Explorer(state, draw, [HBox([heads, words, relations])])
