"""What is right in the quiz of lesson 9."""

import torch
from helpers import rand
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from mhsa import KVCache, MultiHeadAttention, count_flops, count_memory
from mhsa.bench import Shape, chosen_kernel, measure_memory
from quiz_keys.common import close, seeded


def _peak_bytes(T, name):
    return measure_memory(Shape(1, T, 128, 2, False), name)["bytes"]


def twice_the_text():
    growth = _peak_bytes(4096, "ours") / _peak_bytes(2048, "ours")
    return {words: abs(growth - factor) < 0.4 for words, factor in {"stays": 1, "doubles": 2, "fourfold": 4}.items()}


def two_calls():
    mha, x = seeded(MultiHeadAttention, 6, 3), rand(2, 5, 6)
    asked, plain = (lambda: mha(x, need_weights=True)[0]), (lambda: mha(x))
    with FlopCounterMode(display=False) as counter:
        asked()
    by_kind = counter.get_flop_counts()["Global"]
    explicit = by_kind[torch.ops.aten.baddbmm] + by_kind[torch.ops.aten.bmm]
    fused = sdpa_flop_count(*[(2, 3, 5, 2)] * 3)
    return {
        "peak": _peak_bytes(1024, "ours, weights") > _peak_bytes(1024, "ours"),
        "The output": not close(asked(), plain()),
        "kernel": chosen_kernel(asked) != chosen_kernel(plain),
        "operations": explicit != fused,
        "parameters": False,
    }


def eight_times_the_work():
    one, eight = (count_flops(1, 128, 512, h) for h in (1, 8))
    return {
        "projections": eight.projections == 8 * one.projections,
        "softmax": eight.softmax == 8 * one.softmax,
        "Queries times keys": eight.scores == 8 * one.scores,
        "Everything": eight.total == 8 * one.total,
    }


def megabytes_of_a_cache():
    return 24 * count_memory(1, 10_000, 2048, 32, num_kv_heads=4, d_k=64, dtype=torch.float16).kv_cache / 1e6


def one_step():
    mha, cache, seen = seeded(MultiHeadAttention, 6, 3), KVCache(), []
    mha(rand(1, 1000, 6), cache=cache)
    for linear in (mha.w_q, mha.w_k, mha.w_v, mha.w_o):
        linear.register_forward_hook(lambda module, inputs, out: seen.append(out.shape[1]))
    _, weights = mha(rand(1, 1, 6, seed=1), need_weights=True, cache=cache)
    first, late = (count_flops(1, 1, 6, 3, T_k=T_k).scores for T_k in (1, 1001))
    return {
        "one token": seen == [1] * 4,
        "1,001 scores": weights.shape == (1, 3, 1, 1001),
        "costs the same": first == late,
        "queries of all": cache.nbytes > 2 * 1001 * 6 * 8,
    }


def what_is_exchanged():
    heads, w_o = rand(2, 5, 12), rand(12, 7)
    parts = [a @ b for a, b in zip(heads.chunk(4, -1), w_o.chunk(4))]
    added = close(sum(parts), heads @ w_o) and not any(close(part, heads @ w_o) for part in parts)
    return {"Nothing": not added, "score maps": False, "parts of the output": added, "Keys and values": False}
