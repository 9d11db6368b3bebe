"""Three students at once in the classroom's hub. simulate.py beside this file holds larger classes."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from helpers import run_async
from simulate import ROOT, hold_class

LESSON = "00_start_here"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
MISSING = [
    name
    for name, found in {
        "jupyterhub": importlib.util.find_spec("jupyterhub"),
        "configurable-http-proxy": shutil.which("configurable-http-proxy", path=PATH),
    }.items()
    if not found
]


@pytest.mark.skipif(bool(MISSING) and not os.environ.get("CI"), reason=f"not installed: {', '.join(MISSING)}")
def test_three_students_run_a_lesson_restart_and_find_their_work_again():
    report = run_async(hold_class(3, LESSON))
    assert report.failures == []
    cells = json.loads((ROOT / f"notebooks/{LESSON}.ipynb").read_text(encoding="utf-8"))["cells"]
    count = sum(cell["cell_type"] == "code" for cell in cells)
    assert report.cells == 3 * (count // 2 + count) + 1  # the first half, the whole, and one who comes back
    assert len(report.starts) == 4
    assert sorted(report.peak) == ["", "student0", "student1", "student2"]
    for pss, uss in report.peak.values():
        assert 10 < uss <= pss  # MB
