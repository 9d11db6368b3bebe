"""Store in a notebook what each cell is on a slide.

A section begins a slide, a question a sub-slide; what answers it is a fragment, shown by the next key press.
"""

import re

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

HEADING, QUESTION = r"\n+(?=## )", r"\n+(?=\*\*Predict\.\*\*)"
LINES = 24  # of code that a slide shows
PICTURE = 21  # as many lines high
TEXT_WIDTH = 90  # letters in a line of text


def cut(notebook: NotebookNode) -> None:
    """A slide holds whole cells: begin one at each heading, and at a question that comes after an explanation."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source, *rest = [
                piece
                for part in re.split(HEADING, cell.source)
                for piece in ([part] if part.startswith("## ") else re.split(QUESTION, part))
            ]
            cells += [new_markdown_cell(piece, id=f"{cell.id}-{n}") for n, piece in enumerate(rest, 2)]
    notebook.cells = cells


def height(cell: NotebookNode) -> int:
    """About how many lines of a slide the cell takes."""
    lines = cell.source.partition("<details>")[0].splitlines()  # the rest is folded
    if cell.cell_type == "markdown":
        return sum(1 + len(line) // TEXT_WIDTH for line in lines)
    for out in cell.outputs:
        data = out.get("data", {})
        picture = "image/svg+xml" in data or "image/png" in data
        lines += ["picture"] * PICTURE if picture else out.get("text", "").splitlines()
    return len(lines) + 1


def is_skipped(cell: NotebookNode, before: NotebookNode, section: str) -> bool:
    """What a class does itself, imports, and assertions about what differs from run to run."""
    if section == "## Quiz":
        return True
    imports = before.cell_type == "markdown" and before.source.startswith("# ")  # the lesson's title
    checks = "nbval-ignore-output" in before.metadata.get("tags", [])
    return cell.cell_type == "code" and (section == "## Exercises" or imports or checks)


def slide_type(cell: NotebookNode, before: NotebookNode, used: int) -> str:
    """Of a cell that is shown; used: how many lines stand on the slide so far."""
    if cell.cell_type == "markdown" and cell.source.startswith(("# ", "## ")):
        return "slide"
    if cell.source.startswith("### "):  # an exercise or a question to think about
        return "subslide"
    if "**Predict.**" in cell.source:
        return "-" if before.source.startswith("## ") else "subslide"
    answers = "**Predict.**" in before.source  # question and answer stay together, always
    return "fragment" if answers or used <= 3 or used + height(cell) <= LINES else "subslide"


def slide_types(cells: list[NotebookNode]) -> list[str]:
    """slide, subslide, fragment or skip for each cell; "-" stays with the cell before."""
    types, section, used, before = [], "", 0, new_markdown_cell()
    for cell in cells:
        if cell.source.startswith("## "):
            section = cell.source.splitlines()[0]
        if is_skipped(cell, before, section):
            types.append("skip")
        else:
            types.append(slide_type(cell, before, used))
            used = height(cell) + (used if types[-1] in ("-", "fragment") else 0)
        before = cell
    return types


def mark(notebook: NotebookNode) -> None:
    """Cut the cells and store their slide types, as JupyterLab and nbconvert read them."""
    cut(notebook)
    for cell, kind in zip(notebook.cells, slide_types(notebook.cells)):
        cell.metadata.pop("slideshow", None)
        if kind != "-":
            cell.metadata["slideshow"] = {"slide_type": kind}
