"""What is right in the quiz of lesson 1."""

from math import sqrt

import torch
from helpers import rand

from mhsa import attention
from quiz_keys.common import close


def scale():
    spread = (rand(500, 1024 // 16) @ rand(500, 1024 // 16, seed=1).T).std()
    return {
        words: abs(spread / number - 1) < 0.1
        for words, number in {"√1024": sqrt(1024), "64": 64, "√64": sqrt(64), "√16": sqrt(16)}.items()
    }


def row_of_weights():
    q, k, v = rand(3, 5, 7)
    out, weights = attention(q, k, v)
    scores = q @ k.T / sqrt(7)
    return {
        "Each row sums": close(weights.sum(-1), torch.ones(5).double()),
        "Each column sums": close(weights.sum(-2), torch.ones(5).double()),
        "no weight is 0": bool((weights > 0).all()),
        "highest score gets weight 1": bool((weights.max(-1).values > 0.99).all()),
        "Adding 3": close((scores + 3).softmax(-1), weights),
    }


def open_weight():
    mask = torch.tensor([[True, True, False, True]])
    return attention(torch.zeros(1, 2), torch.zeros(4, 2), torch.zeros(4, 2), mask)[1][0, 0].item()


def outside():
    def is_outside(x, y):  # x = 4a, y = 4b, and the rest is for (0, 0)
        return min(x / 4, y / 4, 1 - x / 4 - y / 4) < 0

    return {f"({x}, {y})": is_outside(x, y) for x, y in ((1, 2), (3, 3), (3.5, 0.2), (0.1, 0.1))}


def swapped():
    x, order = rand(4, 6), [3, 1, 2, 0]
    w_q, w_k, w_v = rand(3, 6, 5, seed=1)
    before, after = (attention(t @ w_q, t @ w_k, t @ w_v)[0] for t in (x, x[order]))
    same = [close(before[i], after[i]) for i in range(4)]
    known = [any(close(after[i], row) for row in before) for i in range(4)]
    return {
        "keeps its output": close(after, before[order]),
        "No row changes": all(same),
        "others stay": same == [False, True, True, False] and not known[0],
        "All four": not any(known),
    }


def two_answers():
    mia, keys = torch.eye(2)
    even, uneven = (
        [share * who + (1 - share) * what for who, what in ((mia, keys), (keys, mia))] for share in (0.5, 0.7)
    )
    weights = attention(rand(4, 3), rand(4, 3, seed=1), rand(4, 3))[1]
    return {
        "0.5 on each": close(*even),
        "0.7 and 0.3": not close(*uneven),
        "Doubling": not close(2 * even[0], 2 * even[1]),
        "share this row": close(weights[0], weights[1]),
    }
