"""What several measurements need: a layer of any size, fixed numbers, a comparison. Nothing here takes a time."""

from collections.abc import Callable
from math import log
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from mhsa.layers import MultiHeadAttention


def size(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def layer(d_model: int, num_heads: int, **sizes) -> MultiHeadAttention:
    with torch.device("meta"):  # shapes only: no memory, no time
        return MultiHeadAttention(d_model, num_heads, **sizes)


def products(T: int, d_model: int, num_heads: int, **sizes) -> int:
    """The FLOPs of all matrix products of one layer and one sentence, counted while it runs."""
    with FlopCounterMode(display=False) as counter:
        layer(d_model, num_heads, **sizes)(torch.empty(1, T, d_model, device="meta"), need_weights=True)
    return counter.get_total_flops()


def score_maps(B: int, T: int, d_model: int, num_heads: int) -> Tensor:
    x = torch.empty(B, T, d_model, device="meta")
    return layer(d_model, num_heads)(x, need_weights=True)[1]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(kind: Callable[..., Any], *sizes: int) -> Any:
    torch.manual_seed(0)
    return kind(*sizes).double()


def close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-10)


def before_training(num_heads: int) -> tuple[float, float]:
    """As in lesson 8, section 3, at T = 16: entropy of the rows as a share of its maximum, gradient of W_Q."""
    mha, (x, target) = seeded(MultiHeadAttention, 64, num_heads), numbers(2, 32, 16, 64, seed=1)
    for p in mha.parameters():
        torch.nn.init.normal_(p, std=64**-0.5)
    out, maps = mha(x, need_weights=True)
    F.mse_loss(out, target).backward()
    entropy = torch.special.entr(maps).sum(-1).mean().item() / log(16)
    return entropy, mha.w_q.weight.grad.norm().item()
