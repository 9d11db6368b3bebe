"""The same numbers in another class: the loop of heads and nn.MultiheadAttention as MultiHeadAttention, and back."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from mhsa.checks import check_type

if TYPE_CHECKING:
    from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop


def from_loop(cls: "type[MultiHeadAttention]", loop: "MultiHeadAttentionLoop") -> "MultiHeadAttention":
    """The loop's weights stacked in the order of its heads.

    >>> loop, x = MultiHeadAttentionLoop(12, 4), torch.randn(2, 5, 12)
    >>> torch.allclose(MultiHeadAttention.from_loop(loop)(x), loop(x), atol=1e-6)
    True
    """
    ours = cls(loop.d_model, loop.num_heads, d_k=loop.d_k, d_v=loop.d_v, bias=loop.w_o.bias is not None)
    ours = ours.to(loop.w_o.weight).train(loop.training)
    stacked = {
        f"{w}.{name}": torch.cat([getattr(getattr(head, w), name) for head in loop.heads])
        for w in ("w_q", "w_k", "w_v")
        for name, _ in ours.w_o.named_parameters()
    }
    ours.load_state_dict(stacked | {f"w_o.{name}": p for name, p in loop.w_o.named_parameters()})
    return ours


def from_torch(cls: "type[MultiHeadAttention]", theirs: nn.MultiheadAttention) -> "MultiHeadAttention":
    """torch's layer has biases by default, and may not be batch first; its masks mean the opposite of ours.

    >>> theirs, x = nn.MultiheadAttention(12, 4, batch_first=True), torch.randn(2, 5, 12)
    >>> torch.allclose(MultiHeadAttention.from_torch(theirs)(x), theirs(x, x, x)[0], atol=1e-6)
    True
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


def to_torch(ours: "MultiHeadAttention") -> nn.MultiheadAttention:
    """torch's layer has no grouped heads, and no d_k or d_v other than d_model / num_heads.

    >>> ours, x = MultiHeadAttention(12, 4), torch.randn(2, 5, 12)
    >>> torch.allclose(ours.to_torch()(x, x, x)[0], ours(x), atol=1e-6)
    True
    """
    width = ours.d_model / ours.num_heads
    for name, value in dict(num_kv_heads=ours.num_heads, d_k=width, d_v=width).items():
        if getattr(ours, name) != value:
            raise ValueError(
                f"{name}={getattr(ours, name)} has no counterpart in nn.MultiheadAttention, which has "
                f"{name}={value:g} for d_model={ours.d_model} and num_heads={ours.num_heads}"
            )
    has_bias = ours.w_o.bias is not None
    theirs = nn.MultiheadAttention(
        ours.d_model,
        ours.num_heads,
        ours.dropout,
        bias=has_bias,
        kdim=ours.key_dim,
        vdim=ours.value_dim,
        batch_first=True,
    )
    theirs = theirs.to(ours.w_o.weight).train(ours.training)
    state = {f"{n}_proj_weight": getattr(ours, f"w_{n}").weight for n in "qkv"}
    if theirs.in_proj_weight is not None:
        state = {"in_proj_weight": torch.cat(list(state.values()))}
    if has_bias:
        state["in_proj_bias"] = torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias])
    theirs.load_state_dict(state | {f"out_proj.{name}": p for name, p in ours.w_o.named_parameters()})
    return theirs
