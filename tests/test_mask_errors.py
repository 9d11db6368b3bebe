"""A mask that could mean something else is refused, in words that say what it would do."""

import pytest
import torch
from helpers import each_path, first, message, rand, refused

from mhsa import (
    KVCache,
    MultiHeadAttention,
    MultiHeadAttentionLoop,
    SingleHeadAttention,
    attention,
    causal_mask,
    padding_mask,
)

pytestmark = pytest.mark.usefixtures("as_a_user")
B, T, S, D, H = 2, 5, 7, 12, 4
x, y = rand(B, T, D, dtype=torch.float32), rand(B, S, D, seed=1, dtype=torch.float32)
q, k, v = rand(B, T, 11), rand(B, S, 11, seed=1), rand(B, S, 13, seed=2)
layer = MultiHeadAttention(D, H)
each_layer = pytest.mark.parametrize(
    "m", [layer, MultiHeadAttentionLoop(D, H), SingleHeadAttention(D)], ids=lambda m: type(m).__name__
)
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
