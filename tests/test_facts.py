"""What is known of a result that nothing explains: what it depends on, its last right step, which inputs passed."""

import dataclasses

import pytest
import torch
from exercise_helpers import ALL, say
from torch.nn import functional as F

from mhsa.exercises.compare import compare
from mhsa.exercises.dependence import dependence, growth
from mhsa.exercises.diagnose import step_words
from mhsa.exercises.exercise import On
from mhsa.exercises.outcome import observe
from mhsa.exercises.sandbox import Printed, sandbox
from mhsa.exercises.stages import question, stage
from mhsa.exercises.steps import record
from mhsa.exercises.torch_errors import error_words


def of(finder, name, answer):
    with sandbox(Printed()):
        return finder(compare(ALL[name], answer))


def sentences_mixed(x, w_q, w_k, w_v):
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v) + 0.1 * (x @ w_v).mean(0)


def only_itself(x, w_q, w_k, w_v):
    return (x @ w_v).tanh() + 0 * (x @ w_q).sum() + 0 * (x @ w_k).sum()


def only_earlier(x, w_q, w_k, w_v):
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, is_causal=True).exp()


@pytest.mark.parametrize(
    "answer, words",
    [
        (
            lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_q).mT).softmax(-1) @ x @ w_v,
            "does not change with `w_k`: is it used?",
        ),
        (
            sentences_mixed,
            "Sentence 0 of your result changes with sentence 1 of `x`, and it should not. Sentences must stay",
        ),
        (
            lambda *a: ALL["ONE_HEAD"].reference(a[0].clone().index_fill(2, torch.tensor([4]), 0), *a[1:]),
            "column 4 of `x`",
        ),
        (only_earlier, "no token changes with a later token of `x`: is there a causal mask?"),
    ],
)
def test_what_a_result_depends_on(answer, words):
    assert words in of(dependence, "ONE_HEAD", answer)


def test_a_right_answer_depends_on_what_it_should_and_a_choice_is_not_looked_at():
    for name in ("ONE_HEAD", "MULTI_HEAD_LOOP", "MASKED_ATTENTION", "DECODE_STEP", "WITHOUT_HEADS"):
        assert of(dependence, name, ALL[name].also_right[0]) == ""
    assert of(dependence, "RELATION_OF_HEADS", lambda weights, ideals: torch.zeros(len(weights))) == ""


def test_a_closed_key_that_is_read_is_named():
    def leaks(q, k, v, mask):
        return ALL["MASKED_ATTENTION"].reference(q, k, v, mask) + 0.01 * v.mean(1, keepdim=True)

    assert "Query 0 of your result changes with key 1 of `v`, and it should not." in of(
        dependence, "MASKED_ATTENTION", leaks
    )


def test_how_a_count_grows():
    def more(B, T, num_heads, bytes_per_number):
        return B * num_heads * T * (T + 1) // 2 * bytes_per_number

    told = "With twice the `T` yours becomes 3.996 times as large; it should become 4 times."
    assert of(growth, "SCORE_BYTES", more) == told
    assert of(growth, "SCORE_BYTES", lambda B, T, h, n: 4 * B * h * T * T) == (
        "Your number does not change with `bytes_per_number`, and it should."
    )
    assert of(growth, "SCORE_BYTES", ALL["SCORE_BYTES"].reference) == ""


def test_the_last_step_that_is_right_is_told_with_its_line(tmp_path):
    code = "def attend(q, k, v):\n    s = q @ k.mT / q.shape[-1] ** 0.5\n    w = s.cos()\n    return w @ v\n"
    (tmp_path / "cell.py").write_text(code)
    space = {}
    exec(compile(code, str(tmp_path / "cell.py"), "exec"), space)
    told = of(step_words, "ATTEND", space["attend"])
    assert told.startswith("Your numbers are right up to div (2, 3, 7) in line 2, `s = q @ k.mT / q.shape[-1] ** 0.5`")
    assert of(step_words, "ATTEND", lambda q, k, v: (q + 1) @ (k + 2).mT @ v) == ""


def test_a_view_of_an_input_is_no_step():
    x = torch.rand(2, 3, 5)
    recorder, result = record(lambda answer, x: answer(x), lambda x: x.transpose(1, 2).exp(), [x])
    assert [step.name for step in recorder.steps] == ["exp"] and torch.equal(result, x.mT.exp())


def test_what_passed_is_told_by_size():
    def right_for_one_head(x, num_heads):
        return ALL["MY_SPLIT"].reference(x, num_heads) * (1 + (num_heads > 1) * torch.rand(1))

    assert of(stage, "MY_SPLIT", right_for_one_head) == "With one head yours is right, with several it is not."
    assert of(stage, "MY_SPLIT", lambda x, h: x) == ""


def test_what_passed_is_told_in_the_words_of_the_inputs():
    x = torch.arange(14.0).view(1, 7, 2).double()
    exercise = dataclasses.replace(
        ALL["MY_SPLIT"],
        inputs=[On("with one head", "Where is the head?", [x, 1]), On("with two heads", "Where are both?", [x, 2])],
    )
    with sandbox(Printed()):
        comparison = compare(exercise, lambda x, h: x[:, None] if h == 1 else x)
        assert stage(comparison) == "Yours is right with one head, but not with two heads."
        assert question(comparison) == "Where are both?"
        assert question(compare(exercise, lambda x, h: x)) == "Where is the head?"


LETTERS = {"B": 2, "T_q": 3, "T_k": 7, "d_k": 5}
ERRORS = [
    (lambda q, k: q @ k, "(B, T_q, d_k) and (B, T_k, d_k): the last size on the left must be the second-last"),
    (lambda q, k: F.linear(q, k[0].T), "multiplies (B, T_q, d_k) by the transpose of (d_k, T_k)"),
    (lambda q, k: q + k, "(B, T_q, d_k) and (B, T_k, d_k) do not fit"),
    (lambda q, k: q / q.sum(-1), "`keepdim=True` keeps it"),
    (lambda q, k: torch.stack([q, k]), "The pieces to put together differ in size: (B, T_q, d_k) and (B, T_k, d_k)"),
    (lambda q, k: torch.cat([q, k], 0), "The pieces to put together differ in size"),
    (lambda q, k: q.view(2, 4, 4), "[2, 4, 4] does not hold the 30 numbers of (B, T_q, d_k)"),
    (lambda q, k: q and k, "`and`, `or`, `not` and `if` ask for one answer"),
    (lambda q, k: torch.einsum("btd,btd->bt", q, k), "The letter t of einsum stands for two sizes, 3 and 7"),
    (lambda q, k: torch.einsum("td,td->t", q, k), "Count the letters of einsum"),
    (lambda q, k: q.softmax(3), "is told an axis that (B, T_q, d_k) does not have"),
    (lambda q, k: q[:, 9], "An index lies beyond the end"),
    (lambda q, k: q[torch.rand(2)], "An index is a whole number or a Boolean"),
    (lambda q, k: F.softmax(q, axs=1), "This call takes no such argument"),
    (lambda q, k: nothing, "The name is not known there"),  # noqa: F821
    (lambda q, k: float(q), "One number is expected there"),
    (lambda q, k: [q].shape, "A list of tensors is no tensor"),
    (lambda q, k: ~q, "print the type, and the dtype, of both sides"),
    (lambda q, k: q.unflatten(-1, (2, 2)), "The pieces must add up, or multiply"),
    (lambda q, k: 1 / 0, "Something is divided by 0"),
]


@pytest.mark.parametrize("answer, words", ERRORS)
def test_an_error_is_told_in_words(answer, words):
    inputs = [torch.rand(2, 3, 5), torch.rand(2, 7, 5)]
    outcome = observe(lambda answer, *inputs: answer(*inputs), answer, inputs, ["q", "k"])
    recorder, _ = record(lambda answer, *inputs: answer(*inputs), answer, inputs)
    said = error_words(outcome.error, recorder.failure, LETTERS)
    assert words in said, f"{outcome.error} -> {said}"


def test_other_errors_are_left_as_they_are():
    assert error_words("KeyError: 'x'", None, {}) == ""
    assert "your code stops with an error:\n  KeyError" in say(ALL["DOT_SCORES"], lambda q, k: {}["x"])
