"""Parameters, FLOPs and bytes of one multi-head attention layer, counted before it is built."""

from typing import NamedTuple

import torch

from mhsa.checks import check_flag, check_size, resolve_sizes, short


class Preset(NamedTuple):
    """A published model's attention; num_kv_heads is None where every head has its own keys and values."""

    d_model: int
    num_heads: int
    num_kv_heads: int | None
    d_k: int
    bias: bool


# Vaswani et al. 2017 table 3; Devlin et al. 2019 section 3; Radford et al. 2019 and its released weights (heads);
# Brown et al. 2020 table 2.1; Raffel et al. 2020 section 3.7; Llama 3 (Grattafiori et al. 2024) table 3;
# the config.json of all-MiniLM-L6-v2, lesson 7's model; the model card of EleutherAI/gpt-j-6b.
PRESETS = {
    "MiniLM-L6": Preset(384, 12, None, 32, True),
    "Transformer base": Preset(512, 8, None, 64, False),
    "BERT-base": Preset(768, 12, None, 64, True),
    "BERT-large": Preset(1024, 16, None, 64, True),
    "GPT-2 small": Preset(768, 12, None, 64, True),
    "GPT-2 XL": Preset(1600, 25, None, 64, True),
    "GPT-J-6B": Preset(4096, 16, None, 256, False),
    "GPT-3 175B": Preset(12288, 96, None, 128, True),
    "T5-11B": Preset(1024, 128, None, 128, False),
    "Llama-3-70B": Preset(8192, 64, 8, 128, False),
}


class ParameterCount(NamedTuple):
    """Numbers in the weights; per_head: the slices of the four matrices that one query head uses, without biases."""

    w_q: int
    w_k: int
    w_v: int
    w_o: int
    bias: int
    per_head: int

    @property
    def total(self) -> int:
        return self.w_q + self.w_k + self.w_v + self.w_o + self.bias


class FlopCount(NamedTuple):
    """FLOPs by part: one multiply-add is 2; softmax is 5 a score (maximum, subtract, exponential, sum, divide).

    The scale is not counted: multiplied into q, it is one operation a number of q.
    """

    projections: int
    scores: int
    softmax: int
    mix: int
    output: int

    @property
    def total(self) -> int:
        return sum(self)


class MemoryCount(NamedTuple):
    """Bytes by part; kv_cache is the part of qkv that decoding would keep, so it is not added to the total."""

    weights: int
    qkv: int
    scores: int
    kv_cache: int

    @property
    def total(self) -> int:
        return self.weights + self.qkv + self.scores


def count_parameters(
    d_model: int,
    num_heads: int,
    *,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    key_dim: int | None = None,
    value_dim: int | None = None,
    bias: bool = False,
) -> ParameterCount:
    """The parameters of MultiHeadAttention with the same arguments. Raises ValueError where that does.

    >>> count_parameters(512, 8)
    ParameterCount(w_q=262144, w_k=262144, w_v=262144, w_o=262144, bias=0, per_head=131072)
    >>> count_parameters(**PRESETS["Llama-3-70B"]._asdict()).total
    150994944
    """
    check_flag("bias", bias)
    sizes = resolve_sizes(d_model, num_heads, num_kv_heads, d_k, d_v, key_dim, value_dim)
    d_model, h, g, d_k, d_v, key_dim, value_dim = sizes
    return ParameterCount(
        w_q=d_model * h * d_k,
        w_k=key_dim * g * d_k,
        w_v=value_dim * g * d_v,
        w_o=h * d_v * d_model,
        bias=(h * d_k + g * d_k + g * d_v + d_model) if bias else 0,
        per_head=(d_model + key_dim) * d_k + (value_dim + d_model) * d_v,
    )


def count_flops(
    B: int,
    T: int,
    d_model: int,
    num_heads: int,
    *,
    T_k: int | None = None,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
) -> FlopCount:
    """FLOPs of one forward pass with T queries and T_k keys (default T), every score computed, without biases.

    Raises ValueError for bad sizes.

    >>> count_flops(1, 1024, 512, 8)
    FlopCount(projections=1610612736, scores=1073741824, softmax=41943040, mix=1073741824, output=536870912)
    """
    B, T = check_size("B", B), check_size("T", T)
    T_k = check_size("T_k", T if T_k is None else T_k)
    d_model, h, g, d_k, d_v, *_ = resolve_sizes(d_model, num_heads, num_kv_heads, d_k, d_v)
    return FlopCount(
        projections=2 * B * d_model * (T * h * d_k + T_k * g * (d_k + d_v)),
        scores=2 * B * h * T * T_k * d_k,
        softmax=5 * B * h * T * T_k,
        mix=2 * B * h * T * T_k * d_v,
        output=2 * B * T * h * d_v * d_model,
    )


def count_memory(
    B: int,
    T: int,
    d_model: int,
    num_heads: int,
    *,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> MemoryCount:
    """Bytes of the parameters, of q, k and v, and of one T×T score map a head and sentence (which a fused kernel never
    stores), each number in dtype; attention() keeps the scores of half types in float32, which is twice that.
    Raises ValueError for bad sizes or a dtype that is not a torch.dtype.

    >>> count_memory(1, 1024, 512, 8)
    MemoryCount(weights=4194304, qkv=6291456, scores=33554432, kv_cache=4194304)
    """
    B, T = check_size("B", B), check_size("T", T)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype={short(dtype)} is not a torch.dtype such as torch.float32")
    d_model, h, g, d_k, d_v, *_ = resolve_sizes(d_model, num_heads, num_kv_heads, d_k, d_v)
    weights = count_parameters(d_model, h, num_kv_heads=g, d_k=d_k, d_v=d_v).total
    kv = B * T * g * (d_k + d_v)
    return MemoryCount(
        weights=dtype.itemsize * weights,
        qkv=dtype.itemsize * (B * T * h * d_k + kv),
        scores=dtype.itemsize * B * h * T * T,
        kv_cache=dtype.itemsize * kv,
    )
