"""Explorers: controls and one picture that follows them, live in JupyterLab, a still where no kernel runs."""
from mhsa.explore.heads import heads

__all__ = ["heads"]
