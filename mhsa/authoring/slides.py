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


def slide_types(cells: list[NotebookNode]) -> list[str]:
    """slide, subslide, fragment or skip for each cell; "-" stays with the cell before."""
    types, section, used = [], "", 0
    for i, cell in enumerate(cells):
        text, is_code = cell.source, cell.cell_type == "code"
        before = cells[i - 1].source if i else ""
        if i == 0 or text.startswith("## "):
            kind, section = "slide", text.splitlines()[0]
        elif text.startswith("### "):  # an exercise or a question to think about
            kind = "subslide"
        elif "**Predict.**" in text:
            kind = "-" if before.startswith("## ") else "subslide"
        elif "**Predict.**" in before or used <= 3 or used + height(cell) <= LINES:
            kind = "fragment"  # question and answer stay together, always
        else:
            kind = "subslide"
        checks = is_code and "nbval-ignore-output" in cells[i - 1].metadata.get("tags", [])
        if section == "## Quiz" or (section == "## Exercises" and is_code) or (i == 1 and is_code) or checks:
            kind = "skip"  # what a class does itself, imports, assertions
        else:
            used = height(cell) + (used if kind in ("-", "fragment") else 0)
        types.append(kind)
    return types


def mark(notebook: NotebookNode) -> None:
    """Cut the cells and store their slide types, as JupyterLab and nbconvert read them."""
    cut(notebook)
    for cell, kind in zip(notebook.cells, slide_types(notebook.cells)):
        cell.metadata.pop("slideshow", None)
        if kind != "-":
            cell.metadata["slideshow"] = {"slide_type": kind}
