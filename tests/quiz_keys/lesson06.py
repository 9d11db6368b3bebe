"""What is right in the quiz of lesson 6."""

import torch
from helpers import rand

from mhsa import MultiHeadAttention
from mhsa.toys import relations
from quiz_keys.common import close, seeded, size


def predicted_accuracy():
    return relations(3, vocab=10).predicted(2)


def what_a_blend_loses():
    first, second = rand(2, 5)
    blends = [(a + b) / 2 for a, b in ((first, second), (second, first))]
    same_blend = close(*blends)
    return {
        "Both answers": not blends[0].any(),
        "Which answer": same_blend,
        "Nothing:": not same_blend,
        "The smaller": close(blends[0], torch.maximum(first, second)),
    }


def from_two_heads_to_eight():
    few, many = (seeded(MultiHeadAttention, 16, h) for h in (2, 8))
    maps = [layer(rand(1, 8, 16), need_weights=True)[1] for layer in (few, many)]
    return {
        "number of parameters": size(few.parameters()) == size(many.parameters()),
        "width": few.d_k == many.d_k,
        "number of attention maps": maps[0].shape[1] == maps[1].shape[1],
        "predicted accuracy": relations(2).predicted(2) == relations(2).predicted(8),
        "bytes": maps[0].nbytes == maps[1].nbytes,
    }


def too_small():
    def favourites(d_k):
        return len((rand(50, d_k) @ rand(50, d_k, seed=1).T).argmax(-1).unique())

    one, many = (seeded(MultiHeadAttention, 16, h) for h in (1, 16))
    return {
        "number of parameters": size(many.parameters()) < size(one.parameters()),
        "width": favourites(many.d_k) < favourites(one.d_k) / 4,
        "larger number of heads": many.num_heads < one.num_heads,
        "training sequences": False,
    }


def which_head():
    mha, x = seeded(MultiHeadAttention, 6, 2), rand(1, 4, 6)
    before, order = mha(x), torch.tensor([3, 4, 5, 0, 1, 2])
    with torch.no_grad():
        for w in (mha.w_q, mha.w_k, mha.w_v):
            w.weight.copy_(w.weight[order])
        mha.w_o.weight.copy_(mha.w_o.weight[:, order])
    free = close(mha(x), before)
    return {"Head 0 again": not free, "Any head": free, "most weights": False, "first heads": not free}
