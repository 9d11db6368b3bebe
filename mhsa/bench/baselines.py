"""Who is measured: ours, torch's and the floor, each as a call that runs one pass of a layer.

All contestants do self-attention on one input with the same parameters. "f" (forward) is eval mode without
gradients, where nn.MultiheadAttention takes its own compiled fast path if h is even; "f+b" (and backward) is training
mode, with gradients of the input and of every parameter. The floor is the work that cannot be left out, each piece on
inputs that lie ready: four matrix products and the fused kernel, with no split, merge or check between them.
"""

import warnings
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from mhsa.count import count_flops, count_memory
from mhsa.explicit import attend_lean
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop

KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
NO_MEMORY = "the GPU ran out of memory"  # no refusal: a larger one would run it
LARGEST_MAP = 2**30  # bytes of the maps of one pass, B·h·T·T numbers


class Shape(NamedTuple):
    """One shape, in one direction: forward, or forward and backward."""

    B: int
    T: int
    d_model: int
    num_heads: int
    backward: bool

    def __str__(self) -> str:
        return f"{self.B:3} {self.T:6} {self.d_model:8} {self.num_heads:3} {'f+b' if self.backward else 'f':>5}"

    @property
    def map_fits(self) -> bool:
        return count_memory(self.B, self.T, self.d_model, self.num_heads).scores <= LARGEST_MAP

    @property
    def gflop(self) -> float:
        """Of the forward pass."""
        return count_flops(self.B, self.T, self.d_model, self.num_heads).total / 1e9


def shapes_of(
    *,
    B: Iterable[int],
    T: Iterable[int],
    d_model: Iterable[int],
    num_heads: Iterable[int],
    backward: Iterable[bool] = (False, True),
) -> list[Shape]:
    """Every combination in which num_heads divides d_model."""
    return [Shape(*sizes) for sizes in product(B, T, d_model, num_heads, backward) if sizes[2] % sizes[3] == 0]


@torch.random.fork_rng(range(torch.cuda.device_count()))
def contestants(
    shape: Shape, *, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, Callable[[], Any]]:
    """name -> a call that runs one pass of the shape. A forward shape's calls are meant to run without gradients.

    The session's own random numbers go on as if none had been drawn here.
    """
    torch.manual_seed(0)
    loop = MultiHeadAttentionLoop(shape.d_model, shape.num_heads, bias=True).to(device, dtype).train(shape.backward)
    ours = MultiHeadAttention.from_loop(loop)
    theirs = ours.to_torch()
    x = torch.randn(shape.B, shape.T, shape.d_model, device=device, dtype=dtype, requires_grad=shape.backward)
    forwards: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(x),
        "ours, causal": lambda: ours(x, is_causal=True),
        "ours, weights": lambda: ours(x, need_weights=True)[0],
        "looped": lambda: loop.w_o(torch.cat([_one_head(head, x) for head in loop.heads], -1)),  # one map at a time
        "torch": lambda: theirs(x, x, x, need_weights=False)[0],
        "torch, weights": lambda: theirs(x, x, x, average_attn_weights=False)[0],
    }
    floor, ready, results = _floor(ours, x)
    if not shape.backward:
        return forwards | {"floor": floor}
    layers = {"looped": loop, "torch": theirs, "torch, weights": theirs}
    return {
        name: _with_backward(forward, [x, *layers.get(name, ours).parameters()], [x])
        for name, forward in forwards.items()
    } | {"floor": _with_backward(floor, ready, results)}


def _one_head(head: Any, x: Tensor) -> Tensor:
    """As lean as "ours, weights": what differs is how many maps live at once."""
    return attend_lean(head.w_q(x), head.w_k(x), head.w_v(x), None, head.d_k**-0.5, 0.0)[0]


def _floor(ours: MultiHeadAttention, x: Tensor) -> tuple[Callable[[], Any], list[Tensor], list[Tensor]]:
    """(call, the inputs it has gradients for, tensors shaped as its outputs)"""
    heads = split_heads(torch.randn_like(x), ours.num_heads)
    q, k, v = (heads.clone().requires_grad_(x.requires_grad) for _ in range(3))
    merged = torch.randn_like(x, requires_grad=x.requires_grad)

    def call() -> tuple[Tensor, ...]:
        return (
            F.linear(x, ours.w_q.weight, ours.w_q.bias),
            F.linear(x, ours.w_k.weight, ours.w_k.bias),
            F.linear(x, ours.w_v.weight, ours.w_v.bias),
            F.scaled_dot_product_attention(q, k, v),
            F.linear(merged, ours.w_o.weight, ours.w_o.bias),
        )

    return call, [x, q, k, v, merged, *ours.parameters()], [x, x, x, heads, x]


def _with_backward(forward: Callable[[], Any], inputs: list[Tensor], like: list[Tensor]) -> Callable[[], Any]:
    torch.manual_seed(1)  # the same for every contestant
    gradients = [torch.randn_like(out) for out in like]
    return lambda: torch.autograd.grad(forward(), inputs, gradients)


def named_kernels(call: Callable[[], Any]) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """(name -> call held to that one kernel, name -> why it did not run: torch's reason to refuse it, or NO_MEMORY)"""

    def held_to(backend: SDPBackend) -> Callable[[], Any]:
        def held() -> Any:
            with sdpa_kernel(backend):
                return call()

        return held

    calls, refused = {}, {}
    for name, backend in KERNELS.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                held_to(backend)()
            except torch.OutOfMemoryError:  # a RuntimeError too
                refused[name] = NO_MEMORY
            except RuntimeError as error:  # on a GPU it warns of the reason
                reasons = [
                    text
                    for text in map(lambda warning: str(warning.message), said)
                    if "because" not in text and "disabled" not in text
                ]  # of the kernels not held to
                refused[name] = (reasons or [str(error)])[0].splitlines()[0]
            else:
                calls[name] = held_to(backend)
    return calls, refused


def half_type(device: str) -> str:
    """The 2-byte type that a device's fused kernels take: bfloat16, but float16 on an NVIDIA GPU before Ampere."""
    old = device == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability() < (8, 0)
    return "float16" if old else "bfloat16"


def shown(seconds: float | None, reason: str | None, digits: int = 2) -> str:
    """Milliseconds; or that torch refused, that memory was short, or "-": it was left out."""
    if seconds is not None:
        return f"{1000 * seconds:.{digits}f}"
    return "-" if reason is None else "no memory" if reason == NO_MEMORY else "refused"
