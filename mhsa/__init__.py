"""mhsa: multi-head attention, small enough to read and measured line by line."""

from mhsa.cache import KVCache
from mhsa.count import PRESETS, count_flops, count_memory, count_parameters
from mhsa.heads import merge_heads, split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop, SingleHeadAttention, attention
from mhsa.masks import causal_mask, padding_mask
from mhsa.trace import Step, trace_shapes

__all__ = [
    "KVCache",
    "MultiHeadAttention",
    "MultiHeadAttentionLoop",
    "PRESETS",
    "SingleHeadAttention",
    "Step",
    "attention",
    "causal_mask",
    "count_flops",
    "count_memory",
    "count_parameters",
    "merge_heads",
    "padding_mask",
    "split_heads",
    "trace_shapes",
]
