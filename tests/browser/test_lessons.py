"""Every lesson as a reader uses it: opened, run from the menu, each control moved by keyboard, seen in both themes."""
import re

import nbformat
import pytest
from lab import ROOT
from playwright.sync_api import expect

LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
AHEAD = 2                                                          # lessons that run while another one is looked at
WIDGET = r"^(explore\.\w+|ex\.quiz|board|predict|interview)\("     # a cell that shows one
BAD = ", ".join([".jp-OutputArea [data-mime-type*='stderr']", ".jp-OutputArea [data-mime-type*='error']",
                 *(f".jp-OutputArea :text('{words}')" for words in ("model not found", "Error displaying", "Loading"))])
DECODED = """images => Promise.allSettled(images.map(image => image.decode()))
    .then(results => results.filter(result => result.status === 'fulfilled').length)"""
FILLS = """pictures => pictures.flatMap(svg => [...svg.querySelectorAll(':scope > text')].map(
    text => [text, svg.querySelector(':scope > rect')].map(part => getComputedStyle(part).fill)))"""
PICTURE = ".mhsa-picture svg"


@pytest.fixture(scope="module")
def context(lab):
    context = lab.new_context()
    yield context
    context.close()


@pytest.fixture(scope="module")
def started():
    """Pages by lesson. Kernels are programs of their own, so the next lessons run meanwhile."""
    return {}


@pytest.fixture
def page(lab, context, started, lesson):
    number = LESSONS.index(lesson)
    for name in LESSONS[number:number + 1 + AHEAD]:
        if name not in started:
            page = started[name] = lab.open(f"{name}.ipynb", context=context)
            page.before = page.locator(".jp-OutputArea img").evaluate_all(DECODED), bad(page)
            lab.start(page)
    lab.finish(started[lesson])
    yield started[lesson]
    lab.close(started[lesson])


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_as_its_reader_uses_it(lab, page, lesson):
    cells = [cell for cell in nbformat.read(ROOT / f"notebooks/{lesson}.ipynb", 4).cells if cell.cell_type == "code"]
    pictures = [kind for cell in cells for out in cell.outputs for kind in out.get("data", {}) if "image/" in kind]
    assert page.before == (len(pictures), [])                      # the stored ones, before anything ran
    assert bad(page) == []

    widgets = page.locator(".mhsa-explorer").all()
    assert len(widgets) == sum(bool(re.search(WIDGET, cell.source, re.MULTILINE)) for cell in cells)
    for widget in widgets:
        use(page, widget)
    lab.wait_idle(page)
    assert bad(page) == []

    assert all(ink + 0.5 < paper for ink, paper in inks_and_papers(page))
    lab.change_theme(page, "Dark")
    assert all(ink > paper + 0.5 for ink, paper in inks_and_papers(page))
    assert page.problems == []


def bad(page) -> list[str]:
    """Outputs that no reader should see."""
    return page.locator(BAD).all_inner_texts()


def inks_and_papers(page) -> list[list[float]]:
    """For each text on the ground of a live picture how light both are, from 0 to 1."""
    return [[sum(map(float, re.findall(r"[\d.]+", fill)[:3])) / 765 for fill in pair]
            for pair in page.locator(PICTURE).evaluate_all(FILLS)]


def use(page, widget) -> None:
    """Move each control by keyboard."""
    questions, rows = (widget.locator(kind).all() for kind in (".mhsa-question", ".widget-toggle-buttons"))
    if questions:
        for question in questions:
            answer(question)
        says(widget, f"{len(questions)} of {len(questions)} answered")
    elif rows:
        fill_in(widget, rows)
    elif named(widget, "Refresh").count():
        use_board(widget)
    else:
        explore(page, widget)


def explore(page, explorer) -> None:
    for control in explorer.locator(":is(.noUi-handle, select, input, button):visible").all():
        kind, text = control.evaluate("control => [control.type, control.textContent]")
        if kind is None:                                           # a slider's handle
            least, now, most = (float(control.get_attribute(f"aria-value{which}")) for which in ("min", "now", "max"))
            keys = ("ArrowRight", "ArrowLeft") if now < most else ("ArrowLeft", "ArrowRight")
            press(explorer, control, *(keys if least < most else ()))
        elif kind == "select-one":
            press(explorer, control, "ArrowDown", "ArrowUp")
        elif kind == "checkbox":
            press(explorer, control, "Space", "Space")
        elif kind == "text":
            control.fill("Boats left the quiet bank")
            press(explorer, control, "Enter")
        elif text.startswith("save as"):
            with page.expect_download():
                control.press("Enter")
        else:                                                      # play, then stop; or clear, once a cell is painted
            if text.startswith("clear"):
                press(explorer, explorer.locator("[data-key][tabindex='0']"), "Enter")
            press(explorer, control, "Enter")
    point(explorer)


def press(explorer, control, *keys: str) -> None:
    """Each key draws a new picture, and it is one."""
    for key in keys:
        explorer.locator(PICTURE).evaluate("svg => svg.classList.add('old')")
        control.press(key)
        picture = explorer.locator(f"{PICTURE}:not(.old)")
        picture.wait_for(state="attached")
        assert not picture.get_attribute("aria-label").startswith("No picture"), (control, key)


def point(explorer) -> None:
    """Arrow keys move in the picture; all that share a key light up, and the label stands below."""
    explorer.locator("[data-key][tabindex='0']").press("ArrowDown")
    explorer.locator("[data-key]:focus").press("ArrowRight")
    here = explorer.locator("[data-key]:focus")
    own, *others = (set(part.split()) for part in [here.get_attribute("data-key"), *explorer.locator(
        "[data-key]").evaluate_all("parts => parts.map(part => part.dataset.key)")])
    assert explorer.locator(".mhsa-ring-inner").count() == sum(bool(own & other) for other in others)
    assert explorer.locator(".mhsa-line").inner_text() == here.get_attribute("aria-label")


def answer(question) -> None:
    """Check with nothing chosen, then choose each option, or type a number, and check."""
    check, told = question.locator("button"), question.locator("[role=alert]")
    check.press("Enter")
    told.filter(has_text=re.compile("^(Choose first|Type a number)")).wait_for()
    for field in question.locator("input[type=text]").all():
        field.fill("7")
    for option in question.locator("input:not([type=text])").all():
        option.press("Space")
    check.press("Enter")
    told.filter(has_text=re.compile("^[✓✗] .* right")).wait_for()


def fill_in(form, rows) -> None:
    for row in rows:
        row.locator("button").last.press("Enter")
    check = form.locator("button:visible", has_text="Check")
    if check.count():
        check.press("Enter")
    says(form, f"^Marks. {len(rows)} of {len(rows)} marked" if check.count() else f"^Marks. {3 * len(rows)} of")


def use_board(board) -> None:
    named(board, "Refresh").press("Enter")
    for choice in ("Keep my progress", "Really start over"):       # the tests' own progress: see lab.py
        named(board, "Start over").press("Enter")
        named(board, choice).press("Enter")
        named(board, choice).wait_for(state="hidden")


def named(widget, name: str):
    return widget.get_by_role("button", name=name, exact=True)


def says(widget, words: str) -> None:
    expect(widget.locator(PICTURE)).to_have_attribute("aria-label", re.compile(words), timeout=30_000)
