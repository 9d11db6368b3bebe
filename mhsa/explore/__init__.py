"""Explorers: controls and one picture that follows them, live in JupyterLab, a still where no kernel runs."""
from mhsa.explore.cost import cost
from mhsa.explore.heads import heads
from mhsa.explore.parameters import parameters

__all__ = ["cost", "heads", "parameters"]
