"""The quiz of lesson 01 by keyboard alone: choose, check, read why, and the score."""
import pytest


@pytest.fixture
def page(lab):
    page = lab.open("01_one_head.ipynb")
    lab.run_all(page)
    yield page
    page.context.close()


def tab_to_button(page) -> None:
    for _ in range(8):
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            return
        page.keyboard.press("Tab")
    pytest.fail("no Check button within eight tabs")


def check(page, told) -> str:
    """Press the Check button of this question by keyboard, and give back what it then says."""
    before = told.inner_text() if told.count() else ""
    tab_to_button(page)
    page.keyboard.press("Enter")
    (told.filter(has_not_text=before) if before else told).wait_for()
    return told.inner_text()


def test_a_quiz_is_answered_by_keyboard_alone(page):
    quiz, cells = page.locator(".mhsa-explorer").last, page.locator(".jp-Cell").count()
    told = [quiz.locator("> .widget-vbox").nth(i).locator("[role=alert]") for i in range(3)]
    keys = page.keyboard

    quiz.locator("input[type=radio]").nth(1).focus()
    keys.press("Space")
    assert check(page, told[0]).startswith("✗ b is not right. 64 products are added up")
    keys.press("Shift+Tab")                                        # from the button to the chosen option
    keys.press("ArrowDown")                                        # from b to c
    assert check(page, told[0]).startswith("✓ c is right. One head is 1024 / 16 = 64 wide")

    keys.press("Tab")
    keys.press("Space")                                            # a, of several
    assert check(page, told[1]).split("\n") == [
        "✓ a is right. The softmax of a row divides by the sum of that row.", "✗ Not all yet: 2 more are true."]

    keys.press("Tab")
    keys.type("0.25")
    keys.press("Enter")
    told[2].wait_for()
    assert told[2].inner_text().startswith("✗ 0.25 is not right. That row sums to 0.75.")
    keys.press("Control+a")
    keys.type("0.333")
    keys.press("Enter")
    told[2].filter(has_text="✓ 0.333 is right").wait_for()

    score = quiz.locator(".mhsa-picture svg").get_attribute("aria-label")
    assert "3 of 6 answered, 2 right." in score
    assert page.locator(".jp-Cell").count() == cells               # no key reached JupyterLab
    assert page.problems == []
