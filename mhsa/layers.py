"""Multi-head attention in four steps, each adding one idea: attention -> one head -> a loop of heads -> all at once.

Shapes: B batch, T tokens (T_q queries, T_k keys), h heads. Masks are Boolean, True = may attend, as in
F.scaled_dot_product_attention; nn.MultiheadAttention means the opposite. Source: Vaswani et al. 2017, section 3.2.
"""

from contextlib import nullcontext
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from mhsa.cache import KVCache
from mhsa.checks import check_attention, check_dropout, check_flag, check_inputs, check_size, check_type, resolve_sizes
from mhsa.heads import merge_heads, split_heads
from mhsa.masks import causal_mask


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
    softmax are float32 for half types. The weights returned are the ones applied, after dropout.
    """
    check_attention(q, k, v, mask, scale, dropout_p)
    return _attend(q, k, v, mask, 1 / sqrt(q.shape[-1]) if scale is None else scale, dropout_p)


def _attend(q, k, v, mask, scale, dropout_p):
    """attention() for a caller that has checked its arguments."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    flat_q, flat_k = (
        x.reshape(x.shape[:-2].numel(), *x.shape[-2:])  # (n, T, d_k)
        for x in ((q.float(), k.float()) if half else (q, k))
    )
    with torch.autocast(q.device.type, enabled=False) if half else nullcontext():  # it would go back to half
        scores = torch.baddbmm(flat_q.new_empty(1, 1, 1), flat_q, flat_k.mT, beta=0, alpha=scale)  # q kᵀ · scale
    scores = scores.view(*q.shape[:-1], k.shape[-2])  # (..., T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)  # -inf: an empty row is NaN
    try:
        weights = torch.softmax(scores, -1, out=None if torch.is_grad_enabled() else scores)  # one map less in memory
    except RuntimeError:  # vmap and jvp know no out=
        weights = torch.softmax(scores, -1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # no key: nothing is read
    weights = (F.dropout(weights, dropout_p) if dropout_p else weights).to(q.dtype)
    return weights @ v, weights  # (..., T_q, d_v)


class SingleHeadAttention(nn.Module):
    """One head: attention(query W_Q, key W_K, value W_V), reading all d_model columns of every token.

    w_q, w_k: d_model -> d_k, w_v: d_model -> d_v, each an nn.Linear. d_k defaults to d_model, d_v to d_k.
    Raises ValueError for sizes that are not positive whole numbers, and for inputs or masks of the wrong shape.
    """

    def __init__(self, d_model: int, d_k: int | None = None, d_v: int | None = None, *, bias: bool = False):
        super().__init__()
        check_flag("bias", bias)
        _, d_k, d_v = resolve_sizes(d_model, 1, None, d_k, d_v)
        self.d_model, self.d_k, self.d_v = d_model, d_k, d_v
        self.w_q = nn.Linear(d_model, d_k, bias=bias)
        self.w_k = nn.Linear(d_model, d_k, bias=bias)
        self.w_v = nn.Linear(d_model, d_v, bias=bias)

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
        key = query if key is None else key
        value = key if value is None else value
        check_inputs(query, key, value, mask, widths=(self.d_model,) * 3, num_heads=1, weight=self.w_q.weight)
        mask = mask[:, 0] if mask is not None and mask.dim() == 4 else mask  # one head: (B, T_q, T_k)
        out, weights = attention(self.w_q(query), self.w_k(key), self.w_v(value), mask)
        return (out, weights) if need_weights else out


class MultiHeadAttentionLoop(nn.Module):
    """Concat(head_1, …, head_h) W_O, word for word and slow on purpose. Source: Vaswani et al. 2017, section 3.2.2.

    heads: num_heads SingleHeadAttention; w_o: h·d_v -> d_model. d_k defaults to d_model / num_heads, d_v to d_k.
    Raises ValueError for bad sizes; num_heads must divide d_model unless d_k is given.
    """

    def __init__(
        self, d_model: int, num_heads: int, *, d_k: int | None = None, d_v: int | None = None, bias: bool = False
    ):
        super().__init__()
        check_flag("bias", bias)
        _, d_k, d_v = resolve_sizes(d_model, num_heads, None, d_k, d_v)
        self.d_model, self.num_heads, self.d_k, self.d_v = d_model, num_heads, d_k, d_v
        self.heads = nn.ModuleList(SingleHeadAttention(d_model, d_k, d_v, bias=bias) for _ in range(num_heads))
        self.w_o = nn.Linear(num_heads * d_v, d_model, bias=bias)

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
        key = query if key is None else key
        value = key if value is None else value
        check_inputs(
            query, key, value, mask, widths=(self.d_model,) * 3, num_heads=self.num_heads, weight=self.w_o.weight
        )
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
        num_kv_heads, d_k, d_v = resolve_sizes(d_model, num_heads, num_kv_heads, d_k, d_v)
        key_dim = d_model if key_dim is None else key_dim
        value_dim = key_dim if value_dim is None else value_dim
        check_size("key_dim", key_dim)
        check_size("value_dim", value_dim)
        check_dropout("dropout", dropout)
        check_flag("bias", bias)
        self.d_model, self.num_heads, self.num_kv_heads, self.d_k, self.d_v = d_model, num_heads, num_kv_heads, d_k, d_v
        self.key_dim, self.value_dim, self.dropout = key_dim, value_dim, dropout
        self.w_q = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.w_k = nn.Linear(key_dim, num_kv_heads * d_k, bias=bias)
        self.w_v = nn.Linear(value_dim, num_kv_heads * d_v, bias=bias)
        self.w_o = nn.Linear(num_heads * d_v, d_model, bias=bias)

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
        """-> (B, T_q, d_model), with need_weights also the weights (B, h, T_q, T_k); without them by the fused kernel.

        key defaults to query, value to key. mask, True = may attend: (T_q, T_k) or (B or 1, h or 1, T_q or 1, T_k).
        is_causal adds causal_mask(T_q, T_k) to it. With a cache, T_k counts the cached keys too, and key and value
        must be left out: the cache appends the query's own.
        """
        check_flag("is_causal", is_causal)
        check_flag("need_weights", need_weights)
        if cache is not None:
            check_type("cache", cache, KVCache)
            if key is not None or value is not None:
                raise ValueError("key and value must not be given with a cache: it keeps the query's own")
        key = query if key is None else key
        value = key if value is None else value
        past = 0 if cache is None else len(cache)
        check_inputs(
            query,
            key,
            value,
            mask,
            widths=(self.d_model, self.key_dim, self.value_dim),
            num_heads=self.num_heads,
            weight=self.w_o.weight,
            past=past,
        )
        q = split_heads(self.w_q(query), self.num_heads)  # (B, h, T_q, d_k)
        k = split_heads(self.w_k(key), self.num_kv_heads)  # (B, g, T_k, d_k)
        v = split_heads(self.w_v(value), self.num_kv_heads)  # (B, g, T_k, d_v)
        if cache is not None:
            k, v = cache.append(k, v)

        T_q, T_k = q.shape[2], k.shape[2]
        is_causal = is_causal and T_q > 0 and T_k > 0  # else there is nothing to hide
        if is_causal and (need_weights or mask is not None or T_q != T_k):  # the kernel's flag aligns top left
            causal = causal_mask(T_q, T_k, device=q.device)
            mask, is_causal = causal if mask is None else causal & mask, False
        dropout_p = self.dropout if self.training else 0.0
        grouped = self.num_kv_heads < self.num_heads
        if not need_weights:
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, enable_gqa=grouped)
            return self.w_o(merge_heads(out))  # (B, T_q, d_model)
        if grouped:
            k, v = (x.repeat_interleave(self.num_heads // self.num_kv_heads, 1) for x in (k, v))
        out, weights = _attend(q, k, v, mask, 1 / sqrt(self.d_k), dropout_p)
        return self.w_o(merge_heads(out)), weights

    @classmethod
    def from_loop(cls, loop: MultiHeadAttentionLoop) -> "MultiHeadAttention":
        """The same heads, their weights stacked in order."""
        check_type("loop", loop, MultiHeadAttentionLoop)
        ours = cls(loop.d_model, loop.num_heads, d_k=loop.d_k, d_v=loop.d_v, bias=loop.w_o.bias is not None)
        ours = ours.to(loop.w_o.weight).train(loop.training)
        stacked = {
            f"{w}.{name}": torch.cat([getattr(getattr(head, w), name) for head in loop.heads])
            for w in ("w_q", "w_k", "w_v")
            for name, _ in ours.w_o.named_parameters()
        }
        ours.load_state_dict(stacked | {f"w_o.{name}": p for name, p in loop.w_o.named_parameters()})
        return ours

    @classmethod
    def from_torch(cls, theirs: nn.MultiheadAttention) -> "MultiHeadAttention":
        """The same numbers as an nn.MultiheadAttention (which has biases by default, and may not be batch first).

        Raises ValueError for add_bias_kv and add_zero_attn, which have no counterpart here.
        """
        check_type("theirs", theirs, nn.MultiheadAttention)
        for name, used in (("add_bias_kv", theirs.bias_k is not None), ("add_zero_attn", theirs.add_zero_attn)):
            if used:
                raise ValueError(f"{name}=True has no counterpart here; build the nn.MultiheadAttention without it")
        ours = cls(
            theirs.embed_dim,
            theirs.num_heads,
            key_dim=theirs.kdim,
            value_dim=theirs.vdim,
            bias=theirs.in_proj_bias is not None,
            dropout=theirs.dropout,
        )
        ours = ours.to(theirs.out_proj.weight).train(theirs.training)
        state = theirs.state_dict()
        fused = {kind: state[f"in_proj_{kind}"].chunk(3) for kind in ("weight", "bias") if f"in_proj_{kind}" in state}
        weights = {f"w_{n}.{kind}": parts[i] for kind, parts in fused.items() for i, n in enumerate("qkv")}
        weights |= {f"w_{n}.weight": state[f"{n}_proj_weight"] for n in "qkv" if f"{n}_proj_weight" in state}
        weights |= {name.replace("out_proj", "w_o"): p for name, p in state.items() if name.startswith("out_proj")}
        ours.load_state_dict(weights)
        return ours

    def to_torch(self) -> nn.MultiheadAttention:
        """The same numbers as an nn.MultiheadAttention with batch_first=True; its masks mean the opposite.

        Raises ValueError for grouped heads and for d_k or d_v other than d_model / num_heads: torch has neither.
        """
        wanted = dict(num_kv_heads=self.num_heads, d_k=self.d_model / self.num_heads, d_v=self.d_model / self.num_heads)
        for name, value in wanted.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)} has no counterpart in nn.MultiheadAttention, which has "
                    f"{name}={value:g} for d_model={self.d_model} and num_heads={self.num_heads}"
                )
        has_bias = self.w_o.bias is not None
        theirs = nn.MultiheadAttention(
            self.d_model,
            self.num_heads,
            self.dropout,
            bias=has_bias,
            kdim=self.key_dim,
            vdim=self.value_dim,
            batch_first=True,
        )
        theirs = theirs.to(self.w_o.weight).train(self.training)
        state = {f"{n}_proj_weight": getattr(self, f"w_{n}").weight for n in "qkv"}
        if theirs.in_proj_weight is not None:
            state = {"in_proj_weight": torch.cat(list(state.values()))}
        if has_bias:
            state["in_proj_bias"] = torch.cat([self.w_q.bias, self.w_k.bias, self.w_v.bias])
        theirs.load_state_dict(state | {f"out_proj.{name}": p for name, p in self.w_o.named_parameters()})
        return theirs
