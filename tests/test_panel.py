"""What explorers, quizzes, forms and the board share, without a browser."""

import pytest

from mhsa import claims, explore
from mhsa.draw.svg import describe
from mhsa.exercises import board, form, lesson01
from mhsa.explore.panel import Panel, as_markdown
from mhsa.explore.view import PanelView, SvgView

PANELS = {
    "explorer": explore.heads,
    "quiz": lesson01.quiz,
    "predict": lambda: form.predict(claims.group("P")),
    "points": lambda: form.points(["What is a head?"]),
    "board": board,
}


@pytest.mark.parametrize("name", PANELS)
def test_each_is_a_panel_with_one_view_and_a_picture_only_to_be_seen(name):
    panel = PANELS[name]()
    assert isinstance(panel, Panel) and "mhsa-panel" in panel._dom_classes
    assert [child for child in panel.children if isinstance(child, PanelView)] == [panel.view]
    assert isinstance(panel.view, SvgView) == (name == "explorer")
    assert panel.view.words


@pytest.mark.parametrize("name", PANELS)
def test_the_output_is_the_live_panel_and_its_still(name):
    panel = PANELS[name]()
    live = panel._repr_mimebundle_()
    still = {mime: live.pop(mime) for mime in panel.still()}
    assert still == panel.still() and len(still) == 2 and still["text/plain"]
    assert {*live} == {"application/vnd.jupyter.widget-view+json"}


def test_words_reach_the_browser_whatever_they_hold():
    panel = Panel([], PanelView())
    panel.say("a \ud83d b <b>")
    assert panel.view.words == "a ? b <b>"
    assert as_markdown("x") == {"text/plain": "x", "text/markdown": "x"}


def test_picture_and_words_travel_in_one_message(monkeypatch):
    explorer, sent = explore.heads(12, 3), []
    monkeypatch.setattr(explorer.view, "_send", lambda message, buffers=None: sent.append(message))
    explorer.state.num_heads = 4
    assert [{*message["state"]} for message in sent] == [{"svg", "words"}]
    assert explorer.view.words == describe(explorer.view.svg) and "4 heads" in explorer.view.words
