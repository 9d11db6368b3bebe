"""mhsa installed from a wheel, in a folder of its own: what the package reads from files must have come along."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
READERS = """
import json, sys
from pathlib import Path

opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)

import mhsa
from mhsa import claims, explore, train
from mhsa.bench import fast_attention
from mhsa.draw.head_count import head_count_svg

shown = [
    train.recorded("map").result("relations, m=1", 1).mean,
    [run.task.name for run in train.load_story_runs().values()],
    explore.one_vs_many().view.svg,
    explore.flow().view.svg,
    fast_attention.report(fast_attention.recorded("cpu")),
    claims.table("M"),
    claims.table("N"),
    head_count_svg(),
]
assert all(shown), shown
print(json.dumps([mhsa.__file__, sorted(opened)]))
"""


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True, env=os.environ | {"PIP_NO_INDEX": "1"})


def test_whatever_reads_a_file_works_without_the_checkout(tmp_path):
    """Of the files that are no code, each lies in the wheel, and each is read here."""
    source, there, elsewhere = (tmp_path / name for name in ("source", "there", "elsewhere"))
    shutil.copytree(ROOT / "mhsa", source / "mhsa", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", source)
    elsewhere.mkdir()
    data = {path.relative_to(source) for path in source.glob("mhsa/**/*.*") if path.suffix != ".py"}
    assert data  # before setuptools adds files of its own
    pip("wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={tmp_path}", source)
    pip("install", "--no-deps", f"--target={there}", *tmp_path.glob("*.whl"))
    alone = os.environ | {"PYTHONPATH": str(there), "MHSA_PROGRESS": str(elsewhere / "progress.json")}
    read = subprocess.run(
        [sys.executable, "-c", READERS], cwd=elsewhere, env=alone, capture_output=True, encoding="utf-8"
    )
    assert read.returncode == 0, read.stderr
    place, opened = json.loads(read.stdout)
    assert Path(place) == there / "mhsa/__init__.py"
    assert {Path(path).relative_to(there) for path in opened if path.startswith(str(there))} >= data
