"""What is right in the quiz of lesson 5."""

import torch
from helpers import rand
from torch import nn
from torch.nn import functional as F

from mhsa import KVCache, MultiHeadAttention, attention, causal_mask, padding_mask
from quiz_keys.common import close, seeded


def first_token_in_torch():
    x, mha = rand(1, 4, 6), seeded(nn.MultiheadAttention, 6, 3, batch_first=True)
    read = (mha(x, x, x, attn_mask=causal_mask(4))[1][0, 0] > 0).tolist()
    return {
        "Itself alone": read == [True, False, False, False],
        "three later": read == [False, True, True, True],
        "All four": all(read),
        "Nothing": not any(read),
    }


def leak():
    zeros, values = torch.zeros(1, 2, 2).double(), torch.eye(2).double()[None]
    mask = torch.tril(torch.ones(2, 2)).double()
    return F.scaled_dot_product_attention(zeros, zeros, values, attn_mask=mask)[0, 0, 1].item()


def finite_gradients():
    mask = torch.tensor([[False, False, False], [True, True, False], [True, True, True]])

    def filled(number, q, k, v):
        return (q @ k.mT).masked_fill(~mask, number).softmax(-1) @ v

    ways = {
        "Scores filled with −∞": lambda *qkv: filled(float("-inf"), *qkv),
        "−10⁹": lambda *qkv: filled(-1e9, *qkv),
        "nan_to_num": lambda *qkv: filled(float("-inf"), *qkv).nan_to_num(),
        "attention()": lambda *qkv: attention(*qkv, mask)[0],
    }
    result = {}
    for words, attend in ways.items():
        q, k, v = (x.requires_grad_() for x in rand(3, 1, 3, 2))
        attend(q, k, v)[:, 1:].sum().backward()
        result[words] = bool(v.grad.isfinite().all())
    return result


def keys_with_a_cache():
    cache, mha = KVCache(), seeded(MultiHeadAttention, 6, 3)
    mha(rand(1, 5, 6), cache=cache)
    _, weights = mha(rand(1, 3, 6), is_causal=True, need_weights=True, cache=cache)
    return (weights[0, 0, 0] > 0).sum().item()


def must_be_equal():
    """Each in turn unequal, the others equal: is there an error?"""

    def fails(call, *inputs):
        try:
            call(*inputs)
        except Exception:  # ValueError, or the shape check of the test run
            return True
        return False

    x, source = rand(1, 4, 6), rand(1, 4, 6, seed=1)
    mha, wide = MultiHeadAttention(6, 2).double(), MultiHeadAttention(6, 2, key_dim=11).double()
    assert not fails(mha, x, source, source)
    return {
        "tokens of the two sentences": fails(mha, x, rand(1, 7, 6)),
        "embeddings": fails(wide, x, rand(1, 4, 11)),
        "of a query and of a key": fails(attention, x, rand(1, 4, 5), source),
        "of a key and of a value": fails(attention, x, source, rand(1, 4, 5)),
        "keys and of values": fails(mha, x, source, rand(1, 3, 6)),
    }


def padded():
    x, mha, mask = rand(2, 4, 6), seeded(MultiHeadAttention, 6, 3), padding_mask([4, 2], 4)
    out, weights = mha(x, mask=mask, need_weights=True)
    x[1, 2:] += 1
    again = mha(x, mask=mask)
    return {
        "No row reads": not weights[1, :, :, 2:].any(),
        "are zero": not out[1, 2:].any(),
        "sums to 1": close(weights[1].sum(-1), torch.ones(3, 4).double()),
        "mean of the output": close(out[1].mean(0), again[1].mean(0)),
    }


def not_batch_first():
    x = rand(2, 4, 6)
    shape = str(tuple(seeded(nn.MultiheadAttention, 6, 3)(x, x, x)[1].shape))
    return {words: words == shape for words in ("(2, 4, 4)", "(2, 3, 4, 4)", "(4, 2, 2)")} | {"raises an error": False}
