"""What is right in the quiz of lesson 7."""

import torch
from helpers import rand

from mhsa import MultiHeadAttention, attention
from mhsa.exercises import lesson07
from mhsa.pretrained import ablate_heads
from quiz_keys.common import close, seeded


def adds_almost_nothing():
    """What a head adds, by how it is built, against what it adds otherwise."""
    weights = torch.full((5, 5), 0.1 / 4).double()
    weights[:, 0] = 0.9
    first, rest = torch.eye(5).double()[:, :1], 1 - torch.eye(5).double()[:, :1]
    values, w_o = rand(5, 3), rand(3, 7, seed=1)

    def small(values, w_o):
        return ((weights @ values @ w_o).norm() < 0.01 * (weights @ rand(5, 3) @ rand(3, 7, seed=1)).norm()).item()

    return {
        "The values of the other tokens": small(values * first, w_o),
        "the others are large": small(10 * values * rest, w_o),
        "block of W_O": small(values, 0 * w_o),
        "All its values": small(0 * values, w_o),
    }


def even_over_four():
    row = torch.tensor([0.25] * 4 + [0.0] * 12)
    return (torch.special.entr(row).sum() / torch.log(torch.tensor(16.0))).item()


def keeps_its_pattern():
    """The share on the token before: of a head by place, and of one that seeks the word that used to stand before."""
    words, order = torch.eye(7), torch.tensor([3, 0, 5, 1, 6, 2, 4])

    def share(queries, keys):
        return attention(50 * queries, keys, keys)[1].diagonal(-1).mean().item()

    before = words.roll(1, 0)  # row t is word, or place, t - 1
    assert share(before, words) > 0.99  # both, as long as the words are in order
    layer, x = seeded(MultiHeadAttention, 6, 3), rand(1, 5, 6)
    layer.w_o.weight.data[:, :2] = 0  # head 0 may look where it likes
    needed = not close(layer(x), ablate_heads(layer, x, {0: "zero"})[0])
    return {
        "by position": share(before, words) > 0.99,
        "without it": needed,
        "what the words mean": share(before[order], words[order]) > 0.99,
    }


def mean_of_two():
    a, b = rand(2, 5, 5).softmax(-1)
    mean = (a + b) / 2
    left, right = torch.eye(2)
    other_pair = torch.stack([a + 0.1 * (b - a), b + 0.1 * (a - b)])
    return {
        "sums to 1": close(mean.sum(-1), torch.ones(5).double()),
        "at least one head has": any(torch.equal((left + right) / 2, own) for own in (left, right)),
        "never sharper": bool((mean.amax(-1) <= torch.maximum(a, b).amax(-1)).all()),
        "tell the two heads": not close(other_pair.mean(0), mean),
    }


def weight_of_a_word():
    weights = torch.eye(5).double()
    weights[0] = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625])  # keys 1 to 4 are the pieces
    return lesson07.word_map(weights, [0, 1, 1, 1, 1])[0, 1].item()
