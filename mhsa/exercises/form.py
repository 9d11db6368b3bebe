"""Forms for marking: claims before their verdicts are shown, and your own answers after you have read ours."""

from collections.abc import Callable, Sequence

from ipywidgets import HTML, Button, HBox, Layout, ToggleButtons, VBox

from mhsa.claims import VERDICTS, Claim
from mhsa.exercises.quiz import to_html
from mhsa.explore.panel import Panel, as_markdown
from mhsa.explore.view import PanelView

WIDE = Layout(width="auto")


class Form(Panel):
    """A row of buttons for each text. As an output without a kernel the texts can be read, and no answer stands there.

    feedback: the choices so far, None where there is none yet -> a note for each row, and one line for all
    press:    name of the button that shows it; without it each choice does so at once
    """

    def __init__(
        self,
        texts: Sequence[str],
        choices: Sequence[str],
        feedback: Callable[[list[str | None]], tuple[list[str], str]],
        press: str = "",
    ):
        self.texts, self.choices, self._feedback = texts, choices, feedback
        self.rows = [
            ToggleButtons(
                options=choices,
                index=None,
                tooltips=[f"{words}: {choice}" for choice in choices],
                style={"button_width": "auto"},
                layout=WIDE,
            )
            for words in texts
        ]
        self.notes = [HTML(layout=WIDE) for _ in texts]
        self.button = Button(description=press or "Check", layout=Layout(display=None if press else "none"))
        self.button.on_click(self._show_feedback)
        if not press:
            for row in self.rows:
                row.observe(self._show_feedback, names="value")
        lines = [
            VBox([HTML(to_html(words), layout=WIDE), HBox([row, note])], layout=Layout(margin="0 0 10px 0"))
            for words, row, note in zip(texts, self.rows, self.notes)
        ]
        view = PanelView()
        super().__init__([*lines, self.button, view], view)
        self._show_feedback()

    def _show_feedback(self, _event=None) -> None:
        notes, line = self._feedback([row.value for row in self.rows])
        for widget, note in zip(self.notes, notes):
            widget.value = to_html(note)
        self.say(line)

    def still(self) -> dict[str, str]:
        how = f"Run this cell to mark each: {' · '.join(self.choices)}."
        return as_markdown("\n".join([how, "", *(f"- {words}" for words in self.texts)]))


def predict(claims: Sequence[Claim]) -> Form:
    """Mark each claim by its verdict; Check compares."""

    def feedback(given: list[str | None]) -> tuple[list[str], str]:
        notes = [
            "" if mark is None else "✓" if mark == claim.verdict else f"✗ {claim.verdict}"
            for mark, claim in zip(given, claims)
        ]
        marked = sum(mark is not None for mark in given)
        return notes, f"{marked} of {len(claims)} marked, {notes.count('✓')} as measured."

    return Form([f"{claim.id} · {claim.text}" for claim in claims], list(VERDICTS), feedback, press="Check")


def points(questions: Sequence[str], most: int = 3) -> Form:
    """Give yourself 0 to `most` points a question; the sum, and where to look again."""

    def feedback(given: list[str | None]) -> tuple[list[str], str]:
        again = [str(i) for i, mark in enumerate(given, start=1) if mark is not None and int(mark) < most - 1]
        line = f"{sum(int(mark or 0) for mark in given)} of {most * len(questions)} points."
        return [""] * len(questions), line + (f" Look again at {', '.join(again)}." if again else "")

    return Form(
        [f"{i} · {question}" for i, question in enumerate(questions, start=1)],
        [str(n) for n in range(most + 1)],
        feedback,
    )
