"""Put the exercises of mhsa.exercises into their lessons, in front of "## The common trap"; then refresh the lessons.

`.venv/bin/python tests/notebooks/insert_exercises.py notebooks/01_one_head.ipynb …`; run it again after a change.
"""
import importlib
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from mhsa.exercises import cells

BEFORE = "## The common trap"
MAKE = {"markdown": new_markdown_cell, "code": new_code_cell}

for name in sys.argv[1:]:
    notebook = nbformat.read(name, as_version=4)
    made = cells(importlib.import_module(f"mhsa.exercises.lesson{Path(name).name[:2]}"))
    ours = {id for _, id, _ in made}
    kept = [cell for cell in notebook.cells if cell.id not in ours]
    at, cell = next((i, cell) for i, cell in enumerate(kept) if cell.cell_type == "markdown" and BEFORE in cell.source)
    before, _, after = cell.source.partition(BEFORE)
    if before.strip():                                              # the heading stands inside a cell: cut it in two
        cell.source = before.rstrip()
        at += 1
        kept.insert(at, new_markdown_cell(BEFORE + after, id="the-common-trap"))
    new = [MAKE[kind](source, id=id) for kind, id, source in made]
    notebook.cells = kept[:at] + new + kept[at:]
    nbformat.write(notebook, name)
    print(name, len(new), "cells")
