"""mean_pool_kv_heads: fewer heads of keys and values, each the mean of those it replaces; and further training."""

import pytest
import torch
from helpers import rand, randomised, same

from mhsa import MultiHeadAttention
from mhsa.grouped import mean_pool_kv_heads
from mhsa.toys import relations
from mhsa.train import accuracy, train_further, train_toy

SIZES = dict(d_k=5, d_v=3, key_dim=11, value_dim=13, bias=True, dropout=0.25)


def test_each_new_head_is_the_mean_of_its_neighbours():
    layer = randomised(MultiHeadAttention(7, 6, **SIZES)).eval()
    grouped = mean_pool_kv_heads(layer, 2)
    for name, d in (("w_k", 5), ("w_v", 3)):
        for kind in ("weight", "bias"):
            old, new = (getattr(getattr(m, name), kind).split(d) for m in (layer, grouped))
            assert len(new) == 2
            same(new[0], (old[0] + old[1] + old[2]) / 3)
            same(new[1], (old[3] + old[4] + old[5]) / 3)
    same(grouped.w_q.weight, layer.w_q.weight)
    same(grouped.w_o.bias, layer.w_o.bias)
    assert (grouped.num_heads, grouped.num_kv_heads, grouped.dropout, grouped.training) == (6, 2, 0.25, False)
    assert grouped.w_k.weight.dtype == torch.float64


def test_a_layer_whose_neighbours_are_alike_keeps_its_output():
    layer = randomised(MultiHeadAttention(7, 6, **SIZES))
    for linear, d in ((layer.w_k, 5), (layer.w_v, 3)):
        for p in linear.parameters():
            heads = p.data.unflatten(0, (2, 3, d))
            p.data = heads[:, :1].expand_as(heads).flatten(0, 2).clone()
    query, key, value = rand(2, 3, 7), rand(2, 5, 11), rand(2, 5, 13)
    same(mean_pool_kv_heads(layer.eval(), 2)(query, key, value), layer(query, key, value))


def test_pooling_twice_is_pooling_once_and_the_layer_stays():
    layer = randomised(MultiHeadAttention(8, 4))
    before = {name: p.clone() for name, p in layer.state_dict().items()}
    same(mean_pool_kv_heads(mean_pool_kv_heads(layer, 2), 1).w_v.weight, mean_pool_kv_heads(layer, 1).w_v.weight)
    same(mean_pool_kv_heads(layer, 4).w_k.weight, layer.w_k.weight)
    assert all(torch.equal(p, before[name]) for name, p in layer.state_dict().items())


def test_frozen_weights_stay_frozen_and_no_random_number_is_drawn():
    layer = MultiHeadAttention(8, 4)
    layer.w_k.requires_grad_(False)
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    grouped = mean_pool_kv_heads(layer, 2)
    assert torch.equal(torch.rand(5), expected)
    assert {name for name, p in grouped.named_parameters() if not p.requires_grad} == {"w_k.weight"}
    assert (grouped.w_k.out_features, grouped.w_v.weight.shape) == (4, (4, 8)) and layer.w_k.weight.shape == (8, 8)


def test_what_does_not_fit_is_refused():
    layer = MultiHeadAttention(8, 4, num_kv_heads=2)
    with pytest.raises(ValueError, match=r"num_kv_heads=4 does not divide layer.num_kv_heads=2; these do: 1, 2"):
        mean_pool_kv_heads(layer, 4)
    with pytest.raises(ValueError, match="num_kv_heads=0 is not a whole number"):
        mean_pool_kv_heads(layer, 0)
    with pytest.raises(ValueError, match="layer=3 has type int"):
        mean_pool_kv_heads(3, 1)


def test_a_pooled_layer_is_worse_and_learns_again_while_the_rest_stays():
    run = train_toy(relations(m=2), num_heads=2, seeds=[5, 3], steps=300)
    before = {name: w.clone() for name, w in run.weights.items()}
    for seed in (3, 5):
        assert abs(accuracy(run, run.layer(seed), seed) - run.accuracy[run.seeds.index(seed)].mean()) < 0.05
        pooled = mean_pool_kv_heads(run.layer(seed), 1)
        worse = accuracy(run, pooled, seed)
        assert worse < 0.8 and accuracy(run, train_further(run, pooled, seed, steps=60), seed) > worse + 0.1
    assert accuracy(run, run.layer(3), 5) < 0.8  # another seed's layer, another language
    assert all(torch.equal(w, before[name]) for name, w in run.weights.items())
