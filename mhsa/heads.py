"""From one wide tensor to h heads and back. Splitting copies nothing; merging copies at most once."""

from jaxtyping import Shaped
from torch import Tensor

from mhsa.checks import check_divides, check_size, check_type


def split_heads(x: Shaped[Tensor, "*lead T width"], num_heads: int) -> Shaped[Tensor, "*lead h T d"]:
    """(..., T, h·d) -> (..., h, T, d), a view: head i gets columns i·d to (i+1)·d of every token.

    Cut the columns first, then swap the axes. `view(B, h, T, d)` has the same shape and mixes the tokens.
    Raises ValueError if x is not such a tensor or num_heads does not divide its width.
    """
    check_type("x", x, Tensor)
    check_size("num_heads", num_heads)
    if x.dim() < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}; (..., T, h·d) is needed")
    check_divides("num_heads", num_heads, "width", x.shape[-1])
    return x.view(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).transpose(-2, -3)


def merge_heads(x: Shaped[Tensor, "*lead h T d"]) -> Shaped[Tensor, "*lead T width"]:
    """(..., h, T, d) -> (..., T, h·d), the inverse of split_heads.

    Copies if the heads lie apart in memory, as after `weights @ v`; torch's fused CPU kernel lays them side by side.
    Raises ValueError if x is not a tensor of at least three axes.
    """
    check_type("x", x, Tensor)
    if x.dim() < 3:
        raise ValueError(f"x has shape {tuple(x.shape)}; (..., h, T, d) is needed")
    return x.transpose(-2, -3).flatten(-2)
