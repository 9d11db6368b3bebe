"""Ways to split and merge heads, some of them wrong with the right shape, and six tests that tell which (lesson 3)."""

from collections.abc import Callable

import torch
from torch import Tensor

from mhsa.checks import check_size
from mhsa.heads import merge_heads, split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop, attention
from mhsa.masks import causal_mask

Split = Callable[[Tensor, int], Tensor]
Merge = Callable[[Tensor], Tensor]

SPLITS: dict[str, Split] = {  # x (B, T, h·d), h -> (B, h, T, d)
    "right": split_heads,
    "bare view": lambda x, h: x.reshape(x.shape[0], h, x.shape[1], -1),
    "(d h)": lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
    "transpose first": lambda x, h: x.mT.reshape(x.shape[0], h, x.shape[1], -1),
}
MERGES: dict[str, Merge] = {  # z (B, h, T, d) -> (B, T, h·d)
    "right": merge_heads,
    "bare view": lambda z: z.reshape(z.shape[0], z.shape[2], -1),
    "(d h)": lambda z: z.permute(0, 2, 3, 1).flatten(2),
}
PAIRS = (
    ("right", "right"),
    ("bare view", "right"),
    ("bare view", "bare view"),
    ("right", "bare view"),
    ("(d h)", "right"),
    ("(d h)", "(d h)"),
    ("transpose first", "right"),
)


def causal_layer(mha: MultiHeadAttention, split: Split, merge: Merge) -> Callable[[Tensor], Tensor]:
    """x (B, T, d_model) -> (B, T, d_model): the layer, causal, with this split and this merge in place of its own."""

    def forward(x: Tensor) -> Tensor:
        q, k, v = (split(w(x), mha.num_heads) for w in (mha.w_q, mha.w_k, mha.w_v))
        out, _ = attention(q, k, v, causal_mask(x.shape[1]))
        return mha.w_o(merge(out))

    return forward


def touched(f: Callable[[Tensor], Tensor], x: Tensor, t: int) -> list[bool]:
    """For each row of f(x), x (1, T, d): does it change when token t changes?"""
    other = x.clone()
    other[:, t] += 1
    return ((f(x) - f(other)).abs() > 1e-9).any(-1)[0].tolist()


@torch.no_grad()
def probe(split: Split, merge: Merge, *, tokens: int = 4, num_heads: int = 3, d_k: int = 2) -> dict[str, bool]:
    """Six tests of a split and a merge in a causal layer; True: the test passes, so it sees no mistake.

    shape: the output has the input's shape; round trip: the merge undoes the split; no leak: the last token changes
    no earlier output; reach: token 0 changes the last output; fingerprint: each alone puts 0, 1, 2, … where they
    belong; loop: the output is that of MultiHeadAttentionLoop. Raises ValueError for bad sizes.
    """
    for name, value in (("tokens", tokens), ("num_heads", num_heads), ("d_k", d_k)):
        check_size(name, value)
    with torch.random.fork_rng(devices=[]):  # the same numbers each time, and nobody else's are changed
        torch.manual_seed(0)
        loop = MultiHeadAttentionLoop(num_heads * d_k, num_heads).double()
        x = torch.randn(1, tokens, num_heads * d_k).double()
    layer = causal_layer(MultiHeadAttention.from_loop(loop), split, merge)
    a = torch.arange(x.numel()).view(x.shape)
    return {
        "shape": layer(x).shape == x.shape,
        "round trip": torch.equal(merge(split(x, num_heads)), x),
        "no leak": not any(touched(layer, x, tokens - 1)[:-1]),
        "reach": touched(layer, x, 0)[-1],
        "fingerprint": torch.equal(split(a, num_heads), split_heads(a, num_heads))
        and torch.equal(merge(split_heads(a, num_heads)), a),
        "loop": torch.allclose(layer(x), loop(x, mask=causal_mask(tokens)), atol=1e-12),
    }
