"""Sizes, probabilities, scales and flags: a wrong one is named with what would do, numpy's are taken."""

import numpy as np
import pytest
import torch
from helpers import first, message, rand, refused

from mhsa import (
    MultiHeadAttention,
    MultiHeadAttentionLoop,
    SingleHeadAttention,
    attention,
    causal_mask,
    count_flops,
    count_memory,
    count_parameters,
    padding_mask,
    split_heads,
    trace_shapes,
)

pytestmark = pytest.mark.usefixtures("as_a_user")
B, T, S, D, H = 2, 5, 7, 12, 4
SIZES = ("d_model", "num_heads", "num_kv_heads", "d_k", "d_v", "key_dim", "value_dim")
x, y = rand(B, T, D, dtype=torch.float32), rand(B, S, D, seed=1, dtype=torch.float32)
q, k, v = rand(B, T, 11), rand(B, S, 11, seed=1), rand(B, S, 13, seed=2)
layer = MultiHeadAttention(D, H)
BAD_SIZES = [
    0,
    -7,
    3.0,
    True,
    "3",
    None,
    [3],
    torch.tensor(3),
    np.bool_(True),
    np.float64(4),
    np.int64(-7),
    np.array(3),
]


@pytest.mark.parametrize("value", BAD_SIZES, ids=repr)
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name, value):
    """3.0 would fail much later, True would pass as 1, and 0 as "not given"."""
    if value is None and name not in ("d_model", "num_heads"):
        return  # None means the default
    expected = f"{name}={value!r} is not a whole number (int) of at least 1"
    sizes = {"d_model": 12, "num_heads": 4, name: value}
    assert message(MultiHeadAttention, **sizes) == message(count_parameters, **sizes) == expected
    if name in ("d_model", "num_heads", "d_k", "d_v"):
        assert message(MultiHeadAttentionLoop, **sizes) == expected
    if name in ("d_model", "d_k", "d_v"):
        assert message(SingleHeadAttention, **{"d_model": 12, name: value}) == expected


@pytest.mark.parametrize("whole", [np.int32, np.int64, np.uint8, np.int8], ids=lambda t: t.__name__)
def test_sizes_may_come_from_numpy(whole):
    """A sweep over np.arange gives such. Kept as they are, 8-bit numbers would overflow in the first product."""
    given = dict(num_heads=6, num_kv_heads=3, d_k=11, d_v=13, key_dim=17, value_dim=19)
    cast = {name: whole(n) for name, n in given.items()}
    m = MultiHeadAttention(whole(30), **cast)
    assert [getattr(m, name) for name in given] == [*given.values()]
    assert all(type(value) is int for value in (m.d_model, *(getattr(m, name) for name in given)))
    assert m(rand(B, T, 30).float(), rand(B, S, 17).float(), rand(B, S, 19).float()).shape == (B, T, 30)
    loop = MultiHeadAttentionLoop(whole(30), whole(6), d_v=whole(7))
    assert loop.d_k == 5 and loop.w_o.in_features == 42 and SingleHeadAttention(whole(30), whole(11)).d_v == 11
    assert count_parameters(whole(30), **cast) == count_parameters(30, **given)
    shared = dict(num_heads=6, d_k=11)
    for count in (count_flops, count_memory):
        large, small = (count(w(99), w(101), w(30), **{n: w(v) for n, v in shared.items()}) for w in (whole, int))
        assert large == small and type(large.total) is int
    assert torch.equal(causal_mask(whole(3), whole(5)), causal_mask(3, 5))
    assert torch.equal(padding_mask([whole(2), whole(0)], whole(3)), padding_mask([2, 0], 3))
    assert torch.equal(padding_mask(list(np.array([2, 0]).astype(whole)), 3), padding_mask([2, 0], 3))
    assert torch.equal(split_heads(x, whole(3)), split_heads(x, 3))
    traced = trace_shapes(whole(B), whole(T), whole(30), whole(6))
    assert traced == trace_shapes(B, T, 30, 6) and traced[3].where(whole(1), whole(4), whole(29)) == ((1, 5, 4, 4), 299)


def test_probabilities_and_scales_may_come_from_numpy():
    m = MultiHeadAttention(D, H, dropout=np.float32(0.25))
    assert m.dropout == 0.25 and type(m.dropout) is float and first(m(x, need_weights=True)).shape == x.shape
    for got, expected in zip(attention(q, k, v, scale=np.float32(0.5)), attention(q, k, v, scale=0.5), strict=True):
        assert torch.equal(got, expected) and got.dtype == torch.float64


@pytest.mark.parametrize(
    "call",
    [
        MultiHeadAttention,
        MultiHeadAttentionLoop,
        count_parameters,
        lambda d, h: count_flops(B, T, d, h),
        lambda d, h: count_memory(B, T, d, h),
        lambda d, h: trace_shapes(B, T, d, h),
    ],
)
@pytest.mark.parametrize(
    "d_model, h, divisors",
    [
        (12, 5, "1, 2, 3, 4, 6, 12"),
        (49, 2, "1, 7, 49"),
        (1600, 48, "20, 25, 32"),
        (4, 12, "1, 2, 4"),
        (13, 6, "1, 13"),
        (10**12 + 39, 2, "1, 1000000000039"),
        (10**30, 7, "1, 2, 4, 5, 8, 10"),
    ],
)
def test_heads_that_do_not_divide_the_width(call, d_model, h, divisors):
    assert f"num_heads={h} does not divide d_model={d_model}; these do: 1" in message(call, d_model, h)
    assert divisors in message(call, d_model, h)


def test_heads_that_do_not_divide_something_else():
    refused(lambda: split_heads(x, 5), "num_heads=5", "width=12", "1, 2, 3, 4, 6, 12")
    refused(lambda: MultiHeadAttention(12, 6, num_kv_heads=4), "num_kv_heads=4", "num_heads=6", "1, 2, 3, 6")
    refused(lambda: count_parameters(12, 4, num_kv_heads=8), "num_kv_heads=8", "num_heads=4", "1, 2, 4")


@pytest.mark.parametrize("value", [1, 1.5, -0.1, float("nan"), "0.1", True, None, np.bool_(False)], ids=str)
def test_dropout(value):
    expected = f"={value!r} is not a probability from 0 up to, but not including, 1"
    assert message(MultiHeadAttention, D, H, dropout=value) == "dropout" + expected
    assert message(attention, q, k, v, dropout_p=value) == "dropout_p" + expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", [1], 1j, torch.ones(3), True], ids=str)
def test_scale(value):
    refused(lambda: attention(q, k, v, scale=value), "scale", "finite", "float")


@pytest.mark.parametrize("value", [None, 1, "no", causal_mask(T)], ids=str)
def test_flags(value):
    """ "no" is true, and a mask may land in is_causal."""
    for make in (MultiHeadAttention, MultiHeadAttentionLoop):
        assert message(make, D, H, bias=value).endswith(" is neither True nor False")
    assert message(layer, x, is_causal=value).startswith("is_causal=")
    for m in (layer, MultiHeadAttentionLoop(D, H), SingleHeadAttention(D)):
        assert message(m, x, need_weights=value).startswith("need_weights=")
    assert message(SingleHeadAttention, D, bias=value).startswith("bias=")
