"""What every stored notebook must hold, read from the files; nothing runs here (nbval does that)."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = LESSONS + sorted([*ROOT.glob("*.md"), *ROOT.glob("notebooks/*.md")])
FREE_OUTPUT = {
    "08_how_many_heads": ["generator = torch.Generator().manual_seed(99)"],
    "06_one_vs_many": [
        "sweep = sweep_heads(list(tasks.values()), heads, seeds=range(5))",
        'rows = [f"m={m}" for m in tasks]',
        "def learned(run, seed):",
        "for seed in run.seeds:",
        "reads = {}",
        "single = train_toy(tasks[2], 1, seeds=range(5))",
        "new, answers = tasks[2].batch(500, torch.Generator().manual_seed(2))",
        'variants = {"linear read-out, one layer": {}, "MLP read-out, one layer": {"hidden": 64},',
        "one, mlp, deep = (pair_of[0] for pair_of in runs.values())         # m = 2",
        "def show_heads(run, seed):",
        "def mean_map(run, seed):",
    ],
    "09_fast_attention": [
        "@torch.no_grad()",
        "tokens = [256, 512, 1024, 2048]",
        "def draw(values, scale, ylabel, alt):",
        "sdpa, mask = F.scaled_dot_product_attention, causal_mask(2048)",
        'names = {"batched, explicit": "ours, weights", "looped, explicit": "looped", "fused": "ours"}',
        'calls = {f"{way}, h={h}": contestants(Shape(2, 1024, 512, h, False))[name]',
        "pages = {}",
        'speed = 2 * rows[-1]["product"]**3 / rows[-1]["seconds"]["product"]',
        'both = ["float32", "bfloat16"]',
        "text, narrow = x[:, :192], MultiHeadAttention(64, 8).eval()",
        "def copy_speed():",
        "run = train_toy(relations(m=4), num_heads=4, seeds=range(3), steps=500)",
        "if torch.cuda.is_available():",
        'cpu = fast_attention.recorded("cpu")',
    ],
}

FRONT_END = r"\binteract\w*\(|\bOutput\(|\bclear_output\b|\bupdate_display\b|\bdisplay_id\b"
NETWORK = (
    r"^\s*[!%]|https?:|\btorch\.hub\b|\bfrom_pretrained\b|"
    r"\b(import|from) (urllib|requests|httpx|aiohttp|socket|huggingface_hub|transformers|datasets)\b"
)
NBVAL_MARKS = r"(?i)\b(nbval[-_]\w+|raises-exception)"
LINK = r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)|(?:src|href)=\"([^\"]+)\""


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code(notebook) for output in cell.outputs]


def prose(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def not_run_once_from_top_to_bottom(notebook):
    return [
        f"cell {number} has [{cell.execution_count}]"
        for number, cell in enumerate(code(notebook), 1)
        if cell.execution_count != number
    ]


def errors_and_stderr(notebook):
    return [out for out in outputs(notebook) if out.output_type == "error" or out.get("name") == "stderr"]


def widget_views(notebook):
    return ["metadata.widgets"] * ("widgets" in notebook.metadata) + [
        mime for out in outputs(notebook) for mime in out.get("data", {}) if "widget-view" in mime
    ]


def memory_addresses(notebook):
    return re.findall(r"\b0x[0-9a-f]{6,}", " ".join(str(out.get("data", out.get("text"))) for out in outputs(notebook)))


def changing_metadata(notebook):
    right = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return [notebook.metadata.get("kernelspec")] * (notebook.metadata.get("kernelspec") != right) + [
        cell.metadata["execution"] for cell in code(notebook) if "execution" in cell.metadata
    ]


def long_or_empty_cells(notebook):
    return [cell.source for cell in code(notebook) if not 1 <= len(cell.source.splitlines()) <= 15]


def control_characters(notebook):
    """A backslash that a script has eaten: a tab in place of the beginning of \\text."""
    return [cell.source for cell in notebook.cells if re.search(r"[\x00-\x09\x0b-\x1f]", cell.source)]


def what_needs_a_front_end(notebook):
    return [cell.source for cell in code(notebook) if re.search(FRONT_END, cell.source)]


def what_reaches_for_the_network(notebook):
    return [cell.source for cell in code(notebook) if re.search(NETWORK, cell.source, re.MULTILINE)]


def pictures_without_alt_text(notebook):
    for alt in re.findall(r"!\[(.*?)\]", prose(notebook)):
        if not alt.strip():
            yield "an image in the text"
    html = [prose(notebook)]
    for out in outputs(notebook):
        data = out.get("data", {})
        html.append(data.get("text/html", ""))
        if "image/png" in data and not out.metadata.get("image/png", {}).get("alt"):
            yield "a PNG output without metadata image/png alt"
        svg = data.get("image/svg+xml", "")
        if svg and not ('role="img"' in svg and re.search(r"<title[^>]*>[^<]|aria-label=\"[^\"]", svg)):
            yield svg[:200]
    yield from re.findall(r"<img(?![^>]*\balt=\"[^\"])[^>]*>", "".join(html))


def cells_whose_output_is_not_compared(notebook):
    """Only by the tag nbval-ignore-output, listed in FREE_OUTPUT; the next cell then asserts what must hold."""
    cells = code(notebook)
    for cell, following in zip(cells, [*cells[1:], None]):
        marks = [*cell.metadata.get("tags", []), *re.findall(NBVAL_MARKS, cell.source)]
        for mark in filter(re.compile(NBVAL_MARKS).search, map(str, marks)):
            if mark != "nbval-ignore-output" or following is None or "assert" not in following.source:
                yield f"{mark} on {cell.source}"


CHECKS = [
    not_run_once_from_top_to_bottom,
    errors_and_stderr,
    widget_views,
    memory_addresses,
    changing_metadata,
    long_or_empty_cells,
    control_characters,
    what_needs_a_front_end,
    what_reaches_for_the_network,
    pictures_without_alt_text,
    cells_whose_output_is_not_compared,
]
each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@each_check
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_no_lesson_has(lesson, check):
    notebook = nbformat.read(lesson, as_version=4)
    nbformat.validate(notebook)
    found = list(check(notebook))
    assert found == []


def test_there_are_lessons_and_few_cells_with_a_free_output():
    found = {}
    for lesson in LESSONS:
        for cell in code(nbformat.read(lesson, as_version=4)):
            if "nbval-ignore-output" in cell.metadata.get("tags", []):
                found.setdefault(lesson.stem, []).append(cell.source.splitlines()[0])
    assert LESSONS and found == FREE_OUTPUT


def slug(heading):
    """A heading as links name it: GitHub drops the punctuation and the capitals, JupyterLab keeps both."""
    return re.sub(r"[^\w-]", "", heading.strip().replace(" ", "-")).lower()


def text_of(page):
    return prose(nbformat.read(page, as_version=4)) if page.suffix == ".ipynb" else page.read_text(encoding="utf-8")


def headings(page):
    return re.findall(r"^#+ (.*)", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL), re.MULTILINE)


def without_code(text):
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def dead_links(page):
    """Relative links to a file that is not there, or to a heading that is not in it."""
    for link in filter(None, (a or b for a, b in re.findall(LINK, without_code(text_of(page))))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or heading and slug(heading) not in map(slug, headings(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_link_is_dead(page):
    dead = list(dead_links(page))
    assert dead == []


# Each check must be able to fail: a clean notebook passes them all, and each of these faults is seen by its own check.
SVG = '<svg role="img"><title>four heads</title></svg>'


def notebook_with(source="1 + 1", text="a sentence", widgets=False, cell=None, kernel="python3", **output):
    output = new_output("execute_result", execution_count=1, **({"data": {"image/svg+xml": SVG}} | output))
    spec = {"display_name": "Python 3", "language": "python", "name": kernel}
    cells = [
        new_markdown_cell(text),
        new_code_cell(source, execution_count=1, outputs=[output], metadata=cell or {}),
        new_code_cell("assert True", execution_count=2),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": spec} | ({"widgets": {}} if widgets else {}))


def with_output(output_type, **content):
    notebook = notebook_with()
    notebook.cells[1].outputs = [new_output(output_type, **content)]
    return notebook


def not_run():
    notebook = notebook_with()
    notebook.cells[2].execution_count = 7
    return notebook


FAULTS = [
    (control_characters, notebook_with(text="$d_\text{model}$")),
    (not_run_once_from_top_to_bottom, not_run()),
    (errors_and_stderr, with_output("stream", name="stderr", text="careful")),
    (errors_and_stderr, with_output("error", ename="E", evalue="", traceback=[])),
    (widget_views, notebook_with(widgets=True)),
    (widget_views, notebook_with(data={"application/vnd.jupyter.widget-view+json": {}})),
    (memory_addresses, with_output("stream", name="stdout", text="<object at 0x7f12ab34cd50>")),
    (changing_metadata, notebook_with(kernel="my_venv")),
    (changing_metadata, notebook_with(cell={"execution": {"iopub.status.busy": "2026-01-01"}})),
    (long_or_empty_cells, notebook_with("x = 1\n" * 16)),
    (long_or_empty_cells, notebook_with("")),
    (what_needs_a_front_end, notebook_with("interact(f, x=3)")),
    (what_needs_a_front_end, notebook_with("widgets.Output()")),
    (what_reaches_for_the_network, notebook_with("x = 1\n!pip install torch")),
    (what_reaches_for_the_network, notebook_with("from transformers import AutoModel")),
    (pictures_without_alt_text, notebook_with(text="![](a.png)")),
    (pictures_without_alt_text, notebook_with(text='<img src="a.png">')),
    (pictures_without_alt_text, notebook_with(data={"image/svg+xml": '<svg role="img"><g/></svg>'})),
    (pictures_without_alt_text, notebook_with(data={"image/png": "iVBO"})),
    (cells_whose_output_is_not_compared, notebook_with(cell={"tags": ["nbval-skip"]})),
    (cells_whose_output_is_not_compared, notebook_with("# NBVAL_IGNORE_OUTPUT\n1")),
]


@each_check
def test_a_clean_notebook_passes(check):
    marked = {"tags": ["nbval-ignore-output"]}
    picture = {"data": {"image/png": "iVBO"}, "metadata": {"image/png": {"alt": "a curve"}}}
    for notebook in (notebook_with(cell=marked), notebook_with(text="![a map](a.svg)", **picture)):
        assert not list(check(notebook))


@pytest.mark.parametrize("check, notebook", FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_each_check_sees_its_fault(check, notebook):
    assert list(check(notebook))


def test_dead_links_are_seen(tmp_path):
    there, page = tmp_path / "there.md", tmp_path / "page.md"
    there.write_text("# 1. A heading\n\n[x](#1.-A-heading) [x](#1-a-heading) [x](#no) [x](gone.md) `[x](code.md)`")
    page.write_text('[x](there.md#1-a-heading) [x](there.md#2-gone) <img src="gone.png"> [x](https://a.b/c)')
    assert list(dead_links(there)) == ["#no", "gone.md"]
    assert list(dead_links(page)) == ["there.md#2-gone", "gone.png"]
