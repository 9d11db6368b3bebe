"""What is right in the quiz of lesson 4."""

from torch import nn

from mhsa import count_flops, count_memory, count_parameters
from quiz_keys.common import size


def twice_the_heads():
    few, many = ((count_parameters(512, h), count_memory(1, 128, 512, h), count_flops(1, 128, 512, h)) for h in (8, 16))
    products = [count[2].total - count[2].softmax for count in (few, many)]
    return {
        "number of parameters": many[0].total > few[0].total,
        "score maps": many[1].scores > few[1].scores,
        "matrix products": products[1] > products[0],
        "softmax": many[2].softmax > few[2].softmax,
        "q, k and v": many[1].qkv > few[1].qkv,
    }


def one_head_of_forty():
    return count_parameters(5120, 40).per_head


def narrow_heads():
    return count_parameters(1024, 8, d_k=64).total / (4 * 1024**2)


def megabytes():
    return count_memory(8, 1024, 1024, 16).scores / 1e6


def equal_cost():
    def is_equal(T, h):
        flops = count_flops(1, T, 768, h)
        return flops.scores + flops.mix == flops.projections + flops.output

    at = {T: [is_equal(T, h) for h in (1, 8, 12)] for T in (384, 768, 1536)}
    return {
        "384": all(at[384]),
        "768": all(at[768]),
        "1536": all(at[1536]),
        "depends on h": any(len(set(equal)) > 1 for equal in at.values()),
    }


def more_in_torch():
    theirs = nn.MultiheadAttention(512, 8)
    more = size(theirs.parameters()) - count_parameters(512, 8).total
    biases = size(p for name, p in theirs.named_parameters() if "bias" in name)
    return {
        "wider": theirs.head_dim > 512 // 8,
        "biases": more == 2048 == biases,
        "scale for each head": more == 8,
        "layer norm": more == size(nn.LayerNorm(512).parameters()),
    }
