"""The progress board: what is solved, and how many minutes are left."""

import importlib

from ipywidgets import HTML, Button, HBox, Layout, VBox

from mhsa.draw.svg import Svg, el
from mhsa.exercises import progress
from mhsa.exercises.exercise import exercises, minutes
from mhsa.exercises.quiz import captured_output
from mhsa.explore.panel import Panel, as_markdown
from mhsa.explore.view import PanelView
from mhsa.lessons import WITH_EXERCISES

HEADER = ("lesson", "exercises solved", "quiz", "minutes left")


def left(core: int, extra: int) -> str:
    """Minutes in words."""
    return f"{core} + {extra} extra" if extra else str(core)


def rows(fresh: bool = False) -> list[list[str]]:
    """One row a lesson and one in all: as the learner's progress is, or with `fresh` as for one who begins."""
    table, in_all = [], [0, 0]
    for lesson in WITH_EXERCISES:
        all_of_it = exercises(importlib.import_module(f"mhsa.exercises.{lesson.name}"))
        solved = [] if fresh else progress.solved(lesson.name)
        score = None if fresh else progress.quiz_score(lesson.name)
        done = sum(exercise.name in solved for exercise in all_of_it)
        open_ones = [exercise for exercise in all_of_it if exercise.name not in solved]
        core, extra = (minutes(open_ones, kind) for kind in (False, True))
        core += lesson.minutes if score is None else 0  # the quiz ends a lesson: it has been read
        in_all = [in_all[0] + core, in_all[1] + extra]
        quiz = f"{score[0]} of {score[1]}" if score else "not yet"
        table.append([lesson.title, f"{done} of {len(all_of_it)}", quiz, left(core, extra)])
    return [*table, ["in all", "", "", left(*in_all)]]


def to_html(table: list[list[str]]) -> Svg:
    def line(tag: str, words: list[str]) -> Svg:
        return el("tr", *(el(tag, word, style="padding: 2px 24px 2px 0; text-align: left") for word in words))

    whole = el("table", line("th", list(HEADER)), *(line("td", row) for row in table))
    return el("div", whole, role="region", aria_label="Progress", tabindex=0, style="overflow-x: auto")


def to_markdown(table: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [HEADER, ["---"] * len(HEADER), *table])


class Board(Panel):
    """Shows the progress as it is when the cell runs, and again by a button. "Start over" asks first."""

    def __init__(self):
        self.table, self.trouble = HTML(), HTML()
        self.refresh = Button(description="Refresh")
        self.start_over = Button(description="Start over", tooltip="Forget all progress; asks first")
        self.really = Button(description="Really start over", button_style="danger")
        self.keep = Button(description="Keep my progress")
        question = HTML("Forget everything that you have solved?")
        self.ask = VBox([question, HBox([self.keep, self.really])], layout=Layout(display="none"))
        self.refresh.on_click(lambda _: self._show())
        self.start_over.on_click(lambda _: self._show(asking=True))
        self.really.on_click(lambda _: self._show(captured_output(progress.reset)))
        self.keep.on_click(lambda _: self._show())
        view, buttons = PanelView(), HBox([self.refresh, self.start_over])
        super().__init__([self.table, view, buttons, self.ask, self.trouble], view)
        self._show()

    def _show(self, trouble: str = "", asking: bool = False) -> None:
        def draw():
            table = rows()
            self.table.value = to_html(table)
            self.say(f"{table[-1][-1]} minutes are left in all.")

        trouble = "\n".join(filter(None, [trouble, captured_output(draw)]))
        self.trouble.value = el("div", trouble, role="alert") if trouble else ""
        self.ask.layout.display = None if asking else "none"

    def still(self) -> dict[str, str]:
        return as_markdown(to_markdown(rows(fresh=True)))  # stored, it must not depend on whose progress it is


def board() -> Board:
    """The board: `from mhsa.exercises import board`, then `board()`."""
    return Board()
