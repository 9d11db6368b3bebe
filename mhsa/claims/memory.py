"""Claims about memory and speed, each beneath the function that measures it."""

import torch
from torch.profiler import ProfilerActivity, profile

from mhsa.bench import Shape, measure_memory
from mhsa.bench.fast_attention import recorded
from mhsa.cache import KVCache
from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import close, numbers, products, score_maps, seeded
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


def peaks(T: int, num_heads: int) -> dict[str, int]:
    """Peak extra bytes of a pass, d_model = 64: all heads in one batch, one after another, by the fused kernel."""
    names, shape = {"batched": "ours, weights", "looped": "looped", "fused": "ours"}, Shape(1, T, 64, num_heads, False)
    return {name: measure_memory(shape, of)["bytes"] for name, of in names.items()}


def batch_against_loop() -> Evidence:
    peak = peaks(1024, 8)
    ratio = peak["batched"] / peak["looped"]
    return ratio > 4 and peak["fused"] < peak["looped"], dict(ratio=ratio)


M2 = Claim(
    "M2",
    "All heads in one batch take less memory than one head after another.",
    "does not hold",
    "The other way round: {ratio:.1f} times the peak of the loop (T = 1024, h = 8), since all maps are alive at "
    "once. A fused kernel needs less than both.",
    lessons=[9],
    measure=batch_against_loop,
)


def scores_to_normalise() -> Evidence:
    one, eight = (score_maps(1, 512, 512, h).numel() for h in (1, 8))
    cpu = {row["num_heads"]: row["seconds"]["explicit"] for row in (recorded("cpu") or {})["heads"]}
    slower = products(512, 512, 1) == products(512, 512, 8) and cpu[8] > cpu[1]
    return slower and eight == 8 * one, dict(scores=eight // one)


M3 = Claim(
    "M3",
    "Eight heads run faster than one head of the same total width.",
    "does not hold",
    "The products are equal, and there are {scores} times as many scores to normalise: on the CPU recorded for "
    "lesson 9 eight explicit heads are slower. On a GPU whose fast kernel refuses wide heads it may hold; that is "
    "not recorded here.",
    lessons=[9],
    measure=scores_to_normalise,
)


def fused_growth() -> Evidence:
    short, long = peaks(1024, 8), peaks(2048, 8)
    explicit, fused = (long[name] / short[name] for name in ("batched", "fused"))
    return explicit > 3.5 and fused <= 2.2, dict(explicit=explicit)


M4 = Claim(
    "M4",
    "A fused kernel (FlashAttention) saves some 20 % of the memory, or 50 %.",
    "does not hold",
    "No fixed share. From T = 1024 to 2048 (d_model = 64, h = 8) the explicit peak grows {explicit:.1f} times, the "
    "fused one at most 2.2 times: it stores no T × T map ({Dao}), so the saving grows with T.",
    lessons=[9],
    measure=fused_growth,
)


def heads_are_independent() -> Evidence:
    mha, x = seeded(MultiHeadAttention, 12, 3), numbers(1, 5, 12)
    before = mha(x, need_weights=True)[1]
    with torch.no_grad():
        mha.w_q.weight[4:] *= -2  # the queries of heads 1 and 2
    after = mha(x, need_weights=True)[1]
    return torch.equal(before[:, 0], after[:, 0]) and not close(before[:, 1:], after[:, 1:]), {}


M5 = Claim(
    "M5",
    "All heads can be computed at the same time.",
    "holds",
    "No head reads another. New queries for heads 1 and 2 leave the map of head 0 as it was, to the last bit.",
    lessons=[2],
    measure=heads_are_independent,
)


def one_batched_product() -> Evidence:
    q, k = numbers(2, 12, 4, 64), numbers(2, 12, 4, 64, seed=1)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        scores = q @ k.mT
    calls = sum(event.count for event in record.key_averages() if event.key == "aten::bmm")
    return calls == 1 and scores.shape == (2, 12, 4, 4), dict(calls=calls, maps=scores.shape[0] * scores.shape[1])


M6 = Claim(
    "M6",
    "The products of all sentences and heads run as one batched product.",
    "holds",
    "`q @ k.mT` on (2, 12, 4, 64) makes {calls} call of torch's batched product, for {maps} maps.",
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
    "While decoding, the queries, keys and values of earlier tokens are worth keeping.",
    "does not hold",
    "Keys and values are. An old query is never asked again: a cache of {kept} · T · d_model numbers gives what one "
    "causal pass gives.",
    lessons=[5, 9],
    measure=keys_and_values_suffice,
)
