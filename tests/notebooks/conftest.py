"""Every program that the tests start, the lessons' kernels above all, runs without network: see tests/offline."""

import os
from pathlib import Path

OFFLINE = Path(__file__).parents[1] / "offline"
os.environ["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), *filter(None, [os.environ.get("PYTHONPATH")])])
