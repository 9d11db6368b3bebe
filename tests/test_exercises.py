"""The data: every reference is right, every known mistake gets its own message, every stub is not written yet."""

import ast
import dataclasses
import importlib
import inspect
import re
import sys
from itertools import combinations
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mhsa import split_heads
from mhsa.exercises import cells, exercises
from mhsa.exercises.judge import check_answer
from mhsa.exercises.outcome import tensors_in
from mhsa.lessons import WITH_EXERCISES

LESSONS = [importlib.import_module(f"mhsa.exercises.{lesson.name}") for lesson in WITH_EXERCISES]
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
ALL = {exercise.name: exercise for lesson in LESSONS for exercise in exercises(lesson)}
each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


def say(exercise, answer, seconds=5):
    return check_answer(exercise, answer, seconds)[1]


def from_stub(exercise, **replace):
    """Run the stub up to its check, as a learner's cell would."""
    space = dict(vars(sys.modules[exercise.reference.__module__]))
    code = exercise.stub
    for old, new in replace.items():
        code = code.replace(old, new)
    exec(code[: code.rindex(f"ex.{exercise.name}.check(")], space)
    return space[exercise.answer_name]


# The data


def test_there_is_enough_of_everything():
    messages = {(exercise.name, message) for exercise in ALL.values() for _, message in exercise.mistakes}
    assert len(ALL) >= 66 and len(messages) >= 542
    assert all(len(exercises(lesson)) >= 4 for lesson in LESSONS)
    assert {exercise.difficulty for exercise in ALL.values()} == {1, 2, 3, 4, 5}
    assert any(exercise.asks_value for exercise in ALL.values()) and any(exercise.given for exercise in ALL.values())


@each_exercise
def test_the_reference_is_right(exercise):
    right, text = check_answer(exercise, exercise.reference() if exercise.asks_value else exercise.reference)
    assert right and text.startswith("Right."), text


@each_exercise
def test_each_known_mistake_gets_its_own_message(exercise):
    told = [say(exercise, wrong) for wrong, _ in exercise.mistakes]
    assert told == [f"Not yet. {message}" for _, message in exercise.mistakes]
    assert len(set(told)) == len(told)


@each_exercise
def test_the_stub_is_not_written_yet(exercise):
    assert say(exercise, from_stub(exercise)).startswith("Not written yet: ")
    assert len(exercise.stub.splitlines()) <= 15
    assert exercise.stub.endswith(f"ex.{exercise.name}.check({exercise.answer_name})")


@each_exercise
def test_inputs_have_distinct_sizes_with_one_sentence_and_one_token(exercise):
    """Where inputs have a batch and tokens. Axes of one length may hide a swap, so some input must have none."""
    if exercise.name in ("STACK_WEIGHTS", "DROP"):  # no batch; one row length for all
        return
    tensors = [x for inputs in exercise.cases for x in inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    shapes = [x.shape for x in tensors if x.dim() >= 3]
    if shapes:
        assert any(shape[0] == 1 for shape in shapes) and any(1 in shape[1:3] for shape in shapes)
        assert any(len(set(shape[:3])) == 3 for shape in shapes)


@each_exercise
def test_messages_do_not_give_the_answer_away(exercise):
    source = inspect.getsource(exercise.reference).splitlines()[-1].strip().removeprefix("return ")
    answer = re.escape(str(exercise.reference()) if exercise.asks_value else source)
    for text in [*exercise.hints, *(message for _, message in exercise.mistakes)]:
        assert len(text) < 320 and text[-1] in ".?!)`"
        assert not re.search(rf"(?<![\d.,]){answer}(?![\d,])", text)


@each_exercise
def test_card_and_solution(exercise, capsys):
    card = exercise.card
    assert exercise.title in card and f"**Difficulty** {exercise.difficulty} of 5" in card and exercise.task in card
    assert f"**Minutes** {exercise.minutes}{' · *extra*' * exercise.extra}\n" in card
    assert f"ex.{exercise.name}.hint()" in card
    exercise.solution()
    assert capsys.readouterr().out.strip() == inspect.getsource(exercise.reference).strip()
    assert "0x" not in repr(exercise)


@each_exercise
def test_a_second_way_is_shown_and_right(exercise, capsys):
    """As printed, under the name of the answer; a value, or what another module holds, has no source to show."""
    written_here = [x for x in exercise.also_right if inspect.isfunction(x) and x.__module__.endswith(exercise.lesson)]
    for way in range(2, len(written_here) + 2):
        exercise.solution(way)
        shown = capsys.readouterr().out
        space = dict(vars(sys.modules[exercise.reference.__module__]))
        exec(shown, space)
        assert check_answer(exercise, space[exercise.answer_name])[0], shown
    assert written_here or exercise.asks_value
    there_are = f"are {1 + len(written_here)} ways" if written_here else "is 1 way"
    for way in (0, -1, len(written_here) + 2, "2", None):
        exercise.solution(way)
        assert capsys.readouterr().out.startswith(f"There {there_are} to show. ")


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"hints": "one hint"}, "MY_SPLIT: hints='one hint' is no list: write hints=[...]"),
        ({"hints": ("first", "second")}, "hints=('first', 'second') is no list"),
        ({"also_right": split_heads}, "is no list: write also_right=[...]"),
        ({"mistakes": (len, "a message")}, "mistakes=(<built-in function len>, 'a message') is no list"),
        ({"mistakes": [len, "a message"]}, "mistakes holds <built-in function len>: write pairs (wrong answer, what"),
        ({"mistakes": [(len, "a message"), (len,)]}, "mistakes holds (<built-in function len>,): write pairs"),
        ({"mistakes": ["ab"]}, "mistakes holds 'ab'"),
        ({"mistakes": [("a message", len)]}, "mistakes holds ('a message', <built-in function len>)"),
    ],
)
def test_what_is_no_list_or_no_pair_is_refused_at_import(wrong, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        dataclasses.replace(ALL["MY_SPLIT"], **wrong)


def test_inputs_depend_on_the_exercise_alone():
    """Made again, in another order and without the exercises before it, they hold the same numbers."""
    for name in ("MULTI_HEAD", "SCORES_BTHD", "DOT_SCORES"):
        again = dataclasses.replace(ALL[name])
        assert all(torch.equal(x, y) for x, y in zip(tensors_in(again.cases), tensors_in(ALL[name].cases), strict=True))
    first = [
        tensors_in(ALL[name].cases)[0].flatten()[:7] for name in ("DOT_SCORES", "TO_WEIGHTS", "ATTEND", "MULTI_HEAD")
    ]
    assert all(not torch.equal(x, y) for x, y in combinations(first, 2))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.__name__[-8:])
def test_the_introduction_says_how_long_the_core_takes(lesson):
    introduction = cells(lesson)[0][2]
    core = sum(exercise.minutes for exercise in exercises(lesson) if not exercise.extra)
    rest = sum(exercise.minutes for exercise in exercises(lesson)) - core
    assert list(map(int, re.findall(r"\d+", introduction))) == [core, rest][: 1 + bool(rest)] and core > 0


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.__name__[-8:])
def test_names_and_cells(lesson):
    assert all(vars(lesson)[exercise.name] is exercise for exercise in exercises(lesson))
    made = cells(lesson)
    code = [source for kind, _, source in made if kind == "code"]
    assert code[1:] == [exercise.stub for exercise in exercises(lesson)]
    assert len({id for _, id, _ in made}) == len(made)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", id) for _, id, _ in made)
    assert made[1][2] == f"from mhsa.exercises import {lesson.__name__[-8:]} as ex"


def names_in(code):
    for node in ast.walk(ast.parse(code)):
        yield from (getattr(node, attribute, None) for attribute in ("id", "arg", "name", "asname"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.__name__[-8:])
def test_the_notebook_holds_the_cells_and_uses_no_name_of_an_exercise(lesson):
    """The stored cells are the data's; and an answer must not replace what the lesson itself uses."""
    [path] = NOTEBOOKS.glob(f"{lesson.__name__[-2:]}_*.ipynb")
    made, stored = cells(lesson), nbformat.read(path, as_version=4).cells
    ids = {id for _, id, _ in made}
    others = [cell.source for cell in stored if cell.cell_type == "code" and cell.id not in {*ids, "quiz"}]
    used = {name for source in others for name in names_in(source)}
    assert not used & {"ex", *(exercise.answer_name for exercise in exercises(lesson))}
    if not any(cell.id in ids for cell in stored):
        pytest.skip("the exercises are not in the notebook yet")
    assert [(cell.cell_type, cell.id, cell.source) for cell in stored if cell.id in ids] == made


def test_hints_come_one_by_one_and_run_out(capsys):
    exercise = dataclasses.replace(ALL["MY_SPLIT"])
    for _ in range(5):
        exercise.hint()
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == [f"Hint {i} of 3: {hint}" for i, hint in enumerate(exercise.hints, 1)]
    assert told[3] == told[4] == "There are no more than these 3 hints. ex.MY_SPLIT.solution() shows an answer."


def test_an_import_leaves_the_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    importlib.reload(LESSONS[1]), importlib.reload(LESSONS[4])
    assert torch.equal(torch.randn(3), expected)


# Right answers, written differently


@each_exercise
def test_other_right_answers_pass(exercise):
    assert exercise.also_right
    for answer in exercise.also_right:
        right, text = check_answer(exercise, answer)
        assert right, text


@pytest.mark.parametrize("value", [[2, 5, 11], torch.Size([2, 5, 11]), np.array([2, 5, 11]), torch.tensor([2, 5, 11])])
def test_a_shape_may_be_written_in_any_way(value):
    assert check_answer(ALL["ATTENTION_SHAPES"], value) == (True, "Right.")


def test_words_may_be_capital_and_numbers_rounded():
    assert check_answer(ALL["CHOOSE_MASKS"], ["Causal", "padding ", "BOTH", "padding", "none"])[0]
    assert check_answer(ALL["FLOAT_MASK_ROW"], (0.37, 0.37, 0.13, 0.13))[0]
    assert not check_answer(ALL["FLOAT_MASK_ROW"], (0.38, 0.38, 0.12, 0.12))[0]


# Known mistakes, written differently


def by_columns(weights, p, training):
    kept = torch.rand(weights.shape[0], 1, weights.shape[2]) >= p
    return weights * kept / (1 - p) if training else weights


def the_same_for_all(weights, p, training):
    kept = torch.rand(weights.shape[1:]) >= p
    return weights * kept / (1 - p) if training else weights


def closed_by(number):
    def masked_attention(q, k, v, mask):
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, number)
        return (scores.softmax(-1) * mask.any(-1, keepdim=True)) @ v

    return masked_attention


def own_linear(d_model, num_heads, d_k):
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(d_k, d_model))

        def forward(self, x):
            return x @ self.weight  # turned round: takes d_k numbers

    return torch.nn.ModuleList(Head() for _ in range(num_heads))


SAME_MISTAKE = [
    ("DROP", by_columns, "whole columns"),
    ("DROP", the_same_for_all, "same places in every sentence"),
    ("MASKED_ATTENTION", closed_by(-50), "the closed key is the best"),
    ("MASKED_ATTENTION", closed_by(-1000), "the closed key is the best"),
    ("MAKE_HEADS", own_linear, "takes the width that goes *in* first"),
]


@pytest.mark.parametrize("name, answer, words", SAME_MISTAKE)
def test_a_known_mistake_is_known_in_other_words(name, answer, words):
    assert words in say(ALL[name], answer)


@pytest.mark.parametrize("number", [-1e9, -1e30, torch.finfo(torch.float32).min])
def test_any_number_below_every_score_closes_a_key(number):
    assert check_answer(ALL["MASKED_ATTENTION"], closed_by(number))[0]


@pytest.mark.parametrize(
    "answer",
    [lambda w, p, training: F.dropout(w.detach(), p, training), lambda w, p, training: F.dropout(w, p, training).data],
)
def test_dropped_weights_must_pass_a_gradient(answer):
    assert say(ALL["DROP"], answer).startswith("The values are right, but no gradient flows back")


def test_an_odd_answer_to_drop_is_told_in_words():
    assert "'a tuple'; expected '0.5 of the weights become 0, each on its own" in say(ALL["DROP"], lambda *a: (a[0],))
    assert "'shape (2, 101)'" in say(ALL["DROP"], lambda w, p, training: w.sum(-1))


def test_no_exercise_that_asks_a_number_asks_one_that_its_lesson_prints():
    for exercise in ALL.values():
        if exercise.asks_value and isinstance(exercise.reference(), int) and exercise.reference() > 100:
            [path] = NOTEBOOKS.glob(f"{exercise.lesson[-2:]}_*.ipynb")
            cells = nbformat.read(path, as_version=4).cells
            said = [cell.source for cell in cells]
            said += [output.get("text", "") for cell in cells if cell.cell_type == "code" for output in cell.outputs]
            assert not any(f"{exercise.reference():,}" in words for words in said), exercise.name
