"""One token on its way through a layer: every number that is computed for it, as plain lists to be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mhsa.layers import MultiHeadAttention

Numbers = Sequence[float]


@dataclass(frozen=True)
class Flow:
    """What a layer of h heads computes for one word, `tokens[word]`, as plain lists.

    x (T, d_model): all T words. Of this word q (h, d_k), scores q·k and weights (h, T), z (h, d_v), out (d_model): what
    W_O makes of z. k (h, T, d_k), v (h, T, d_v). allowed (T), True = may attend.
    """

    tokens: Sequence[str]
    word: int
    x: Sequence[Numbers]
    q: Sequence[Numbers]
    k: Sequence[Sequence[Numbers]]
    v: Sequence[Sequence[Numbers]]
    scores: Sequence[Numbers]
    weights: Sequence[Numbers]
    z: Sequence[Numbers]
    out: Numbers
    allowed: Sequence[bool]

    @property
    def name(self) -> str:
        return self.tokens[self.word]

    @property
    def total(self) -> list[float]:
        """The word with the result added."""
        return [a + b for a, b in zip(self.x[self.word], self.out)]


@torch.no_grad()
def follow(
    layer: MultiHeadAttention,
    x: Float[Tensor, "1 T d_model"],
    tokens: Sequence[str],
    word: int,
    allowed: Bool[Tensor, "T T"] | None = None,
    temperature: float = 1.0,
) -> Flow:
    """What the layer computes for the token at place `word` of one sentence x, whose tokens have these names.

    allowed: True = may attend; None: all may. temperature divides the scores once more, after √d_k.
    """
    q, k, v = (w(x)[0].unflatten(-1, (layer.num_heads, -1)).transpose(0, 1) for w in (layer.w_q, layer.w_k, layer.w_v))
    q = q[:, word]  # (h, d_k)
    may = torch.ones(len(tokens), dtype=torch.bool) if allowed is None else allowed[word]
    scores = (k @ q[:, :, None])[..., 0]  # (h, T)
    weights = (scores / (sqrt(layer.d_k) * temperature)).masked_fill(~may, -torch.inf).softmax(-1)
    z = (weights[:, None] @ v)[:, 0]  # (h, d_v)
    parts = (x[0], q, k, v, scores, weights, z, layer.w_o(z.flatten()), may)
    return Flow(tokens, word, *(part.tolist() for part in parts))
