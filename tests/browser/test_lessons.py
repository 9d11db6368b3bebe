"""Every lesson as a reader uses it: opened, run from the menu, each control moved by keyboard, seen in both themes."""

import re

import nbformat
import pytest
from lab import HERE, ROOT

from mhsa.lessons import LESSONS

NOTEBOOKS = [*(lesson.stem for lesson in LESSONS), "cheat_sheet"]
AHEAD = 2  # lessons that run while another one is looked at
WIDGET = r"^(explore\.\w+|ex\.quiz|board|predict|interview)\("  # a cell that shows one
OUTPUT = f"{HERE} .jp-OutputArea"
BAD = ", ".join(
    [
        f"{OUTPUT} [data-mime-type*='stderr']",
        f"{OUTPUT} [data-mime-type*='error']",
        *(f"{OUTPUT} :text('{words}')" for words in ("model not found", "Error displaying", "Loading")),
    ]
)
DECODED = """images => Promise.allSettled(images.map(image => image.decode()))
    .then(results => results.filter(result => result.status === 'fulfilled').length)"""
FILLS = """pictures => pictures.flatMap(svg => [...svg.querySelectorAll(':scope > text')].map(
    text => [text, svg.querySelector(':scope > rect')].map(part => getComputedStyle(part).fill)))"""
PICTURE = ".mhsa-picture svg"
IS_SWITCH = "control => control.type === 'checkbox' || !!control.closest('.widget-toggle-buttons')"


@pytest.fixture(scope="module")
def page(lab):
    """One JupyterLab with a few lessons open; page.before: what each of them showed before it ran."""
    page = lab.open(f"{NOTEBOOKS[0]}.ipynb")
    page.before = {}
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def ran(lab, page, lesson):
    """Kernels are programs of their own, so the next lessons run meanwhile."""
    number = NOTEBOOKS.index(lesson)
    for name in NOTEBOOKS[number : number + 1 + AHEAD]:
        if name not in page.before:
            lab.show(page, f"{name}.ipynb")
            images, last = page.locator(f"{OUTPUT} img"), stored_pictures(name) - 1
            if last >= 0:  # they come after the first cells
                images.nth(last).wait_for(state="attached")
            page.before[name] = images.evaluate_all(DECODED), bad(page)
            lab.start(page)
    lab.show(page, f"{lesson}.ipynb")
    lab.finish(page)
    yield
    lab.change_theme(page, "Light")
    lab.close(page)


@pytest.mark.parametrize("lesson", NOTEBOOKS)
def test_a_lesson_as_its_reader_uses_it(lab, page, lesson):
    assert page.before[lesson] == (stored_pictures(lesson), [])  # before anything ran
    assert bad(page) == []

    widgets = page.query_selector_all(f"{HERE} .mhsa-panel")
    assert len(widgets) == sum(bool(re.search(WIDGET, cell.source, re.MULTILINE)) for cell in code_cells(lesson))
    for widget in widgets:
        use(page, widget)
    lab.wait_idle(page)
    assert bad(page) == []

    assert all(ink + 0.5 < paper for ink, paper in inks_and_papers(page))
    lab.change_theme(page, "Dark")
    assert all(ink > paper + 0.5 for ink, paper in inks_and_papers(page))
    assert page.problems == []


def code_cells(lesson: str) -> list:
    return [cell for cell in nbformat.read(ROOT / f"notebooks/{lesson}.ipynb", 4).cells if cell.cell_type == "code"]


def stored_pictures(lesson: str) -> int:
    return sum("image/" in kind for cell in code_cells(lesson) for out in cell.outputs for kind in out.get("data", {}))


def bad(page) -> list[str]:
    """Outputs that no reader should see."""
    return page.locator(BAD).all_inner_texts()


def inks_and_papers(page) -> list[list[float]]:
    """For each text on the ground of a live picture how light both are, from 0 to 1."""
    return [
        [sum(map(float, re.findall(r"[\d.]+", fill)[:3])) / 765 for fill in pair]
        for pair in page.locator(f"{HERE} {PICTURE}").evaluate_all(FILLS)
    ]


def use(page, widget) -> None:
    """Move each control by keyboard. Handles, not locators: to find a part anew costs more than to press a key."""
    questions, rows = (widget.query_selector_all(kind) for kind in (".mhsa-question", ".widget-toggle-buttons"))
    if questions:
        for question in questions:
            answer(page, question)
        says(widget, f"{len(questions)} of {len(questions)} answered")
    elif "mhsa-explorer" in widget.get_attribute("class"):
        controls = widget.query_selector_all(":is(.noUi-handle, select, input, button):visible")
        switches = [control for control in controls if control.evaluate(IS_SWITCH)]  # first: other controls need some
        for control in switches + [control for control in controls if control not in switches]:
            move(page, widget, control)
        point(page, widget)
    elif rows:
        fill_in(page, widget, rows)
    else:
        use_board(page, widget)


def move(page, explorer, control) -> None:
    kind, text = control.evaluate("control => [control.type, control.textContent]")
    if kind is None:  # a slider's handle
        least, now, most = (float(control.get_attribute(f"aria-value{which}")) for which in ("min", "now", "max"))
        if least < most:
            new_picture(page, explorer, control, "ArrowRight" if now < most else "ArrowLeft")
    elif kind == "select-one":
        new_picture(page, explorer, control, "ArrowDown")
    elif kind == "checkbox":
        new_picture(page, explorer, control, "Space")
        new_picture(page, explorer, control, "Space")
    elif control.evaluate("control => control.matches('.mod-active')"):
        return  # chosen already
    elif kind == "text":
        control.fill("Boats left the quiet bank")
        new_picture(page, explorer, control, "Enter")
    elif text.startswith("save as"):
        with page.expect_download():
            press(page, control, "Enter")
    else:  # play, then stop; or clear, once a cell is painted
        if text.startswith("clear"):
            new_picture(page, explorer, explorer.query_selector("[data-key][tabindex='0']"), "Enter")
        new_picture(page, explorer, control, "Enter")


def new_picture(page, explorer, control, key: str) -> None:
    """The key draws a new picture, and it is one."""
    explorer.query_selector(PICTURE).evaluate("svg => svg.classList.add('old')")
    press(page, control, key)
    picture = explorer.wait_for_selector(f"{PICTURE}:not(.old)", state="attached")
    assert not picture.get_attribute("aria-label").startswith("No picture"), (control, key)


def point(page, explorer) -> None:
    """Arrow keys move in the picture; all that share a key light up, and the label stands below."""
    press(page, explorer.query_selector("[data-key][tabindex='0']"), "ArrowDown", "ArrowRight")
    here = explorer.query_selector("[data-key]:focus")
    keys = explorer.eval_on_selector_all("[data-key]", "parts => parts.map(part => part.dataset.key)")
    own, *others = (set(key.split()) for key in (here.get_attribute("data-key"), *keys))
    assert len(explorer.query_selector_all(".mhsa-ring-inner")) == sum(bool(own & other) for other in others)
    assert explorer.query_selector(".mhsa-line").inner_text() == here.get_attribute("aria-label")


def answer(page, question) -> None:
    """Check with nothing chosen, then choose each option, or type a number, and check."""
    check = button(question, "Check")
    press(page, check, "Enter")
    question.wait_for_selector("[role=alert]:text-matches('^(Choose first|Type a number)')")
    for choice in question.query_selector_all("input"):
        choice.fill("7") if choice.get_attribute("type") == "text" else press(page, choice, "Space")
    press(page, check, "Enter")
    question.wait_for_selector("[role=alert]:text-matches('^[✓✗] .* right')")


def fill_in(page, form, rows) -> None:
    for row in rows:
        press(page, row.query_selector("button:last-of-type"), "Enter")
    check = form.query_selector("button:text-is('Check'):visible")
    if check:
        press(page, check, "Enter")
    says(form, f"{len(rows)} of {len(rows)} marked" if check else f"{3 * len(rows)} of {3 * len(rows)} points")


def use_board(page, board) -> None:
    press(page, button(board, "Refresh"), "Enter")
    for choice in ("Keep my progress", "Really start over"):  # the tests' own progress: see lab.py
        press(page, button(board, "Start over"), "Enter")
        board.wait_for_selector(f"button:text-is('{choice}')")
        press(page, button(board, choice), "Enter")
        board.wait_for_selector(f"button:text-is('{choice}')", state="hidden")


def button(widget, name: str):
    return widget.query_selector(f"button:text-is('{name}')")


def press(page, control, *keys: str) -> None:
    control.focus()
    for key in keys:
        page.keyboard.press(key)


def says(widget, words: str) -> None:
    widget.wait_for_selector(f".mhsa-line:text('{words}')")
