"""What is right in the quiz of lesson 10."""

import torch
from helpers import rand

from mhsa import MultiHeadAttention, attention, causal_mask, count_flops, count_memory, split_heads
from mhsa.claims import CLAIMS
from quiz_keys.common import close, size


def same_parameters_if():
    one, eight, wide = (size(MultiHeadAttention(64, h, d_k=d_k).parameters()) for h, d_k in ((1, 64), (8, 8), (8, 64)))
    return {
        "without biases": one == eight == 4 * 64**2,
        "T stays": False,
        "as wide as": wide == one,
        "None, it is false": one != eight,
    }


def settled_without_training():
    return {
        "three axes": MultiHeadAttention(6, 3).w_o.weight.dim() == 2,
        "translate": False,
        "pronouns": False,
        "rank above": torch.linalg.matrix_rank(rand(7, 3) @ rand(3, 7, seed=1)).item() == 3,
        "copy": split_heads(x := rand(5, 6), 3).data_ptr() == x.data_ptr(),
    }


def megabytes_of_a_course():
    return count_memory(8, 384, 256, 16).scores / 1e6


def one_clear_head():
    holds = {claim.id: claim.verdict == "holds" for claim in CLAIMS}
    return {
        "on these sentences": True,
        "needs the head": holds["H16"],
        "other models": holds["H6"],
        "what the model answers": holds["H10"],
    }


def when_the_heads_are_wide():
    one, twelve = (MultiHeadAttention(24, h, d_k=24) for h in (1, 12))
    flops = [count_flops(1, 5, 24, h, d_k=24) for h in (1, 8)]
    q, k, v = rand(3, 8, 5, 24)
    weights = attention(q, k, v, causal_mask(5))[1]
    return {
        "no larger": size(twelve.parameters()) == 12 * size(one.parameters()),
        "divide": MultiHeadAttention(10, 3, d_k=4) is not None,
        "softmax": not close(weights.sum(-1), torch.ones(8, 5).double()),
        "keeps the future out": bool(weights.triu(1).any()),
        "cost the same": flops[0].total - flops[0].softmax != flops[1].total - flops[1].softmax,
    }


def growth_of_two_kernels():
    a, b = 4 / 2, 32 / 8
    return {
        "a grows like T": a == 2 and b == 2**2,
        "75 %": 1 - 2 / 8 == 1 - 4 / 32,
        "28 MB": 8 - 2 == 32 - 4,
        "Both": a == b,
    }
