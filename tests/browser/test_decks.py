"""A deck on a projector: without network, by keyboard, the question before its answer."""

import os
import subprocess
import sys

import pytest
from lab import ROOT


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decks")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "nbconvert",
            "--to",
            "slides",
            "--output-dir",
            folder,
            ROOT / "notebooks/01_one_head.ipynb",
        ],
        check=True,
        capture_output=True,
        env=os.environ | {"JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter")},
    )
    return folder / "01_one_head.slides.html"


@pytest.fixture
def deck(lab, file):
    page = lab.browser.new_context(viewport={"width": 1280, "height": 720}, offline=True).new_page()
    problems = []
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or problems.append(request.url))
    page.goto(file.as_uri())
    yield page
    assert problems == []
    page.context.close()


def test_a_deck_goes_step_by_step(deck):
    question = deck.get_by_text("Which two tokens get the highest score from")
    code, answer = deck.get_by_text("scores = q @ k.mT").first, deck.get_by_text("scores (4, 4) = (T_q, T_k)")
    assert deck.get_by_role("heading", name="1 · One head").is_visible() and not question.is_visible()
    for _ in range(50):
        if question.is_visible():
            break
        deck.keyboard.press("ArrowRight")
    seen = []
    for _ in range(3):
        seen.append([question.is_visible(), code.is_visible(), answer.is_visible()])
        deck.keyboard.press(" ")
    assert seen == [[True, False, False], [True, True, False], [True, True, True]]

    deck.keyboard.press("ArrowDown")
    assert deck.get_by_role("heading", name="4. Attention weights").is_visible()
    assert deck.locator("math:visible").count() >= 1  # drawn by the browser
    deck.reload()
    assert deck.get_by_role("heading", name="4. Attention weights").is_visible()
    deck.keyboard.press("ArrowUp")
    assert deck.get_by_role("heading", name="3. Scores").is_visible()


def test_the_type_is_large_and_grows_with_the_screen_and_by_key(deck):
    def size():
        return deck.evaluate("parseFloat(getComputedStyle(document.querySelector('p')).fontSize)")

    assert size() >= 24
    deck.set_viewport_size({"width": 1920, "height": 1080})
    before = size()
    assert before >= 36
    deck.keyboard.press("+")
    assert size() == pytest.approx(1.1 * before, rel=0.01)


def test_a_key_reaches_the_foot_of_a_tall_slide_before_the_next(deck):
    deck.set_viewport_size({"width": 1280, "height": 300})
    heading, last = deck.get_by_role("heading", name="Takeaways"), deck.get_by_text("One row at equal weights").last
    for _ in range(20):
        if heading.is_visible():
            break
        deck.keyboard.press("ArrowDown")
    bottoms = []
    while heading.is_visible():
        bottoms.append(deck.evaluate("e => e.getBoundingClientRect().bottom", last.element_handle()))
        deck.keyboard.press("ArrowRight")
    assert bottoms[0] > 300 >= bottoms[-1]
