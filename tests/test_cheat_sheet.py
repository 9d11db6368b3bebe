"""The cheat sheet on paper: what JupyterLab's File > Print prints, that is nbconvert's HTML, by Chromium."""

import os
import re
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from mhsa.draw.__main__ import CHROMIUM

SHEET = Path(__file__).parents[1] / "notebooks/cheat_sheet.ipynb"
A4 = (595, 842)  # in points


def printed(notebook, folder):
    """Sizes of the pages, in points. Nothing is loaded from outside: no picture of a formula, no font."""
    if CHROMIUM is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium found; on Debian: apt-get install chromium")
    page, pdf = folder / "sheet.html", folder / "sheet.pdf"
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf.read_bytes())
    return [(round(float(width)), round(float(height))) for width, height in boxes]


def test_it_prints_on_two_pages_of_a4(tmp_path):
    assert printed(nbformat.read(SHEET, as_version=4), tmp_path) == [A4, A4]


def test_without_its_style_it_would_not(tmp_path):
    notebook = nbformat.read(SHEET, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id != "paper"]
    assert len(printed(notebook, tmp_path)) > 2


def test_it_needs_no_program_for_formulas():
    assert not [
        cell.source
        for cell in nbformat.read(SHEET, as_version=4).cells
        if cell.cell_type == "markdown" and "$" in cell.source
    ]
