"""Toy training: many seeds at once against one model trained the plain way."""

import numpy as np
import pytest
import torch
from helpers import by_hand, same
from torch import nn
from torch.nn import functional as F

from mhsa import MultiHeadAttention
from mhsa.toys import copy_two_sources, lookup, relations, reverse
from mhsa.train import model, train_toy

TASK = lookup(T=5, classes=3)  # vocab 15, m 2
SMALL = dict(d_model=6, steps=2, batch=7)


class Plain(nn.Module):
    """The model of one seed, with the course's own layer and nothing stacked."""

    def __init__(self, w, num_heads):
        super().__init__()
        self.tokens, self.places = nn.Parameter(w["tokens"].clone()), nn.Parameter(w["places"].clone())
        d_model = w["w_o"].shape[-1]
        keys = (w["w_qkv"].shape[1] - d_model) // 2
        widths = dict(d_k=keys // num_heads, d_v=d_model // num_heads)
        self.layers = nn.ModuleList(MultiHeadAttention(d_model, num_heads, **widths) for _ in w["w_o"])
        for layer, w_qkv, w_o in zip(self.layers, w["w_qkv"], w["w_o"]):
            w_q, w_k, w_v = w_qkv[:keys], w_qkv[keys : 2 * keys], w_qkv[2 * keys :]
            layer.load_state_dict({"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v, "w_o.weight": w_o})
        self.hidden, self.hidden_bias = (
            nn.Parameter(w[name].clone()) if name in w else None for name in ("hidden", "hidden_bias")
        )
        self.readout = nn.Parameter(w["readout"].clone())

    def forward(self, tokens):
        x = self.tokens[tokens] + self.places
        for layer in self.layers[:-1]:
            x = x + layer(x)
        x = self.layers[-1](x)
        if self.hidden is not None:
            x = F.relu(F.linear(x, self.hidden, self.hidden_bias))
        return F.linear(x, self.readout)


@pytest.mark.parametrize("settings", [{}, dict(hidden=11), dict(num_layers=2), dict(d_k=5)], ids=str)
@pytest.mark.parametrize("num_heads", [1, 3])
def test_all_seeds_at_once_equal_one_model_trained_the_plain_way(num_heads, settings, monkeypatch):
    sizes = {**SMALL, **settings, "lr": 0.02}
    run = train_toy(TASK, num_heads, (2, 5, 11), **sizes)
    generator = torch.Generator().manual_seed(5)
    keys = num_heads * settings.get("d_k", 6 // num_heads)
    layers, hidden = settings.get("num_layers", 1), settings.get("hidden", 0)
    first = model._first_weights(TASK, 6, keys, layers, hidden, [generator])
    plain = Plain({name: w[0].detach() for name, w in first.items()}, num_heads)
    tokens, targets = TASK.batch(2 * 7, generator)
    optimizer = torch.optim.Adam(plain.parameters(), 0.02)
    for now in (slice(0, 7), slice(7, 14)):
        optimizer.zero_grad()
        F.cross_entropy(plain(tokens[now]).view(-1, 3), targets[now].flatten()).backward()
        optimizer.step()
    trained = Plain({name: w[1] for name, w in run.weights.items()}, num_heads)
    for got, expected in zip(trained.parameters(), plain.parameters(), strict=True):
        same(got, expected, 1e-5)
    tokens, targets = TASK.batch(model.HELD_OUT, generator)
    logits = plain(tokens).view(-1, 5, 2, 3)
    same(run.logits(tokens, 5), logits, 1e-4)
    same(run.accuracy[1], (logits.argmax(-1) == targets).float().mean((0, 1)), 2e-3)  # near ties may fall otherwise


def test_a_trained_layer_is_the_course_s_own():
    run = train_toy(TASK, 3, (7, 4), **SMALL)
    tokens, _ = TASK.batch(11, torch.Generator().manual_seed(0))
    x, layer = run.embed(tokens, 4), run.layer(4)
    same(x, torch.stack([run.weights["tokens"][1, row] for row in tokens]) + run.weights["places"][1])
    out, weights = layer(x, need_weights=True)
    expected, maps = by_hand(layer, x, x, x)
    same(weights, maps, 1e-5)
    same(out, expected, 1e-5)
    same(run.logits(tokens, 4), (out @ run.weights["readout"][1].T).view(11, 5, 2, 3), 1e-5)
    assert not layer.training and layer.num_heads == 3


def test_the_number_of_parameters_does_not_depend_on_the_heads():
    runs = [train_toy(TASK, h, (0, 1), **SMALL) for h in (1, 2, 3, 6)]
    assert {run.parameters for run in runs} == {15 * 6 + 5 * 6 + 4 * 6 * 6 + 2 * 3 * 6}
    assert train_toy(TASK, 1, (0,), hidden=7, num_layers=2, **SMALL).parameters == (
        20 * 6 + 8 * 6 * 6 + 7 * 6 + 7 + 6 * 7
    )
    narrow, wide = (train_toy(TASK, 3, (0,), d_k=d_k, **SMALL) for d_k in (1, 5))
    assert wide.parameters - narrow.parameters == 2 * 3 * 4 * 6 and wide.layer(0).d_k == 5 and wide.layer(0).d_v == 2


def test_training_is_deterministic():
    once, again = (train_toy(TASK, 2, (1, 2), **SMALL) for _ in range(2))
    assert all(torch.equal(once.weights[name], again.weights[name]) for name in once.weights)
    assert torch.equal(once.accuracy, again.accuracy)
    assert not torch.equal(once.weights["w_o"][0], once.weights["w_o"][1])


def test_training_under_no_grad_trains():
    with torch.no_grad():
        run = train_toy(TASK, 2, (1,), **SMALL)
    assert torch.equal(run.weights["w_o"], train_toy(TASK, 2, (1,), **SMALL).weights["w_o"])


def test_two_heads_learn_what_one_cannot():
    one, two = (train_toy(relations(2), h, (0, 1)).accuracy.mean() for h in (1, 2))
    assert one < 0.75 and two > 0.95
    assert train_toy(reverse(), 1, (0,)).accuracy.mean() > 0.95


def accuracy_with(run, seed, tokens, maps, x):
    """Of one head whose map and values are given."""
    layer = run.layer(seed)
    out = layer.w_o(maps @ layer.w_v(x)) @ run.weights["readout"][run.seeds.index(seed)].T
    answers = out.unflatten(-1, (run.task.m, -1)).argmax(-1)
    return (answers == run.task.targets(tokens)).float().mean((0, 1))


@pytest.mark.parametrize("task, steps, needed", [(copy_two_sources(), 900, True), (relations(2), 300, False)])
def test_a_single_head_solves_copy_by_writing_the_word_into_the_weight(task, steps, needed):
    """What lesson 6, section 9, says of copy; on two relations the same has no effect."""
    run = train_toy(task, 1, (0, 1, 2), steps=steps)
    tokens, _ = task.batch(400, torch.Generator().manual_seed(3))
    first = task.sources(tokens)[:, 0]
    for seed in run.seeds:
        x = run.embed(tokens, seed)
        maps = run.layer(seed)(x, need_weights=True)[1][:, 0]
        weight, token = maps.gather(2, first[..., None])[..., 0], tokens.gather(1, first)
        by_token = torch.stack([weight[token == t].mean() for t in range(8)])
        assert (by_token.max() - by_token.min() > 0.12) == needed
        if needed and seed == 0:
            assert (by_token.min().item(), by_token.max().item()) == pytest.approx((0.21, 0.75), abs=0.03)
        w, i = run.weights, run.seeds.index(seed)
        no_place = w["tokens"][i][tokens] + w["places"][i].mean(0)
        whole = accuracy_with(run, seed, tokens, maps, x)
        for without in (
            accuracy_with(run, seed, tokens, maps.mean(0, keepdim=True).expand_as(maps), x),
            accuracy_with(run, seed, tokens, maps, no_place),
        ):
            assert (whole.mean() - without.mean() > 0.3) == needed and without.mean() < 0.65
    assert (run.accuracy.mean() > 0.9) == needed


def test_two_heads_find_a_code_for_four_relations():
    run = train_toy(relations(4), 2, lr=0.02, steps=900)
    assert run.accuracy.mean(1).min() > 0.8 and run.accuracy.mean(1).max() < 0.95


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(task="reverse"), "task='reverse' has type str; a Task is needed"),
        (dict(num_heads=5), "num_heads=5 does not divide d_model=6; these do: 1, 2, 3, 6"),
        (dict(num_heads=0), "num_heads=0"),
        (dict(d_model=0), "d_model=0"),
        (dict(steps=0), "steps=0"),
        (dict(batch=1.0), "batch=1.0"),
        (dict(num_layers=0), "num_layers=0"),
        (dict(hidden=-1), "hidden=-1"),
        (dict(lr="0.1"), "lr='0.1' is not a number above 0 and up to 1"),
        (dict(lr=0), "lr=0"),
        (dict(lr=7), "lr=7"),
        (dict(lr=float("inf")), "lr=inf"),
        (dict(lr=float("nan")), "lr=nan"),
        (dict(lr=True), "lr=True"),
        (dict(d_k=0), "d_k=0"),
        (dict(seeds=5), "seeds=5 has type int; whole numbers are needed, as in range(5)"),
        (dict(seeds=()), "seeds=()"),
        (dict(seeds=(1, 1)), "seeds=(1, 1)"),
        (dict(seeds=(-1,)), "seed=-1"),
        (dict(seeds=(0.5,)), "seed=0.5"),
    ],
)
def test_bad_settings_are_named(arguments, says):
    with pytest.raises(ValueError) as error:
        train_toy(**{"task": TASK, "num_heads": 2, **SMALL, **arguments})
    assert str(error.value).startswith(says)


def test_a_seed_that_was_not_trained_is_named():
    run = train_toy(TASK, 2, (3, 8), **SMALL)
    for ask in (run.layer, lambda seed: run.embed(torch.zeros(1, 5, dtype=torch.int64), seed)):
        with pytest.raises(ValueError, match="^seed=0 was not trained; these were: 3, 8$"):
            ask(0)


def test_seeds_may_come_from_numpy():
    """torch's generator takes no numpy number."""
    seeds = model.check_seeds(np.arange(3))
    assert seeds == (0, 1, 2) and all(type(seed) is int for seed in seeds)
