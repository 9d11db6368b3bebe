"""Every explorer by keyboard: quick keys on its sliders leave a valid pair and its picture. And lesson 1's quiz."""

import random

import pytest
from explorers import EXPLORERS
from latency import INTERACT


@pytest.fixture(scope="module")
def page(lab):
    sources = [
        INTERACT,
        *(row.source for row in EXPLORERS.values()),
        "from mhsa.exercises import lesson01\nlesson01.quiz()",
    ]
    page = lab.run_cells("explorers", sources, "Dark")
    yield page
    page.context.close()


def test_what_latency_compares_with_is_drawn(page):
    assert page.locator(".jp-CodeCell").first.locator(".jp-OutputArea img").count() == 1


@pytest.mark.parametrize("name", EXPLORERS)
def test_quick_keys_leave_the_right_picture(lab, page, name):
    row, number = EXPLORERS[name], [*EXPLORERS].index(name)
    explorer, rng = page.locator(".mhsa-panel").nth(number), random.Random(number)
    sliders = [
        explorer.locator(".widget-hslider").filter(has=page.locator(f".widget-label:text-is('{label}')"))
        for label in row.sliders
    ]
    handles = [slider.locator(".noUi-handle").element_handle() for slider in sliders]
    for _ in range(40):
        rng.choice(handles).focus()
        page.keyboard.press(rng.choice(["ArrowRight", "ArrowLeft", "ArrowRight", "ArrowLeft", "Home", "End"]))
    page.keyboard.press("ArrowLeft")  # not the whole length: that needs no padding mask
    page.wait_for_timeout(500)  # the last key's picture
    lab.wait_idle(page)
    values = [int(slider.locator(".widget-readout").inner_text().replace(",", "")) for slider in sliders]
    assert len(values) == 1 or values[0] % values[1] == 0
    picture = explorer.locator(".mhsa-picture svg").get_attribute("aria-label")
    assert row.saying(*values) in picture, (values, picture)
    assert page.problems == []


def test_a_key_on_a_cell_paints_the_mask(page):
    explorer = page.locator(".mhsa-panel").nth([*EXPLORERS].index("masks"))
    cell = explorer.locator("[data-key]").first
    before = explorer.locator(".mhsa-picture svg").get_attribute("aria-label")
    cell.focus()
    page.keyboard.press("Enter")
    explorer.locator(f".mhsa-picture svg:not([aria-label='{before}'])").wait_for()
    assert "closed" in explorer.locator("[data-key]").first.get_attribute("aria-label").lower()
    assert explorer.locator("[data-key]:focus").count() == 1  # the focus survived the redraw


def test_a_sentence_is_read_a_head_picked_and_the_picture_saved(page):
    explorer = page.locator(".mhsa-panel").nth([*EXPLORERS].index("real_heads"))
    explorer.locator("input[type=text]").first.fill("Boats left the quiet bank")
    page.keyboard.press("Enter")
    explorer.locator(".mhsa-picture svg[aria-label*='[CLS] boats left the quiet bank [SEP]']").wait_for()
    explorer.locator("[data-key='2.3']").first.focus()
    page.keyboard.press("ArrowDown")  # from layer 2, head 3 to layer 3, head 3
    page.keyboard.press("Enter")
    explorer.locator(".mhsa-picture svg[aria-label^='Layer 3, head 3']").wait_for()
    for kind, start in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            explorer.get_by_role("button", name=f"save as {kind}").click()
        assert download.value.suggested_filename == f"layer_3_head_3.{kind.lower()}"
        with open(download.value.path(), "rb") as file:
            content = file.read()
        assert content.startswith(start) and len(content) > 20_000 and b"var(" not in content


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
    """Choose, check, read why, and the score."""
    quiz, cells = page.locator(".mhsa-panel").last, page.locator(".jp-Cell").count()
    told = [quiz.locator("> .widget-vbox").nth(i).locator("[role=alert]") for i in range(3)]
    keys = page.keyboard

    options = quiz.locator("input[type=radio]")
    options.first.locator("xpath=self::*[@name and not(@name='')]").wait_for()  # a group, once the panel has mended it
    options.nth(1).focus()
    keys.press("Space")
    assert check(page, told[0]).startswith("✗ b is not right. 64 products are added up")
    keys.press("Shift+Tab")  # from the button to the chosen option
    keys.press("ArrowDown")  # from b to c
    options.nth(2).and_(quiz.locator(":checked")).wait_for()
    assert check(page, told[0]).startswith("✓ c is right. One head is 1024 / 16 = 64 wide")

    keys.press("Tab")
    keys.press("Space")  # a, of several
    assert check(page, told[1]).split("\n") == [
        "✓ a is right. The softmax of a row divides by the sum of that row.",
        "✗ Not all yet: 2 more are true.",
    ]

    keys.press("Tab")
    keys.type("0.25")
    keys.press("Enter")
    told[2].wait_for()
    assert told[2].inner_text().startswith("✗ 0.25 is not right. That row sums to 0.75.")
    keys.press("Control+a")
    keys.type("0.333")
    keys.press("Enter")
    told[2].filter(has_text="✓ 0.333 is right").wait_for()

    assert "3 of 6 answered, 2 right." in quiz.locator(".mhsa-line").inner_text()
    assert page.locator(".jp-Cell").count() == cells  # no key reached JupyterLab
    assert page.problems == []
