"""What a wrong result is to the right one, in words; all sizes are distinct primes."""

import pytest
import torch
from exercise_helpers import ALL, say

from mhsa.exercises import factors
from mhsa.exercises.pairs import Pairs
from mhsa.exercises.relations import NUMBERS, PARTS, PLACES, of_one_result

GENERATOR = torch.Generator().manual_seed(5)
SIZES = [{"B": 2, "h": 3, "T": 5, "d": 7}, {"B": 5, "h": 2, "T": 3, "d": 11}]
RIGHT = [torch.rand(tuple(s.values()), generator=GENERATOR, dtype=torch.float64) for s in SIZES]


def relation(change, right=RIGHT, due="BhTd", sizes=SIZES):
    """The words of the first finder that has some, and of which kind it is."""
    for kind in (PLACES, NUMBERS, PARTS):
        pairs = Pairs([change(w.clone()) for w in right], right, sizes, list(due), 1e-9)
        words = of_one_result(pairs, kind)
        if words:
            return kind, words
    return None, ""


def set_to(x, index, number):
    x[index] = number
    return x


@pytest.mark.parametrize(
    "change, kind, words",
    [
        (lambda w: w.transpose(1, 2), PLACES, "their axes are not: yours are (B, T, h, d), asked is (B, h, T, d)"),
        (lambda w: w.flatten(2), PLACES, "in the right order, only the shape is not: yours is (B, h, T·d)"),
        (lambda w: w.flip(1), PLACES, "the heads come in reverse order"),
        (lambda w: w.roll(1, 2), PLACES, "the tokens are shifted by one place, in a ring"),
        (lambda w: w[:, [1, 0, *range(2, w.shape[1])]], PLACES, "the heads"),
        (lambda w: w[:, :, :-1], PLACES, "the last tokens are missing"),
        (lambda w: torch.cat([w, w[:1]]), PLACES, "at the end there are sentences too many"),
        (lambda w: w.sum(1), PLACES, "Yours is the sum over the heads of the right result"),
        (lambda w: w[:, 0], PLACES, "Yours is the first of the heads of the right result"),
        (lambda w: w[..., None].expand(*w.shape, 2) / 2, PLACES, "the sum of yours over axis 4 is the right result"),
        (
            lambda w: torch.cat([w[:, :, :1] * 9, w[:, :, :-1]], 2),
            PLACES,
            "in place of each token stands the one before",
        ),
        (lambda w: 2 * w, NUMBERS, "Each number of yours is 2 times the right one"),
        (lambda w: w / w.shape[-1] ** 0.5, NUMBERS, "is 1/√d times the right one"),
        (lambda w: w * w.shape[1] / w.shape[2], NUMBERS, "is h/T times the right one"),
        (lambda w: -w, NUMBERS, "The sign is turned round"),
        (lambda w: w + 1, NUMBERS, "too large by 1, always"),
        (lambda w: 1 - w, NUMBERS, "is 1 minus the right one"),
        (lambda w: w.softmax(-1), NUMBERS, "the right one after a softmax"),
        (
            lambda w: w.mean(1, keepdim=True).expand_as(w),
            NUMBERS,
            "all heads are alike, and they should differ. Each is the mean",
        ),
        (lambda w: w.reshape(w.shape[0], w.shape[2], w.shape[1], -1).transpose(1, 2), NUMBERS, "in other places"),
        (
            lambda w: w * torch.rand(*w.shape[:-1], 1, generator=GENERATOR, dtype=torch.float64),
            PARTS,
            "a factor of its own",
        ),
        (
            lambda w: set_to(w, (slice(None), slice(None), 0), 0.0),
            PARTS,
            "Only the first token of your result is wrong",
        ),
        (lambda w: w[:, :, :, :-2] ** 2, PARTS, "The shape is not right: "),
        (lambda w: w > 0.5, PLACES, "Booleans came, True and False; asked are numbers."),
    ],
)
def test_a_relation_is_told_in_letters(change, kind, words):
    found, said = relation(change)
    assert words in said and found == kind, said


def test_nothing_is_said_of_what_has_no_relation():
    assert relation(lambda w: w**3 - w**2 + 0.3 * torch.rand_like(w)) == (None, "")


MASKS = [torch.ones(5, 5).tril().bool(), torch.ones(3, 7).tril(4).bool()]
MASK_SIZES = [{"T_q": 5, "T_k": 5}, {"T_q": 3, "T_k": 7}]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda m: ~m, "turned round: True where False is due"),
        (lambda m: m.double(), "they are numbers: asked are Booleans"),
        (lambda m: m | torch.ones_like(m).triu(4), "in more places: in a mask (5, 5) for example query 0, key 4"),
        (lambda m: m & torch.ones_like(m).triu(-1), "True stands in too few places"),
    ],
)
def test_masks(change, words):
    assert words in relation(change, MASKS, ["T_q", "T_k"], MASK_SIZES)[1]


def test_a_count_in_another_unit_or_off_by_a_term():
    sizes = [{"T": 7, "d_model": 12}, {"T": 5, "d_model": 9}, {"T": 11, "d_model": 4}]
    right = [torch.tensor(2 * s["T"] * s["d_model"] ** 2 + 4096 * s["T"]) for s in sizes]
    for change, words in (
        (lambda w, s: w / 2**20, "in MiB"),
        (lambda w, s: w // 1024, "in KiB"),
        (lambda w, s: w * s["T"], "T times the right one"),
        (lambda w, s: w - 2 * s["T"] * s["d_model"] ** 2, "too small by 2·T·d_model², in each case"),
        (lambda w, s: w + 1, "too large by 1, always"),
    ):
        got = [change(w, s) for w, s in zip(right, sizes)]
        pairs = Pairs([torch.as_tensor(g) for g in got], right, sizes, [], 1e-9)
        assert words in of_one_result(pairs, NUMBERS), of_one_result(pairs, NUMBERS)


def test_a_factor_that_is_written_by_chance_is_not_told():
    sizes = [{"T": 3, "d": 5}, {"T": 7, "d": 11}]
    assert factors.factor([1.37, 1.37], sizes) == "" and factors.factor([3, 5], sizes) == ""
    assert factors.factor([9, 49], sizes) == "T²" and factors.factor([0.5, 0.5], sizes) == "1/2"
    assert factors.factor([3 / 5, 7 / 11], sizes) == "T/d"
    assert factors.factor([3], sizes[:1]) == "T"


def test_of_several_results_order_and_number_are_told():
    step = ALL["DECODE_STEP"]
    back = say(step, lambda *a: step.reference(*a)[::-1])
    assert "in another order: yours are numbers 3, 2, 1 of those asked" in back
    doubled = say(step, lambda *a: (step.reference(*a)[0], 2 * step.reference(*a)[1], step.reference(*a)[2]))
    assert "Look at result 2 of 3. Each number of yours is 2 times" in doubled
    more = say(ALL["MY_MERGE"], lambda x: (x, ALL["MY_MERGE"].reference(x)))
    assert "2 results came back, and one is asked: return number 2 alone." in more
    apart = say(ALL["MY_SPLIT"], lambda x, h: list(x.chunk(h, -1)))
    assert "A list of 3 tensors came back; asked is one. Put them together: torch.stack, axis 1." in apart


def test_two_sentences_are_told_apart_by_the_parts_that_differ():
    from torch import nn

    told = say(ALL["MAKE_HEADS"], lambda d, h, d_k: nn.ModuleList(nn.Linear(d, d_k, False) for _ in range(h + 1)))
    assert "In yours, 4 heads and 4 different and 56 parameters; asked is: 3 heads and 3 different and 42" in told
