"""Claims about memory and speed, each beneath the function that measures it."""

import torch
from torch.profiler import ProfilerActivity, profile

from mhsa.bench import Shape, measure_memory
from mhsa.bench.fast_attention import recorded
from mhsa.cache import KVCache
from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import close, numbers, products, score_maps, seeded
from mhsa.copies import count_copies
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention


def maps_in_bytes() -> Evidence:
    one, eight = score_maps(32, 512, 512, 1), score_maps(32, 512, 512, 8)
    published = [round(maps.numel() / 1e6, 1) for maps in (one, eight)] == [8.4, 67.1]
    return (
        published and one.nbytes == 4 * one.numel() and eight.nbytes == 4 * eight.numel(),
        dict(n_one=one.numel() / 1e6, n_eight=eight.numel() / 1e6, one=one.nbytes / 1e6, eight=eight.nbytes / 1e6),
    )


M1 = Claim(
    "M1",
    "For B = 32, T = 512 in float32 the score maps take 8.4 MB with one head, 67.1 MB with eight.",
    "does not hold",
    "These are millions of *numbers*, {n_one:.1f} and {n_eight:.1f}. A float32 takes 4 bytes: {one:.1f} MB and "
    "{eight:.1f} MB.",
    lessons=[4],
    measure=maps_in_bytes,
)


def peaks(T: int, num_heads: int, *, d_model: int = 64, backward: bool = False) -> dict[str, int]:
    """Peak extra bytes of a pass: all heads in one batch, one after another, by the fused kernel."""
    names = {"batched": "ours, weights", "looped": "looped", "fused": "ours"}
    shape, threads = Shape(1, T, d_model, num_heads, backward), torch.get_num_threads()
    torch.set_num_threads(1)  # the fused kernel has a block of working memory for each: it would count the processors
    try:
        return {name: measure_memory(shape, of)["bytes"] for name, of in names.items()}
    finally:
        torch.set_num_threads(threads)


def batch_against_loop() -> Evidence:
    forward, both = peaks(1024, 8), peaks(1024, 8, backward=True)
    ratio, training = (peak["batched"] / peak["looped"] for peak in (forward, both))
    return ratio > 4 and training > 1.5 and forward["fused"] < forward["looped"], dict(ratio=ratio, training=training)


M2 = Claim(
    "M2",
    "All heads in one batch take less memory than one head after another.",
    "does not hold",
    "The other way round, in a pass without gradients: {ratio:.1f} times the peak of the loop (T = 1024, h = 8), "
    "since all maps are alive at once. In training both keep all maps; the batch still peaks {training:.1f} times as "
    "high. A fused kernel needs less than both.",
    lessons=[9],
    measure=batch_against_loop,
)


def scores_to_normalise() -> Evidence:
    one, eight = (score_maps(1, 512, 512, h).numel() for h in (1, 8))
    cpu = {row["num_heads"]: row["seconds"]["explicit"] for row in (recorded("cpu") or {})["heads"]}
    slower = products(512, 512, 1) == products(512, 512, 8) and cpu[8] > cpu[1]
    return slower and eight == 8 * one, dict(scores=eight // one, times=cpu[8] / cpu[1])


M3 = Claim(
    "M3",
    "On GPUs eight heads run faster than one head of the same total width.",
    "not shown",
    "No time comes with it, and no GPU is recorded here. It is likely for one head of 512: torch's flash kernel "
    "takes widths up to 256 ({Torch}). On a CPU it does not hold: equal products, {scores} times as many scores to "
    "normalise, and {times:.1f} times the time of one explicit head.",
    lessons=[9],
    measure=scores_to_normalise,
)


def saving(T: int) -> float:
    """Per cent of the explicit peak that a fused pass saves, d_model = 512, h = 8."""
    peak = peaks(T, 8, d_model=512)
    return 100 * (1 - peak["fused"] / peak["batched"])


def fused_growth() -> Evidence:
    short, long = peaks(1024, 8), peaks(2048, 8)
    explicit, fused = (long[name] / short[name] for name in ("batched", "fused"))
    saved = saving(512)
    return explicit > 3.5 and fused <= 2.2 and saved > 30, dict(explicit=explicit, saved=saved)


M4 = Claim(
    "M4",
    "At T = 512, d_model = 512, h = 8 FlashAttention saves some 20 % of the memory.",
    "does not hold",
    "For one sentence {saved:.0f} %. And no share fits every T: from T = 1024 to 2048 (d_model = 64) the explicit "
    "peak grows {explicit:.1f} times, the fused one at most 2.2 times, since it stores no T × T map ({Dao}).",
    lessons=[9],
    measure=fused_growth,
)


def heads_are_independent() -> Evidence:
    mha, x = seeded(MultiHeadAttention, 12, 3), numbers(1, 5, 12)
    before = mha(x, need_weights=True)[1]
    with torch.no_grad():
        mha.w_q.weight[4:] *= -2  # the queries of heads 1 and 2
    after = mha(x, need_weights=True)[1]
    alone = torch.equal(before[:, 0], after[:, 0]) and not close(before[:, 1:], after[:, 1:])
    one, twelve = (products_called(seeded(MultiHeadAttention, 12, h), x) for h in (1, 12))
    return alone and one == twelve, dict(calls=one)


def products_called(mha: MultiHeadAttention, x: torch.Tensor) -> int:
    """The calls of matrix products in one explicit pass."""
    with profile(activities=[ProfilerActivity.CPU]) as record:
        mha(x, need_weights=True)
    return sum(
        event.count for event in record.key_averages() if event.key in ("aten::mm", "aten::bmm", "aten::baddbmm")
    )


M5 = Claim(
    "M5",
    "All heads can be computed at the same time, in as many steps as one.",
    "holds",
    "No head reads another: new queries for heads 1 and 2 leave the map of head 0 as it was, to the last bit. One "
    "head and twelve take the same {calls} calls of matrix products.",
    lessons=[2],
    measure=heads_are_independent,
)


def one_batched_product() -> Evidence:
    x = numbers(2, 4, 768), numbers(2, 4, 768, seed=1)
    q, k = (split_heads(t, 12) for t in x)
    first_q, first_k = (split_heads(t[:1], 12) for t in x)  # one sentence
    with profile(activities=[ProfilerActivity.CPU]) as record:
        scores = q @ k.mT
    calls = sum(event.count for event in record.key_averages() if event.key == "aten::bmm")
    copies, in_one = count_copies(lambda: q @ k.mT), count_copies(lambda: first_q @ first_k.mT)
    laid_out = count_copies(lambda q, k: q @ k.mT, q.contiguous(), k.contiguous())
    follows = (calls, copies, in_one, laid_out) == (1, 2, 0, 0)
    return follows, dict(calls=calls, copies=copies, maps=scores.shape[0] * scores.shape[1])


M6 = Claim(
    "M6",
    "The products of all sentences and heads run as one batched product, B and h as one stride.",
    "holds if",
    "if B = 1, or q and k lie in memory as (B·h, T, d_k). As they come from the split, the heads of two sentences "
    "have no single stride: `q @ k.mT` makes {copies} copies first, then {calls} batched product for {maps} maps.",
    lessons=[3],
    measure=one_batched_product,
)


def map_ignores_width() -> Evidence:
    narrow, wide = score_maps(1, 512, 64, 1), score_maps(1, 512, 512, 1)
    eight = score_maps(1, 512, 512, 8)
    return narrow.nbytes == wide.nbytes and eight.nbytes == 8 * wide.nbytes, dict(wide=wide.nbytes, eight=eight.nbytes)


M7 = Claim(
    "M7",
    "Narrow heads make the attention maps smaller.",
    "does not hold",
    "A map is T × T, whatever d_k is: {wide:,} bytes at T = 512 with d_k = 64 and with 512. Eight heads hold "
    "{eight:,}.",
    lessons=[4],
    measure=map_ignores_width,
)


def price_of_more_heads() -> Evidence:
    one, eight = peaks(1024, 1), peaks(1024, 8)
    explicit, fused = (eight[name] / one[name] for name in ("batched", "fused"))
    return explicit > 4 and fused < 1.5, dict(explicit=explicit)


M8 = Claim(
    "M8",
    "More heads cost more memory.",
    "holds if",
    "if the maps are stored: from 1 head to 8 the explicit peak grows {explicit:.1f} times (T = 1024), the fused one "
    "by less than half.",
    lessons=[9],
    measure=price_of_more_heads,
)


def keys_and_values_suffice() -> Evidence:
    mha, x, cache = seeded(MultiHeadAttention, 12, 3), numbers(1, 7, 12), KVCache()
    steps = [mha(x[:, t : t + 1], is_causal=True, cache=cache) for t in range(7)]
    kept = cache.nbytes // (7 * 12 * 8)  # numbers of T·d_model float64
    return close(torch.cat(steps, 1), mha(x, is_causal=True)) and kept == 2, dict(kept=kept)


M9 = Claim(
    "M9",
    "If they are used again, cache the projections Q, K and V.",
    "holds if",
    "if you mean K and V when you decode: a cache of {kept} · T · d_model numbers gives what one causal pass gives. "
    "An old query is not used again.",
    lessons=[5, 9],
    measure=keys_and_values_suffice,
)


def half_and_more() -> Evidence:
    below, at, above = (saving(T) for T in (128, 256, 1024))
    return below < 45 and abs(at - 50) < 3 and above > 70, dict(below=below, at=at, above=above)


M10 = Claim(
    "M10",
    "FlashAttention saves 50 % of the memory and more.",
    "holds if",
    "if T is at least 256 (d_model = 512, h = 8): {below:.0f} % at T = 128, {at:.0f} % at 256, {above:.0f} % at 1024.",
    lessons=[9],
    measure=half_and_more,
)


def more_heads_more_time() -> Evidence:
    heads = {row["num_heads"]: row["seconds"] for row in (recorded("cpu") or {})["heads"]}
    explicit, fused = (heads[32][way] / heads[1][way] for way in ("explicit", "fused"))
    return explicit > 1.5 and 1 < fused < explicit, dict(explicit=explicit, fused=fused)


M11 = Claim(
    "M11",
    "Few heads compute slightly faster, 16 and more slightly slower.",
    "holds if",
    "if the kernel is fused: on the CPU recorded for lesson 9, 32 heads take {fused:.1f} times as long as one of the "
    "same total width. With the maps written out it is {explicit:.1f} times: not slightly. (The same page says M3.)",
    lessons=[9],
    measure=more_heads_more_time,
)
