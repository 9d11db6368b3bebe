"""Put exercises and quiz into their lessons, before "## The common trap" and "## What comes next"; then refresh those.

`.venv/bin/python tests/notebooks/insert_exercises.py notebooks/01_one_head.ipynb …`; run it again after a change.
"""

import importlib
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from mhsa.exercises import cells

MAKE = {"markdown": new_markdown_cell, "code": new_code_cell}
QUIZ = [
    ("markdown", "quiz-heading", "## Quiz\n\nChoose, then check. Each answer has its own words."),
    ("code", "quiz", "ex.quiz()"),
]


def put(notebook, heading: str, made: list[tuple[str, str, str]]) -> None:
    """Put the cells (kind, id, source) before the heading, in place of those of the same ids."""
    kept = [cell for cell in notebook.cells if cell.id not in {id for _, id, _ in made}]
    at, cell = next((i, cell) for i, cell in enumerate(kept) if cell.cell_type == "markdown" and heading in cell.source)
    before, _, after = cell.source.partition(heading)
    if before.strip():  # the heading stands inside a cell: cut it in two
        cell.source = before.rstrip()
        at += 1
        kept.insert(at, new_markdown_cell(heading + after, id=heading.strip("# ").lower().replace(" ", "-")))
    notebook.cells = kept[:at] + [MAKE[kind](source, id=id) for kind, id, source in made] + kept[at:]


for name in sys.argv[1:]:
    notebook = nbformat.read(name, as_version=4)
    put(notebook, "## The common trap", cells(importlib.import_module(f"mhsa.exercises.lesson{Path(name).name[:2]}")))
    put(notebook, "## What comes next", QUIZ)
    nbformat.write(notebook, name)
