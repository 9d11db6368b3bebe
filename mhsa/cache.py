"""The keys and values of the tokens already read, so that a new token computes only its own."""

import torch
from jaxtyping import Float
from torch import Tensor

from mhsa.checks import check_alike, check_float, check_type


class KVCache:
    """Grows by every call of `MultiHeadAttention(..., cache=cache)`; one cache per layer and batch.

    Holds num_kv_heads heads: k (B, num_kv_heads, T, d_k) and v (B, num_kv_heads, T, d_v). Filled with gradients on, it
    also keeps what every earlier step needs for its backward pass: decode under torch.no_grad().

    >>> layer, cache, x = MultiHeadAttention(12, 4), KVCache(), torch.randn(2, 5, 12)
    >>> with torch.no_grad():
    ...     steps = [layer(x[:, t : t + 1], is_causal=True, cache=cache) for t in range(5)]
    >>> torch.allclose(torch.cat(steps, 1), layer(x, is_causal=True), atol=1e-6), len(cache), cache.nbytes
    (True, 5, 960)
    """

    def __init__(self):
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens held. An export leaves it open; len() would fix it."""
        return 0 if self.k is None else self.k.shape[2]

    def __len__(self) -> int:
        return self.length

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
            if old is not None:
                _check_continues(name, new, old)
        self.k = k if self.k is None else torch.cat([self.k, k], 2)
        self.v = v if self.v is None else torch.cat([self.v, v], 2)
        return self.k, self.v


def _check_continues(name: str, new: Tensor, old: Tensor) -> None:
    another = "start a new KVCache() for another batch or layer"
    same = "all steps need one dtype, so autocast on in all of them or in none"
    for what, got, held, remedy in (
        ("B", new.shape[0], old.shape[0], another),
        ("num_kv_heads", new.shape[1], old.shape[1], another),
        ("width", new.shape[3], old.shape[3], another),
        ("dtype", new.dtype, old.dtype, same),
        ("device", new.device, old.device, "move one with .to(...)"),
    ):
        if got != held:
            raise ValueError(f"{name} has {what} {got}, but the cache holds {what} {held}; {remedy}")


def check_cache(cache: KVCache, key: Tensor | None, value: Tensor | None) -> int:
    """What a layer asks of a cache; returns the number of keys that wait in it."""
    check_type("cache", cache, KVCache)
    if key is not None or value is not None:
        raise ValueError("key and value must not be given with a cache: it keeps the query's own")
    return cache.length
