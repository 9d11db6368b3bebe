"""Nothing that an answer does breaks the check or changes the session: whatever is passed, printed or never ends."""

import contextlib
import sys
import threading
import time

import pytest
import torch
from exercise_helpers import ALL, say

from mhsa.exercises.judge import check_answer
from mhsa.exercises.lesson01 import weights_by_hand

VALUES = [exercise for exercise in ALL.values() if exercise.asks_value]


@pytest.fixture(autouse=True)
def every_thread_ends():
    before = {*threading.enumerate()}
    yield
    for thread in {*threading.enumerate()} - before:
        thread.join(5)
        assert not thread.is_alive()


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
    "a float": (lambda s: 0.5, "yours is (), asked is (B, T_q, T_k)"),
    "a bool": (lambda s: True, "Booleans came"),
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
    "resized": (lambda s: s.resize_(1), "yours is (1,)"),
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


def test_the_learners_tensors_and_settings_stay_as_they_are():
    answer = torch.tensor([2.0, 5.0, 11.0], requires_grad=True)
    weight = torch.ones(5, requires_grad=True)
    torch.manual_seed(3)
    expected = torch.randn(2)
    torch.manual_seed(3)
    assert check_answer(ALL["ATTENTION_SHAPES"], answer)[0] and answer.grad is None
    check_answer(ALL["TO_WEIGHTS"], lambda s: s.softmax(-1) * weight[0] + torch.rand(1))
    assert weight.grad is None and torch.equal(torch.randn(2), expected) and torch.get_default_dtype() == torch.float32


def test_input_is_refused_and_not_taken_for_an_endless_loop():
    told = say(ALL["TO_WEIGHTS"], lambda s: s.softmax(int(input("axis: "))), seconds=1)
    assert "RuntimeError: input() waits for someone to type" in told and "loop" not in told
    assert input.__module__ == "builtins"


def test_what_is_printed_is_shown_once_for_each_input():
    def prints_shape(scores):
        print(tuple(scores.shape))
        return scores.softmax(-1)

    shapes = [tuple(scores.shape) for (scores,) in ALL["TO_WEIGHTS"].cases]
    assert say(ALL["TO_WEIGHTS"], prints_shape).splitlines()[3:] == [f"  {shape}" for shape in shapes]


# Code that never ends


def test_an_endless_loop_is_stopped():
    told = say(ALL["TO_WEIGHTS"], endless, seconds=0.2)
    assert told.startswith("No answer after 0.2 seconds.") and "restart" not in told
    assert torch.get_default_dtype() == torch.float32

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

    assert "restart" not in say(ALL["TO_WEIGHTS"], tries_again, seconds=0.2)


def test_a_request_to_stop_is_repeated():
    def ends_at_the_third(scores):
        for _ in range(2):
            with contextlib.suppress(BaseException):
                endless()
        endless()

    told = say(ALL["TO_WEIGHTS"], ends_at_the_third, seconds=0.2)
    assert told.startswith("No answer after 0.2 seconds.") and "restart" not in told


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

    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        check_answer(ALL["TO_WEIGHTS"], endless)
    assert torch.get_default_dtype() == torch.float32
