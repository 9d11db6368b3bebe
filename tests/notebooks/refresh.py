"""Run lessons and store them clean: `python3 course.py refresh [names]`, all of them if none is named."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"  # a dead view shows "model not found" to a reader


def refresh(path: Path) -> None:
    """Run the notebook and store it; if a cell raises or writes to stderr, say which and leave the file as it was."""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # no JSON, no notebook, no UTF-8: each its own error
        raise SystemExit(f"{path.name} is no whole notebook: {str(error)[:200]}") from None
    NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        allow_errors=True,
        coalesce_streams=True,
        record_timing=False,
        store_widget_state=False,
    ).execute()
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        for output in cell.outputs:
            if output.output_type == "error":
                raise SystemExit(f"{path.name}, code cell {number}: {output.ename}: {output.evalue}\n\n{cell.source}")
            if output.get("name") == "stderr":
                raise SystemExit(f"{path.name}, code cell {number} writes to stderr:\n{output.text}\n\n{cell.source}")
            output.get("data", {}).pop(WIDGET_VIEW, None)
        cell.metadata.pop("execution", None)  # JupyterLab's time stamps
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's
    for key in ("widgets", "jupytext"):
        notebook.metadata.pop(key, None)
    notebook.metadata.update(METADATA)
    nbformat.write(notebook, path)


def lessons(names: list[str]) -> list[Path]:
    """The files of these lessons, or of all if none is named."""
    paths = [NOTEBOOKS / f"{Path(name).stem}.ipynb" for name in names] or sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in paths:
        if not path.exists():
            raise SystemExit(
                f"{path.stem} is no lesson; these are: "
                + ", ".join(sorted(lesson.stem for lesson in NOTEBOOKS.glob("*.ipynb")))
            )
    return paths


def main(names: list[str]) -> None:
    for path in lessons(names):
        print(path.name, flush=True)
        refresh(path)


if __name__ == "__main__":
    main(sys.argv[1:])
