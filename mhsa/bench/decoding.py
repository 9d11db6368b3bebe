"""Decoding token by token, with a cache of keys and values and without one: what lesson 9 times."""

import torch

from mhsa.cache import KVCache
from mhsa.layers import MultiHeadAttention


def decode(layer: MultiHeadAttention, x: torch.Tensor, *, cached: bool = True) -> torch.Tensor:
    """The causal outputs of x (B, T, d_model), token by token, as when each is new; like x.

    cached: a step computes one token, and the keys and values of those before lie ready; else it computes all again.
    """
    if cached:
        cache = KVCache()
        steps = [layer(token, cache=cache) for token in x.split(1, 1)]
    else:
        steps = [layer(x[:, :t], is_causal=True)[:, -1:] for t in range(1, x.shape[1] + 1)]
    return torch.cat(steps, 1)
