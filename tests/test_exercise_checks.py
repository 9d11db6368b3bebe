"""What a check says: of right answers of any kind, of errors no data foresees, and of whatever else may be passed."""

import sys
import threading
import time

import pytest
import torch
from test_exercises import ALL, say

from mhsa import merge_heads, split_heads
from mhsa.exercises import progress
from mhsa.exercises.judge import check_answer
from mhsa.exercises.lesson01 import weights_by_hand

VALUES = [exercise for exercise in ALL.values() if exercise.asks_value]


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "progress.json"))


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


def test_an_answer_that_insists_on_float32_is_right():
    def by_eye(scores):
        return scores.softmax(-1) @ torch.eye(scores.shape[-1], dtype=torch.float32)

    right, text = check_answer(ALL["TO_WEIGHTS"], by_eye)
    assert right and "Difference allowed: 1e-05." in text


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
    assert told == f"Not yet. On scores (2, 3, 5): 0 at [0, 0, 1] (1 of 30 differ); expected {expected:.4g}."


def test_a_wrong_shape_is_told():
    told = say(ALL["MY_SPLIT"], lambda x, h: x)
    assert told == "Not yet. On x (2, 5, 21), num_heads=3: shape (2, 5, 21); expected shape (2, 3, 5, 7)."


def test_a_wrong_value_does_not_tell_the_right_one():
    assert say(ALL["HEAD_WIDTH"], 12) == "Not yet. This is not right: 12 is too small."
    assert say(ALL["ATTENTION_SHAPES"], (2, 5)) == "Not yet. This is not right: 2 numbers are too few."
    assert say(ALL["SPLIT_STRIDES"], (105, 7, 21, 2)) == "Not yet. This is not right: 2 at [3] (1 of 4 differ)."
    assert "result 3 of 5: 'padding'" in say(ALL["CHOOSE_MASKS"], ("causal", "padding", "padding", "none", "none"))
    assert say(ALL["HEAD_WIDTH"], "64").endswith("a text, '64': numbers have no quotation marks.")


def test_an_exception_is_shown_with_its_line_and_shapes(tmp_path):
    """The learner's line, not torch's: einsum fails inside torch."""
    code = 'def dot_scores(q, k):\n    keys = k[..., 1:]\n    return torch.einsum("bqd,bkd->bqk", q, keys)\n'
    (tmp_path / "cell.py").write_text(code)
    space = {"torch": torch}
    exec(compile(code, str(tmp_path / "cell.py"), "exec"), space)
    told = say(ALL["DOT_SCORES"], space["dot_scores"]).splitlines()
    assert told[0] == "Not yet. On q (2, 3, 5), k (2, 7, 5) your code stops with an error:"
    assert told[1].startswith("  RuntimeError: einsum()")
    assert told[2:] == [
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


# Nothing is changed, nothing breaks the check


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


def test_the_learners_tensors_and_settings_stay_as_they_are():
    answer = torch.tensor([2.0, 5.0, 11.0], requires_grad=True)
    weight = torch.ones(5, requires_grad=True)
    torch.manual_seed(3)
    expected = torch.randn(2)
    torch.manual_seed(3)
    assert check_answer(ALL["ATTENTION_SHAPES"], answer)[0] and answer.grad is None
    check_answer(ALL["TO_WEIGHTS"], lambda s: s.softmax(-1) * weight[0] + torch.rand(1))
    assert weight.grad is None and torch.equal(torch.randn(2), expected) and torch.get_default_dtype() == torch.float32


class Evil:
    __signature__ = property(lambda self: 1 / 0)

    def __call__(self, *inputs):
        raise ValueError(self)

    def __repr__(self):
        raise RuntimeError("no repr")


def endless(*inputs):
    while True:
        pass


def leaves(*inputs):
    sys.exit(3)


def deep(*inputs):
    return deep(*inputs)


def prints(scores):
    for i in range(1000):
        print("row", i)
    return scores


def yields(scores):
    yield scores.softmax(-1)


async def waits(scores):
    return scores


def nested(n=100):
    return [nested(n - 1)] if n else 1


BAD_ANSWERS = {
    "None": (None, "Not written yet"),
    "dots": (..., "Not written yet"),
    "a tensor": (torch.ones(2), "Pass the function itself"),
    "a text": ("softmax", "Pass the function itself"),
    "a class": (torch.nn.Softmax, "A function is asked here, and Softmax is a class"),
    "no argument": (lambda: 1, "cannot be called as to_weights(scores): too many positional arguments"),
    "two arguments": (lambda a, b: a, "cannot be called as to_weights(scores): missing a required argument: 'b'"),
    "returns None": (lambda s: None, "Not written yet"),
    "sometimes None": (lambda s: s.softmax(-1) if s.shape[0] == 2 else None, "returns nothing. Does each way"),
    "no such method": (lambda s: s.nope(), "AttributeError: 'Tensor' object has no attribute 'nope'"),
    "NaN": (lambda s: s * float("nan"), "NaN comes from"),
    "a float": (lambda s: 0.5, "shape ()"),
    "a bool": (lambda s: True, "shape ()"),
    "a text back": (lambda s: "done", "'done'"),
    "a dict": (lambda s: {"w": s}, "returns a dict"),
    "an object": (lambda s: Evil(), "returns an Evil"),
    "a generator": (lambda s: (row for row in s), "returns a generator"),
    "a list of tensors": (lambda s: [s, s], "2 results came back; expected 1"),
    "a function back": (lambda s: prints, "returns a function"),
    "a module": (torch.nn.Identity(), "Not yet"),
    "exit": (leaves, "SystemExit: 3"),
    "interrupt": (lambda s: (_ for _ in ()).throw(KeyboardInterrupt), "KeyboardInterrupt"),
    "recursion": (deep, "RecursionError"),
    "prints": (prints, "Your function printed:\n  row 0"),
    "evil": (Evil(), "cannot make sense"),
    "huge": (lambda s: torch.zeros(1).expand(10**6, 10**6), "shape (1000000, 1000000)"),
    "too much memory": (lambda s: torch.ones(10**15), "Error"),
    "sparse": (lambda s: s.to_sparse(), "returns a Tensor"),
    "meta": (lambda s: s.to("meta"), "returns a Tensor"),
    "complex": (lambda s: s * 1j, "returns a Tensor"),
    "nested": (lambda s: nested(), "shape"),
    "half": (lambda s: s.softmax(-1).half(), "Not yet"),
    "integers": (lambda s: s.long(), "Not yet"),
    "resized": (lambda s: s.resize_(1), "shape (1,)"),
    "backward inside": (lambda s: s.backward(), "RuntimeError"),
}


@pytest.mark.parametrize("answer, words", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_no_answer_breaks_the_check(answer, words, capsys):
    assert ALL["TO_WEIGHTS"].check(answer) is None
    told = capsys.readouterr().out
    assert words in told and "Right." not in told and "0x" not in told


BAD_VALUES = [
    object(),
    {"a": 1},
    lambda: 64,
    int,
    b"64",
    [],
    [[1], [2, 3]],
    (None,),
    True,
    float("nan"),
    10**30,
    -1,
    torch.zeros(0),
    Evil(),
]


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("exercise", VALUES, ids=lambda exercise: exercise.name)
def test_no_value_breaks_the_check(exercise, value):
    right, told = check_answer(exercise, value)
    assert not right and told and "expected" not in told


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


def test_input_is_refused_and_not_taken_for_an_endless_loop():
    before = input
    told = say(ALL["TO_WEIGHTS"], lambda s: s.softmax(int(input("axis: "))), seconds=1)
    assert "RuntimeError: input() waits for someone to type" in told and "loop" not in told and input is before


def test_what_is_printed_is_shown_once_for_each_input():
    def prints_shape(scores):
        print(tuple(scores.shape))
        return scores.softmax(-1)

    shapes = [tuple(scores.shape) for (scores,) in ALL["TO_WEIGHTS"].cases]
    assert say(ALL["TO_WEIGHTS"], prints_shape).splitlines()[3:] == [f"  {shape}" for shape in shapes]


def test_an_endless_loop_is_stopped():
    threads = threading.active_count()
    told = say(ALL["TO_WEIGHTS"], endless, seconds=0.2)
    assert told.startswith("No answer after 0.2 seconds.") and "restart" not in told
    assert threading.active_count() == threads and torch.get_default_dtype() == torch.float32

    def prints_for_ever(scores):
        while True:
            print("again")

    told = say(ALL["TO_WEIGHTS"], prints_for_ever, seconds=0.2)
    assert told.startswith("No answer after") and told.count("again") == 12 and told.endswith("...")


def test_an_endless_loop_that_catches_errors_is_stopped():
    def tries_again(scores):
        while True:
            try:  # noqa: SIM105
                time.sleep(0.001)
            except Exception:
                pass

    threads = threading.active_count()
    assert "restart" not in say(ALL["TO_WEIGHTS"], tries_again, seconds=0.2)
    assert threading.active_count() == threads


def test_a_loop_that_cannot_be_stopped_is_left_behind_and_said():
    free = threading.Event()

    def catches_everything(scores):
        while not free.is_set():
            try:  # noqa: SIM105
                time.sleep(0.001)
            except BaseException:
                pass

    told = say(ALL["TO_WEIGHTS"], catches_everything, seconds=0.2)
    free.set()
    assert told.endswith("It could not be stopped: restart the kernel before you go on.")
    assert sys.stdout is not None and check_answer(ALL["TO_WEIGHTS"], weights_by_hand)[0]


def test_a_kernel_interrupt_goes_through_and_stops_the_function():
    """As in a notebook: the interrupt reaches the main thread while the function runs in another."""
    import _thread

    threads = threading.active_count()
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        check_answer(ALL["TO_WEIGHTS"], endless)
    time.sleep(0.1)
    assert threading.active_count() == threads and torch.get_default_dtype() == torch.float32


def test_check_prints_and_records_only_what_is_right(capsys):
    assert ALL["MY_SPLIT"].check(lambda x, h: x) is None and progress.solved("lesson03") == []
    assert ALL["MY_SPLIT"].check(split_heads) is None and progress.solved("lesson03") == ["MY_SPLIT"]
    assert capsys.readouterr().out.count("\n") == 2
