"""What every explorer is: a state of named traits, a picture drawn from it, and controls that change it."""

from collections.abc import Callable, Sequence
from typing import Any

from ipywidgets import SelectionSlider, Widget
from traitlets import HasTraits, Int, TraitError

from mhsa import checks
from mhsa.draw.svg import describe, message
from mhsa.explore.panel import Panel
from mhsa.explore.view import SvgView

LARGEST = 1_000_000  # beyond it the divisors take too long


def divisors(n: int) -> list[int]:
    """The choices of heads; [1] for a size that is none or too large."""
    return checks.divisors(n) if 0 < n <= LARGEST else [1]


def check_drawable(values: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, int) and value > LARGEST:
            raise ValueError(f"{name}={value} is too large for a picture; up to {LARGEST:,} will do")


class TiedHeads(HasTraits):
    """d_model and num_heads. A new d_model keeps num_heads if it still divides, else takes the next smaller divisor."""

    d_model = Int()
    num_heads = Int()

    def __init__(self, **values):
        super().__init__(**values)
        self.observe(self._keep_a_divisor, names="d_model")

    def _keep_a_divisor(self, _change):
        if self.d_model > 0 and self.num_heads > 0:
            self.num_heads = max(n for n in divisors(self.d_model) if n <= self.num_heads)


class Explorer(Panel):
    """Redraws whenever a trait of `state` changes: `draw(state)` is SVG text, shown by `view`.

    Works without a browser: set a trait of `state`, read `view.svg`. A ValueError in draw shows as a sentence in place
    of the picture. Its still is the picture, and the picture in words.
    """

    view: SvgView

    def __init__(self, state: HasTraits, draw: Callable[..., str], controls: Sequence[Widget]):
        self.state, self._draw, self._drawn = state, draw, None
        view = SvgView()
        super().__init__([*controls, view], view)
        self.add_class("mhsa-explorer")
        state.observe(self._redraw, names=state.trait_names())
        self._redraw()

    def _redraw(self, _change=None) -> None:
        values = self.state.trait_values()
        if values == self._drawn:  # one action may change two traits: draw once
            return
        self._drawn = values
        try:
            check_drawable(values)
            svg = self._draw(self.state)
        except Exception as error:  # anything else would be lost in Jupyter's log
            svg = message(str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")
        with self.view.hold_sync():  # one message to the browser
            self.view.svg = svg
            self.say(describe(svg))

    def still(self) -> dict[str, str]:
        return {"text/plain": describe(self.view.svg), "image/svg+xml": self.view.svg}


class Choices(SelectionSlider):
    """A slider whose options may change while someone moves it."""

    def offer(self, options: Sequence) -> None:
        """Change the options. The caller then sets the value.

        The slider in the browser (ipywidgets 8.1) keeps its old length if options and place change in one message.
        """
        if list(self.options) != list(options):
            place = self.index = min(self.index, len(options) - 1)  # one that both lists have
            with self.hold_sync():
                self.options = options
                self.index = place

    def set_state(self, sync_data: dict) -> None:
        try:
            super().set_state(sync_data)
        except TraitError:  # picked among options that were just replaced
            self.send_state()


def tie(state: HasTraits, name: str, control: Any, options: Callable[[], Sequence] | None = None) -> None:
    """The control moves state.name and follows it; options() are what the state lets Choices offer.

    A value that the control cannot show (set from code) stays in the state, and the picture says what is wrong with it.
    """
    following = False

    def follow(_change=None):
        nonlocal following
        following = True  # new options move a slider: that is no choice
        if options is not None:
            control.offer(options())
        if options is None or getattr(state, name) in control.options:
            control.value = getattr(state, name)
        following = False

    def choose(change):
        if not following:
            setattr(state, name, change["new"])

    follow()
    state.observe(follow, names=state.trait_names())
    control.observe(choose, names="value")
