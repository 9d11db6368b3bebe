"""A quiz is data too: questions, and for each answer what to say to it. Here they are asked, with ipywidgets."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib import import_module
from io import StringIO
from math import isfinite

from ipywidgets import HTML, Button, Checkbox, Layout, RadioButtons, Text, VBox

from mhsa.exercises import progress
from mhsa.explore.panel import Panel, as_markdown
from mhsa.explore.view import PanelView

LETTERS = "abcdefgh"
WIDE = Layout(width="auto")
THOUSANDS = re.compile(r"-?(?![0٠])\d{1,3}([ ,_']\d{3})+")
SIGNS = str.maketrans("−٫٬’\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}", "-.,'  ")


@dataclass(frozen=True)
class Option:
    text: str  # plain, it stands on a control
    why: str  # said when it is chosen
    right: bool = False


@dataclass(frozen=True)
class Choice:
    """Choose the right option, or with `several` all that are right."""

    text: str  # may hold `code` and *emphasis*
    options: Sequence[Option]
    several: bool = False
    id: str = field(kw_only=True)  # of the function in tests/quiz_keys that computes what is right

    @property
    def how(self) -> str:
        return "choose all that are true" if self.several else "choose one"

    @property
    def labels(self) -> list[str]:
        return [f"{letter} · {option.text}" for letter, option in zip(LETTERS, self.options)]

    def judge(self, chosen: Sequence[int]) -> tuple[bool | None, list[str]]:
        """Whether the options of these numbers are the right ones (None if there are none), and what to say."""
        if not chosen:
            return None, ["Choose first, then check."]
        lines = [answer_line(self.options[i].right, LETTERS[i], self.options[i].why) for i in chosen]
        missing = sum(option.right for option in self.options) - sum(self.options[i].right for i in chosen)
        if self.several and missing:
            lines.append(f"✗ Not all yet: {missing} more {'is' if missing == 1 else 'are'} true.")
        return missing == 0 and all(self.options[i].right for i in chosen), lines


@dataclass(frozen=True)
class Number:
    """Type a number. Known wrong ones have their own words, all others share `otherwise`."""

    text: str
    answer: float
    why: str
    wrong: Mapping[float, str]
    otherwise: str
    tolerance: float = 0.0  # absolute
    id: str = field(kw_only=True)  # as for Choice
    how = "type a number"
    labels = ()

    def judge(self, typed: str) -> tuple[bool | None, list[str]]:
        """As for Choice; None also if it is no number."""
        value = to_number(typed)
        if value is None:
            return None, ["Type a number alone, such as 12 or 0.5."]
        for number, why in {self.answer: self.why, **self.wrong}.items():
            if abs(value - number) <= self.tolerance:
                return number == self.answer, [answer_line(number == self.answer, typed.strip(), why)]
        return False, [answer_line(False, typed.strip()[:40], self.otherwise)]


Question = Choice | Number


def answer_line(right: bool, answer: str, why: str) -> str:
    return f"✓ {answer} is right. {why}" if right else f"✗ {answer} is not right. {why}"


def to_number(typed: str) -> float | None:
    """12, 1,048,576 or 1 048 576, 0.5 or 0,5, in any script's digits; None for anything else."""
    typed = typed.translate(SIGNS).strip()
    typed = re.sub(r"[ ,_']", "", typed) if THOUSANDS.fullmatch(typed) else typed.replace(",", ".")
    try:
        number = float(typed)
    except ValueError:
        return None
    return number if isfinite(number) else None


def to_html(words: str) -> str:
    """Escaped, with `code` and *emphasis*."""
    words = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(words))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", words)


def captured_output(action: Callable[[], object]) -> str:
    """What the action prints, each line once: in a widget's callback nobody would see it."""
    with redirect_stdout(StringIO()) as printed:
        action()
    return "\n".join(dict.fromkeys(printed.getvalue().splitlines()))


class QuestionView(VBox):
    """One question on the screen. `right` is None until it is answered."""

    def __init__(self, number: int, question: Question, answered: Callable[[], None]):
        self.question, self.right, self._answered = question, None, answered
        self.controls = make_controls(question)
        self.button = Button(description="Check", tooltip=f"Check question {number}")
        self.feedback = HTML(layout=WIDE)
        self.button.on_click(self._check)
        if isinstance(question, Number):
            self.controls[0].observe(self._check, names="value")  # Enter, or leaving the field
        title = HTML(f"<b>{number}.</b> {to_html(question.text)} ({question.how})", layout=WIDE)
        super().__init__(
            [title, *self.controls, self.button, self.feedback],
            layout=Layout(margin="0 0 16px 0"),
            _dom_classes=("mhsa-question",),
        )

    def _judge(self) -> tuple[bool | None, list[str]]:
        first = self.controls[0]
        if isinstance(self.question, Number):
            return self.question.judge(first.value)
        if self.question.several:
            return self.question.judge([i for i, box in enumerate(self.controls) if box.value])
        return self.question.judge([] if first.index is None else [first.index])

    def _check(self, _event) -> None:
        right, lines = self._judge()
        self.feedback.value = f'<div role="alert">{"<br>".join(map(to_html, lines))}</div>'
        if right is not None:
            self.right = right
            self._answered()


def make_controls(question: Question) -> list:
    if isinstance(question, Number):
        return [
            Text(
                description="answer",
                placeholder="a number",
                continuous_update=False,
                style={"description_width": "initial"},
            )
        ]
    if question.several:
        return [Checkbox(description=label, indent=False, layout=WIDE) for label in question.labels]
    return [RadioButtons(options=question.labels, index=None, layout=WIDE)]


class Quiz(Panel):
    """The questions of a lesson. The score is kept; as an output without a kernel the questions can still be read."""

    def __init__(self, lesson: str, questions: Sequence[Question]):
        self.lesson = lesson
        self.questions = [QuestionView(i, question, self._record) for i, question in enumerate(questions, start=1)]
        view = PanelView()
        super().__init__([*self.questions, view], view)
        self._say_score()

    @property
    def score(self) -> int:
        return sum(question.right is True for question in self.questions)

    def _record(self) -> None:
        self._say_score(captured_output(lambda: progress.record_quiz(self.lesson, self.score, len(self.questions))))

    def _say_score(self, trouble: str = "") -> None:
        answered = sum(question.right is not None for question in self.questions)
        line = f"{answered} of {len(self.questions)} answered, {self.score} right."
        best = progress.quiz_score(self.lesson)
        if best:
            line += f" Best so far: {best[0]} of {best[1]}."
        self.say(" ".join([line, *trouble.split()]))

    def still(self) -> dict[str, str]:
        return as_markdown(to_markdown([view.question for view in self.questions]))


def to_markdown(questions: Sequence[Question]) -> str:
    """The questions and options, without the answers."""
    parts = [f"**Quiz: {len(questions)} questions.** Run this cell to answer them."]
    for i, question in enumerate(questions, start=1):
        parts.append(
            "\n".join([f"{i}. {question.text} ({question.how})", *(f"   - {label}" for label in question.labels)])
        )
    return "\n\n".join(parts)


def quiz_of(module: str) -> Callable[[], Quiz]:
    """What a lesson's module calls `quiz`, given its __name__: a quiz of the questions in the file beside it."""
    questions = import_module(module.replace("lesson", "questions"))
    return partial(Quiz, module.rsplit(".", 1)[-1], questions.QUESTIONS)
