"""What an explorer, a quiz, a form and the board share."""

from collections.abc import Sequence
from typing import Any

from ipywidgets import VBox, Widget

from mhsa.explore.view import PanelView


class Panel(VBox):
    """Widgets, one of them a `view` that makes them usable by keyboard and by ear, and says what happens.

    As an output it carries the live widgets and its still, which is read where no kernel runs.
    """

    def __init__(self, children: Sequence[Widget], view: PanelView):
        self.view = view
        super().__init__(children, _dom_classes=("mhsa-panel",))

    def say(self, words: str) -> None:
        """What has changed: shown, and spoken."""
        self.view.words = words.encode(errors="replace").decode()  # half a character would not arrive

    def still(self) -> dict[str, str]:
        """{MIME type: content}"""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs) -> dict:
        live: Any = super()._repr_mimebundle_(**kwargs)
        return live | self.still()


def as_markdown(text: str) -> dict[str, str]:
    """The still of a panel without a picture."""
    return {"text/plain": text, "text/markdown": text}
