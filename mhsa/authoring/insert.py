"""Put the exercises and the quiz of a lesson into its notebook, in place of those that stand there."""

from importlib import import_module
from importlib.util import find_spec

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from mhsa.exercises import cells

MAKE = {"markdown": new_markdown_cell, "code": new_code_cell}
QUIZ = [
    ("markdown", "quiz-heading", "## Quiz\n\nChoose, then check. Each answer has its own words."),
    ("code", "quiz", "ex.quiz()"),
]


def put(notebook: NotebookNode, heading: str, made: list[tuple[str, str, str]]) -> None:
    """Put the cells (kind, id, source) before the heading, in place of those of the same ids."""
    kept = [cell for cell in notebook.cells if cell.id not in {id for _, id, _ in made}]
    headings = (i for i, cell in enumerate(kept) if cell.cell_type == "markdown" and heading in cell.source)
    if (at := next(headings, None)) is None:
        raise ValueError(f"exercises and quiz go before a heading that is missing: {heading}")
    before, _, after = kept[at].source.partition(heading)
    if before.strip():  # the heading stands inside a cell: cut it in two
        kept[at].source = before.rstrip()
        at += 1
        kept.insert(at, new_markdown_cell(heading + after, id=heading.strip("# ").lower().replace(" ", "-")))
    notebook.cells = kept[:at] + [MAKE[kind](source, id=id) for kind, id, source in made] + kept[at:]


def insert(notebook: NotebookNode, number: str) -> None:
    """The cells of lesson "02", say; the first lesson and the cheat sheet have none."""
    module = f"mhsa.exercises.lesson{number}"
    if find_spec(module):
        put(notebook, "## The common trap", cells(import_module(module)))
        put(notebook, "## What comes next", QUIZ)
