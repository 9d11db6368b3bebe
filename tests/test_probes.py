"""Wrong splits keep the right shape, and the probes tell which test sees which."""

import pytest
import torch

from mhsa.probes import MERGES, PAIRS, SPLITS, probe, touched

NAMES = ("shape", "round trip", "no leak", "reach", "fingerprint", "loop")
PASSES = {  # written by hand: what each pair does to tokens and columns
    ("right", "right"): NAMES,
    ("bare view", "right"): ("shape", "reach"),
    ("bare view", "bare view"): ("shape", "round trip", "no leak"),
    ("right", "bare view"): ("shape", "reach"),
    ("(d h)", "right"): ("shape", "no leak", "reach"),
    ("(d h)", "(d h)"): ("shape", "round trip", "no leak", "reach"),
    ("transpose first", "right"): ("shape", "reach"),
}


def test_head_0_of_0_1_2_under_each_split():
    a = torch.arange(24).view(1, 4, 6)
    assert {name: split(a, 3)[0, 0].tolist() for name, split in SPLITS.items()} == {
        "right": [[0, 1], [6, 7], [12, 13], [18, 19]],
        "bare view": [[0, 1], [2, 3], [4, 5], [6, 7]],
        "(d h)": [[0, 3], [6, 9], [12, 15], [18, 21]],
        "transpose first": [[0, 6], [12, 18], [1, 7], [13, 19]],
    }


@pytest.mark.parametrize("B, T, h, d", [(2, 5, 3, 7), (1, 4, 3, 2)])
def test_the_shape_never_tells(B, T, h, d):
    assert {split(torch.zeros(B, T, h * d), h).shape for split in SPLITS.values()} == {(B, h, T, d)}
    assert {merge(torch.zeros(B, h, T, d)).shape for merge in MERGES.values()} == {(B, T, h * d)}


@pytest.mark.parametrize("pair", PAIRS)
def test_which_test_sees_which_pair(pair):
    found = probe(SPLITS[pair[0]], MERGES[pair[1]])
    assert tuple(found) == NAMES
    assert tuple(name for name, passes in found.items() if passes) == PASSES[pair]


@pytest.mark.parametrize("T, h, d, hidden", [(5, 3, 2, 0), (5, 1, 7, 5), (1, 3, 2, 5), (1, 1, 7, 6)])
def test_one_head_or_one_token_hides_mistakes(T, h, d, hidden):
    found = [probe(SPLITS[s], MERGES[m], tokens=T, num_heads=h, d_k=d)["loop"] for s, m in PAIRS]
    assert found[0] and sum(found[1:]) == hidden


def test_touched_names_the_rows_that_read_a_token():
    x = torch.zeros(1, 3, 2)
    assert touched(lambda x: x.cumsum(1), x, 1) == [False, True, True]


@pytest.mark.parametrize("name", ["tokens", "num_heads", "d_k"])
def test_a_size_below_1_is_named(name):
    with pytest.raises(ValueError, match=f"{name}=0 is not a whole number"):
        probe(SPLITS["right"], MERGES["right"], **{name: 0})
