"""What is right in the quiz of lesson 8."""

import torch
from helpers import rand

from mhsa import PRESETS, MultiHeadAttention, attention, count_memory, count_parameters
from quiz_keys.common import close


def highest_rank():
    d_k = MultiHeadAttention(48, 16).d_k
    return torch.linalg.matrix_rank(rand(12, d_k) @ rand(12, d_k, seed=1).T, atol=1e-9).item()


def rank_after_softmax():
    weights = attention(rand(12, 3), rand(12, 3, seed=1), rand(12, 3))[1]
    rank = torch.linalg.matrix_rank(weights, atol=1e-12).item()
    return {words: rank == int(words) for words in ("3", "4", "12", "1")}


def what_changes_no_weight():
    q, k = rand(2, 5, 3)
    scores = q @ k.T
    row, column = torch.zeros(2, 5, 5).double()
    row[2], column[:, 2] = 7, 7
    changed = {
        "one row": scores + row,
        "one column": scores + column,
        "Doubling": 2 * scores,
        "its mean": scores - scores.mean(-1, keepdim=True),
        "Exchanging": k @ q.T,
    }
    return {words: close(s.softmax(-1), scores.softmax(-1)) for words, s in changed.items()}


def smallest_width():
    pattern = (rand(10, 4) @ rand(10, 4, seed=1).T).softmax(-1)
    log = pattern.log()
    U, S, V = torch.linalg.svd(log - log.mean(-1, keepdim=True))
    makes = {d_k: close((U[:, :d_k] * S[:d_k] @ V[:d_k]).softmax(-1), pattern) for d_k in range(1, 11)}
    return {words: makes[int(words)] and not makes[int(words) - 1] for words in ("3", "4", "9", "10")}


def eight_beat_two():
    few, many = (count_parameters(512, h, d_k=64).total for h in (2, 8))
    return {
        "Nothing": few == many,
        "four times": many == 4 * few,
        "not valid": False,
        "less memory": count_memory(1, 8, 512, 8, d_k=64).scores < count_memory(1, 8, 512, 2, d_k=64).scores,
    }


def wider_than_64():
    return {name: PRESETS[name].d_k > 64 for name in ("GPT-2 XL", "BERT-large", "GPT-3 175B", "T5-11B", "Llama-3-70B")}
