"""Every step of the head split on a real tensor: what moves, what is only looked at differently, and where."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mhsa.checks import check_size, resolve_sizes
from mhsa.count import count_memory

LARGEST_REAL = 64 * 2**20  # bytes; above it the same walk runs on meta tensors


@dataclass(frozen=True)
class Step:
    """One step: its result's shape, strides (in elements), bytes and FLOPs. copies: it only moved numbers elsewhere."""

    name: str
    code: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_contiguous: bool
    copies: bool
    nbytes: int
    flops: int
    axes: str
    d_k: int
    mixed: bool = False  # split by view(B, h, T, d_k): tokens are mixed

    def where(self, b: int, t: int, c: int) -> tuple[tuple[int, ...], int] | None:
        """Index of column c of token t of sentence b in this step, and its offset in memory (in elements).

        None where there is no such coordinate: a score belongs to two tokens. Raises ValueError outside the shape.
        """
        for name, i in (("b", b), ("t", t), ("c", c)):
            check_size(name, i, minimum=0)
        if self.axes == "B h T T":
            return None
        T, d = self.shape[self.axes.split().index("T")], self.d_k
        sizes = B, T, d_model = (self.shape[0], T, math.prod(self.shape[1:]) // T)
        if b >= B or t >= T or c >= d_model:
            raise ValueError(f"(b, t, c) = {(b, t, c)} lies outside (B, T, d_model) = {sizes}")
        row, head, column = t, c // d, c % d
        if self.mixed:  # this split counts on as the numbers lie in memory
            head, row, column = (t * d_model + c) // (T * d), (t * d_model + c) // d % T, c % d
        place = {
            "B T d_model": (b, row, head * d + column),
            "B T h d_k": (b, row, head, column),
            "B h T d_k": (b, head, row, column),
        }[self.axes]
        return place, sum(i * s for i, s in zip(place, self.strides))


def trace_shapes(batch: int, tokens: int, d_model: int, num_heads: int, *, wrong_split: bool = False) -> list[Step]:
    """Run multi-head attention step by step on random float32 tensors and record each result. Query's way is shown;
    key and value go the same way. wrong_split: by view(B, h, T, d_k) alone. Raises ValueError for bad sizes."""
    check_size("batch", batch)
    check_size("tokens", tokens)
    d_k = resolve_sizes(d_model, num_heads).d_k
    B, T, h = batch, tokens, num_heads
    nbytes = count_memory(B, T, d_model, h).total
    if nbytes >= 2**63:
        raise ValueError(
            f"batch={B}, tokens={T} and d_model={d_model} need more bytes than 64-bit addresses reach; "
            "smaller sizes will do"
        )
    device = "meta" if nbytes > LARGEST_REAL else "cpu"
    x = torch.randn(B, T, d_model, device=device)
    w_q, w_k, w_v, w_o = torch.randn(4, d_model, d_model, device=device)
    if wrong_split:  # noqa: SIM108
        split = lambda y: y.view(B, h, T, d_k)  # noqa: E731
    else:
        split = lambda y: y.view(B, T, h, d_k).transpose(1, 2)  # noqa: E731
    k, v = split(x @ w_k), split(x @ w_v)

    walk: list[tuple[str, str, str, Callable[[Tensor], Tensor]]] = [
        ("input", "x", "B T d_model", lambda x: x),
        ("project", "q = x @ W_Q", "B T d_model", lambda x: x @ w_q),
        ("split the columns", "q = q.view(B, T, h, d_k)", "B T h d_k", lambda q: q.view(B, T, h, d_k)),
        ("heads forward", "q = q.transpose(1, 2)", "B h T d_k", lambda q: q.transpose(1, 2)),
        ("scores", "s = q @ k.mT", "B h T T", lambda q: q @ k.mT),
        ("weights", "w = softmax(s / sqrt(d_k))", "B h T T", lambda s: torch.softmax(s * d_k**-0.5, -1)),
        ("mix the values", "z = w @ v", "B h T d_k", lambda w: w @ v),
        ("heads back", "z = z.transpose(1, 2)", "B T h d_k", lambda z: z.transpose(1, 2)),
        ("lay out anew", "z = z.contiguous()", "B T h d_k", lambda z: z.contiguous()),
        ("merge the columns", "z = z.view(B, T, d_model)", "B T d_model", lambda z: z.view(B, T, d_model)),
        ("output", "out = z @ W_O", "B T d_model", lambda z: z @ w_o),
    ]
    if wrong_split:
        walk[2:4] = [("wrong split", "q = q.view(B, h, T, d_k)", "B h T d_k", split)]
    steps, before = [], x
    for name, code, axes, run in walk:
        after = run(before)
        flops = after.numel() * (2 * before.shape[-1] if "@" in code else 5 if name == "weights" else 0)
        moves = code.split(" = ")[-1].startswith(("q.", "z."))  # a method call, no product
        steps.append(
            Step(
                name,
                code,
                tuple(after.shape),
                after.stride(),
                after.is_contiguous(),
                moves and _storage(after) != _storage(before),
                after.nbytes,
                flops,
                axes,
                d_k,
                mixed=wrong_split and len(steps) > 1 and min(T, h) > 1,
            )
        )
        before = after
    return steps


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata  # data_ptr() is 0 for every meta tensor
