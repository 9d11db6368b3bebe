"""Explorers: controls and one picture that follows them, live in JupyterLab, a still where no kernel runs."""

from mhsa.explore.cost import cost
from mhsa.explore.flow import flow
from mhsa.explore.heads import heads
from mhsa.explore.masks import masks
from mhsa.explore.one_vs_many import one_vs_many
from mhsa.explore.parameters import parameters
from mhsa.explore.real_heads import real_heads
from mhsa.explore.shapes import shapes

__all__ = ["cost", "flow", "heads", "masks", "one_vs_many", "parameters", "real_heads", "shapes"]
