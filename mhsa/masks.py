"""Boolean masks, True = may attend (the opposite of nn.MultiheadAttention's)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from mhsa.checks import check_size, short


def causal_mask(
    T_q: int, T_k: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "T_q T_k"]:
    """(T_q, T_k), True = may attend: each query sees the keys up to its own place. T_k defaults to T_q.

    Aligned at the bottom right: the last query sees every key, as a new token sees a whole cache. (The is_causal flag
    of F.scaled_dot_product_attention aligns at the top left; for T_q = T_k both are the same.)
    Raises ValueError for sizes that are not positive whole numbers.

    >>> causal_mask(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    T_q = check_size("T_q", T_q)
    T_k = check_size("T_k", T_q if T_k is None else T_k)
    return lower_right(T_q, T_k, device)


def lower_right(T_q: int, T_k: int, device: torch.device | str | None) -> Bool[Tensor, "T_q T_k"]:
    """causal_mask() of sizes that need no check: a layer's own may be 0."""
    return torch.ones(T_q, T_k, dtype=torch.bool, device=device).tril(T_k - T_q)


def square(T_q: int, T_k: int) -> bool:
    """Whether T_q and T_k are equal; while a program is exported, whether they are so for every length left open."""
    if torch.compiler.is_exporting():
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        return statically_known_true(T_q == T_k)
    return T_q == T_k


def padding_mask(lengths: Sequence[int] | Tensor, T: int) -> Bool[Tensor, "B 1 1 T"]:
    """(B, 1, 1, T), True = a real token: the first lengths[b] keys of sentence b may be attended to.

    The two axes of size 1 stand for all heads and all queries. A length may be 0: such a sentence attends to nothing.
    Raises ValueError for lengths that are not whole numbers from 0 to T.

    >>> padding_mask([3, 1], 4)[:, 0, 0].int()
    tensor([[1, 1, 1, 0],
            [1, 0, 0, 0]], dtype=torch.int32)
    """
    T = check_size("T", T)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    if not isinstance(counts, Sequence) or not counts:
        raise ValueError(f"lengths={short(counts)} is not a list or tensor of whole numbers, one a sentence")
    for i, count in enumerate(counts):
        check_size(f"lengths[{i}]", count, minimum=0)
        if count > T:
            raise ValueError(f"lengths[{i}]={count} is more than T={T}")
    device = lengths.device if isinstance(lengths, Tensor) else None
    return (torch.arange(T, device=device) < torch.tensor(counts, device=device)[:, None])[:, None, None]
