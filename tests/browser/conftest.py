"""One browser and one JupyterLab for all tests of this folder."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lab import CHROMIUM, chromium, jupyterlab  # noqa: E402


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    if CHROMIUM is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium found; on Debian: apt-get install chromium")
    folder = tmp_path_factory.mktemp("lab")
    with chromium() as browser, jupyterlab(browser, folder, OMP_NUM_THREADS="1") as lab:  # several kernels at once
        yield lab
