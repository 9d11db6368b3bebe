"""What decides the claims of lesson 10. Each function measures, and returns (whether the verdict follows, figures).

Cheap, deterministic, without a network. None takes a time: counts, bytes, numbers, shapes, and recorded times.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from mhsa.bench import Shape, measure_memory
from mhsa.bench.fast_attention import recorded
from mhsa.cache import KVCache
from mhsa.count import count_flops, count_parameters
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop, attention
from mhsa.masks import causal_mask
from mhsa.trace import trace_shapes

Evidence = tuple[bool, dict]


def size(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def layer(d_model: int, num_heads: int, **sizes) -> MultiHeadAttention:
    with torch.device("meta"):  # shapes only: no memory, no time
        return MultiHeadAttention(d_model, num_heads, **sizes)


def products(T: int, d_model: int, num_heads: int, **sizes) -> int:
    """The FLOPs of all matrix products of one layer and one sentence, counted while it runs."""
    with FlopCounterMode(display=False) as counter:
        layer(d_model, num_heads, **sizes)(torch.empty(1, T, d_model, device="meta"), need_weights=True)
    return counter.get_total_flops()


def score_maps(B: int, T: int, d_model: int, num_heads: int) -> Tensor:
    x = torch.empty(B, T, d_model, device="meta")
    return layer(d_model, num_heads)(x, need_weights=True)[1]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(kind: Callable[..., Any], *sizes: int) -> Any:
    torch.manual_seed(0)
    return kind(*sizes).double()


def close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-10)


# Parameters and FLOPs


def same_parameters() -> Evidence:
    one, eight, free = size(layer(512, 1)), size(layer(512, 8)), size(layer(512, 8, d_k=16))
    with_biases = size(nn.MultiheadAttention(512, 8))
    return one == eight == 4 * 512**2 and free != one != with_biases, dict(one=one, free=free, with_biases=with_biases)


def parameters_per_head() -> Evidence:
    sizes, published = ((256, 4), (512, 8), (768, 12), (12288, 96)), (65_536, 262_144, 589_824, 150_994_944)
    own = [count_parameters(d_model, h).per_head for d_model, h in sizes]
    whole = [layer(d_model, h).w_q.weight.numel() for d_model, h in sizes]
    agree = [a == b for a, b in zip(own, published)]
    follows = whole == list(published) and agree == [True, False, False, False]
    return follows, dict(own=" / ".join(f"{n:,}" for n in own))


def parameter_parts() -> Evidence:
    mha = layer(512, 8)
    heads, output = sum(w.weight.numel() for w in (mha.w_q, mha.w_k, mha.w_v)), mha.w_o.weight.numel()
    return heads == 8 * 3 * 64 * 512 and output == 512**2, dict(heads=heads, output=output, total=heads + output)


def same_products() -> Evidence:
    flops = [products(128, 512, h) for h in (1, 8, 64)]
    softmax = [count_flops(1, 128, 512, h).softmax for h in (1, 64)]
    kept = products(128, 512, 8, d_k=64) / products(128, 512, 1, d_k=64)
    return (
        flops == [8 * 128 * 512**2 + 4 * 128**2 * 512] * 3 and softmax[1] == 64 * softmax[0] and kept == 8,
        dict(flops=flops[0], softmax=softmax[1] // softmax[0], kept=kept),
    )


def width_of_a_projection() -> Evidence:
    h, d_k = 8, 64
    holds = layer(512, h).w_q.weight.numel()
    return holds == h * 512 * d_k != h * d_k**2, dict(holds=holds, square=h * d_k**2)


def twelve_heads() -> Evidence:
    beside_one = [
        (
            size(layer(768, 12)) / size(layer(768, 1, d_k=width)),
            products(128, 768, 12) / products(128, 768, 1, d_k=width),
        )
        for width in (768, 64)
    ]
    return beside_one == [(1, 1), (12, 12)], dict(same=beside_one[0][0], kept=beside_one[1][0])


def narrow_heads_save_nothing() -> Evidence:
    one, eight = count_flops(1, 128, 512, 1), count_flops(1, 128, 512, 8)
    equal = products(128, 512, 1) == products(128, 512, 8)
    return equal and eight.total > one.total, dict(more=100 * (eight.total / one.total - 1))


def growth_with_length() -> Evidence:
    short, long = (products(2 * T, 512, 8) / products(T, 512, 8) for T in (64, 32768))
    return short < 2.3 and long > 3.7, dict(short=short, long=long)


# Memory and speed


def maps_in_bytes() -> Evidence:
    one, eight = score_maps(32, 512, 512, 1), score_maps(32, 512, 512, 8)
    published = [round(maps.numel() / 1e6, 1) for maps in (one, eight)] == [8.4, 67.1]
    return (
        published and one.nbytes == 4 * one.numel() and eight.nbytes == 4 * eight.numel(),
        dict(n_one=one.numel() / 1e6, n_eight=eight.numel() / 1e6, one=one.nbytes / 1e6, eight=eight.nbytes / 1e6),
    )


def peaks(T: int, num_heads: int) -> dict[str, int]:
    """Peak extra bytes of a pass, d_model = 64: all heads in one batch, one after another, by the fused kernel."""
    names, shape = {"batched": "ours, weights", "looped": "looped", "fused": "ours"}, Shape(1, T, 64, num_heads, False)
    return {name: measure_memory(shape, of)["bytes"] for name, of in names.items()}


def batch_against_loop() -> Evidence:
    peak = peaks(1024, 8)
    ratio = peak["batched"] / peak["looped"]
    return ratio > 4 and peak["fused"] < peak["looped"], dict(ratio=ratio)


def fused_growth() -> Evidence:
    short, long = peaks(1024, 8), peaks(2048, 8)
    explicit, fused = (long[name] / short[name] for name in ("batched", "fused"))
    return explicit > 3.5 and fused <= 2.2, dict(explicit=explicit)


def price_of_more_heads() -> Evidence:
    one, eight = peaks(1024, 1), peaks(1024, 8)
    explicit, fused = (eight[name] / one[name] for name in ("batched", "fused"))
    return explicit > 4 and fused < 1.5, dict(explicit=explicit)


def scores_to_normalise() -> Evidence:
    one, eight = (score_maps(1, 512, 512, h).numel() for h in (1, 8))
    cpu = {row["num_heads"]: row["seconds"]["explicit"] for row in (recorded("cpu") or {})["heads"]}
    slower = products(512, 512, 1) == products(512, 512, 8) and cpu[8] > cpu[1]
    return slower and eight == 8 * one, dict(scores=eight // one)


def heads_are_independent() -> Evidence:
    mha, x = seeded(MultiHeadAttention, 12, 3), numbers(1, 5, 12)
    before = mha(x, need_weights=True)[1]
    with torch.no_grad():
        mha.w_q.weight[4:] *= -2  # the queries of heads 1 and 2
    after = mha(x, need_weights=True)[1]
    return torch.equal(before[:, 0], after[:, 0]) and not close(before[:, 1:], after[:, 1:]), {}


def one_batched_product() -> Evidence:
    q, k = numbers(2, 12, 4, 64), numbers(2, 12, 4, 64, seed=1)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        scores = q @ k.mT
    calls = sum(event.count for event in record.key_averages() if event.key == "aten::bmm")
    return calls == 1 and scores.shape == (2, 12, 4, 4), dict(calls=calls, maps=scores.shape[0] * scores.shape[1])


def map_ignores_width() -> Evidence:
    narrow, wide = score_maps(1, 512, 64, 1), score_maps(1, 512, 512, 1)
    eight = score_maps(1, 512, 512, 8)
    return narrow.nbytes == wide.nbytes and eight.nbytes == 8 * wide.nbytes, dict(wide=wide.nbytes, eight=eight.nbytes)


def keys_and_values_suffice() -> Evidence:
    mha, x, cache = seeded(MultiHeadAttention, 12, 3), numbers(1, 7, 12), KVCache()
    steps = [mha(x[:, t : t + 1], is_causal=True, cache=cache) for t in range(7)]
    kept = cache.nbytes // (7 * 12 * 8)  # numbers of T·d_model float64
    return close(torch.cat(steps, 1), mha(x, is_causal=True)) and kept == 2, dict(kept=kept)


# Shapes and layouts


def divisibility() -> Evidence:
    try:
        MultiHeadAttention(10, 3)
        refused = False
    except ValueError:
        refused = True
    out = layer(10, 3, d_k=4)(torch.empty(1, 4, 10, device="meta"))
    return refused and out.shape == (1, 4, 10), dict(inner=3 * 4)


def equal_heads() -> Evidence:
    mha = layer(10, 3, d_k=4)
    widths = {len(rows) for w in (mha.w_q, mha.w_k, mha.w_v) for rows in w.weight.split(mha.d_k)}
    return widths == {4}, {}


def output_weight() -> Evidence:
    shape = tuple(layer(10, 3, d_k=4, d_v=5).w_o.weight.T.shape)
    return shape == (3 * 5, 10), dict(shape=shape)


def copies() -> Evidence:
    moved = {
        (T, h): [step.code for step in trace_shapes(2, T, 12, h) if step.copies] for T, h in ((4, 3), (4, 1), (1, 3))
    }
    return [len(codes) for codes in moved.values()] == [1, 0, 0] and "contiguous" in moved[4, 3][0], dict(
        code=moved[4, 3][0]
    )


def transpose_or_einsum() -> Evidence:
    q, k = numbers(2, 4, 3, 5), numbers(2, 4, 3, 5, seed=1)  # (B, T, h, d)
    right = q.transpose(1, 2) @ k.transpose(1, 2).mT
    without = q @ k.mT
    return close(torch.einsum("bqhd,bkhd->bhqk", q, k), right) and without.shape == (2, 4, 3, 3), dict(
        without=tuple(without.shape), right=tuple(right.shape)
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


def layouts() -> Evidence:
    return same_in_other_layouts() and order_of_fused_weights(), {}


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


def shapes_on_the_way() -> Evidence:
    shapes = {step.name: step.shape for step in trace_shapes(2, 4, 768, 12)}
    names = ("input", "split the columns", "heads forward", "scores", "mix the values")
    return [shapes[name] for name in names] == [
        (2, 4, 768),
        (2, 4, 12, 64),
        (2, 12, 4, 64),
        (2, 12, 4, 4),
        (2, 12, 4, 64),
    ], dict(scores=shapes["scores"])


def scale() -> Evidence:
    scores = numbers(1000, 64) @ numbers(1000, 64, seed=1).T
    right, wrong = (scores.std().item() / width**0.5 for width in (64, 512))
    return abs(right - 1) < 0.05 and wrong < 0.4, dict(right=right, wrong=wrong)


def softmax_axis() -> Evidence:
    weights = attention(numbers(4, 3), numbers(5, 3, seed=1), numbers(5, 2))[1]
    return close(weights.sum(-1), torch.ones(4).double()) and not close(weights.sum(-2), torch.ones(5).double()), {}


def nothing_from_the_future() -> Evidence:
    mha, x = seeded(MultiHeadAttention, 12, 3), numbers(1, 5, 12)
    changed = x.clone()
    changed[:, -1] += 1
    rows = ((mha(x, mask=causal_mask(5)) - mha(changed, mask=causal_mask(5))).abs() > 1e-9).any(-1)[0].tolist()
    return rows == [False] * 4 + [True], {}


def one_head_is_plain() -> Evidence:
    loop, x = seeded(MultiHeadAttentionLoop, 6, 1), numbers(1, 4, 6)
    head, w_o = loop.heads[0], loop.w_o.weight.T
    q, k, v = head.w_q(x), head.w_k(x), head.w_v(x)
    merged = x @ (head.w_v.weight.T @ w_o)  # one matrix does the work of W_V and W_O
    return close(attention(q, k, v)[0] @ w_o, loop(x)) and close(attention(q, k, merged)[0], loop(x)), {}


def columns_read() -> Evidence:
    head, x = seeded(MultiHeadAttentionLoop, 12, 3).heads[0], numbers(1, 4, 12).requires_grad_()
    head(x).sum().backward()
    read = (x.grad != 0).any(1).sum().item()
    split = size(nn.Linear(512, 512, bias=False)) + 3 * size(nn.Linear(64, 64, bias=False))
    return read == 12 and split < size(layer(512, 8)), dict(read=read, real=size(layer(512, 8)), split=split)
