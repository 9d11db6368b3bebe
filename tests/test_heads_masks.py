"""split_heads() and merge_heads() move the right numbers, and masks hide the right corner."""

import re
from itertools import product
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from helpers import rand

from mhsa import causal_mask, merge_heads, padding_mask, split_heads


def test_shape_annotations_are_checked_in_these_tests():
    """Red without pytest's --jaxtyping-packages=…,beartype.beartype: then no annotation is checked at all."""
    with pytest.raises(jaxtyping.TypeCheckError, match="lead T width"):
        split_heads(torch.zeros(6), 3)


def test_every_module_with_shape_annotations_is_checked(pytestconfig):
    *listed, checker = pytestconfig.getoption("jaxtyping_packages").split(",")
    root = Path(__file__).parents[1]
    annotated = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.glob("mhsa/**/*.py")
        if re.search(r"^\s*(from|import) jaxtyping\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert sorted(listed) == sorted(annotated) and checker == "beartype.beartype"


@pytest.mark.parametrize("lead", [(), (2,), (2, 5)])
def test_a_head_is_a_block_of_columns_of_every_token(lead):
    """`view(h, T, d)` has the same shape and gives head 0 the first tokens instead of the first columns."""
    T, h, d = 7, 3, 2
    x = torch.arange(torch.Size(lead).numel() * T * h * d).view(*lead, T, h * d)
    heads = split_heads(x, h)
    assert torch.equal(heads, torch.stack([x[..., 0:2], x[..., 2:4], x[..., 4:6]], -3))
    assert heads.dtype == torch.int64


def test_splitting_is_a_view_and_merging_a_copy():
    x = rand(2, 5, 6)
    heads = split_heads(x, 3)
    heads[1, 2, 4, 1] = 99  # sentence 1, token 4, column 2·2 + 1
    assert x[1, 4, 5] == 99
    results = heads.contiguous()  # head after head in memory, as a kernel leaves them
    merge_heads(results).zero_()
    assert results[1, 2, 4, 1] == 99


def test_merging_lays_the_heads_side_by_side():
    z = rand(2, 3, 5, 7)
    assert torch.equal(merge_heads(z), torch.from_numpy(np.concatenate([z[:, i].numpy() for i in range(3)], -1)))
    assert torch.equal(merge_heads(z.mT.contiguous().mT), merge_heads(z))


@pytest.mark.parametrize("shape, h", [((1, 1, 6), 6), ((3, 0, 4), 2), ((0, 5, 4), 2), ((5, 4), 1)])
def test_edges_come_back_unchanged(shape, h):
    x = rand(*shape)
    assert torch.equal(merge_heads(split_heads(x, h)), x)


def test_gradients_pass_through_both():
    x = rand(2, 5, 6).requires_grad_()
    factor = rand(2, 5, 6, seed=1)
    (merge_heads(split_heads(x, 3)) * factor).sum().backward()
    assert torch.equal(x.grad, factor)


@pytest.mark.parametrize(
    "T_q, T_k, expected",
    [
        (1, 4, ["1111"]),
        (2, 5, ["11110", "11111"]),
        (3, 3, ["100", "110", "111"]),
        (4, 2, ["00", "00", "10", "11"]),
        (1, 1, ["1"]),
    ],
)
def test_causal_masks_are_aligned_at_the_bottom_right(T_q, T_k, expected):
    mask = causal_mask(T_q, T_k)
    assert mask.dtype == torch.bool
    assert ["".join(str(int(x)) for x in row) for row in mask] == expected


def test_a_causal_mask_is_square_unless_told():
    assert torch.equal(causal_mask(5), causal_mask(5, 5)) and causal_mask(5).sum() == 15


def test_masks_are_made_where_they_are_needed():
    """The meta device stands for any other: a mask left on the CPU would stop a model on a GPU."""
    assert causal_mask(3, 5, device="meta").is_meta and not causal_mask(3).is_meta


@pytest.mark.parametrize("lengths", [[2, 0, 3], (2, 0, 3), torch.tensor([2, 0, 3]), torch.tensor([2, 0, 3]).byte()])
def test_padding_masks_are_true_on_the_first_tokens(lengths):
    mask = padding_mask(lengths, 3)
    assert mask.shape == (3, 1, 1, 3) and mask.dtype == torch.bool
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]


def test_padding_and_causal_masks_join():
    both = causal_mask(2, 3) & padding_mask([1, 3], 3)
    for b, i, j in product(range(2), range(2), range(3)):
        assert both[b, 0, i, j] == (j <= i + 1 and j < (1, 3)[b])
