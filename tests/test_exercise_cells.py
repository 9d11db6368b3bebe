"""An exercise as notebooks show it and learners call it: card, stub, hints, solutions; what is refused at import."""

import ast
import dataclasses
import inspect
import re
import sys
from pathlib import Path

import nbformat
import pytest
from exercise_helpers import ALL, MODULES, each_exercise, say

from mhsa import split_heads
from mhsa.exercises import cells, exercises, progress
from mhsa.exercises.judge import check_answer

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
each_lesson = pytest.mark.parametrize("lesson", MODULES, ids=lambda lesson: lesson.__name__[-8:])


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


def from_stub(exercise, **replace):
    """Run the stub up to its check, as a learner's cell would."""
    space = dict(vars(sys.modules[exercise.reference.__module__]))
    code = exercise.stub
    for old, new in replace.items():
        code = code.replace(old, new)
    exec(code[: code.rindex(f"ex.{exercise.name}.check(")], space)
    return space[exercise.answer_name]


@each_exercise
def test_the_stub_is_not_written_yet(exercise):
    assert say(exercise, from_stub(exercise)).startswith("Not written yet: ")
    assert len(exercise.stub.splitlines()) <= 15
    assert exercise.stub.endswith(f"ex.{exercise.name}.check({exercise.answer_name})")


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


def test_hints_come_one_by_one_and_run_out(capsys):
    exercise = dataclasses.replace(ALL["MY_SPLIT"])
    for _ in range(5):
        exercise.hint()
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == [f"Hint {i} of 3: {hint}" for i, hint in enumerate(exercise.hints, 1)]
    assert told[3] == told[4] == "There are no more than these 3 hints. ex.MY_SPLIT.solution() shows an answer."


def test_check_prints_and_records_only_what_is_right(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "progress.json"))
    assert ALL["MY_SPLIT"].check(lambda x, h: x) is None and progress.solved("lesson03") == []
    assert ALL["MY_SPLIT"].check(split_heads) is None and progress.solved("lesson03") == ["MY_SPLIT"]
    assert capsys.readouterr().out.count("\n") == 2


@each_lesson
def test_the_introduction_says_how_long_the_core_takes(lesson):
    introduction = cells(lesson)[0][2]
    core = sum(exercise.minutes for exercise in exercises(lesson) if not exercise.extra)
    rest = sum(exercise.minutes for exercise in exercises(lesson)) - core
    assert list(map(int, re.findall(r"\d+", introduction))) == [core, rest][: 1 + bool(rest)] and core > 0


@each_lesson
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


@each_lesson
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
