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
    with chromium() as browser, jupyterlab(browser, tmp_path_factory.mktemp("lab")) as lab:
        yield lab
