"""Toy sentences, small enough to print whole."""
import zlib
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from mhsa.checks import check_size

SENTENCE = ("Mia", "lost", "her", "keys")                          # her -> Mia, lost -> Mia, keys -> her


def words(T: int) -> list[str]:
    """Names for T tokens: those of the sentence, then t4, t5, …"""
    return [*SENTENCE, *(f"t{i}" for i in range(len(SENTENCE), T))][:T]


def embed(tokens: Sequence[str], d_model: int) -> Float[Tensor, "1 T d_model"]:
    """A random vector a token, (1, T, d_model) float32 of mean 0 and variance 1; the same word always has the same."""
    check_size("d_model", d_model)
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens) or not tokens:
        raise ValueError(f"tokens={tokens!r} is not a list of words")
    seeds = [zlib.crc32(token.encode()) for token in tokens]
    return torch.stack([torch.randn(d_model, generator=torch.Generator().manual_seed(seed)) for seed in seeds])[None]
