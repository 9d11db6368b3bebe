"""Boolean masks, True = may attend (the opposite of nn.MultiheadAttention's)."""
from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from mhsa.checks import check_size


def causal_mask(T_q: int, T_k: int | None = None, *,
                device: torch.device | str | None = None) -> Bool[Tensor, "T_q T_k"]:
    """(T_q, T_k), True = may attend: each query sees the keys up to its own place. T_k defaults to T_q.

    Aligned at the bottom right: the last query sees every key, as a new token sees a whole cache. (The is_causal flag
    of F.scaled_dot_product_attention aligns at the top left; for T_q = T_k both are the same.)
    """
    check_size("T_q", T_q)
    T_k = T_q if T_k is None else T_k
    check_size("T_k", T_k)
    return torch.ones(T_q, T_k, dtype=torch.bool, device=device).tril(T_k - T_q)


def padding_mask(lengths: Sequence[int] | Tensor, T: int) -> Bool[Tensor, "B 1 1 T"]:
    """(B, 1, 1, T), True = a real token: the first lengths[b] keys of sentence b may be attended to.

    The two axes of size 1 stand for all heads and all queries. A length may be 0: such a sentence attends to nothing.
    """
    check_size("T", T)
    lengths = torch.as_tensor(lengths)
    if lengths.dim() != 1 or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths={lengths.tolist()} is not a list of whole numbers, one for each sentence")
    if ((lengths < 0) | (lengths > T)).any():
        raise ValueError(f"lengths={lengths.tolist()} must all lie from 0 to T={T}")
    return (torch.arange(T, device=lengths.device) < lengths[:, None])[:, None, None]
