"""Explorers: controls and one picture that follows them, live in JupyterLab, a still where no kernel runs."""
from mhsa.explore.cost import cost
from mhsa.explore.heads import heads
from mhsa.explore.masks import masks
from mhsa.explore.parameters import parameters
from mhsa.explore.shapes import shapes

__all__ = ["cost", "heads", "masks", "parameters", "shapes"]
