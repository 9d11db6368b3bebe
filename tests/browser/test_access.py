"""Accessibility: every explorer, quiz and form by axe and by keyboard alone, in both themes, at 400 %."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from explorers import EXPLORERS

from mhsa.lessons import WITH_EXERCISES

LATE = """from ipywidgets import Button, IntSlider, VBox

panel, button = explore.heads(), Button(description="one more")
button.on_click(lambda _: setattr(panel, "children", (*panel.children, IntSlider(description="late"))))
VBox([button, panel])"""
SOURCES = {
    **{name: row.source for name, row in EXPLORERS.items()},
    **{
        f"quiz of {lesson.name}": f"from mhsa.exercises import {lesson.name}\n{lesson.name}.quiz()"
        for lesson in WITH_EXERCISES
    },
    "predict": "from mhsa.exercises import lesson10\nlesson10.predict('P')",
    "points": "from mhsa.exercises.form import points\npoints(['What is a head?', 'Why √d_k?'])",
    "board": "from mhsa.exercises import board\nboard()",
    "error": "explore.heads(d_model=8, num_heads=7)",
    "late": LATE,
}
NAMES = [*SOURCES]
# Contrast as WCAG 2.2 defines it. In JupyterLab axe measures it for fields alone (to axe, all below a body of no height
# is hidden). Here: each text of a picture, at three places of its middle line, against what is painted below; and each
# other text against the grounds it lies in.
TOOLS = """() => {
  const rgba = (css) => { const [r, g, b, a = 1] = css.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = (top, ground) => top.slice(0, 3).map((c, i) => c * top[3] + ground[i] * (1 - top[3]));
  const light = (color) => color.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
                            return (high + 0.05) / (low + 0.05); };
  const ground = () => rgba(getComputedStyle(document.querySelector('.mhsa-view')).backgroundColor).slice(0, 3);
  window.texts = (svg) => {
    const all = [...svg.querySelectorAll('rect, circle, path, text')].map((e) => [e, e.getBoundingClientRect()]);
    return all.flatMap(([text, box], i) => text.tagName !== 'text' || !text.textContent.trim() ? [] : [0.1, 0.5, 0.9]
      .map((part) => {
        const along = box.width >= box.height;
        const [x, y] = [box.x + box.width * (along ? part : 0.5), box.y + box.height * (along ? 0.5 : part)];
        let color = ground();
        for (const [e, b] of all.slice(0, i)) {
          if (e.tagName === 'text' || x < b.x || x > b.right || y < b.y || y > b.bottom) continue;
          const { fill, fillOpacity } = getComputedStyle(e);
          if (fill === 'none') continue;
          const [r, g, blue, alpha] = rgba(fill);
          color = over([r, g, blue, alpha * fillOpacity], color);
        }
        return [ratio(over(rgba(getComputedStyle(text).fill), color), color), text.textContent];
      }));
  };
  window.words = (area) => [...area.querySelectorAll('*')]
    .filter((e) => !e.closest('svg, :disabled') && e.offsetWidth > 1)         // else for a screen reader alone
    .filter((e) => e.matches('input, select') || [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => {
      const path = [];
      for (let outer = e; outer; outer = outer.parentElement) path.unshift(getComputedStyle(outer));
      const below = path.reduce((color, { backgroundColor }) => over(rgba(backgroundColor), color), [255, 255, 255]);
      const [r, g, b, alpha] = path.reduce((color, { opacity }) => [...color.slice(0, 3), color[3] * opacity],
        rgba(getComputedStyle(e).color));
      return [ratio(over([r, g, b, alpha], below), below), e.textContent];
    });
  window.focusSeen = () => {
    const here = document.activeElement;
    if (here.closest('svg')) return !!here.closest('svg').querySelector('.mhsa-ring-inner.mhsa-here');
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(here);
    const stands = ratio(over(rgba(outlineColor), ground()), ground()) >= 3;
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && stands;
  };
}"""
KIND = """() => { const e = document.activeElement;
  return e.role !== 'slider' ? e.type : e.ariaValueMin === e.ariaValueMax ? 'a slider of one choice' : 'slider'; }"""
KEYS = {"checkbox": ["Space"], "slider": ["ArrowRight", "ArrowLeft"], "select-one": ["ArrowDown"]}
HEARD = "document.activeElement.ariaValueText"
SEEN = "document.activeElement.closest('.widget-slider').querySelector('.widget-readout').textContent"
VALUE = """() => { const e = document.activeElement;
  return e.role === 'slider' ? e.ariaValueText : e.dataset.key ?? (e.type === 'checkbox' ? e.checked : e.value); }"""


@pytest.fixture(scope="module")
def page(lab):
    page = lab.run_cells("access", [*SOURCES.values()])
    page.evaluate(TOOLS)
    yield page
    page.context.close()


def output(page, name):
    return page.locator(".jp-CodeCell").nth(NAMES.index(name)).locator(".jp-Cell-outputArea")


def test_all_is_there_with_answers_choices_and_a_question_open(page):
    quiz, form, board = (output(page, name) for name in ("quiz of lesson01", "predict", "board"))
    quiz.locator("input[type=radio]").nth(1).check()
    quiz.get_by_role("button", name="Check").first.click()
    quiz.locator("[role=alert]").wait_for()
    form.get_by_role("button", name="holds", exact=True).first.click()
    form.get_by_role("button", name="chosen: holds", exact=True).wait_for()  # told by more than a shade
    board.get_by_role("button", name="Start over", exact=True).click()
    board.get_by_role("button", name="Keep my progress").wait_for()
    assert output(page, "error").locator(".mhsa-line").inner_text().startswith("num_heads=7 does not divide d_model=8")
    assert page.locator("[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type*='error']").count() == 0
    assert [output(page, name).locator(".mhsa-panel").count() for name in NAMES] == [1] * len(NAMES)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_nothing_is_found_by_axe_and_every_text_stands_out(lab, page, theme):
    if theme != "Light":  # as it was opened
        lab.change_theme(page, theme)
    assert page.locator(f"body[data-jp-theme-name='JupyterLab {theme}']").count() == 1
    rules = {} if theme == "Light" else {"runOnly": ["color-contrast"]}
    found = Axe().run(page, ".jp-Cell-outputArea", {"resultTypes": ["violations"], **rules})
    assert found.response["violations"] == [], found.generate_report()
    for name in NAMES:
        words = output(page, name).locator(".mhsa-panel").evaluate("window.words")
        assert len(words) >= 6 and min(words)[0] >= 4.5, (name, sorted(words)[:5])
    for name in EXPLORERS:
        texts = output(page, name).locator(".mhsa-picture svg").evaluate("window.texts")
        assert len(texts) > 50
        assert min(texts)[0] >= 4.5, (name, sorted(texts)[:5])


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_is_reached_changed_and_left_by_keyboard(page, name):
    area, cells = output(page, name), page.locator(".jp-Cell").count()
    sources = page.locator(".jp-InputArea-editor").all_text_contents()
    area.locator("input, .noUi-handle").first.focus()
    stops = 0
    while area.evaluate("e => e.contains(document.activeElement)"):
        stops += 1
        page.keyboard.press("Shift")  # by keyboard: a script's focus need not be shown
        assert page.evaluate("window.focusSeen()"), page.evaluate("document.activeElement.outerHTML")
        kind = page.evaluate(KIND)
        before = page.evaluate(VALUE)
        for key in KEYS.get(kind, []):  # the second if the first leads out of the range
            if page.evaluate(VALUE) == before:
                page.keyboard.press(key)
        assert kind != "slider" or page.evaluate(HEARD) == page.evaluate(SEEN)
        assert kind not in KEYS or page.evaluate(VALUE) != before, page.evaluate("document.activeElement.outerHTML")
        page.keyboard.press("Tab")
    assert stops >= 4
    for _ in range(12):  # over JupyterLab's own stops at the next cell
        page.keyboard.press("Shift+Tab")
        if area.evaluate("e => e.contains(document.activeElement)"):
            break
    part = area.locator("[data-key]:focus").get_attribute("aria-label")  # the picture, its last stop
    page.keyboard.press("ArrowRight")
    assert area.locator("[data-key]:focus").get_attribute("aria-label") != part
    for key in "xda":
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == cells  # no key reached JupyterLab
    assert page.locator(".jp-InputArea-editor").all_text_contents() == sources


def test_a_control_that_comes_late_gets_its_name(page):
    area = output(page, "late")
    area.get_by_role("button", name="one more").click()
    area.locator(".noUi-handle[aria-label='late']").wait_for()


def test_arrow_keys_stay_inside_a_question(page):
    quiz = output(page, "quiz of lesson01")
    question = quiz.locator(".mhsa-question").nth(3)
    radios = question.locator("input[type=radio]")
    radios.first.focus()
    page.keyboard.press("Space")
    chosen = []
    for _ in range(radios.count() + 1):
        page.keyboard.press("ArrowDown")
        chosen.append([radio.is_checked() for radio in radios.all()].index(True))
    assert chosen == [1, 2, 3, 0, 1]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.title") == "Check question 4"
    page.wait_for_timeout(1000)  # a press of a button overtakes a choice on its way
    page.keyboard.press("Enter")
    question.locator("[role=alert]", has_text="b is").wait_for()  # what the arrow chose was sent
    names = {
        name: [
            box.locator("input").first.get_attribute("name")
            for box in output(page, name).locator(".widget-radio-box").all()
        ]
        for name in NAMES
        if name.startswith("quiz")
    }
    flat = sum(names.values(), [])
    assert all(names.values()) and all(flat) and len({*flat}) == len(flat)
    assert quiz.get_by_role("group", name=re.compile("^4[.] The values of a head")).count() == 1


@pytest.mark.parametrize("name", ["quiz of lesson01", "predict", "board"])
def test_a_form_is_walked_by_keyboard_and_keeps_its_keys(page, name):
    area, cells, stops = output(page, name), page.locator(".jp-Cell").count(), 0
    area.locator("input, button").first.focus()
    while area.evaluate("e => e.contains(document.activeElement)"):
        stops += 1
        page.keyboard.press("ArrowUp" if page.evaluate("document.activeElement.type") != "radio" else "Shift")
        page.keyboard.press("x")  # JupyterLab would cut the cell
        assert page.evaluate("window.focusSeen()"), page.evaluate("document.activeElement.outerHTML")
        page.keyboard.press("Tab")
    assert stops >= 4 and page.locator(".jp-Cell").count() == cells


def test_one_line_is_spoken_after_a_change_and_the_name_of_the_picture_is_its_title(page):
    area = output(page, "heads")
    spoken, picture = area.locator("[role=status]"), area.locator(".mhsa-picture svg")
    handle = area.locator(".widget-hslider", has_text="heads").locator(".noUi-handle")
    handle.focus()
    page.keyboard.press("Home")
    picture.and_(page.locator("[aria-label^='Attention maps of 1 head.']")).wait_for()
    assert spoken.count() == 1 and spoken.inner_text().startswith("Attention maps of 1 head.")
    sentences = [len(words.split(". ")) for words in (spoken.inner_text(), picture.get_attribute("aria-label"))]
    assert sentences[0] == 2 < sentences[1]
    assert handle.get_attribute("aria-label") == "heads" and handle.get_attribute("aria-valuetext") == "1"
    area.get_by_role("group", name="Attention maps of 1 head", exact=True).wait_for()
    area.locator("[data-key]").nth(3).focus()
    assert spoken.inner_text().startswith("Attention maps")  # the cell's own label is read: not twice


def test_nothing_moves_by_itself_nor_slides_where_motion_is_reduced(page):
    page.emulate_media(reduced_motion="reduce")
    slid = page.locator(".mhsa-panel .noUi-target").evaluate_all("""targets => targets.flatMap(target => {
      target.classList.add('noUi-state-tap');
      const parts = [...target.querySelectorAll('*')].map(e => getComputedStyle(e).transitionDuration);
      target.classList.remove('noUi-state-tap');
      return parts; })""")
    assert len(slid) > 50 and {*slid} == {"0s"}
    moving = "document.getAnimations().filter(a => a.effect.target.closest('.mhsa-panel')).length"
    assert page.evaluate(moving) == 0
    assert output(page, "shapes").locator(".widget-play .fa-play").count() == 1
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("width", [700, 350])
def test_nothing_is_cut_off_at_200_and_400_per_cent(page, width):
    if page.locator("#jp-left-stack").is_visible():
        page.locator(".jp-SideBar.jp-mod-left .lm-mod-current").click()
    page.set_viewport_size({"width": width, "height": 640})
    for name in NAMES:
        area = output(page, name)
        cut = area.evaluate("""area => {
          const right = (e) => e.getClientRects().length && e.getBoundingClientRect().right;
          const parts = '.noUi-handle, .widget-readout, .mhsa-line, .widget-html-content > *';
          return [...area.querySelectorAll(`input, select, button, label, ${parts}`)]
            .filter(e => right(e) > right(area) + 1).map(e => e.outerHTML); }""")
        assert cut == [], (name, cut[:3])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert all(slider.bounding_box()["width"] >= 24 for slider in area.locator(".noUi-target").all()), name
        sizes = area.locator(".mhsa-picture svg").evaluate_all("""pictures => pictures.flatMap(svg => {
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return [...svg.querySelectorAll('text')].map(e => scale * parseFloat(getComputedStyle(e).fontSize)); })""")
        assert name not in EXPLORERS or min(sizes) >= 9
