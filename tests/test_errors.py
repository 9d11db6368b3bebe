"""A wrong call ends in a ValueError that names the argument, the value it got and what would do."""

import numpy as np
import pytest
import torch
from helpers import message, rand, refused
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
    split_heads,
    trace_shapes,
)

pytestmark = pytest.mark.usefixtures("as_a_user")
B, T, S, D, H = 2, 5, 7, 12, 4
x, y = rand(B, T, D, dtype=torch.float32), rand(B, S, D, seed=1, dtype=torch.float32)
q, k, v = rand(B, T, 11), rand(B, S, 11, seed=1), rand(B, S, 13, seed=2)
layer = MultiHeadAttention(D, H)
each_layer = pytest.mark.parametrize(
    "m", [layer, MultiHeadAttentionLoop(D, H), SingleHeadAttention(D)], ids=lambda m: type(m).__name__
)


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
