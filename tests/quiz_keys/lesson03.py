"""What is right in the quiz of lesson 3."""

from math import sqrt

import torch
from helpers import rand
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mhsa import MultiHeadAttention, attention, causal_mask, merge_heads, split_heads
from quiz_keys.common import close, seeded


def head_1():
    def words(head):
        return ", ".join(map(str, head.tolist()))

    a = torch.arange(24).view(1, 4, 6)
    right = words(split_heads(a, 2)[0, 1])
    others = [a.view(1, 2, 4, 3)[0, 1], a[0, :, :3], a.view(1, 4, 3, 2)[0, :, :, 1]]
    return {words(head): words(head) == right for head in others} | {right: True}


def offset():
    q = torch.arange(60).view(1, 5, 12)
    return split_heads(q, 4)[0, 2, 3, 1].item()


def copies():
    x, z = rand(2, 5, 12), rand(2, 3, 5, 4)
    q, k = x.view(2, 5, 3, 4).transpose(1, 2), rand(2, 5, 12).view(2, 5, 3, 4).transpose(1, 2)
    back = z.transpose(1, 2)
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.clone: lambda *_, **__: 1}) as counter:
        q @ k.mT
    return {
        "q.view": q.data_ptr() != x.data_ptr(),
        "q @ k.mT": counter.get_flop_counts()["Global"][torch.ops.aten.clone] == 2,
        "z.transpose(1, 2), z = weights @ v": back.data_ptr() != z.data_ptr(),
        "reshape": back.reshape(2, 5, 12).data_ptr() != z.data_ptr(),
    }


def _layer(mha, x, split=split_heads, merge=merge_heads, mask=None, axis=-1, width=None, w_o=None):
    q, k, v = (split(linear(x), mha.num_heads) for linear in (mha.w_q, mha.w_k, mha.w_v))
    scores = q @ k.mT / sqrt(width or q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (w_o or mha.w_o)(merge(scores.softmax(axis) @ v))


def _bare_split(x, h):
    return x.reshape(1, h, x.shape[1], -1)


def _bare_merge(z):
    return z.reshape(1, z.shape[2], -1)


def _d_h_split(x, h):
    return x.view(1, x.shape[1], -1, h).permute(0, 3, 1, 2)


def one_head():
    x, mha = rand(1, 5, 6), seeded(MultiHeadAttention, 6, 1)
    wrong = {
        "view(B, h, T, d_k)": {"split": _bare_split},
        "over queries": {"axis": -2},
        "(d h)": {"split": _d_h_split},
        "√d_model": {"width": 6},
        "W_O is left out": {"w_o": nn.Identity()},
    }
    three = seeded(MultiHeadAttention, 6, 3)
    assert not any(close(_layer(three, x, **options), three(x)) for options in wrong.values())
    return {words: close(_layer(mha, x, **options), mha(x)) for words, options in wrong.items()}


def bare_views():
    x, mha, mask = rand(1, 5, 6), seeded(MultiHeadAttention, 6, 3), causal_mask(5)

    def run(x):
        return _layer(mha, x, _bare_split, _bare_merge, mask)

    other = torch.cat([x[:, :-1], x[:, -1:] + 1], 1)
    return {
        "input's shape": run(x).shape != x.shape,
        "merge(split(x))": not close(_bare_merge(_bare_split(x, 3)), x),
        "earlier output": not close(run(other)[:, :-1], run(x)[:, :-1]),
        "a loop": not close(run(x), mha(x, mask=mask)),
    }  # True: this test fails


def fused_orders():
    x, weight = rand(1, 5, 6), rand(18, 6, seed=1)  # h = 2, d = 3
    stored = (x @ weight.T).view(1, 5, 2, 3, 3).permute(3, 0, 2, 1, 4)
    read = (x @ weight.T).view(1, 5, 3, 2, 3).permute(2, 0, 3, 1, 4)
    (right, right_maps), (out, maps) = attention(*stored), attention(*read)
    return {
        "An error": False,
        "only the heads": close(out.flip(1), right) or close(out, right),
        "other numbers": out.shape == right.shape and not close(out, right),
        "right maps": close(maps, right_maps) or close(maps.flip(1), right_maps),
    }
