"""The keys and values of the tokens already read, so that a new token computes only its own."""

import torch
from jaxtyping import Float
from torch import Tensor

from mhsa.checks import check_alike, check_float


class KVCache:
    """Grows by every call of `MultiHeadAttention(..., cache=cache)`; one cache per layer and batch.

    Holds num_kv_heads heads: k (B, num_kv_heads, T, d_k) and v (B, num_kv_heads, T, d_v).
    """

    def __init__(self):
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def __len__(self) -> int:
        """Tokens held."""
        return 0 if self.k is None else self.k.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes held by keys and values."""
        return 0 if self.k is None or self.v is None else self.k.nbytes + self.v.nbytes

    def append(
        self, k: Float[Tensor, "B g T d_k"], v: Float[Tensor, "B g T d_v"]
    ) -> tuple[Float[Tensor, "B g T_all d_k"], Float[Tensor, "B g T_all d_v"]]:
        """Add the keys and values of new tokens; return all of them, oldest first.

        Raises ValueError, and keeps what it holds, if batch, heads, width, dtype or device differ from before.
        """
        for name, new, old in (("k", k, self.k), ("v", v, self.v)):
            check_float(name, new)
            check_alike(name, new, "k", k)
            if new.dim() != 4 or new.shape[:3] != k.shape[:3]:
                raise ValueError(
                    f"{name} has shape {tuple(new.shape)}; (B, num_kv_heads, T, d) is needed, the first three as in k"
                )
            if old is not None and _kind(new) != _kind(old):
                raise ValueError(
                    f"{name} has (B, num_kv_heads, d, dtype, device) = {_kind(new)}, but the cache holds "
                    f"{_kind(old)}; start a new KVCache() for another batch or layer"
                )
        self.k = k if self.k is None else torch.cat([self.k, k], 2)
        self.v = v if self.v is None else torch.cat([self.v, v], 2)
        return self.k, self.v


def _kind(x: Tensor) -> tuple:
    return (x.shape[0], x.shape[1], x.shape[3], str(x.dtype), str(x.device))
