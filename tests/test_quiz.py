"""Quizzes without a browser. What is right in a question is computed, in quiz_keys/."""

import re
import subprocess
import sys
from html import unescape
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from ipywidgets import RadioButtons, Text
from quiz_keys import KEYS

from mhsa.exercises import progress
from mhsa.exercises.quiz import Choice, Number, Option, QuestionView, Quiz, to_html, to_number

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
QUIZZES = {lesson: import_module(lesson.replace("lesson", "mhsa.exercises.questions")) for lesson in KEYS}
ALL = {f"{lesson}, {question.id}": question for lesson, module in QUIZZES.items() for question in module.QUESTIONS}
QUESTIONS = [*ALL.values()]
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=ALL)


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "progress.json"))


def ask(question):
    return QuestionView(1, question, lambda: None)


def answer(asked, *given):
    """Put in a number, or the options of these numbers, and press Check; what is said, as text."""
    first = asked.controls[0]
    if isinstance(first, Text):
        [first.value] = map(str, given)
    elif isinstance(first, RadioButtons):
        [first.index] = given
    else:
        for i, box in enumerate(asked.controls):
            box.value = i in given
    asked.button.click()
    return unescape(re.sub("<.*?>", "", asked.feedback.value.replace("<br>", "\n")))


def right_answer(question):
    if isinstance(question, Number):
        return [question.answer]
    return [i for i, option in enumerate(question.options) if option.right]


def wrong_answers(question):
    """One for each explanation."""
    if isinstance(question, Number):
        return [[number] for number in question.wrong]
    return [[i] for i, option in enumerate(question.options) if not option.right]


# The questions


def test_there_is_enough_of_everything():
    assert len(QUESTIONS) >= 59 and all(len(module.QUESTIONS) >= 5 for module in QUIZZES.values())
    for module in QUIZZES.values():
        kinds = {type(question) if isinstance(question, Number) else question.several for question in module.QUESTIONS}
        assert kinds == {Number, False, True}


@pytest.mark.parametrize("lesson", QUIZZES)
def test_each_question_has_its_key_and_each_key_its_question(lesson):
    assert sorted(question.id for question in QUIZZES[lesson].QUESTIONS) == sorted(KEYS[lesson])


@pytest.mark.parametrize("name", ALL)
def test_the_key_is_what_is_computed(name):
    lesson, id = name.split(", ")
    question, computed = ALL[name], KEYS[lesson][id]()
    if isinstance(question, Number):
        assert abs(question.answer - computed) <= question.tolerance / 100
        return
    assert len(computed) == len(question.options)
    for words, is_right in computed.items():
        [option] = [option for option in question.options if option.text == words] or [
            option for option in question.options if words in option.text
        ]
        assert option.right == bool(is_right), option.text
    assert question.several or sum(option.right for option in question.options) == 1


@each_question
def test_every_wrong_answer_has_an_explanation_of_its_own(question):
    told = [answer(ask(question), *wrong) for wrong in wrong_answers(question)]
    assert len(told) >= 2
    assert all(text.startswith("✗ ") and len(text.split(". ", 1)[1]) > 30 for text in told)
    assert len({text.split(" is not right. ")[1] for text in told}) == len(told)


@each_question
def test_the_right_answer_is_right_and_explained(question):
    asked = ask(question)
    text = answer(asked, *right_answer(question))
    assert asked.right and "✗" not in text
    assert all(len(line.split(" is right. ")[1]) > 20 for line in text.split("\n"))


def test_no_explanation_is_used_twice():
    words = [option.why for question in QUESTIONS if isinstance(question, Choice) for option in question.options]
    words += [
        why
        for question in QUESTIONS
        if isinstance(question, Number)
        for why in (question.why, question.otherwise, *question.wrong.values())
    ]
    assert len(set(words)) == len(words) >= 270


@pytest.mark.parametrize("question", [q for q in QUESTIONS if isinstance(q, Number)], ids=lambda q: str(q.answer))
def test_numbers_lie_far_enough_apart(question):
    numbers = sorted([question.answer, *question.wrong])
    assert all(b - a > 2 * question.tolerance for a, b in zip(numbers, numbers[1:]))
    assert question.otherwise in question.judge("-7")[1][0]


@each_question
def test_words_show_as_they_are_written(question):
    """Options are plain on their controls; nothing is HTML, and nothing is struck out or a table in Markdown."""
    options = getattr(question, "options", ())
    whys = [option.why for option in options]
    assert not any(set("`*<>&|~$") & set(option.text) for option in options)
    assert not any(set("<>&|~$") & set(words) for words in [question.text, *whys])


def wrong_whys(question):
    if isinstance(question, Number):
        return [question.otherwise, *question.wrong.values()]
    return [option.why for option in question.options if not option.right]


@pytest.mark.parametrize("lesson", QUIZZES)
def test_explanations_point_at_sections_that_exist(lesson):
    [path] = NOTEBOOKS.glob(f"{lesson[-2:]}_*.ipynb")
    lines = [line for cell in nbformat.read(path, as_version=4).cells for line in cell.source.splitlines()]
    there = {match[1] for line in lines if (match := re.match(r"## (\d+)[.] ", line))}
    for why in (why for question in QUIZZES[lesson].QUESTIONS for why in wrong_whys(question)):
        named = re.findall(r"(?<!lesson \d, )section (\d+)", why, re.IGNORECASE)
        assert set(named) <= there and (named or "trap" in why or "lesson" in why), why


# A question on the screen

ONE = Choice(
    "Which?",
    [Option("three", "Because of <b>."), Option("five", "No `x` there."), Option("seven", "Yes.", True)],
    id="one",
)
SOME = Choice(
    "Which ones?",
    [Option("two", "Even."), Option("three", "Prime.", True), Option("five", "Odd.", True)],
    several=True,
    id="some",
)
FIVE = Number("How many?", 5.0, "Count.", {4.0: "One is missing."}, "Count again.", tolerance=0.1, id="five")


def test_a_question_can_be_tried_again():
    asked = ask(ONE)
    assert answer(asked, 1) == "✗ b is not right. No x there." and asked.right is False
    assert answer(asked, 2) == "✓ c is right. Yes." and asked.right is True


def test_nothing_chosen_is_no_answer():
    for question in (ONE, SOME, FIVE):
        asked = ask(question)
        asked.button.click()
        assert asked.right is None and "answer" not in asked.feedback.value and "right" not in asked.feedback.value


def test_several_tells_of_each_tick_and_how_many_are_missing():
    asked = ask(SOME)
    assert answer(asked, 1) == "✓ b is right. Prime.\n✗ Not all yet: 1 more is true." and asked.right is False
    assert answer(asked, 0, 1, 2).splitlines()[0] == "✗ a is not right. Even." and asked.right is False
    assert answer(asked, 0).endswith("2 more are true.")
    assert answer(asked, 1, 2) == "✓ b is right. Prime.\n✓ c is right. Odd." and asked.right is True


def test_a_number_known_unknown_and_none():
    asked = ask(FIVE)
    assert answer(asked, "4") == "✗ 4 is not right. One is missing."
    assert answer(asked, "6") == "✗ 6 is not right. Count again." and asked.right is False
    assert answer(asked, " 5,05 ") == "✓ 5,05 is right. Count." and asked.right is True
    assert answer(asked, "<b>").startswith("Type a number alone") and asked.right is True
    assert answer(asked, "nan").startswith("Type a number alone")


@pytest.mark.parametrize(
    "typed, value",
    [
        ("12", 12),
        ("1,048,576", 1048576),
        ("1 048 576", 1048576),
        ("1_048_576", 1048576),
        ("0.5", 0.5),
        ("0,125", 0.125),
        ("-3", -3),
        ("−3", -3),
        ("1e3", 1000),
        ("", None),
        ("5 MB", None),
        ("nan", None),
        ("inf", None),
        ("1,2,3", None),
    ],
)
def test_numbers_as_people_type_them(typed, value):
    assert to_number(typed) == value


def test_enter_in_the_field_checks():
    asked = ask(FIVE)
    asked.controls[0].value = "5"  # the browser sends it on Enter
    assert asked.right is True and not asked.controls[0].continuous_update


def test_what_is_shown_is_escaped():
    assert to_html("a <b> & `x < y` and *her*") == "a &lt;b&gt; &amp; <code>x &lt; y</code> and <em>her</em>"
    assert "&lt;b&gt;" in (asked := ask(ONE), answer(asked, 0), asked.feedback.value)[2]


# The quiz


def test_the_score_counts_and_outlives_a_restart():
    quiz = Quiz("lesson01", [ONE, SOME, FIVE])
    assert quiz.view.words == "0 of 3 answered, 0 right."
    answer(quiz.questions[0], 2)
    answer(quiz.questions[1], 1, 2)
    answer(quiz.questions[2], 4)
    assert quiz.view.words == "3 of 3 answered, 2 right. Best so far: 2 of 3."
    assert progress.quiz_score("lesson01") == (2, 3) and progress.quiz_score("lesson02") is None
    again = Quiz("lesson01", [ONE, SOME, FIVE])
    assert again.view.words == "0 of 3 answered, 0 right. Best so far: 2 of 3."
    answer(again.questions[0], 1)
    assert progress.quiz_score("lesson01") == (2, 3)


def test_trouble_with_the_file_is_shown(tmp_path, monkeypatch, capsys):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("MHSA_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    quiz = Quiz("lesson01", [ONE])
    answer(quiz.questions[0], 2)
    assert "1 of 1 answered, 1 right. Your progress could not be saved" in quiz.view.words


@pytest.mark.parametrize("lesson", QUIZZES)
def test_the_still_shows_the_questions_and_no_answer(lesson):
    quiz = import_module(f"mhsa.exercises.{lesson}").quiz()
    before = quiz._repr_mimebundle_()
    for asked in quiz.questions:
        answer(asked, *right_answer(asked.question))
    after = import_module(f"mhsa.exercises.{lesson}").quiz()._repr_mimebundle_()
    assert progress.quiz_score(lesson) == (len(quiz.questions), len(quiz.questions))
    assert "application/vnd.jupyter.widget-view+json" in before
    for mime in ("text/plain", "text/markdown"):
        still = before[mime]
        assert still == after[mime]
        assert all(asked.question.text in still for asked in quiz.questions)
        assert all(label in still for asked in quiz.questions for label in asked.question.labels)
        assert "right" not in re.sub("(?m)^.*[·?].*$", "", still) and "✓" not in still


def test_the_package_itself_needs_no_widgets():
    code = "import mhsa, sys; print('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
