"""The search for a slip: what it finds, when it keeps silent, and that two slips are found together."""

import dataclasses

import torch
from exercise_helpers import ALL, say
from torch.nn import functional as F

from mhsa.exercises.compare import compare
from mhsa.exercises.judge import examine
from mhsa.exercises.mutants import one_edit, two_edits
from mhsa.exercises.sandbox import Printed, sandbox


def plus_three(n):
    """n, a whole number -> a whole number."""
    return n + 3


PLUS_THREE = dataclasses.replace(
    ALL["HEADS_BY_RULE"], reference=plus_three, inputs=[[3]], fresh=[[5], [7]], mistakes=[], also_right=[], run=None
)


def found(exercise, answer, search=one_edit):
    with sandbox(Printed()):
        return search(compare(exercise, answer), 20)


def test_a_slip_that_fits_on_the_inputs_alone_is_not_told():
    """3² = 3 · 3 is what comes out of n * 3, and 5² is not."""
    assert found(PLUS_THREE, lambda n: n * 3) == "`*` stands in place of `+` in `n + 3`"
    assert found(PLUS_THREE, lambda n: n * n) == ""
    assert found(PLUS_THREE, plus_three) == ""


def test_what_no_list_holds_is_found():
    multi_head = ALL["MULTI_HEAD"].reference
    for name, answer, words in (
        ("SCALE_SCORES", lambda s, d, h: s / (d**0.5 // h), "root is taken of `d_model` alone"),
        ("MY_CAUSAL_MASK", lambda T_q, T_k: torch.ones(T_q, T_k).tril(T_k).bool(), "`T_q` is not taken away"),
        ("MULTI_HEAD", lambda x, q, k, v, o, h: multi_head(x, q, k, k, o, h), "`w_k` stands where `w_v` is due"),
        (
            "CROSS_ATTENTION",
            lambda x, s, q, k, v: F.scaled_dot_product_attention(x @ q, s @ k, -s @ v),
            "opposite sign",
        ),
    ):
        with sandbox(Printed()):
            exercise = dataclasses.replace(ALL[name], mistakes=[])
        told = examine(exercise, answer)
        assert words in told.words and told.way == "mutant", told


def test_an_edit_that_is_told_has_run_on_fresh_inputs():
    seen = []

    def watched(q, k):
        seen.append(tuple(q.shape))
        return q @ q.mT

    exercise = dataclasses.replace(ALL["DOT_SCORES"], fresh=[[torch.ones(13, 1, 3), torch.eye(1, 3).expand(13, 1, 3)]])
    assert "`q` stands where `k` is due" in say(exercise, watched)
    assert (13, 1, 3) in seen


def test_two_slips_at_once_are_both_named():
    def no_scale_and_turned(q, k, v):
        return (q @ k.mT).softmax(1) @ v

    told = say(ALL["ATTEND"], no_scale_and_turned)
    assert told.startswith("Not yet. The scores are not scaled.") and "`softmax` runs over axis 1" in told


def test_two_slips_of_which_none_is_listed():
    def cubed_and_added(x, w_q, w_k, w_v):
        return x @ w_v + F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v).softmax(-1)

    assert found(ALL["ONE_HEAD"], cubed_and_added, two_edits) == ""  # three at once are beyond it
    exercise = dataclasses.replace(PLUS_THREE, reference=tilted, inputs=[[3], [5], [11]], fresh=[[2], [7]])
    words = found(exercise, lambda n: (n - 7) / 2, two_edits)
    assert (
        words.startswith("Your result is what comes out of two slips together: ") and "`-`" in words and "`/`" in words
    )


def tilted(n):
    """n, a whole number -> a number."""
    return (n + 7) * 2


def test_nan_everywhere_names_no_slip():
    assert found(ALL["TO_WEIGHTS"], lambda s: s * float("nan")) == ""


def test_an_answer_that_fails_everywhere_is_compared_by_what_fails():
    told = say(ALL["CROSS_ATTENTION"], lambda x, s, q, k, v: F.scaled_dot_product_attention(x @ q, s @ v, s @ k))
    assert told.startswith("Not yet. Your code stops as it does if `w_k` and `w_v` are exchanged")
