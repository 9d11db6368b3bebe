"""Every program that the tests start, the lessons' kernels above all, runs without network: see sitecustomize.py."""

import os
from pathlib import Path

os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
