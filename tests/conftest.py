"""Property tests that repeat themselves, and the way to see an error as a user sees it."""
import os
import tempfile
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import settings

os.environ["MHSA_PROGRESS"] = str(Path(tempfile.mkdtemp()) / "progress.json")   # not the user's own

settings.register_profile("course", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("course")


@pytest.fixture
def as_a_user(monkeypatch):
    """Switches off the shape checks of the test run, which would refuse a wrong call before the package can."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
