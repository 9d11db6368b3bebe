"""Every step of the head split on a real tensor: what moves, what is only looked at differently, and where."""
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from mhsa.checks import check_size, resolve_sizes
from mhsa.count import count_memory

LARGEST_REAL = 64 * 2**20                                          # bytes; above it the same walk runs on meta tensors


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

    def where(self, b: int, t: int, c: int) -> tuple[tuple[int, ...], int] | None:
        """Index of column c of token t of sentence b in this step, and its offset in memory (in elements).

        None where there is no such coordinate: a score belongs to two tokens.
        """
        d = self.shape[-1]
        index = {"B T d_model": (b, t, c), "B T h d_k": (b, t, c // d, c % d), "B h T d_k": (b, c // d, t, c % d)}
        if self.axes not in index:
            return None
        place = index[self.axes]
        if any(not 0 <= i < n for i, n in zip(place, self.shape)):
            raise ValueError(f"(b, t, c) = {(b, t, c)} lies outside this step's shape {self.shape} ({self.axes})")
        return place, sum(i * s for i, s in zip(place, self.strides))


def trace_shapes(batch: int, tokens: int, d_model: int, num_heads: int) -> list[Step]:
    """Run multi-head attention step by step on random float32 tensors and record each result. Query's way is shown;
    key and value go the same way. Raises ValueError for bad sizes."""
    check_size("batch", batch)
    check_size("tokens", tokens)
    _, d_k, _ = resolve_sizes(d_model, num_heads)
    B, T, h = batch, tokens, num_heads
    large = count_memory(B, T, d_model, h).total > LARGEST_REAL
    device = "meta" if large else "cpu"
    x = torch.randn(B, T, d_model, device=device)
    w_q, w_k, w_v, w_o = torch.randn(4, d_model, d_model, device=device)
    split = lambda y: y.view(B, T, h, d_k).transpose(1, 2)         # noqa: E731
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
        ("lay the heads side by side", "z = z.contiguous()", "B T h d_k", lambda z: z.contiguous()),
        ("merge the columns", "z = z.view(B, T, d_model)", "B T d_model", lambda z: z.view(B, T, d_model)),
        ("output", "out = z @ W_O", "B T d_model", lambda z: z @ w_o),
    ]
    steps, before = [], x
    for name, code, axes, run in walk:
        with FlopCounterMode(display=False) as counter:
            after = run(before)
        flops = counter.get_total_flops() if name != "weights" else 5 * after.numel()
        moves = code.split(" = ")[-1].startswith(("q.", "z."))        # a method call, no product
        steps.append(Step(name, code, tuple(after.shape), after.stride(), after.is_contiguous(),
                          moves and _storage(after) != _storage(before), after.nbytes, flops, axes))
        before = after
    return steps


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata                              # data_ptr() is 0 for every meta tensor
