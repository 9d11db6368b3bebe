"""A wrong call ends in a ValueError that names the argument, the value it got and what would do."""

import re

import numpy as np
import pytest
import torch
from helpers import each_path, first, rand
from torch import nn

from mhsa import (
    KVCache,
    MultiHeadAttention,
    MultiHeadAttentionLoop,
    SingleHeadAttention,
    attention,
    causal_mask,
    count_flops,
    count_memory,
    count_parameters,
    merge_heads,
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
each_layer = pytest.mark.parametrize(
    "m", [layer, MultiHeadAttentionLoop(D, H), SingleHeadAttention(D)], ids=lambda m: type(m).__name__
)


def message(call, *args, **options):
    """What the learner reads; torch's and Python's own errors (RuntimeError, TypeError) fail the test."""
    with pytest.raises(ValueError) as error:
        call(*args, **options)
    return str(error.value)


def refused(call, *words):
    said = message(call)
    for word in map(str, words):  # whole words and numbers: 5 is not in 15 or 0.5
        assert re.search(rf"(?<![\w.]){re.escape(word)}(?!\w|\.\d)", said), f"{word!r} is missing: {said}"


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


@pytest.mark.parametrize("value", [None, "bert", nn.Linear(3, 5), layer, nn.MultiheadAttention, MultiHeadAttentionLoop])
def test_conversions_want_their_own_class(value):
    refused(lambda: MultiHeadAttention.from_torch(value), "theirs", type(value).__name__, "MultiheadAttention")
    refused(lambda: MultiHeadAttention.from_loop(value), "loop", type(value).__name__, "MultiHeadAttentionLoop")


@pytest.mark.parametrize(
    "value, what",
    [
        (None, "=None has type NoneType; a Tensor is needed"),
        ("her keys", "='her keys' has type str; a Tensor is needed"),
        ([[0.5]], "=[[0.5]] has type list; a Tensor is needed"),
        (np.zeros(3), "=array([0., 0., 0.]) has type ndarray; a Tensor is needed"),
        (torch.ones(B, T, D).long(), " holds torch.int64; a floating type is needed (.float() converts)"),
        (torch.ones(B, T, D) + 1j, " holds torch.complex64; a floating type is needed (.float() converts)"),
        (causal_mask(5), " holds torch.bool; a floating type is needed (a mask is passed by name: mask=...)"),
    ],
    ids=["None", "str", "list", "numpy", "int", "complex", "mask"],
)
def test_what_is_no_tensor_of_numbers(value, what):
    for m in (layer, MultiHeadAttentionLoop(D, H), SingleHeadAttention(D)):
        assert message(m, value) == "query" + what
        if value is not None:
            assert message(m, x, value) == "key" + what
            assert message(m, x, y, value) == "value" + what
    assert message(attention, value, k, v) == "q" + what
    assert message(attention, q, k, value) == "v" + what
    assert message(KVCache().append, value, v) == "k" + what


@pytest.mark.parametrize("value", [None, [[1, 2]], 3, "x"], ids=str)
def test_splitting_and_merging_want_tensors(value):
    for call in (lambda: split_heads(value, 2), lambda: merge_heads(value)):
        refused(call, f"x={value!r}", type(value).__name__, "Tensor")
    refused(lambda: split_heads(torch.ones(6), 3), "x", (6,), "(..., T, h·d)")
    refused(lambda: merge_heads(torch.ones(2, 6)), "x", (2, 6), "(..., h, T, d)")


@each_layer
@pytest.mark.parametrize(
    "inputs, words",
    [
        ([x[0]], ["query", (T, D), "(B, T, 12)", "batch first"]),
        ([x[None]], ["query", (1, B, T, D)]),
        ([x[..., :11]], ["query", 11, 12]),
        ([x, y[..., :11]], ["key", 11, 12]),
        ([x, y, y[..., :11]], ["value", 11, 12]),
        ([x, y[0]], ["key", (S, D)]),
        ([x, y[:1]], ["key", 1, "query", 2]),
        ([y.transpose(0, 1), x], ["key", 2, "query", 7]),
        ([x, y, y[:, :6]], ["value", (2, 6), "key", (2, 7)]),
        ([x, y, y[:1]], ["value", (1, 7), "key", (2, 7)]),
        ([x.double()], ["query", "torch.float64", "torch.float32"]),
        ([x.half()], ["query", "torch.float16"]),
        ([x, y.double()], ["key", "torch.float64", "torch.float32"]),
        ([x, y, y.half()], ["value", "torch.float16"]),
        ([x.to("meta")], ["query", "meta", "weights", "cpu"]),
        ([x, y.to("meta")], ["key", "meta", "query", "cpu"]),
        ([x, y, y.to("meta")], ["value", "meta", "cpu"]),
    ],
)
def test_inputs_that_do_not_fit(m, inputs, words):
    refused(lambda: m(*inputs), *words)


@pytest.mark.parametrize(
    "inputs, words",
    [
        ([q, k[..., :9], v], ["d_k", 11, 9]),
        ([q, k, v[:, :6]], ["T_k", 7, 6]),
        ([k, q, v], ["T_k", 5, 7]),
        ([q, k[:1], v], ["k", (1, 7, 11), "q", (2, 5, 11)]),
        ([q, k, v[0]], ["v", (7, 13), "q", (2, 5, 11)]),
        ([q[0, 0], k, v], ["q", (11,), "(..., T, d)"]),
        ([q[..., :0], k[..., :0], v], ["q", (2, 5, 0)]),
        ([q.float(), k, v], ["k", "torch.float64", "q", "torch.float32"]),
        ([q, k, v.half()], ["v", "torch.float16"]),
        ([q, k.to("meta"), v], ["k", "meta", "q", "cpu"]),
    ],
)
def test_attention_inputs_that_do_not_fit(inputs, words):
    refused(lambda: attention(*inputs), *words)


MASK_TYPES = [
    (torch.ones(T, T), ["torch.float32", "torch.bool", "attend"]),
    (torch.ones(T, T).long(), ["torch.int64"]),
    (torch.ones(T, T).byte(), ["torch.uint8", "mask == 0"]),
    ([[True]], ["list", "Tensor"]),
    ("causal", ["'causal'", "Tensor"]),
    (True, [True, "bool", "Tensor"]),
    (3, ["int", "Tensor"]),
    (causal_mask(T).numpy(), ["ndarray"]),
    (causal_mask(T, device="meta"), ["meta", "cpu"]),
]
MASK_SHAPES = [
    (T, T + 1),
    (T - 1, T),
    (B, T),
    (T,),
    (),
    (B, T, T),
    (H, T, T),
    (3, 1, T, T),
    (B, 3, T, T),
    (1, 1, B, 1, T, T),
]


@each_layer
@each_path
@pytest.mark.parametrize("mask, words", MASK_TYPES, ids=lambda value: "")
def test_masks_of_the_wrong_type(m, mask, words, need_weights):
    """A float mask is added to the scores, and of a 0/1 mask nobody knows which of the two is hidden."""
    refused(lambda: m(x, mask=mask, need_weights=need_weights), "mask", *words)
    refused(lambda: attention(q, q, q, mask), "mask", *words)


@each_layer
@each_path
@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
def test_masks_of_the_wrong_shape(m, shape, need_weights):
    """A 3-D mask could be one a sentence or one a head; a (B, T_k) mask would pass for (T_q, T_k) where B = T_q."""
    mask = torch.ones(shape).bool()
    refused(lambda: m(x, mask=mask, need_weights=need_weights), "mask", shape, "(T_q, T_k)")


@each_layer
@each_path
@pytest.mark.parametrize("mask", [padding_mask([5, 3], T).mT, torch.ones(T, 1).bool(), torch.ones(1, 1, 1, 1).bool()])
def test_a_mask_over_the_queries_is_refused(m, mask, need_weights):
    """It broadcasts: real tokens would read the filling, and the filling nothing."""
    refused(
        lambda: m(x, mask=mask, need_weights=need_weights), "mask", tuple(mask.shape), "5 keys", "queries", "mask.mT"
    )


@each_layer
@each_path
def test_a_mask_over_a_single_key_is_none_of_that(m, need_weights):
    shut = torch.zeros(T, 1).bool()
    out = first(m(x, y[:, :1], mask=shut, need_weights=need_weights))
    assert not out.any() and first(m(x, y[:, :0], mask=shut[:, :0], need_weights=need_weights)).shape == out.shape


def test_a_token_after_a_cache_has_many_keys():
    cache = filled()
    refused(lambda: layer(x[:, :1], cache=cache, mask=torch.ones(1, 1).bool()), "mask", (1, 1), "6 keys")


def test_two_axes_are_always_queries_and_keys():
    """A tokenizer's (B, T) fits by chance where B = T, as the docstring says; two new axes make it a padding mask."""
    square, kept = torch.cat([x, x, x[:1]])[:T], torch.arange(T) < torch.tensor([[5], [3], [1], [4], [2]])
    assert square.shape[:2] == kept.shape == (T, T) and "mask[:, None, None]" in MultiHeadAttention.forward.__doc__
    as_rows, as_padding = (layer(square, mask=mask) for mask in (kept, kept[:, None, None]))
    assert torch.equal(as_padding, layer(square, mask=padding_mask([5, 3, 1, 4, 2], T)))
    assert torch.equal(as_rows, layer(square, mask=kept.expand(T, 1, T, T))) and not torch.allclose(as_rows, as_padding)


def test_the_message_tells_how_to_add_the_missing_axis():
    per_sentence, per_head = torch.ones(B, T, T).bool(), torch.ones(H, T, T).bool()
    said = message(layer, x, mask=per_sentence)
    assert "mask[:, None] if it is (B, T_q, T_k)" in said and "mask[None] if it is (h, T_q, T_k)" in said
    assert layer(x, mask=per_sentence[:, None]).shape == layer(x, mask=per_head[None]).shape == x.shape


def test_an_attention_mask_may_not_enlarge_the_scores():
    refused(lambda: attention(q, k, v, torch.ones(3, B, T, S).bool()), "mask", (3, B, T, S), (B, T, S))
    refused(lambda: attention(q, k, v, torch.ones(S, T).bool()), "mask", (S, T), "(T_q, T_k)", (T, S))
    refused(lambda: attention(q[:1], k[:1], v[:1], torch.ones(B, T, S).bool()), "mask", (1, T, S))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: causal_mask(0), ["T_q=0"]),
        (lambda: causal_mask(5, -1), ["T_k=-1"]),
        (lambda: causal_mask(5.0), ["T_q=5.0"]),
        (lambda: causal_mask(5, "cuda"), ["T_k='cuda'"]),
        (lambda: padding_mask([3, 6], 5), ["lengths[1]=6", "T=5"]),
        (lambda: padding_mask([-1], 5), ["lengths[0]=-1"]),
        (lambda: padding_mask([2.5], 5), ["lengths[0]=2.5"]),
        (lambda: padding_mask([3, True], 5), ["lengths[1]=True"]),
        (lambda: padding_mask([3, None], 5), ["lengths[1]=None"]),
        (lambda: padding_mask("35", 5), ["lengths[0]='3'"]),
        (lambda: padding_mask([[3], [2, 1]], 5), ["lengths[0]=[3]"]),
        (lambda: padding_mask([], 5), ["lengths=[]"]),
        (lambda: padding_mask(torch.tensor([2.0]), 5), ["lengths[0]=2.0"]),
        (lambda: padding_mask({3}, 5), ["lengths={3}"]),
        (lambda: padding_mask(torch.tensor(3), 5), ["lengths=3"]),
        (lambda: padding_mask(None, 5), ["lengths=None"]),
        (lambda: padding_mask([3], 0), ["T=0"]),
        (lambda: padding_mask(5, [3]), ["T=[3]"]),
    ],
)
def test_mask_makers(call, words):
    refused(call, *words)


def filled():
    cache = KVCache()
    layer(x, cache=cache)
    return cache


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: layer(x, x, cache=KVCache()), ["key", "value", "cache"]),
        (lambda: layer(x, value=x, cache=KVCache()), ["key", "value", "cache"]),
        *[
            (lambda value=value: layer(x, cache=value), ["cache", type(value).__name__, "KVCache"])
            for value in (True, [], {}, KVCache, (None, None))
        ],
        (lambda: layer(x[:1], cache=filled()), ["B 1", "B 2", "KVCache()"]),
        (lambda: MultiHeadAttention(D, 2)(x, cache=filled()), ["num_kv_heads 2", "num_kv_heads 4", "KVCache()"]),
        (lambda: filled().append(*[rand(B, H, 1, 5)] * 2), ["k", "width 5", "width 3", "KVCache()"]),
        (lambda: layer(x, cache=filled(), mask=causal_mask(T)), ["mask", (5, 5), (2, 4, 5, 10)]),
        (lambda: KVCache().append(q, v), ["k", (2, 5, 11), "(B, num_kv_heads, T, d)"]),
        (lambda: KVCache().append(q[None], v[None, :, :4]), ["v", (1, 2, 4, 13)]),
        (lambda: KVCache().append(q[None], q[None].float()), ["v", "torch.float32", "k", "torch.float64"]),
        (lambda: KVCache().append(q[None], q[None].to("meta")), ["v", "meta", "k", "cpu"]),
        (lambda: filled().append(*[rand(B, H, 1, 3)] * 2), ["dtype torch.float64", "dtype torch.float32", "autocast"]),
        (lambda: filled().append(*[rand(B, H, 1, 3, dtype=torch.float32).to("meta")] * 2), ["meta", "device cpu"]),
    ],
)
def test_caches(call, words):
    refused(call, *words)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: count_flops(0, 5, 12, 4), ["B=0"]),
        (lambda: count_flops(2, 5.5, 12, 4), ["T=5.5"]),
        (lambda: count_flops(2, 5, 12, 4, T_k=0), ["T_k=0"]),
        (lambda: count_flops(2, 5, 12, "4"), ["num_heads='4'"]),
        (lambda: count_memory(True, 5, 12, 4), ["B=True"]),
        (lambda: count_memory(2, None, 12, 4), ["T=None"]),
        (lambda: count_memory(2, 5, 12, 4, dtype="float32"), ["dtype='float32'", "torch.dtype"]),
        (lambda: count_memory(2, 5, 12, 4, dtype=4), ["dtype=4", "torch.float32"]),
        (lambda: count_parameters(12, 4, bias="no"), ["bias='no'", "True", "False"]),
        (lambda: count_parameters(12, 4, bias=None), ["bias=None"]),
        (lambda: trace_shapes(0, 5, 12, 4), ["batch=0"]),
        (lambda: trace_shapes(2, "5", 12, 4), ["tokens='5'"]),
        (lambda: trace_shapes(2, 5, 12, None), ["num_heads=None"]),
        (lambda: trace_shapes(2, 5, 12, 4)[3].where(0, 0, 12), ["(b, t, c)", (0, 0, 12), (2, 5, 12)]),
        (lambda: trace_shapes(2, 5, 12, 4)[3].where(0, 0, -1), ["c=-1"]),
        (lambda: trace_shapes(2, 5, 12, 4)[3].where(0, 1.5, 0), ["t=1.5"]),
        (lambda: trace_shapes(2, 5, 12, 4)[3].where(None, 0, 0), ["b=None"]),
    ],
)
def test_counts_and_the_trace(call, words):
    refused(call, *words)


def test_a_large_value_does_not_hide_its_message():
    assert len(message(causal_mask, torch.ones(99, 99))) < 120
    assert len(message(attention, torch.ones(99, 99).numpy(), k, v)) < 120
