"""KVCache: decoding with it equals one causal pass; it holds no more than it must; a refused call leaves it alone."""

from copy import deepcopy

import pytest
import torch
from helpers import each_path, first, rand, randomised, same

from mhsa import KVCache, MultiHeadAttention, causal_mask, padding_mask

B, T, D, H = 2, 7, 33, 3


def layer(**options):
    return randomised(MultiHeadAttention(D, H, **options))


@pytest.mark.parametrize("options", [dict(bias=True), dict(num_kv_heads=1, d_k=5, d_v=13)], ids=["full", "grouped"])
@pytest.mark.parametrize("sizes", [[1] * 7, [3, 4], [5, 1, 1]], ids=str)
@each_path
def test_decoding_in_parts_equals_one_pass(options, sizes, need_weights):
    m, x, cache = layer(**options), rand(B, T, D), KVCache()
    parts = [m(part, is_causal=True, cache=cache, need_weights=need_weights) for part in x.split(sizes, 1)]
    out, weights = m(x, is_causal=True, need_weights=True)
    same(torch.cat([first(part) for part in parts], 1), out)
    if need_weights:
        assert parts[0][1].shape == (B, H, sizes[0], sizes[0])
        same(parts[-1][1], weights[:, :, -sizes[-1] :])


@each_path
def test_a_mask_covers_the_cached_keys_too(need_weights):
    m, x, padding = layer(), rand(B, T, D), padding_mask([4, 7], T)
    whole = m(x, mask=padding, is_causal=True)
    cache = KVCache()
    m(x[:, :5], cache=cache, mask=padding[..., :5], is_causal=True)
    same(first(m(x[:, 5:], cache=cache, mask=padding, is_causal=True, need_weights=need_weights)), whole[:, 5:])


def test_without_the_flag_a_new_token_sees_all_of_its_own_chunk():
    m, x, cache = layer(), rand(B, T, D), KVCache()
    m(x[:, :4], cache=cache)
    same(m(x[:, 4:], cache=cache), m(x[:, 4:], x))


def test_gradients_reach_through_the_cache():
    """Detached keys would train the last token only."""
    m, x, cache = layer(), rand(B, T, D).requires_grad_(), KVCache()
    parts = [m(part, cache=cache, is_causal=True) for part in x.split(3, 1)]
    (got,) = torch.autograd.grad(torch.cat(parts, 1).square().sum(), x)
    (expected,) = torch.autograd.grad(m(x, is_causal=True).square().sum(), x)
    same(got, expected, 1e-11)


def test_length_and_bytes():
    m, cache = MultiHeadAttention(D, 6, num_kv_heads=2, d_k=11, d_v=13), KVCache()
    assert len(cache) == 0 and cache.nbytes == 0
    for n in (3, 1):
        m(rand(B, n, D, dtype=torch.float32), cache=cache)
    assert len(cache) == 4 and cache.nbytes == 4 * B * 4 * 2 * (11 + 13)
    k, v = cache.append(torch.ones(B, 2, 5, 11), torch.ones(B, 2, 5, 13))
    assert k.shape == (B, 2, 9, 11) and v.shape == (B, 2, 9, 13) and (k[:, :, 4:] == 1).all() and not (k == 1).all()


@torch.no_grad()
def test_a_copy_goes_its_own_way():
    """As in a search that continues one beginning in two ways."""
    m, x, cache = layer(), rand(B, T, D), KVCache()
    m(x[:, :4], cache=cache)
    other = deepcopy(cache)
    first_end, second_end = x[:, 4:5], x[:, 6:7]
    same(m(first_end, cache=cache), m(first_end, torch.cat([x[:, :4], first_end], 1)))
    same(m(second_end, cache=other), m(second_end, torch.cat([x[:, :4], second_end], 1)))
    assert len(cache) == len(other) == 5


@pytest.mark.parametrize(
    "refused",
    [
        lambda m, x, cache: m(x[:1], cache=cache),
        lambda m, x, cache: m(x.float(), cache=cache),
        lambda m, x, cache: m(x, cache=cache, mask=causal_mask(T)),
        lambda m, x, cache: m(x, x, cache=cache),
        lambda m, x, cache: cache.append(rand(B, H, 1, 11), rand(B, H, 1, 5)),
        lambda m, x, cache: cache.append(rand(B, H, 1, 11), rand(B, H, 2, 11)),
    ],
)
def test_a_refused_call_leaves_the_cache_alone(refused, as_a_user):
    m, x, cache = layer(), rand(B, T, D), KVCache()
    m(x, cache=cache)
    k, v = cache.k, cache.v
    with pytest.raises(ValueError):
        refused(m, x, cache)
    assert cache.k is k and cache.v is v and len(cache) == T
