"""What must hold for every size, mask and number: hypothesis looks for a counterexample."""

import pytest
import torch
from helpers import rand, randomised, same
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from mhsa import (
    KVCache,
    MultiHeadAttention,
    MultiHeadAttentionLoop,
    attention,
    causal_mask,
    count_flops,
    count_parameters,
    merge_heads,
    padding_mask,
    split_heads,
)

small = st.integers(1, 5)


@st.composite
def layers(draw, **fixed):
    """A MultiHeadAttention of any sizes with random numbers, biases and groups."""
    h = draw(small)
    g = draw(st.sampled_from([g for g in range(1, h + 1) if h % g == 0]))
    sizes = dict(num_kv_heads=g, d_k=draw(small), d_v=draw(small), bias=draw(st.booleans())) | fixed
    return randomised(MultiHeadAttention(draw(st.integers(1, 11)), h, **sizes))


@st.composite
def masks(draw, B, h, T_q, T_k):
    """None, or a mask of any permitted shape: some rows empty, some full."""
    if draw(st.booleans()):
        return None
    four = [*(draw(st.sampled_from([1, n])) for n in (B, h, T_q)), T_k]
    shape = draw(st.sampled_from([four, four[2:]]))
    return rand(*shape, seed=draw(st.integers(0, 9))) > draw(st.sampled_from([-1.0, 0.0, 1.0]))


def both_paths(m, *args, **options):
    """Outputs of the fused and of the explicit path, and the weights."""
    return m(*args, **options), *m(*args, need_weights=True, **options)


@given(st.data(), layers(), small, small)
def test_permuting_the_tokens_permutes_the_result(data, m, B, T):
    x, p = rand(B, T, m.d_model), data.draw(st.permutations(range(T)))
    plain, moved = both_paths(m, x), both_paths(m, x[:, p])
    for before, after in zip(plain[:2], moved[:2]):
        same(after, before[:, p])
    same(moved[2], plain[2][:, :, p][..., p])


@given(st.data(), layers(), small, small, small)
def test_the_order_of_the_keys_does_not_matter(data, m, B, T_q, T_k):
    x, y, p = rand(B, T_q, m.d_model), rand(B, T_k, m.d_model, seed=1), data.draw(st.permutations(range(T_k)))
    mask = rand(T_q, T_k, seed=2) > 0
    plain, moved = both_paths(m, x, y, mask=mask), both_paths(m, x, y[:, p], mask=mask[:, p])
    same(moved[0], plain[0])
    same(moved[1], plain[1])
    same(moved[2], plain[2][..., p])


@given(st.data(), layers(), small)
def test_relabelling_the_heads_changes_nothing_but_their_order(data, m, T):
    """With groups, whole groups change places: heads that share keys stay neighbours."""
    x, size = rand(2, T, m.d_model), m.num_heads // m.num_kv_heads
    p = data.draw(st.permutations(range(m.num_kv_heads)))
    heads = [size * g + i for g in p for i in range(size)]
    plain = both_paths(m, x)
    for linear, order in ((m.w_q, heads), (m.w_k, p), (m.w_v, p)):
        for parameter in linear.parameters():
            parameter.data = torch.cat([parameter.chunk(len(order))[i] for i in order])
    m.w_o.weight.data = torch.cat([m.w_o.weight.chunk(m.num_heads, 1)[i] for i in heads], 1)
    moved = both_paths(m, x)
    same(moved[0], plain[0])
    same(moved[1], plain[1])
    same(moved[2], plain[2][:, heads])


@given(st.data(), layers(d_v=3), small, st.booleans())
def test_no_token_sees_the_future_and_every_token_sees_the_past(data, m, T, flag):
    """A look-ahead test alone also passes for a layer that sees nothing, or mixes the tokens twice."""
    t = data.draw(st.integers(0, T - 1))
    x = rand(2, T, m.d_model)
    changed = x.clone()
    changed[0, t] += 1 + rand(m.d_model, seed=3)
    options = dict(is_causal=True) if flag else dict(mask=causal_mask(T))
    for before, after in zip(both_paths(m, x, **options)[:2], both_paths(m, changed, **options)[:2]):
        difference = (after - before).abs().amax(-1)
        assert not difference[0, :t].any() and not difference[1].any()
        assert (difference[0, t:] > 0).all()


@given(st.data(), layers(), small, small, small)
def test_sentences_never_mix(data, m, B, T_q, T_k):
    x, y = rand(B, T_q, m.d_model), rand(B, T_k, m.d_model, seed=1)
    mask = data.draw(masks(B, m.num_heads, T_q, T_k))
    for b in range(B):
        own = mask if mask is None or mask.dim() == 2 else mask[b : b + 1] if len(mask) > 1 else mask
        for whole, alone in zip(both_paths(m, x, y, mask=mask), both_paths(m, x[b : b + 1], y[b : b + 1], mask=own)):
            same(whole[b : b + 1], alone)


@given(st.data(), st.integers(1, 11), small, small, small, st.booleans(), small, small, small)
def test_the_loop_and_the_batch_agree_in_output_and_gradients(data, d_model, h, d_k, d_v, bias, B, T_q, T_k):
    loop = randomised(MultiHeadAttentionLoop(d_model, h, d_k=d_k, d_v=d_v, bias=bias))
    m, x, y = MultiHeadAttention.from_loop(loop), rand(B, T_q, d_model), rand(B, T_k, d_model, seed=1)
    mask, factor = data.draw(masks(B, h, T_q, T_k)), rand(B, T_q, d_model, seed=2)
    expected, weights = loop(x, y, mask=mask, need_weights=True)
    (expected * factor).sum().backward()
    for p in loop.parameters():
        p.data = p.grad  # from_loop then stacks gradients as it does weights
    grads = [p.detach() for p in MultiHeadAttention.from_loop(loop).parameters()]
    for need_weights in (False, True):
        m.zero_grad()
        result = m(x, y, mask=mask, need_weights=need_weights)
        out, got = result if need_weights else (result, weights)
        same(out, expected)
        same(got, weights)
        (out * factor).sum().backward()
        for p, grad in zip(m.parameters(), grads, strict=True):
            same(p.grad, grad, 1e-11)


@given(st.data(), layers(), small, st.integers(1, 9), st.booleans())
def test_decoding_in_any_parts_equals_one_pass(data, m, B, T, need_weights):
    cuts = sorted(data.draw(st.sets(st.integers(1, T - 1)))) if T > 1 else []
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, T])]
    x, cache, parts = rand(B, T, m.d_model), KVCache(), []
    lengths = data.draw(st.lists(st.integers(0, T), min_size=B, max_size=B))
    padding = padding_mask(lengths, T)
    for part in x.split(sizes, 1):
        seen = padding[..., : len(cache) + part.shape[1]]
        result = m(part, cache=cache, is_causal=True, mask=seen, need_weights=need_weights)
        parts.append(result[0] if need_weights else result)
    same(torch.cat(parts, 1), m(x, is_causal=True, mask=padding))
    assert len(cache) == T


@given(st.data(), small, small, small, small)
def test_a_result_is_an_average_of_values_or_nothing(data, B, T_q, T_k, d):
    q, k, v = rand(B, T_q, d), rand(B, T_k, d, seed=1), rand(B, T_k, 3, seed=2)
    mask = data.draw(masks(1, B, T_q, T_k))
    mask = mask if mask is None or mask.dim() == 2 else mask[0]
    out, weights = attention(q, k, v, mask)
    allowed = (torch.ones(1, dtype=torch.bool) if mask is None else mask).expand(B, T_q, T_k)
    assert (weights >= 0).all() and not weights[~allowed].any() and weights[allowed].all()
    same(weights.sum(-1), allowed.any(-1))
    low, high = v.amin(1, keepdim=True), v.amax(1, keepdim=True)
    inside = (out >= low - 1e-12) & (out <= high + 1e-12)
    assert (inside.all(-1) | ~allowed.any(-1)).all() and not out[~allowed.any(-1)].any()


@given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 5), small, st.integers(0, 5))
def test_merging_undoes_splitting_for_any_leading_axes(lead, T, h, d):
    x = rand(*lead, T, h * d)
    heads = split_heads(x, h)
    assert heads.shape == (*lead, h, T, d)
    assert torch.equal(merge_heads(heads), x) and torch.equal(split_heads(merge_heads(heads.clone()), h), heads)
    for i in range(h):
        assert torch.equal(heads[..., i, :, :], x[..., i * d : (i + 1) * d])


@given(st.integers(1, 9), st.integers(1, 9))
def test_causal_masks_end_at_the_last_key(T_q, T_k):
    mask = causal_mask(T_q, T_k)
    assert mask.sum(-1).tolist() == [max(0, T_k - T_q + 1 + i) for i in range(T_q)]
    assert all(row == sorted(row, reverse=True) for row in mask.tolist())


@pytest.mark.parametrize("is_causal", [False, True])
@given(layers(), small, small, small)
def test_counts_are_what_is_held_and_computed(is_causal, m, B, T_q, T_k):
    sizes = dict(num_kv_heads=m.num_kv_heads, d_k=m.d_k, d_v=m.d_v)
    n = count_parameters(m.d_model, m.num_heads, **sizes, bias=m.w_o.bias is not None)
    assert n.total == sum(p.numel() for p in m.parameters())
    x, y = rand(B, T_q, m.d_model), rand(B, T_k, m.d_model)
    with FlopCounterMode(display=False) as counter:
        m(x, y, need_weights=True, is_causal=is_causal)
    n = count_flops(B, T_q, m.d_model, m.num_heads, T_k=T_k, **sizes)
    assert n.total - n.softmax == counter.get_total_flops()
