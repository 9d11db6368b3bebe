"""What a check says: of right answers of another kind, of errors that no data foresees, of what is no result at all."""

import time

import pytest
import torch
from exercise_helpers import ALL, say

from mhsa import merge_heads
from mhsa.exercises.judge import check_answer

# A right answer of another kind


def test_slow_float32_and_non_contiguous_answers_are_right():
    def slow(q, k, v):
        time.sleep(0.1)
        return ALL["ATTEND"].reference(q, k, v)

    assert check_answer(ALL["ATTEND"], slow)[0]
    right, text = check_answer(ALL["ATTEND"], lambda q, k, v: ALL["ATTEND"].reference(q.float(), k.float(), v.float()))
    assert right and "Difference allowed: 1e-05." in text
    assert check_answer(ALL["MY_SPLIT"], lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2))[0]
    assert check_answer(ALL["MY_MERGE"], lambda x: merge_heads(x).mT.contiguous().mT)[0]


def test_float_noise_is_right_and_a_small_error_is_not():
    weights = ALL["TO_WEIGHTS"]
    assert check_answer(weights, lambda s: s.softmax(-1) + 1e-13)[0]
    assert not check_answer(weights, lambda s: s.softmax(-1) * (1 + 1e-6))[0]


@pytest.mark.parametrize(
    "answer, kind", [(lambda s: s.softmax(-1).detach().numpy(), "ndarray"), (lambda s: s.softmax(-1).tolist(), "list")]
)
def test_an_answer_without_tensors_is_right_with_a_remark(answer, kind):
    right, text = check_answer(ALL["TO_WEIGHTS"], answer)
    assert right and f"One remark: it returns a {kind}. Return a torch.Tensor" in text


# What is said where no known mistake fits


def test_the_first_difference_has_its_place_and_both_numbers():
    def zero_somewhere(scores):
        out = scores.softmax(-1)
        out[0, 0, 1] = 0.0
        return out

    expected = ALL["TO_WEIGHTS"].cases[0][0].softmax(-1)[0, 0, 1].item()
    told = say(ALL["TO_WEIGHTS"], zero_somewhere)
    first = f"On scores (2, 3, 5): 0 at [0, 0, 1] (1 of 30 differ); expected {expected:.4g}."
    assert told == f"Not yet. Each row should sum to 1; yours do not. {first}"


def test_a_wrong_shape_is_told():
    """In letters, where each size has one."""
    told = say(ALL["MY_SPLIT"], lambda x, h: x.unflatten(-1, (-1, h)))
    assert told.startswith("Not yet. The shape is not right: yours is (B, T, d, h), asked is (B, h, T, d).")
    assert say(ALL["MY_SPLIT"], lambda x, h: x.clone()) == "Not yet. Your result is `x`, as it came in."


def test_a_wrong_value_does_not_tell_the_right_one():
    told = say(ALL["HEAD_WIDTH"], 12)
    assert told == "Not yet. This is not right: 12 is too small. To go on: d_k = d_model / h, by convention."
    assert say(ALL["ATTENTION_SHAPES"], (2, 5)) == "Not yet. Right as far as it goes: one is missing."
    assert say(ALL["SPLIT_STRIDES"], (105, 7, 21, 2)) == "Not yet. 3 of 4 are right: look again at number 4."
    two = say(ALL["CHOOSE_MASKS"], ("causal", "padding", "padding", "none", "none"))
    assert two.startswith("Not yet. Look at number 4.") and two.endswith("And that is not all: 3 of 5 are right.")
    assert "a text, '64': numbers have no quotation marks." in say(ALL["HEAD_WIDTH"], "64")


def test_an_exception_is_shown_with_its_line_and_shapes(tmp_path):
    """The learner's line, not torch's: einsum fails inside torch."""
    code = 'def dot_scores(q, k):\n    keys = k[..., 1:]\n    return torch.einsum("bqd,bkd->bqk", q, keys)\n'
    (tmp_path / "cell.py").write_text(code)
    space = {"torch": torch}
    exec(compile(code, str(tmp_path / "cell.py"), "exec"), space)
    told = say(ALL["DOT_SCORES"], space["dot_scores"]).splitlines()
    assert told[0].startswith("Not yet. The letter d of einsum stands for two sizes, 5 and 4. One letter is one axis:")
    assert told[2] == "On q (2, 3, 5), k (2, 7, 5):" and told[3].startswith("  RuntimeError: einsum()")
    assert told[4:] == [
        '  in line 3:  return torch.einsum("bqd,bkd->bqk", q, keys)',
        "  shapes there:  q (2, 3, 5), k (2, 7, 5), keys (2, 7, 4)",
    ]


def test_nan_is_explained():
    assert "NaN comes from 0/0" in say(ALL["TO_WEIGHTS"], lambda s: s.softmax(-1) * float("nan"))


def test_a_cut_gradient_is_told():
    told = say(ALL["TO_WEIGHTS"], lambda s: torch.tensor(s.softmax(-1).tolist()))
    assert told.startswith("The values are right, but no gradient flows back")

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad / 2

    told = say(ALL["TO_WEIGHTS"], lambda s: Clipped.apply(s.softmax(-1)))
    assert told.startswith("The values are right, but the gradient is not, on scores (2, 3, 5): ")


def test_a_backward_pass_that_fails_is_told():
    def in_place(scores):
        e = (scores - scores.amax(-1, keepdim=True)).exp()
        total = e.sum(-1, keepdim=True)
        e /= total
        return e

    assert say(ALL["TO_WEIGHTS"], in_place).startswith("The values are right, but the backward pass fails")


# An input that is changed


def test_an_in_place_edit_of_an_input_is_told_and_changes_nothing():
    def in_place(scores, d_model, num_heads):
        scores /= (d_model // num_heads) ** 0.5
        return scores

    before = [inputs[0].clone() for inputs in ALL["SCALE_SCORES"].cases]
    told = say(ALL["SCALE_SCORES"], in_place)
    assert told.startswith("The result is right, but your function changes its input scores")
    assert all(torch.equal(inputs[0], kept) for inputs, kept in zip(ALL["SCALE_SCORES"].cases, before))


def backwards(heads, w_o):
    heads.reverse()
    return torch.cat(heads[::-1], -1) @ w_o


def counts_down(lengths, T):
    return torch.cat([torch.arange(T) < lengths.pop(0) for _ in range(len(lengths))]).view(-1, 1, 1, T)


def sets_the_layer(layer, x):
    layer.batch_first = True
    return layer(x, x, x)[0]


def switches_to_eval(layer, x):
    return layer.eval()(x, x, x, average_attn_weights=False)[1]


@pytest.mark.parametrize(
    "name, answer, changed",
    [
        ("JOIN", backwards, "heads"),
        ("MY_PADDING_MASK", counts_down, "lengths"),
        ("BATCH_FIRST", sets_the_layer, "layer"),
        ("HEAD_MAPS", switches_to_eval, "layer"),
    ],
)
def test_a_changed_list_or_layer_is_told(name, answer, changed):
    assert say(ALL[name], answer).startswith(f"The result is right, but your function changes its input {changed}, ")
    assert check_answer(ALL[name], ALL[name].reference)[0]  # the next one gets it unchanged


# A function that is never run, a result in a bracket too much


def yields(scores):
    yield scores.softmax(-1)


async def waits(scores):
    return scores


async def waits_and_yields(scores):
    yield scores


@pytest.mark.parametrize(
    "answer, words",
    [
        (waits, "Write def in place of async def."),
        (waits_and_yields, "Write def in place of async def."),
        (yields, "Write return in place of yield."),
    ],
)
def test_a_function_that_is_never_run_is_told_so(answer, words):
    """Nothing is left that was never awaited: warnings are errors here."""
    assert words in say(ALL["TO_WEIGHTS"], answer)


def test_a_yield_is_told_where_the_answer_is_used_and_not_compared():
    def drop(weights, p, training):
        yield weights

    assert "Write return in place of yield." in say(ALL["DROP"], drop)


@pytest.mark.parametrize(
    "answer, kind",
    [(lambda s: (s.softmax(-1),), "tuple"), (lambda s: [s.softmax(-1)], "list"), (lambda s: [[s.softmax(-1)]], "list")],
)
def test_a_tensor_in_a_tuple_is_told(answer, kind):
    """As by `return weights,` with a comma behind it."""
    told = say(ALL["TO_WEIGHTS"], answer)
    assert told.startswith(f"Not yet. A {kind} came, with the tensor inside. Is there a comma")


def test_a_mask_for_torch_in_a_tuple_is_told():
    assert "A tuple came, with the tensor inside" in say(ALL["FOR_TORCH"], lambda mask: (~mask,))


@pytest.mark.parametrize(
    "value, words",
    [
        ((1, 638, 400), "Several numbers came. A comma begins a new one"),
        ((1638400,), "A tuple came, with the number"),
        ([1638400], "A list came, with the number"),
        (1638400 + 0j, "This is not right: a complex."),
    ],
)
def test_a_number_with_a_comma_or_an_imaginary_part_is_told(value, words):
    assert ALL["LAYER_PARAMETERS"].reference() == 1638400
    assert words in say(ALL["LAYER_PARAMETERS"], value)
    assert words.split(": ")[-1].rstrip(".") in say(ALL["PARAMETERS"], lambda *sizes: value)
