"""Copies are counted as torch's profiler sees them, inside products as well."""

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import profile

from mhsa import MultiHeadAttention, attention, split_heads
from mhsa.copies import count_copies


def profiled(run):
    with profile() as seen:
        run()
    return sum(event.count for event in seen.key_averages() if event.key == "aten::clone")


@pytest.mark.parametrize(
    "B, T, h, d, products, merge", [(1, 5, 3, 2, 0, 1), (2, 5, 3, 7, 3, 1), (2, 5, 1, 7, 0, 0), (2, 1, 3, 7, 0, 0)]
)
def test_copies_of_the_explicit_path(B, T, h, d, products, merge):
    q, k, v = (split_heads(torch.randn(B, T, h * d), h) for _ in range(3))
    mha, x = MultiHeadAttention(h * d, h), torch.randn(B, T, h * d)
    for run, copies in (
        (lambda: attention(q, k, v), products),
        (lambda: (q @ k.mT) @ v, products),
        (lambda: mha(x, need_weights=True), products + merge),
    ):
        assert count_copies(run) == profiled(run) == copies


@pytest.mark.parametrize("B, T, h, d", [(1, 5, 3, 2), (2, 5, 3, 7), (3, 7, 5, 2)])
def test_the_fused_kernel_copies_nothing_for_any_number_of_sentences(B, T, h, d):
    q, k, v = (split_heads(torch.randn(B, T, h * d), h) for _ in range(3))
    mha, x = MultiHeadAttention(h * d, h), torch.randn(B, T, h * d)
    for run in (lambda: F.scaled_dot_product_attention(q, k, v), lambda: mha(x), lambda: mha(x, is_causal=True)):
        assert count_copies(run) == profiled(run) == 0


def test_a_reshape_is_counted_where_it_copies():
    x = torch.randn(2, 5, 18)
    assert count_copies(x[..., :6].reshape, 2, 5, 3, 2) == 0
    assert count_copies(x.mT.reshape, 2, 5, 18) == 1
    assert [count_copies(t.contiguous) for t in (x, x.mT, x[..., :6])] == [0, 1, 1]
