"""The data: every reference is right, every known mistake gets its own message, no message gives an answer away."""

import dataclasses
import importlib
import inspect
import re
from itertools import combinations
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from exercise_helpers import ALL, MODULES, each_exercise, say

from mhsa.exercises import exercises
from mhsa.exercises.judge import check_answer
from mhsa.exercises.outcome import tensors_in

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def test_there_is_enough_of_everything():
    messages = {(exercise.name, message) for exercise in ALL.values() for _, message in exercise.mistakes}
    assert len(ALL) >= 66 and len(messages) >= 542
    assert all(len(exercises(lesson)) >= 4 for lesson in MODULES)
    readme = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    [more_than] = re.findall(r"More than (\d+) exercises know more than (\d+) wrong answers", readme)
    assert len(ALL) > int(more_than[0]) and len(messages) > int(more_than[1])
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


def test_inputs_depend_on_the_exercise_alone():
    """Made again, in another order and without the exercises before it, they hold the same numbers."""
    for name in ("MULTI_HEAD", "SCORES_BTHD", "DOT_SCORES"):
        again = dataclasses.replace(ALL[name])
        assert all(torch.equal(x, y) for x, y in zip(tensors_in(again.cases), tensors_in(ALL[name].cases), strict=True))
    first = [
        tensors_in(ALL[name].cases)[0].flatten()[:7] for name in ("DOT_SCORES", "TO_WEIGHTS", "ATTEND", "MULTI_HEAD")
    ]
    assert all(not torch.equal(x, y) for x, y in combinations(first, 2))


def test_an_import_leaves_the_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    importlib.reload(MODULES[1]), importlib.reload(MODULES[4])
    assert torch.equal(torch.randn(3), expected)


@each_exercise
def test_messages_do_not_give_the_answer_away(exercise):
    source = inspect.getsource(exercise.reference).splitlines()[-1].strip().removeprefix("return ")
    answer = re.escape(str(exercise.reference()) if exercise.asks_value else source)
    for text in [*exercise.hints, *(message for _, message in exercise.mistakes)]:
        assert len(text) < 320 and text[-1] in ".?!)`"
        assert not re.search(rf"(?<![\d.,]){answer}(?![\d,])", text)


def test_no_exercise_that_asks_a_number_asks_one_that_its_lesson_prints():
    for exercise in ALL.values():
        if exercise.asks_value and isinstance(exercise.reference(), int) and exercise.reference() > 100:
            [path] = NOTEBOOKS.glob(f"{exercise.lesson[-2:]}_*.ipynb")
            cells = nbformat.read(path, as_version=4).cells
            said = [cell.source for cell in cells]
            said += [output.get("text", "") for cell in cells if cell.cell_type == "code" for output in cell.outputs]
            assert not any(f"{exercise.reference():,}" in words for words in said), exercise.name
