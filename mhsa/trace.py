"""Every step of the head split on a real tensor: what moves, what is only looked at differently, and where."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from mhsa.checks import check_size, resolve_sizes
from mhsa.count import count_memory

LARGEST_REAL = 64 * 2**20  # bytes; above it the same walk runs on meta tensors
Kind = Literal["input", "layout", "product", "softmax"]


@dataclass(frozen=True)
class Step:
    """One step: its result's shape, strides (in elements), bytes and FLOPs.

    kind:      "layout" has the numbers of the step before, under another shape or in another place; the others make new
    copied:    what was first copied to new memory, measured: ("z",) where a layout step copies, ("q", "k") where a
               product copies what it multiplies, () where numbers are read as they lie
    has_heads: each column belongs to one head; in the input and the output none does

    >>> step = trace_shapes(2, 5, 12, 4)[4]
    >>> step.code, step.shape, step.kind, step.copied, step.copies
    ('s = q @ k.mT', (2, 4, 5, 5), 'product', ('q', 'k'), False)
    """

    name: str
    kind: Kind
    code: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_contiguous: bool
    copied: tuple[str, ...]
    nbytes: int
    flops: int
    axes: str
    d_k: int
    has_heads: bool
    mixed: bool = False  # split by view(B, h, T, d_k): tokens are mixed

    @property
    def copies(self) -> bool:
        """It only moved numbers to new memory; a product makes new numbers."""
        return self.kind == "layout" and bool(self.copied)

    def where(self, b: int, t: int, c: int) -> tuple[tuple[int, ...], int] | None:
        """Index of column c of token t of sentence b in this step, and its offset in memory (in elements).

        None where there is no such coordinate: a score belongs to two tokens. Raises ValueError outside the shape.
        """
        b, t, c = (check_size(name, i, minimum=0) for name, i in (("b", b), ("t", t), ("c", c)))
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
    """Run multi-head attention with plain products, step by step on float32 tensors, and record each result.

    Query's way is shown; key and value go the same way. wrong_split: by view(B, h, T, d_k) alone. Raises ValueError for
    bad sizes. (torch's fused CPU kernel reads q, k and v as they lie and hands the heads over side by side: no copy.)

    >>> {B: [step.copied for step in trace_shapes(B, 5, 12, 4) if step.copied] for B in (1, 2)}
    {1: [('z',)], 2: [('q', 'k'), ('v',), ('z',)]}
    """
    B, T = check_size("batch", batch), check_size("tokens", tokens)
    d_model, h, _, d_k, *_ = resolve_sizes(d_model, num_heads)
    nbytes = count_memory(B, T, d_model, h).total
    if nbytes >= 2**63:
        raise ValueError(
            f"batch={B}, tokens={T} and d_model={d_model} need more bytes than 64-bit addresses reach; "
            "smaller sizes will do"
        )
    device = "meta" if nbytes > LARGEST_REAL else "cpu"
    with torch.inference_mode(False), torch.enable_grad():  # what a step keeps for its gradients tells what it read
        x = torch.zeros(B, T, d_model, device=device, requires_grad=True)
        w_q, w_k, w_v, w_o = torch.zeros(4, d_model, d_model, device=device, requires_grad=True)
        return _walk(x, w_q, w_k, w_v, w_o, h, d_k, wrong_split)


def _walk(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, h: int, d_k: int, wrong_split: bool
) -> list[Step]:
    B, T, d_model = x.shape
    step = _Recorder(d_k)
    step("input", "input", "x", "B T d_model", lambda: x, has_heads=False)
    q = step("project", "product", "q = x @ W_Q", "B T d_model", lambda: x @ w_q, x=x)
    if wrong_split:
        k, v = (y.view(B, h, T, d_k) for y in (x @ w_k, x @ w_v))
        step.mixed = min(T, h) > 1
        q = step("wrong split", "layout", "q = q.view(B, h, T, d_k)", "B h T d_k", lambda: q.view(B, h, T, d_k), q=q)
    else:
        k, v = (y.view(B, T, h, d_k).transpose(1, 2) for y in (x @ w_k, x @ w_v))
        code = "q = q.view(B, T, h, d_k)"
        q = step("split the columns", "layout", code, "B T h d_k", lambda: q.view(B, T, h, d_k), q=q)
        q = step("heads forward", "layout", "q = q.transpose(1, 2)", "B h T d_k", lambda: q.transpose(1, 2), q=q)
    s = step("scores", "product", "s = q @ k.mT", "B h T T", lambda: q @ k.mT, q=q, k=k)
    w = step("weights", "softmax", "w = softmax(s / sqrt(d_k))", "B h T T", lambda: torch.softmax(s * d_k**-0.5, -1))
    z = step("mix the values", "product", "z = w @ v", "B h T d_k", lambda: w @ v, w=w, v=v)
    z = step("heads back", "layout", "z = z.transpose(1, 2)", "B T h d_k", lambda: z.transpose(1, 2), z=z)
    z = step("lay out anew", "layout", "z = z.contiguous()", "B T h d_k", lambda: z.contiguous(), z=z)
    code = "z = z.view(B, T, d_model)"
    z = step("merge the columns", "layout", code, "B T d_model", lambda: z.view(B, T, d_model), z=z)
    step("output", "product", "out = z @ W_O", "B T d_model", lambda: z @ w_o, has_heads=False, z=z)
    return step.steps


class _Recorder:
    """Runs steps and keeps the record."""

    def __init__(self, d_k: int):
        self.steps: list[Step] = []
        self.d_k, self.mixed = d_k, False

    def __call__(
        self, name: str, kind: Kind, code: str, axes: str, run: Callable[[], Tensor], has_heads=True, **read: Tensor
    ) -> Tensor:
        """read: the tensors whose numbers the step reads, the first one's last axis summed over by a product."""
        kept: list[int] = []
        with saved_tensors_hooks(lambda x: kept.append(_storage(x)) or x, lambda x: x):
            after = run()
        held = [_storage(after)] if kind == "layout" else kept  # a product keeps what it really multiplied
        flops = {"product": 2 * [*read.values(), after][0].shape[-1], "softmax": 5}.get(kind, 0)
        self.steps.append(
            Step(
                name=name,
                kind=kind,
                code=code,
                shape=tuple(after.shape),
                strides=after.stride(),
                is_contiguous=after.is_contiguous(),
                copied=tuple(other for other, x in read.items() if _storage(x) not in held),
                nbytes=after.nbytes,
                flops=flops * after.numel(),
                axes=axes,
                d_k=self.d_k,
                has_heads=has_heads,
                mixed=self.mixed,
            )
        )
        return after


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata  # data_ptr() is 0 for every meta tensor
