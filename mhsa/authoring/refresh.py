"""Bring lessons up to date: `python3 course.py refresh [lessons]`, all of them if none is named.

Exercises and quiz are put in from mhsa/exercises, every cell is run, slides are marked, and what does not belong into a
stored notebook is left out. Twice gives the same bytes as once.
"""

import sys
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from mhsa.authoring.insert import insert
from mhsa.authoring.names import paths_of
from mhsa.authoring.notebook import read, write
from mhsa.authoring.slides import mark

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"  # a dead view shows "model not found" to a reader


def run(notebook: NotebookNode, path: Path) -> None:
    """Run every cell; one that raises, writes to stderr or does not end is named."""
    client = NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        allow_errors=True,
        coalesce_streams=True,
        record_timing=False,
        store_widget_state=False,
    )
    try:
        client.execute()
    except (CellTimeoutError, DeadKernelError) as error:
        raise SystemExit(f"{path.name}: {error}") from None
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        for output in cell.outputs:
            if output.output_type == "error":
                raise SystemExit(f"{path.name}, code cell {number}: {output.ename}: {output.evalue}\n\n{cell.source}")
            if output.get("name") == "stderr":
                raise SystemExit(f"{path.name}, code cell {number} writes to stderr:\n{output.text}\n\n{cell.source}")


def clean(notebook: NotebookNode) -> None:
    """Leave out what changes from run to run, and what only an editor knows."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
        cell.metadata.pop("execution", None)  # JupyterLab's time stamps
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's
    for key in ("widgets", "jupytext"):
        notebook.metadata.pop(key, None)
    notebook.metadata.update(METADATA)


def refresh(path: Path) -> None:
    """All of it for one notebook; if a cell fails, the file stays as it was."""
    notebook = read(path)
    try:
        insert(notebook, path.stem[:2])
    except ValueError as error:
        raise SystemExit(f"{path.name}: {error}") from None
    run(notebook, path)
    clean(notebook)
    if path.stem[:2].isdecimal():  # the cheat sheet has no slides
        mark(notebook)  # after the run: how much fits on a slide depends on the outputs
    write(notebook, path)


def main(names: list[str]) -> None:
    for path in paths_of(names):
        print(path.name, flush=True)
        refresh(path)


if __name__ == "__main__":
    main(sys.argv[1:])
