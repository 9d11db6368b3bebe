"""Read and write a notebook; what stands in the way is told in one sentence."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode


def read(path: Path) -> NotebookNode:
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # no JSON, no notebook, no UTF-8: each its own error
        raise SystemExit(f"{path.name} is no whole notebook: {str(error)[:200]}") from None
    return notebook


def write(notebook: NotebookNode, path: Path) -> None:
    nbformat.validate(notebook)
    try:
        nbformat.write(notebook, path)
    except OSError as error:
        raise SystemExit(f"{path} cannot be written: {error.strerror}") from None
