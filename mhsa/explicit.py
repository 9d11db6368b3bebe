"""The same as attention(), with one map less in memory: what the layer runs when it hands out its weights.

The formula to read stands in mhsa/layers.py; tests hold the two equal.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from mhsa.checks import autocast_is_on


def autocast_off(device: torch.device) -> AbstractContextManager:
    """Autocast would take scores and softmax back to a half type."""
    return torch.autocast(device.type, enabled=False) if autocast_is_on(device) else nullcontext()


def attend_lean(
    q: Float[Tensor, "*lead T_q d_k"],
    k: Float[Tensor, "*lead T_k d_k"],
    v: Float[Tensor, "*lead T_k d_v"],
    mask: Bool[Tensor, "..."] | None,
    scale: float,
    dropout_p: float,
) -> tuple[Float[Tensor, "*lead T_q d_v"], Float[Tensor, "*lead T_q T_k"]]:
    """attention() for arguments that are checked already, of one dtype and at least three axes.

    The product is scaled while it is written; without gradients the softmax overwrites the scores.
    """
    dtype, hidden = q.dtype, None if mask is None else ~mask
    if dtype.itemsize < 4:
        q, k = q.float(), k.float()
    with autocast_off(q.device):
        flat_q, flat_k = q.flatten(0, -3), k.flatten(0, -3)  # (n, T, d_k)
        scores = torch.baddbmm(flat_q.new_empty(1, 1, 1), flat_q, flat_k.mT, beta=0, alpha=scale)  # q kᵀ · scale
        scores = scores.view(*q.shape[:-1], k.shape[-2])  # (..., T_q, T_k)
        if hidden is not None:
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        try:
            weights = torch.softmax(scores, -1, out=None if torch.is_grad_enabled() else scores)
        except RuntimeError:  # vmap and jvp know no out=
            weights = torch.softmax(scores, -1)
        if hidden is not None:
            weights = weights.masked_fill(hidden, 0.0)
        weights = (F.dropout(weights, dropout_p) if dropout_p else weights).to(dtype)
        return weights @ v, weights  # (..., T_q, d_v)
