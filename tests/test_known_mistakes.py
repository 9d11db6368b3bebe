"""Known mistakes, written differently, are known; and what DROP says, whose check looks at random numbers."""

import pytest
import torch
from exercise_helpers import ALL, say
from torch.nn import functional as F

from mhsa.exercises.judge import check_answer


def by_columns(weights, p, training):
    kept = torch.rand(weights.shape[0], 1, weights.shape[2]) >= p
    return weights * kept / (1 - p) if training else weights


def the_same_for_all(weights, p, training):
    kept = torch.rand(weights.shape[1:]) >= p
    return weights * kept / (1 - p) if training else weights


def closed_by(number):
    def masked_attention(q, k, v, mask):
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, number)
        return (scores.softmax(-1) * mask.any(-1, keepdim=True)) @ v

    return masked_attention


def own_linear(d_model, num_heads, d_k):
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(d_k, d_model))

        def forward(self, x):
            return x @ self.weight  # turned round: takes d_k numbers

    return torch.nn.ModuleList(Head() for _ in range(num_heads))


SAME_MISTAKE = [
    ("DROP", by_columns, "whole columns"),
    ("DROP", the_same_for_all, "same places in every sentence"),
    ("MASKED_ATTENTION", closed_by(-50), "the closed key is the best"),
    ("MASKED_ATTENTION", closed_by(-1000), "the closed key is the best"),
    ("MAKE_HEADS", own_linear, "takes the width that goes *in* first"),
]


@pytest.mark.parametrize("name, answer, words", SAME_MISTAKE)
def test_a_known_mistake_is_known_in_other_words(name, answer, words):
    assert words in say(ALL[name], answer)


@pytest.mark.parametrize("number", [-1e9, -1e30, torch.finfo(torch.float32).min])
def test_any_number_below_every_score_closes_a_key(number):
    assert check_answer(ALL["MASKED_ATTENTION"], closed_by(number))[0]


@pytest.mark.parametrize(
    "answer",
    [lambda w, p, training: F.dropout(w.detach(), p, training), lambda w, p, training: F.dropout(w, p, training).data],
)
def test_dropped_weights_must_pass_a_gradient(answer):
    assert say(ALL["DROP"], answer).startswith("The values are right, but no gradient flows back")


def test_an_odd_answer_to_drop_is_told_in_words():
    assert "'a tuple'; expected '0.5 of the weights become 0, each on its own" in say(ALL["DROP"], lambda *a: (a[0],))
    assert "'shape (2, 101)'" in say(ALL["DROP"], lambda w, p, training: w.sum(-1))
