"""One head against many, measured on toy tasks. `python -m mhsa.train` records the full-size results anew."""

from mhsa.train.further import accuracy, train_further
from mhsa.train.model import ToyRun, train_toy
from mhsa.train.record import load_story_runs, recorded
from mhsa.train.sweep import Result, Sweep, sweep_heads

__all__ = [
    "Result",
    "Sweep",
    "ToyRun",
    "accuracy",
    "load_story_runs",
    "recorded",
    "sweep_heads",
    "train_further",
    "train_toy",
]
