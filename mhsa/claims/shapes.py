"""Claims about shapes and layouts, each beneath the function that measures it."""

import torch
from torch import nn

from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import close, layer, numbers, seeded, size
from mhsa.copies import count_copies
from mhsa.heads import merge_heads, split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop, attention
from mhsa.masks import causal_mask
from mhsa.trace import trace_shapes


def divisibility() -> Evidence:
    try:
        MultiHeadAttention(10, 3)
        refused = False
    except ValueError:
        refused = True
    out = layer(10, 3, d_k=4)(torch.empty(1, 4, 10, device="meta"))
    return refused and out.shape == (1, 4, 10), dict(inner=3 * 4)


S1 = Claim(
    "S1",
    "h must divide d_model.",
    "holds if",
    "if d_k = d_model / h, which is a convention. With d_k = 4, three heads work at d_model = 10: W_O brings {inner} "
    "columns back to 10.",
    lessons=[2],
    measure=divisibility,
)


def equal_heads() -> Evidence:
    mha = layer(10, 3, d_k=4)
    widths = {len(rows) for w in (mha.w_q, mha.w_k, mha.w_v) for rows in w.weight.split(mha.d_k)}
    return widths == {4}, {}


S2 = Claim(
    "S2",
    "Divisibility is what gives all heads the same capacity.",
    "does not hold",
    "One d_k for all does. At d_model = 10 three heads of width 4 are equal, too.",
    lessons=[2],
    measure=equal_heads,
)


def output_weight() -> Evidence:
    shape = tuple(layer(10, 3, d_k=4, d_v=5).w_o.weight.T.shape)
    return shape == (3 * 5, 10), dict(shape=shape)


S3 = Claim(
    "S3",
    "W_O has the shape h × d_v × d_model.",
    "does not hold",
    "It is one matrix, (h · d_v) × d_model: {shape} for h = 3, d_v = 5, d_model = 10.",
    lessons=[2],
    measure=output_weight,
)


def copies() -> Evidence:
    def explicit(B: int, T: int, num_heads: int) -> int:
        q, k, v = (split_heads(numbers(B, T, 12, seed=seed), num_heads) for seed in range(3))
        return count_copies(lambda: merge_heads((q @ k.mT).softmax(-1) @ v))

    one, several = explicit(1, 4, 3), explicit(2, 4, 3)
    none = [explicit(2, 4, 1), explicit(2, 1, 3)]
    fused = count_copies(seeded(MultiHeadAttention, 12, 3), numbers(2, 4, 12))
    return (one, several, fused, none) == (1, 4, 0, [0, 0]), dict(one=one, several=several)


S4 = Claim(
    "S4",
    "The way into heads and back copies nothing.",
    "does not hold",
    "The split copies nothing. Written out, the merge copies: {one} copy for one sentence. For several the two "
    "products copy q, k and v first, {several} in all. With one head or one token, or by the fused CPU kernel, it is "
    "none.",
    lessons=[3],
    measure=copies,
)


def transpose_or_einsum() -> Evidence:
    q, k = numbers(2, 4, 3, 5), numbers(2, 4, 3, 5, seed=1)  # (B, T, h, d)
    right = q.transpose(1, 2) @ k.transpose(1, 2).mT
    without = q @ k.mT
    return close(torch.einsum("bqhd,bkhd->bhqk", q, k), right) and without.shape == (2, 4, 3, 3), dict(
        without=tuple(without.shape), right=tuple(right.shape)
    )


S5 = Claim(
    "S5",
    "The transpose to (B, h, T, d_k) cannot be left out.",
    "holds if",
    "if you multiply by `@`: without it the scores are {without}, a map of head by head. einsum takes (B, T, h, d) "
    "as it is, and gives {right}.",
    lessons=[3],
    measure=transpose_or_einsum,
)


def same_in_other_layouts() -> bool:
    """(B·h, T, d) and (B, T, h, d) beside (B, h, T, d)."""
    q, k, v = numbers(3, 2, 3, 4, 5)  # each (B, h, T, d)
    expected, _ = attention(q, k, v)
    flat = attention(*(t.flatten(0, 1) for t in (q, k, v)))[0].unflatten(0, (2, 3))
    by_token = [t.transpose(1, 2) for t in (q, k, v)]  # (B, T, h, d)
    weights = (torch.einsum("bqhd,bkhd->bhqk", *by_token[:2]) / 5**0.5).softmax(-1)
    mixed = torch.einsum("bhqk,bkhd->bqhd", weights, by_token[2])
    return close(flat, expected) and close(mixed.transpose(1, 2), expected)


def order_of_fused_weights() -> bool:
    """Three blocks q, k, v reproduce torch; read as q, k, v of head after head, the same numbers do not."""
    theirs, x = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64), numbers(1, 5, 12)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(numbers(36, 12, seed=1))
    projected = (x @ theirs.in_proj_weight.T)[0]  # (T, 36)
    blocks = projected.view(5, 3, 3, 4).permute(1, 2, 0, 3)  # 3, h, d -> q k v, h, T, d
    by_head = projected.view(5, 3, 3, 4).permute(2, 1, 0, 3)  # h, 3, d -> q k v, h, T, d
    merged = [attention(*qkv)[0].transpose(0, 1).reshape(1, 5, 12) for qkv in (blocks, by_head)]
    return [close(z @ theirs.out_proj.weight.T, theirs(x, x, x)[0]) for z in merged] == [True, False]


def layouts() -> Evidence:
    return same_in_other_layouts() and order_of_fused_weights(), {}


S6 = Claim(
    "S6",
    "(B, h, T, d_k) is the one layout.",
    "does not hold",
    "(B·h, T, d) and (B, T, h, d) give the same numbers. What must agree is the order of a fused matrix: torch keeps "
    "(3 h d), and read as (h 3 d) they give others.",
    lessons=[3],
    measure=layouts,
)


def shapes_on_the_way() -> Evidence:
    shapes = {step.name: step.shape for step in trace_shapes(2, 4, 768, 12)}
    published = {
        "split the columns": (2, 4, 12, 64),
        "heads forward": (2, 12, 4, 64),
        "scores": (2, 12, 4, 4),
        "mix the values": (2, 12, 4, 64),
    }
    return published.items() <= shapes.items(), dict(scores=shapes["scores"])


S7 = Claim(
    "S7",
    "For B = 2, T = 4, d_model = 768, h = 12 the shapes are (2, 4, 12, 64), then (2, 12, 4, 64), scores (2, 12, 4, "
    "4), and out (2, 12, 4, 64).",
    "holds",
    "Traced step by step on tensors; scores {scores}.",
    lessons=[3],
    measure=shapes_on_the_way,
)


def scale() -> Evidence:
    scores = numbers(1000, 64) @ numbers(1000, 64, seed=1).T
    right, wrong = (scores.std().item() / width**0.5 for width in (64, 512))
    return abs(right - 1) < 0.05 and wrong < 0.4, dict(right=right, wrong=wrong)


S8 = Claim(
    "S8",
    "Scores are divided by √d_k before the softmax.",
    "holds if",
    "if it is the layer of 2017, with d_k the width of *one head*: at d_model = 512, h = 8 the spread is {right:.2f} "
    "(by √d_model {wrong:.2f}). T5 does not divide ({T5}); Gemma 2 27B divides by √144 at d_k = 128 ({Gemma}).",
    lessons=[1],
    measure=scale,
)


def softmax_axis() -> Evidence:
    weights = attention(numbers(4, 3), numbers(5, 3, seed=1), numbers(5, 2))[1]
    return close(weights.sum(-1), torch.ones(4).double()) and not close(weights.sum(-2), torch.ones(5).double()), {}


S9 = Claim(
    "S9",
    "The softmax runs over the last axis, the keys.",
    "holds",
    "Then the attention weights of each query sum to 1; those of a key do not.",
    lessons=[1],
    measure=softmax_axis,
)


def nothing_from_the_future() -> Evidence:
    mha, x = seeded(MultiHeadAttention, 12, 3), numbers(1, 5, 12)
    changed = x.clone()
    changed[:, -1] += 1
    rows = ((mha(x, mask=causal_mask(5)) - mha(changed, mask=causal_mask(5))).abs() > 1e-9).any(-1)[0].tolist()
    return rows == [False] * 4 + [True], {}


S10 = Claim(
    "S10",
    "A causal mask before the softmax keeps the future out.",
    "holds",
    "Another last token changes the last output, and no other.",
    lessons=[5],
    measure=nothing_from_the_future,
)


def one_head_is_plain() -> Evidence:
    loop, x = seeded(MultiHeadAttentionLoop, 6, 1), numbers(1, 4, 6)
    head, w_o = loop.heads[0], loop.w_o.weight.T
    q, k, v = head.w_q(x), head.w_k(x), head.w_v(x)
    merged = x @ (head.w_v.weight.T @ w_o)  # one matrix does the work of W_V and W_O
    return close(attention(q, k, v)[0] @ w_o, loop(x)) and close(attention(q, k, merged)[0], loop(x)), {}


S11 = Claim(
    "S11",
    "With h = 1, multi-head attention is plain attention, then W_O.",
    "holds",
    "Equal within 1e-10. Here one d_model × d_model matrix can do the work of W_V and W_O; several heads need one "
    "each.",
    lessons=[2],
    measure=one_head_is_plain,
)


def columns_read() -> Evidence:
    head, x = seeded(MultiHeadAttentionLoop, 12, 3).heads[0], numbers(1, 4, 12).requires_grad_()
    head(x).sum().backward()
    read = (x.grad != 0).any(1).sum().item()
    split = size(nn.Linear(512, 512, bias=False)) + 3 * size(nn.Linear(64, 64, bias=False))
    return read == 12 and split < size(layer(512, 8)), dict(read=read, real=size(layer(512, 8)), split=split)


S12 = Claim(
    "S12",
    "Heads split the embedding: each reads d_model / h of its columns.",
    "does not hold",
    "They split the *projection*. One of 3 heads reads {read} of 12 columns. At d_model = 512, h = 8 the layer holds "
    "{real:,} numbers; one that split the embedding and shared the matrices, {split:,}.",
    lessons=[2],
    measure=columns_read,
)


def without_padding() -> Evidence:
    mha = layer(10, 3, d_k=4)
    widths = [w.weight.shape[0] for w in (mha.w_q, mha.w_k, mha.w_v)]
    out = mha(torch.empty(1, 4, 10, device="meta"))
    return widths == [12] * 3 and out.shape == (1, 4, 10), dict(width=widths[0])


S13 = Claim(
    "S13",
    "Where h does not divide d_model, tensors must be padded or cut.",
    "does not hold",
    "d_k is free: at d_model = 10 three heads of 4 make projections of {width} columns, W_O brings them back to 10, "
    "and nothing is filled or lost.",
    lessons=[2],
    measure=without_padding,
)

S14 = Claim(
    "S14",
    "Divisible sizes let hardware run its best kernels.",
    "not shown",
    "No measurement is given. What some of torch's kernels ask for is a width of head that is a multiple of 8 (in "
    "2-byte types, {Torch}). Divisibility does not bring that: 100 / 4 is 25, and with d_k chosen freely nothing "
    "needs to divide.",
    lessons=[9],
)


def gradients_of_equal_heads() -> Evidence:
    mha, (x, target) = seeded(MultiHeadAttention, 64, 8), numbers(2, 32, 16, 64, seed=1)
    (mha(x) - target).square().mean().backward()
    assert mha.w_q.weight.grad is not None
    norms = [head.norm().item() for head in mha.w_q.weight.grad.split(8)]
    return 1.1 < max(norms) / min(norms) < 3, dict(ratio=max(norms) / min(norms))


S15 = Claim(
    "S15",
    "Equal widths make gradients flow evenly through the heads.",
    "not shown",
    "No measurement is given. Equal they are not: before training, the largest gradient of a head's W_Q is "
    "{ratio:.1f} times the smallest, with eight heads of equal width.",
    lessons=[2],
    measure=gradients_of_equal_heads,
)
