"""From one wide tensor to h heads and back. Splitting is a view, merging copies at most once.

The transpose only puts copies off: with several sentences `q @ k.mT` copies split q and k before it multiplies, and
`weights @ v` copies v (trace_shapes shows it). torch's fused CPU kernel reads them as they lie.
"""

from jaxtyping import Shaped
from torch import Tensor

from mhsa.checks import check_divides, check_size, check_type


def split_heads(x: Shaped[Tensor, "*lead T width"], num_heads: int) -> Shaped[Tensor, "*lead h T d"]:
    """(..., T, h·d) -> (..., h, T, d), a view: head i gets columns i·d to (i+1)·d of every token.

    Cut the columns first, then swap the axes. `view(B, h, T, d)` has the same shape and mixes the tokens.
    Raises ValueError if x is not such a tensor or num_heads does not divide its width.

    >>> split_heads(torch.arange(8).view(2, 4), 2)  # two tokens: the columns 0 and 1 of both, then 2 and 3
    tensor([[[0, 1],
             [4, 5]],
    <BLANKLINE>
            [[2, 3],
             [6, 7]]])
    """
    check_type("x", x, Tensor)
    num_heads = check_size("num_heads", num_heads)
    if x.dim() < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}; (..., T, h·d) is needed")
    *lead, width = x.shape
    check_divides("num_heads", num_heads, "width", width)
    return x.view(*lead, num_heads, width // num_heads).transpose(-2, -3)


def merge_heads(x: Shaped[Tensor, "*lead h T d"]) -> Shaped[Tensor, "*lead T width"]:
    """(..., h, T, d) -> (..., T, h·d), the inverse of split_heads.

    Copies if the heads lie apart in memory, as after `weights @ v`; torch's fused CPU kernel lays them side by side.
    Raises ValueError if x is not a tensor of at least three axes.

    >>> x = torch.randn(2, 5, 12)
    >>> torch.equal(merge_heads(split_heads(x, 4)), x)
    True
    """
    check_type("x", x, Tensor)
    if x.dim() < 3:
        raise ValueError(f"x has shape {tuple(x.shape)}; (..., h, T, d) is needed")
    return x.transpose(-2, -3).flatten(-2)
