"""Lesson 02 as a reader uses it: run it from the menu, move the heads by keyboard, in both themes."""
import re

import pytest


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_lesson_02_answers_to_the_keyboard(lab, theme):
    page = lab.open("02_many_heads.ipynb", theme)
    lab.run_all(page)
    assert page.locator("[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type*='error']").count() == 0

    explorer = page.locator(".mhsa-explorer").first
    heads = explorer.locator(".noUi-handle").nth(1)
    maps = explorer.locator(".mhsa-picture svg")
    before = int(re.search(r"maps of (\d+)", maps.get_attribute("aria-label"))[1])
    heads.focus()
    page.keyboard.press("ArrowRight")
    explorer.locator(f".mhsa-picture svg:not([aria-label*='maps of {before} '])").wait_for()
    after = int(re.search(r"maps of (\d+)", maps.get_attribute("aria-label"))[1])
    assert after > before and len(explorer.locator("[data-key='1,2']").all()) == after      # one cell a head

    explorer.locator("[data-key]").first.focus()                   # head 0: Mia reads Mia
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "lost (query) reads lost (key)" in explorer.locator(".mhsa-line").inner_text()
    assert explorer.locator(".mhsa-ring-inner").count() == after   # the same cell lights up in every head

    ink, paper = (explorer.locator(f".mhsa-picture svg > {tag}").first.evaluate("e => getComputedStyle(e).fill")
                  for tag in ("text", "rect"))
    assert (lightness(ink) < lightness(paper)) == (theme == "Light")
    assert page.problems == []
    page.context.close()


def lightness(color: str) -> float:
    return sum(float(part) for part in re.findall(r"[\d.]+", color)[:3])
