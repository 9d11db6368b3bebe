"""The comparison of an answer with the reference: what each trial holds, how often code is run, in which numbers."""

import time

import pytest
import torch
from exercise_helpers import ALL, say
from torch.nn import functional as F

from mhsa.exercises.compare import compare
from mhsa.exercises.difference import tensor_difference
from mhsa.exercises.judge import check_answer

TO_WEIGHTS = ALL["TO_WEIGHTS"]


def wrong_for_three_sentences(scores):
    return scores.softmax(-1) * (0.5 if len(scores) == 3 else 1)


def test_a_trial_holds_what_both_did_and_where_they_differ_first():
    comparison = compare(TO_WEIGHTS, wrong_for_three_sentences)
    assert [trial.inputs for trial in comparison.trials] == TO_WEIGHTS.cases
    wrong = [trial.difference for trial in comparison.trials]
    assert [bool(difference) for difference in wrong] == [len(scores) == 3 for [scores] in TO_WEIGHTS.cases]
    assert comparison.first_wrong is comparison.trials[2] and TO_WEIGHTS.cases[2][0].shape == (3, 1, 1)
    assert wrong[2] == ("0.5 at [0, 0, 0] (3 of 3 differ)", "1")
    [got], [want] = comparison.first_wrong.got.values, comparison.first_wrong.want.values
    assert torch.equal(got, torch.full((3, 1, 1), 0.5).double()) and torch.equal(want, torch.ones(3, 1, 1).double())
    assert compare(TO_WEIGHTS, TO_WEIGHTS.reference).first_wrong is None


def test_no_result_is_a_difference():
    assert compare(TO_WEIGHTS, lambda scores: {"weights": scores}).first_wrong.difference.came == "0 results came back"
    assert compare(TO_WEIGHTS, lambda scores: 1 / 0).first_wrong.got.error == "ZeroDivisionError: division by zero"


def attend_without_a_gradient_to_the_weights(q, k, v):  # a known mistake
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).detach() @ v


def slow_and_wrong(scores):
    time.sleep(0.03)
    return wrong_for_three_sentences(scores)


@pytest.mark.parametrize(
    "name, answer, times",
    [
        ("TO_WEIGHTS", slow_and_wrong, 1),
        ("TO_WEIGHTS", lambda s: s.softmax(-1), 2),
        ("ATTEND", attend_without_a_gradient_to_the_weights, 2),
    ],
)
def test_an_answer_runs_once_for_its_values_and_where_they_are_right_once_for_its_gradients(name, answer, times):
    calls = []

    def counted(*inputs):
        calls.append(0)
        return answer(*inputs)

    check_answer(ALL[name], counted)
    assert len(calls) == times * len(ALL[name].cases)


def test_two_answers_make_the_same_mistake_where_both_give_the_same_wrong_numbers():
    comparison = compare(TO_WEIGHTS, wrong_for_three_sentences)
    assert comparison.equals(lambda s: s.softmax(2) / (1 + (s.shape[0] == 3)))
    assert comparison.equals(lambda s: s.softmax(2) / 2 if s.shape[0] == 3 else None)  # no numbers contradict nothing
    assert not comparison.equals(TO_WEIGHTS.reference)
    assert not comparison.equals(lambda s: s.softmax(-1) / 2)
    assert not comparison.equals(lambda s: None) and not comparison.equals(lambda s: s.nope())
    assert not compare(TO_WEIGHTS, TO_WEIGHTS.reference).equals(TO_WEIGHTS.reference)  # nothing is wrong


def test_equal_errors_alone_tell_nothing_but_one_operation_that_fails_on_the_same_numbers_does():
    failed = compare(TO_WEIGHTS, lambda s: s.nope())
    assert failed.got[0].error and not failed.equals(lambda x: x.nope())
    attend = ALL["ATTEND"]
    keys_and_values = compare(attend, lambda q, k, v: q @ v.mT @ v)
    assert keys_and_values.equals(lambda q, k, v: torch.matmul(q, v.transpose(1, 2)))
    others = 2 * attend.cases[0][0], attend.cases[0][2]
    assert str(pytest.raises(RuntimeError, lambda: others[0] @ others[1].mT).value) in keys_and_values.got[0].error
    assert not keys_and_values.equals(lambda q, k, v: 2 * q @ v.mT)


def test_a_view_that_torch_refuses_is_compared_as_the_reshape_it_would_be():
    merge = ALL["MY_MERGE"]
    refused = compare(merge, lambda x: x.transpose(1, 2).view(len(x), x.shape[2], -1))
    assert any(outcome.error for outcome in refused.got)
    assert refused.equals(lambda x: x.permute(0, 2, 1, 3).view(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]))
    assert not refused.equals(lambda x: x.transpose(2, 3).view(len(x), x.shape[2], -1))


def test_two_answers_with_the_same_values_may_differ_in_their_gradients():
    attend = ALL["ATTEND"]

    def cut(q, k, v):
        return F.scaled_dot_product_attention(q.detach(), k.detach(), v)

    comparison = compare(attend, cut)
    assert comparison.same_values(attend.reference) and not comparison.equals_in_gradients(attend.reference)
    assert comparison.equals_in_gradients(lambda q, k, v: attend.reference(q.detach(), k.detach(), v))
    assert comparison.first_wrong is None and comparison.first_wrong_gradient.inputs is attend.cases[0]


# float32 beside float64


def eye32(scores):
    return torch.eye(scores.shape[-1], dtype=torch.float32).expand(len(scores), -1, -1)


def written_into(scores):
    out = torch.zeros(scores.shape, dtype=torch.float32)
    out[torch.arange(len(scores))] = scores.softmax(-1)
    return out


FLOAT32_BY = {
    "matmul": lambda s: s.softmax(-1) @ eye32(s),
    "einsum": lambda s: torch.einsum("bqk,bkj->bqj", s.softmax(-1), eye32(s)),
    "bmm": lambda s: s.softmax(-1).bmm(eye32(s)),
    "linear": lambda s: F.linear(s.softmax(-1), eye32(s)[0]),
    "kernel": lambda s: F.scaled_dot_product_attention(s, eye32(s), eye32(s), scale=1.0),
    "writing": written_into,
    "index_add": lambda s: torch.zeros(s.shape).float().index_add(0, torch.arange(len(s)), s.softmax(-1)),
}


@pytest.mark.parametrize("answer", FLOAT32_BY.values(), ids=FLOAT32_BY)
def test_float64_that_meets_float32_in_any_operation_is_tried_in_float32(answer):
    with pytest.raises(RuntimeError):
        answer(TO_WEIGHTS.cases[0][0])
    right, text = check_answer(TO_WEIGHTS, answer)
    assert right and "Difference allowed: 1e-05." in text, text


def test_an_error_that_only_speaks_of_types_is_told_in_the_numbers_of_the_exercise(tmp_path):
    code = "def to_weights(scores):\n    return scores.softmax(-1) + None\n"
    (tmp_path / "cell.py").write_text(code)
    space = {}
    exec(compile(code, str(tmp_path / "cell.py"), "exec"), space)
    told = say(TO_WEIGHTS, space["to_weights"])
    assert "TypeError: unsupported operand type(s)" in told and told.endswith("shapes there:  scores (2, 3, 5)")


# Numbers in words


def test_an_answer_that_is_rounded_is_told_with_the_digits_that_differ():
    told = check_answer(ALL["PERCENT_WORSE"], lambda score, best: round(100 * (best - score) / best, 2))[1]
    assert "1.55 is too small; expected 1.5504." in told


@pytest.mark.parametrize(
    "got, want",
    [
        (0.5, 0.25),
        (2.0, 2.00001),
        (1 / 3, 1 / 3 + 1e-15),
        (12345.5, 12345.25),
        (1.0, 1.0 + 2**-52),
        (1e-20, 1.00001e-20),
        (float("nan"), 1.0),
    ],
)
def test_two_numbers_that_differ_look_different(got, want):
    came, expected = tensor_difference(*torch.tensor([got, want], dtype=torch.float64), 0)
    assert came.split()[0] != expected
