"""Multi-head attention in four steps, each adding one idea: attention -> one head -> a loop of heads -> all at once.

Shapes: B batch, T tokens (T_q queries, T_k keys), h heads. Masks are Boolean, True = may attend, as in
F.scaled_dot_product_attention; nn.MultiheadAttention means the opposite. Source: Vaswani et al. 2017, section 3.2.
"""

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from mhsa import convert
from mhsa.cache import KVCache, check_cache
from mhsa.checks import check_attention, check_dropout, check_flag, check_inputs, check_type, resolve_sizes
from mhsa.explicit import attend_lean, autocast_off
from mhsa.heads import merge_heads, split_heads
from mhsa.masks import lower_right, square


def attention(
    q: Float[Tensor, "*lead T_q d_k"],
    k: Float[Tensor, "*lead T_k d_k"],
    v: Float[Tensor, "*lead T_k d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "*lead T_q d_v"], Float[Tensor, "*lead T_q T_k"]]:
    """softmax(q kᵀ · scale) v -> (out, weights); scale defaults to 1/√d_k.

    mask, True = may attend, broadcasts to (..., T_q, T_k). A query with no key gets weights 0 and output 0. Scores and
    softmax are float32 for half types, under autocast too; results have q's dtype. The weights returned are the ones
    applied, after dropout. Raises ValueError for shapes, dtypes or devices that do not fit. Source: section 3.2.1.

    >>> q, k, v = torch.zeros(1, 2), torch.zeros(3, 2), torch.tensor([[1.0], [2.0], [9.0]])
    >>> attention(q, k, v, torch.tensor([True, True, False]))  # equal scores: the mean of the values that are open
    (tensor([[1.5000]]), tensor([[0.5000, 0.5000, 0.0000]]))
    """
    check_attention(q, k, v, mask, scale, dropout_p)
    scale = 1 / sqrt(q.shape[-1]) if scale is None else float(scale)
    wide = torch.promote_types(q.dtype, torch.float32)
    with autocast_off(q.device):
        scores = q.to(wide) @ k.to(wide).mT * scale  # (..., T_q, T_k)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(wide).min)  # -inf: a query with no key would read NaN
        weights = torch.softmax(scores, -1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # a query with no key reads nothing
        weights = F.dropout(weights, float(dropout_p)).to(q.dtype)
        return weights @ v.to(q.dtype), weights  # (..., T_q, d_v)


class SingleHeadAttention(nn.Module):
    """One head: attention(query W_Q, key W_K, value W_V), reading all d_model columns of every token.

    w_q, w_k: d_model -> d_k, w_v: d_model -> d_v, each an nn.Linear. d_k defaults to d_model, d_v to d_k.
    Raises ValueError for sizes that are not positive whole numbers, and for inputs or masks of the wrong shape.

    >>> out, weights = SingleHeadAttention(12, 3)(torch.randn(2, 5, 12), need_weights=True)
    >>> out.shape, weights.shape
    (torch.Size([2, 5, 3]), torch.Size([2, 5, 5]))
    """

    def __init__(self, d_model: int, d_k: int | None = None, d_v: int | None = None, *, bias: bool = False):
        super().__init__()
        check_flag("bias", bias)
        sizes = resolve_sizes(d_model, 1, d_k=d_k, d_v=d_v)
        self.d_model, self.d_k, self.d_v = sizes.d_model, sizes.d_k, sizes.d_v
        self.w_q = nn.Linear(self.d_model, self.d_k, bias=bias)
        self.w_k = nn.Linear(self.d_model, self.d_k, bias=bias)
        self.w_v = nn.Linear(self.d_model, self.d_v, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "B T_q d_model"],
        key: Float[Tensor, "B T_k d_model"] | None = None,
        value: Float[Tensor, "B T_k d_model"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ):
        """-> (B, T_q, d_v), with need_weights also the weights (B, T_q, T_k).

        key defaults to query, value to key. mask, True = may attend: (T_q, T_k) or (B or 1, 1, T_q or 1, T_k).
        """
        check_flag("need_weights", need_weights)
        key, value = check_inputs(query, key, value, mask, (self.d_model,) * 3, 1, self.w_q.weight)
        mask = mask[:, 0] if mask is not None and mask.dim() == 4 else mask  # one head: (B, T_q, T_k)
        out, weights = attention(self.w_q(query), self.w_k(key), self.w_v(value), mask)
        return (out, weights) if need_weights else out


class MultiHeadAttentionLoop(nn.Module):
    """Concat(head_1, …, head_h) W_O, word for word and slow on purpose. Source: Vaswani et al. 2017, section 3.2.2.

    heads: num_heads SingleHeadAttention; w_o: h·d_v -> d_model. d_k defaults to d_model / num_heads, d_v to d_k.
    Raises ValueError for bad sizes; num_heads must divide d_model unless d_k is given.

    >>> loop = MultiHeadAttentionLoop(12, 4)
    >>> len(loop.heads), loop.heads[0].w_q.weight.shape, loop.w_o.weight.shape
    (4, torch.Size([3, 12]), torch.Size([12, 12]))
    """

    def __init__(
        self, d_model: int, num_heads: int, *, d_k: int | None = None, d_v: int | None = None, bias: bool = False
    ):
        super().__init__()
        check_flag("bias", bias)
        self.d_model, self.num_heads, _, self.d_k, self.d_v, *_ = resolve_sizes(d_model, num_heads, d_k=d_k, d_v=d_v)
        self.heads = nn.ModuleList(
            SingleHeadAttention(self.d_model, self.d_k, self.d_v, bias=bias) for _ in range(self.num_heads)
        )
        self.w_o = nn.Linear(self.num_heads * self.d_v, self.d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "B T_q d_model"],
        key: Float[Tensor, "B T_k d_model"] | None = None,
        value: Float[Tensor, "B T_k d_model"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ):
        """-> (B, T_q, d_model), with need_weights also the weights (B, h, T_q, T_k).

        key defaults to query, value to key. mask, True = may attend: (T_q, T_k) or (B or 1, h or 1, T_q or 1, T_k).
        """
        check_flag("need_weights", need_weights)
        key, value = check_inputs(query, key, value, mask, (self.d_model,) * 3, self.num_heads, self.w_o.weight)
        outs, weights = [], []
        for i, head in enumerate(self.heads):
            own = mask[:, i : i + 1] if mask is not None and mask.dim() == 4 and mask.shape[1] > 1 else mask
            out, w = head(query, key, value, mask=own, need_weights=True)
            outs.append(out)
            weights.append(w)
        out = self.w_o(torch.cat(outs, -1))  # (B, T_q, d_model)
        return (out, torch.stack(weights, 1)) if need_weights else out


class MultiHeadAttention(nn.Module):
    """All heads at once: project, split, attend, merge, project. Equal to the loop, and as fast as torch's kernels.

    w_q: d_model -> h·d_k, w_k: key_dim -> g·d_k, w_v: value_dim -> g·d_v, w_o: h·d_v -> d_model, each an nn.Linear;
    g = num_kv_heads, and head i reads keys and values i // (h / g): g = 1 is multi-query attention (Shazeer 2019),
    1 < g < h grouped-query attention (Ainslie et al. 2023).

    d_model:       width of query and output
    num_heads:     h; must divide d_model unless d_k is given
    num_kv_heads:  g; must divide h, defaults to h
    d_k, d_v:      width of a head's queries and keys (default d_model / h) and of its values (default d_k)
    key_dim:       width of key (default d_model); value_dim: width of value (default key_dim)
    bias:          whether the four projections have one (nn.MultiheadAttention: yes, here: no)
    dropout:       probability to drop a weight, in training only

    >>> layer, x = MultiHeadAttention(12, 4, num_kv_heads=2), torch.randn(2, 5, 12)
    >>> out, weights = layer(x, is_causal=True, need_weights=True)
    >>> out.shape, weights.shape, torch.allclose(out, layer(x, is_causal=True), atol=1e-6)
    (torch.Size([2, 5, 12]), torch.Size([2, 4, 5, 5]), True)
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_flag("bias", bias)
        sizes = resolve_sizes(d_model, num_heads, num_kv_heads, d_k, d_v, key_dim, value_dim)
        self.d_model, self.num_heads, self.num_kv_heads, self.d_k, self.d_v, self.key_dim, self.value_dim = sizes
        self.dropout = check_dropout("dropout", dropout)
        self.w_q = nn.Linear(self.d_model, self.num_heads * self.d_k, bias=bias)
        self.w_k = nn.Linear(self.key_dim, self.num_kv_heads * self.d_k, bias=bias)
        self.w_v = nn.Linear(self.value_dim, self.num_kv_heads * self.d_v, bias=bias)
        self.w_o = nn.Linear(self.num_heads * self.d_v, self.d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "B T_q d_model"],
        key: Float[Tensor, "B T_k key_dim"] | None = None,
        value: Float[Tensor, "B T_k value_dim"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
        need_weights: bool = False,
        cache: KVCache | None = None,
    ):
        """-> (B, T_q, d_model), with need_weights also the weights (B, h, T_q, T_k).

        Without weights torch chooses the kernel: fused, but on a CPU not with d_v ≠ d_k or with dropout in training.
        key defaults to query, value to key. mask, True = may attend: (T_q, T_k) or (B or 1, h or 1, T_q or 1, T_k).
        Two axes always mean (T_q, T_k): a tokenizer's (B, T), which fits by chance where B = T, is mask[:, None, None].
        is_causal adds causal_mask(T_q, T_k). With a cache, T_k counts the cached keys too, and key and value must be
        left out: the cache appends the query's own. A query with no key reads nothing: with weights by the formula,
        without them as torch's kernel was measured to do on a CPU.
        """
        check_flag("is_causal", is_causal)
        check_flag("need_weights", need_weights)
        past = 0 if cache is None else check_cache(cache, key, value)
        widths = self.d_model, self.key_dim, self.value_dim
        key, value = check_inputs(query, key, value, mask, widths, self.num_heads, self.w_o.weight, past)
        q = split_heads(self.w_q(query), self.num_heads)  # (B, h, T_q, d_k)
        k = split_heads(self.w_k(key), self.num_kv_heads)  # (B, g, T_k, d_k)
        v = split_heads(self.w_v(value), self.num_kv_heads)  # (B, g, T_k, d_v)
        if cache is not None:
            k, v = cache.append(k, v)
        out, weights = self._mix(q, k, v, mask, is_causal, need_weights)  # (B, h, T_q, d_v)
        out = self.w_o(merge_heads(out))  # (B, T_q, d_model)
        return (out, weights) if need_weights else out

    def _mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Each head's mix of its values, by the kernel torch chooses; with need_weights by the explicit formula."""
        T_q, T_k = q.shape[2], k.shape[2]
        if is_causal and (need_weights or mask is not None or not square(T_q, T_k)):  # its flag aligns top left
            causal = lower_right(T_q, T_k, q.device)
            mask, is_causal = causal if mask is None else causal & mask, False
        dropout_p = self.dropout if self.training else 0.0
        shared_by = self.num_heads // self.num_kv_heads
        if not need_weights:
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, enable_gqa=shared_by > 1)
            return out, None
        if shared_by > 1:
            k, v = (x.repeat_interleave(shared_by, 1) for x in (k, v))
        return attend_lean(q, k, v, mask, 1 / sqrt(self.d_k), dropout_p)

    @classmethod
    def from_loop(cls, loop: MultiHeadAttentionLoop) -> "MultiHeadAttention":
        """The same heads, their weights stacked in order."""
        check_type("loop", loop, MultiHeadAttentionLoop)
        return convert.from_loop(cls, loop)

    @classmethod
    def from_torch(cls, theirs: nn.MultiheadAttention) -> "MultiHeadAttention":
        """The same numbers as an nn.MultiheadAttention. Raises ValueError for its add_bias_kv and add_zero_attn."""
        return convert.from_torch(cls, theirs)

    def to_torch(self) -> nn.MultiheadAttention:
        """An nn.MultiheadAttention, batch first, of the same numbers. Raises ValueError for grouped heads, free d_k."""
        return convert.to_torch(self)
