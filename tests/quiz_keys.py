"""What is right in each question of the quizzes, computed: {words of the option: whether it is right}, or the number.

One function a question, in their order.
"""
from math import sqrt

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from mhsa import (PRESETS, KVCache, MultiHeadAttention, MultiHeadAttentionLoop, attention, causal_mask, count_flops,
                  count_memory, count_parameters, merge_heads, padding_mask, split_heads)
from mhsa.exercises import lesson07
from mhsa.patterns import ablate_heads
from mhsa.toys import relations


def rand(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(make, *sizes, **options):
    torch.manual_seed(0)
    return make(*sizes, **options).double()


def close(a, b):
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-9)


def size(parameters):
    return sum(p.numel() for p in parameters)


# Lesson 1

def scale():
    spread = (rand(500, 1024 // 16) @ rand(500, 1024 // 16, seed=1).T).std()
    return {words: abs(spread / number - 1) < 0.1
            for words, number in {"√1024": sqrt(1024), "64": 64, "√64": sqrt(64), "√16": sqrt(16)}.items()}


def row_of_weights():
    q, k, v = rand(3, 5, 7)
    out, weights = attention(q, k, v)
    scores = q @ k.T / sqrt(7)
    return {"Each row sums": close(weights.sum(-1), torch.ones(5).double()),
            "Each column sums": close(weights.sum(-2), torch.ones(5).double()),
            "No weight is 0": bool((weights > 0).all()),
            "highest score gets weight 1": bool((weights.max(-1).values > 0.99).all()),
            "Adding 3": close((scores + 3).softmax(-1), weights)}


def open_weight():
    mask = torch.tensor([[True, True, False, True]])
    return attention(torch.zeros(1, 2), torch.zeros(4, 2), torch.zeros(4, 2), mask)[1][0, 0].item()


def outside():
    def is_outside(x, y):                                           # x = 4a, y = 4b, and the rest is for (0, 0)
        return min(x / 4, y / 4, 1 - x / 4 - y / 4) < 0
    return {f"({x}, {y})": is_outside(x, y) for x, y in ((1, 2), (3, 3), (3.5, 0.2), (0.1, 0.1))}


def swapped():
    x, order = rand(4, 6), [3, 1, 2, 0]
    w_q, w_k, w_v = rand(3, 6, 5, seed=1)
    before, after = (attention(t @ w_q, t @ w_k, t @ w_v)[0] for t in (x, x[order]))
    same = [close(before[i], after[i]) for i in range(4)]
    known = [any(close(after[i], row) for row in before) for i in range(4)]
    return {"keeps its output": close(after, before[order]), "No row changes": all(same),
            "others stay": same == [False, True, True, False] and not known[0], "All four": not any(known)}


def two_answers():
    mia, keys = torch.eye(2)
    even, uneven = ([share * who + (1 - share) * what for who, what in ((mia, keys), (keys, mia))]
                    for share in (0.5, 0.7))
    weights = attention(rand(4, 3), rand(4, 3, seed=1), rand(4, 3))[1]
    return {"0.5 on each": close(*even), "0.7 and 0.3": not close(*uneven),
            "Doubling": not close(2 * even[0], 2 * even[1]), "share this row": close(weights[0], weights[1])}


# Lesson 2

def columns_read():
    x = rand(1, 4, 12).requires_grad_()
    seeded(MultiHeadAttentionLoop, 12, 3).heads[0](x)[0, 1].sum().backward()
    read = x.grad[0] != 0                                           # tokens, columns
    columns, tokens = read.any(0), read.any(1)
    return {"0 to 3": columns.tolist() == [True] * 4 + [False] * 8 and bool(tokens.all()),
            "12 columns, of all tokens": bool(columns.all() and tokens.all()),
            "of its own token": bool(columns.all()) and tokens.sum() == 1, "4 columns": columns.sum() == 4}


def size_of_w_o():
    return MultiHeadAttention(10, 3, d_k=4, d_v=5).w_o.weight.numel()


def double_w_k():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    out, maps = loop(x, need_weights=True)
    values = loop.heads[0].w_v(x)
    loop.heads[0].w_k.weight.data *= 2
    new_out, new_maps = loop(x, need_weights=True)
    changed = ((new_out - out).abs() > 1e-9).any(1)[0]
    return {"map of head 0": not close(new_maps[:, 0], maps[:, 0]),
            "map of head 1": not close(new_maps[:, 1], maps[:, 1]),
            "values": not close(loop.heads[0].w_v(x), values),
            "first columns alone": changed.tolist() == [True] * 2 + [False] * 4, "all columns": bool(changed.all())}


def concat():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    heads, w_o = [head(x) for head in loop.heads], loop.w_o.weight.T
    side_by_side = torch.cat(heads, -1)
    squares = [head @ w_o[2 * i:2 * i + 2, 2 * i:2 * i + 2] for i, head in enumerate(heads)]
    mean = torch.stack(heads).mean(0).repeat(1, 1, 3) @ w_o        # repeated, else the shapes do not fit
    rows = sum(head @ block for head, block in zip(heads, w_o.split(2)))
    ordered = all(any(close(column, given) for given in side_by_side[0].T) for column in loop(x)[0].T)
    return {"square block": close(torch.cat(squares, -1), loop(x)), "mean": close(mean, loop(x)),
            "rows of W_O": close(rows, loop(x)), "orders them": ordered}


def twins():
    x, loop = rand(1, 5, 6), seeded(MultiHeadAttentionLoop, 6, 3)
    loop.heads[1].load_state_dict(loop.heads[0].state_dict())
    loop.w_o.weight.data[:, 2:4] = loop.w_o.weight.data[:, 0:2]
    start = loop.heads[0].w_q.weight.clone()
    optimizer = torch.optim.SGD(loop.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        (loop(x) - x.flip(1)).square().mean().backward()
        optimizer.step()
    weights, w_o = [head.w_q.weight for head in loop.heads], loop.w_o.weight.T
    both = sum(loop.heads[i](x) @ w_o[2 * i:2 * i + 2] for i in (0, 1))
    return {"still equal": close(weights[0], weights[1]), "differ": not close(weights[0], weights[1]),
            "cancelled": close(both, 0 * both), "cannot learn": close(weights[0], start)}


def averaged():
    pairs = [torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]]), torch.tensor([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]])]
    assert all(pair.mean(0).tolist() == [0.5, 0.5, 0, 0] for pair in pairs)
    last = [pair[:, 2:] for pair in pairs]                          # a mean of 0 of numbers that are never negative
    return {"Each head reads both": all((pair[:, :2] > 0).all() for pair in pairs),
            "the other one the second": all(set(pair.argmax(-1).tolist()) == {0, 1} and pair.max() == 1
                                            for pair in pairs),
            "No head reads": not any(x.any() for x in last), "agree": all(close(*pair) for pair in pairs)}


# Lesson 3

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
    z, q = rand(1, 3, 5, 4), rand(1, 5, 12)
    back = z.transpose(1, 2)
    return {"z.transpose(1, 2)": back.data_ptr() != z.data_ptr(),
            "contiguous": back.contiguous().data_ptr() != z.data_ptr(),
            "reshape": back.reshape(1, 5, 12).data_ptr() != z.data_ptr(),
            "q.view": q.view(1, 5, 3, 4).data_ptr() != q.data_ptr()}


def layer(mha, x, split=split_heads, merge=merge_heads, mask=None, axis=-1, width=None, w_o=None):
    q, k, v = (split(linear(x), mha.num_heads) for linear in (mha.w_q, mha.w_k, mha.w_v))
    scores = q @ k.mT / sqrt(width or q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (w_o or mha.w_o)(merge(scores.softmax(axis) @ v))


def bare_split(x, h):
    return x.reshape(1, h, x.shape[1], -1)


def bare_merge(z):
    return z.reshape(1, z.shape[2], -1)


def d_h_split(x, h):
    return x.view(1, x.shape[1], -1, h).permute(0, 3, 1, 2)


def one_head():
    x, mha = rand(1, 5, 6), seeded(MultiHeadAttention, 6, 1)
    wrong = {"view(B, h, T, d_k)": {"split": bare_split}, "over queries": {"axis": -2}, "(d h)": {"split": d_h_split},
             "√d_model": {"width": 6}, "W_O is left out": {"w_o": nn.Identity()}}
    three = seeded(MultiHeadAttention, 6, 3)
    assert not any(close(layer(three, x, **options), three(x)) for options in wrong.values())
    return {words: close(layer(mha, x, **options), mha(x)) for words, options in wrong.items()}


def bare_views():
    x, mha, mask = rand(1, 5, 6), seeded(MultiHeadAttention, 6, 3), causal_mask(5)

    def run(x):
        return layer(mha, x, bare_split, bare_merge, mask)
    other = torch.cat([x[:, :-1], x[:, -1:] + 1], 1)
    return {"input's shape": run(x).shape != x.shape, "merge(split(x))": not close(bare_merge(bare_split(x, 3)), x),
            "earlier output": not close(run(other)[:, :-1], run(x)[:, :-1]),
            "a loop": not close(run(x), mha(x, mask=mask))}                # True: this test fails


def fused_orders():
    x, weight = rand(1, 5, 6), rand(18, 6, seed=1)                  # h = 2, d = 3
    stored = (x @ weight.T).view(1, 5, 2, 3, 3).permute(3, 0, 2, 1, 4)
    read = (x @ weight.T).view(1, 5, 3, 2, 3).permute(2, 0, 3, 1, 4)
    (right, right_maps), (out, maps) = attention(*stored), attention(*read)
    return {"An error": False, "only the heads": close(out.flip(1), right) or close(out, right),
            "other numbers": out.shape == right.shape and not close(out, right),
            "right maps": close(maps, right_maps) or close(maps.flip(1), right_maps)}


# Lesson 4

def twice_the_heads():
    few, many = ((count_parameters(512, h), count_memory(1, 128, 512, h), count_flops(1, 128, 512, h)) for h in (8, 16))
    products = [count[2].total - count[2].softmax for count in (few, many)]
    return {"number of parameters": many[0].total > few[0].total, "score maps": many[1].scores > few[1].scores,
            "matrix products": products[1] > products[0], "softmax": many[2].softmax > few[2].softmax,
            "q, k and v": many[1].qkv > few[1].qkv}


def one_head_of_forty():
    return count_parameters(5120, 40).per_head


def narrow_heads():
    return count_parameters(1024, 8, d_k=64).total / (4 * 1024**2)


def megabytes():
    return count_memory(8, 1024, 1024, 16).scores / 1e6


def equal_cost():
    def is_equal(T, h):
        flops = count_flops(1, T, 768, h)
        return flops.scores + flops.mix == flops.projections + flops.output
    at = {T: [is_equal(T, h) for h in (1, 8, 12)] for T in (384, 768, 1536)}
    return {"384": all(at[384]), "768": all(at[768]), "1536": all(at[1536]),
            "depends on h": any(len(set(equal)) > 1 for equal in at.values())}


def more_in_torch():
    theirs = nn.MultiheadAttention(512, 8)
    more = size(theirs.parameters()) - count_parameters(512, 8).total
    biases = size(p for name, p in theirs.named_parameters() if "bias" in name)
    return {"wider": theirs.head_dim > 512 // 8, "biases": more == 2048 == biases, "scale for each head": more == 8,
            "layer norm": more == size(nn.LayerNorm(512).parameters())}


# Lesson 5

def first_token_in_torch():
    x, mha = rand(1, 4, 6), seeded(nn.MultiheadAttention, 6, 3, batch_first=True)
    read = (mha(x, x, x, attn_mask=causal_mask(4))[1][0, 0] > 0).tolist()
    return {"Itself alone": read == [True, False, False, False], "three later": read == [False, True, True, True],
            "All four": all(read), "Nothing": not any(read)}


def leak():
    zeros, values = torch.zeros(1, 2, 2).double(), torch.eye(2).double()[None]
    mask = torch.tril(torch.ones(2, 2)).double()
    return F.scaled_dot_product_attention(zeros, zeros, values, attn_mask=mask)[0, 0, 1].item()


def finite_gradients():
    mask = torch.tensor([[False, False, False], [True, True, False], [True, True, True]])

    def filled(number, q, k, v):
        return (q @ k.mT).masked_fill(~mask, number).softmax(-1) @ v
    ways = {"Scores filled with −∞": lambda *qkv: filled(float("-inf"), *qkv), "−10⁹": lambda *qkv: filled(-1e9, *qkv),
            "nan_to_num": lambda *qkv: filled(float("-inf"), *qkv).nan_to_num(),
            "attention()": lambda *qkv: attention(*qkv, mask)[0]}
    result = {}
    for words, attend in ways.items():
        q, k, v = (x.requires_grad_() for x in rand(3, 1, 3, 2))
        attend(q, k, v)[:, 1:].sum().backward()
        result[words] = bool(v.grad.isfinite().all())
    return result


def keys_with_a_cache():
    cache, mha = KVCache(), seeded(MultiHeadAttention, 6, 3)
    mha(rand(1, 5, 6), cache=cache)
    _, weights = mha(rand(1, 3, 6), is_causal=True, need_weights=True, cache=cache)
    return (weights[0, 0, 0] > 0).sum().item()


def must_be_equal():
    """Each in turn unequal, the others equal: is there an error?"""
    def fails(call, *inputs):
        try:
            call(*inputs)
        except Exception:                                           # ValueError, or the shape check of the test run
            return True
        return False
    x, source = rand(1, 4, 6), rand(1, 4, 6, seed=1)
    mha, wide = MultiHeadAttention(6, 2).double(), MultiHeadAttention(6, 2, key_dim=11).double()
    assert not fails(mha, x, source, source)
    return {"tokens of the two sentences": fails(mha, x, rand(1, 7, 6)), "embeddings": fails(wide, x, rand(1, 4, 11)),
            "of a query and of a key": fails(attention, x, rand(1, 4, 5), source),
            "of a key and of a value": fails(attention, x, source, rand(1, 4, 5)),
            "keys and of values": fails(mha, x, source, rand(1, 3, 6))}


def padded():
    x, mha, mask = rand(2, 4, 6), seeded(MultiHeadAttention, 6, 3), padding_mask([4, 2], 4)
    out, weights = mha(x, mask=mask, need_weights=True)
    x[1, 2:] += 1
    again = mha(x, mask=mask)
    return {"No row reads": not weights[1, :, :, 2:].any(), "are zero": not out[1, 2:].any(),
            "sums to 1": close(weights[1].sum(-1), torch.ones(3, 4).double()),
            "mean of the output": close(out[1].mean(0), again[1].mean(0))}


def not_batch_first():
    x = rand(2, 4, 6)
    shape = str(tuple(seeded(nn.MultiheadAttention, 6, 3)(x, x, x)[1].shape))
    return {words: words == shape for words in ("(2, 4, 4)", "(2, 3, 4, 4)", "(4, 2, 2)")} | {"raises an error": False}


# Lesson 10

def same_parameters_if():
    one, eight, wide = (size(MultiHeadAttention(64, h, d_k=d_k).parameters()) for h, d_k in ((1, 64), (8, 8), (8, 64)))
    return {"without biases": one == eight == 4 * 64**2, "T stays": False, "as wide as": wide == one,
            "None, it is false": one != eight}


def settled_without_training():
    return {"three axes": MultiHeadAttention(6, 3).w_o.weight.dim() == 2, "translate": False, "pronouns": False,
            "rank above": torch.linalg.matrix_rank(rand(7, 3) @ rand(3, 7, seed=1)).item() == 3,
            "copy": split_heads(x := rand(5, 6), 3).data_ptr() == x.data_ptr()}


def megabytes_of_a_course():
    return count_memory(8, 384, 256, 16).scores / 1e6


def one_clear_head():
    from mhsa.claims import CLAIMS
    holds = {claim.id: claim.verdict == "holds" for claim in CLAIMS}
    return {"on these sentences": True, "needs the head": holds["H16"], "other models": holds["H6"],
            "what the model answers": holds["H10"]}


def when_the_heads_are_wide():
    one, twelve = (MultiHeadAttention(24, h, d_k=24) for h in (1, 12))
    flops = [count_flops(1, 5, 24, h, d_k=24) for h in (1, 8)]
    q, k, v = rand(3, 8, 5, 24)
    weights = attention(q, k, v, causal_mask(5))[1]
    return {"twelve times as large": size(twelve.parameters()) == 12 * size(one.parameters()),
            "divide": MultiHeadAttention(10, 3, d_k=4) is not None,
            "softmax": not close(weights.sum(-1), torch.ones(8, 5).double()),
            "keeps the future out": bool(weights.triu(1).any()),
            "cost the same": flops[0].total - flops[0].softmax != flops[1].total - flops[1].softmax}


def growth_of_two_kernels():
    a, b = 4 / 2, 32 / 8
    return {"a grows like T": a == 2 and b == 2**2, "75 %": 1 - 2 / 8 == 1 - 4 / 32, "28 MB": 8 - 2 == 32 - 4,
            "Both": a == b}


# Lesson 9

def peak_bytes(T, name):
    from mhsa.measure import Cell, measure_memory
    return measure_memory(Cell(1, T, 128, 2, False), name)["bytes"]


def twice_the_text():
    growth = peak_bytes(4096, "ours") / peak_bytes(2048, "ours")
    return {words: abs(growth - factor) < 0.4 for words, factor in {"stays": 1, "doubles": 2, "fourfold": 4}.items()}


def two_calls():
    from mhsa.measure import chosen_kernel
    mha, x = seeded(MultiHeadAttention, 6, 3), rand(2, 5, 6)
    asked, plain = (lambda: mha(x, need_weights=True)[0]), (lambda: mha(x))
    with FlopCounterMode(display=False) as counter:
        asked()
    by_kind = counter.get_flop_counts()["Global"]
    explicit = by_kind[torch.ops.aten.baddbmm] + by_kind[torch.ops.aten.bmm]
    fused = sdpa_flop_count(*[(2, 3, 5, 2)] * 3)
    return {"peak": peak_bytes(1024, "ours, weights") > peak_bytes(1024, "ours"),
            "The output": not close(asked(), plain()), "kernel": chosen_kernel(asked) != chosen_kernel(plain),
            "operations": explicit != fused, "parameters": False}


def eight_times_the_work():
    one, eight = (count_flops(1, 128, 512, h) for h in (1, 8))
    return {"projections": eight.projections == 8 * one.projections, "softmax": eight.softmax == 8 * one.softmax,
            "Queries times keys": eight.scores == 8 * one.scores, "Everything": eight.total == 8 * one.total}


def megabytes_of_a_cache():
    return 24 * count_memory(1, 10_000, 2048, 32, num_kv_heads=4, d_k=64, dtype=torch.float16).kv_cache / 1e6


def one_step():
    mha, cache, seen = seeded(MultiHeadAttention, 6, 3), KVCache(), []
    mha(rand(1, 1000, 6), cache=cache)
    for linear in (mha.w_q, mha.w_k, mha.w_v, mha.w_o):
        linear.register_forward_hook(lambda module, inputs, out: seen.append(out.shape[1]))
    _, weights = mha(rand(1, 1, 6, seed=1), need_weights=True, cache=cache)
    first, late = (count_flops(1, 1, 6, 3, T_k=T_k).scores for T_k in (1, 1001))
    return {"one token": seen == [1] * 4, "1,001 scores": weights.shape == (1, 3, 1, 1001),
            "costs the same": first == late, "queries of all": cache.nbytes > 2 * 1001 * 6 * 8}


def what_is_exchanged():
    heads, w_o = rand(2, 5, 12), rand(12, 7)
    parts = [a @ b for a, b in zip(heads.chunk(4, -1), w_o.chunk(4))]
    added = close(sum(parts), heads @ w_o) and not any(close(part, heads @ w_o) for part in parts)
    return {"Nothing": not added, "score maps": False, "parts of the output": added, "Keys and values": False}


# Lesson 6

def predicted_accuracy():
    return relations(3, vocab=10).predicted(2)


def what_a_blend_loses():
    first, second = rand(2, 5)
    blends = [(a + b) / 2 for a, b in ((first, second), (second, first))]
    same_blend = close(*blends)
    return {"Both answers": not blends[0].any(), "Which answer": same_blend, "Nothing:": not same_blend,
            "The smaller": close(blends[0], torch.maximum(first, second))}


def from_two_heads_to_eight():
    few, many = (seeded(MultiHeadAttention, 16, h) for h in (2, 8))
    maps = [layer(rand(1, 8, 16), need_weights=True)[1] for layer in (few, many)]
    return {"number of parameters": size(few.parameters()) == size(many.parameters()), "width": few.d_k == many.d_k,
            "number of attention maps": maps[0].shape[1] == maps[1].shape[1],
            "predicted accuracy": relations(2).predicted(2) == relations(2).predicted(8),
            "bytes": maps[0].nbytes == maps[1].nbytes}


def too_small():
    def favourites(d_k):
        return len((rand(50, d_k) @ rand(50, d_k, seed=1).T).argmax(-1).unique())
    one, many = (seeded(MultiHeadAttention, 16, h) for h in (1, 16))
    return {"number of parameters": size(many.parameters()) < size(one.parameters()),
            "width": favourites(many.d_k) < favourites(one.d_k) / 4, "number of heads": many.num_heads < one.num_heads,
            "training sequences": False}


def which_head():
    mha, x = seeded(MultiHeadAttention, 6, 2), rand(1, 4, 6)
    before, order = mha(x), torch.tensor([3, 4, 5, 0, 1, 2])
    with torch.no_grad():
        for w in (mha.w_q, mha.w_k, mha.w_v):
            w.weight.copy_(w.weight[order])
        mha.w_o.weight.copy_(mha.w_o.weight[:, order])
    free = close(mha(x), before)
    return {"Head 0 again": not free, "Any head": free, "most weights": False, "first heads": not free}


# Lesson 7

def adds_almost_nothing():
    """What a head adds, by how it is built, against what it adds otherwise."""
    weights = torch.full((5, 5), 0.1 / 4).double()
    weights[:, 0] = 0.9
    first, rest = torch.eye(5).double()[:, :1], 1 - torch.eye(5).double()[:, :1]
    values, w_o = rand(5, 3), rand(3, 7, seed=1)

    def small(values, w_o):
        return ((weights @ values @ w_o).norm() < 0.01 * (weights @ rand(5, 3) @ rand(3, 7, seed=1)).norm()).item()
    return {"The values of the other tokens": small(values * first, w_o),
            "the others are large": small(10 * values * rest, w_o),
            "block of W_O": small(values, 0 * w_o), "All its values": small(0 * values, w_o)}


def even_over_four():
    row = torch.tensor([0.25] * 4 + [0.0] * 12)
    return (torch.special.entr(row).sum() / torch.log(torch.tensor(16.0))).item()


def keeps_its_pattern():
    """The share on the token before: of a head by place, and of one that seeks the word that used to stand before."""
    words, order = torch.eye(7), torch.tensor([3, 0, 5, 1, 6, 2, 4])

    def share(queries, keys):
        return attention(50 * queries, keys, keys)[1].diagonal(-1).mean().item()
    before = words.roll(1, 0)                                       # row t is word, or place, t - 1
    assert share(before, words) > 0.99                              # both, as long as the words are in order
    layer, x = seeded(MultiHeadAttention, 6, 3), rand(1, 5, 6)
    layer.w_o.weight.data[:, :2] = 0                                # head 0 may look where it likes
    needed = not close(layer(x), ablate_heads(layer, x, {0: "zero"})[0])
    return {"by position": share(before, words) > 0.99, "without it": needed,
            "what the words mean": share(before[order], words[order]) > 0.99}


def mean_of_two():
    a, b = rand(2, 5, 5).softmax(-1)
    mean = (a + b) / 2
    left, right = torch.eye(2)
    other_pair = torch.stack([a + 0.1 * (b - a), b + 0.1 * (a - b)])
    return {"sums to 1": close(mean.sum(-1), torch.ones(5).double()),
            "at least one head has": any(torch.equal((left + right) / 2, own) for own in (left, right)),
            "never sharper": bool((mean.amax(-1) <= torch.maximum(a, b).amax(-1)).all()),
            "tell the two heads": not close(other_pair.mean(0), mean)}


def weight_of_a_word():
    weights = torch.eye(5).double()
    weights[0] = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625])   # keys 1 to 4 are the pieces
    return lesson07.word_map(weights, [0, 1, 1, 1, 1])[0, 1].item()


# Lesson 8

def highest_rank():
    d_k = MultiHeadAttention(48, 16).d_k
    return torch.linalg.matrix_rank(rand(12, d_k) @ rand(12, d_k, seed=1).T, atol=1e-9).item()


def rank_after_softmax():
    weights = attention(rand(12, 3), rand(12, 3, seed=1), rand(12, 3))[1]
    rank = torch.linalg.matrix_rank(weights, atol=1e-12).item()
    return {words: rank == int(words) for words in ("3", "4", "12", "1")}


def what_changes_no_weight():
    q, k = rand(2, 5, 3)
    scores = q @ k.T
    row, column = torch.zeros(2, 5, 5).double()
    row[2], column[:, 2] = 7, 7
    changed = {"one row": scores + row, "one column": scores + column, "Doubling": 2 * scores,
               "its mean": scores - scores.mean(-1, keepdim=True), "Exchanging": k @ q.T}
    return {words: close(s.softmax(-1), scores.softmax(-1)) for words, s in changed.items()}


def smallest_width():
    pattern = (rand(10, 4) @ rand(10, 4, seed=1).T).softmax(-1)
    log = pattern.log()
    U, S, V = torch.linalg.svd(log - log.mean(-1, keepdim=True))
    makes = {d_k: close((U[:, :d_k] * S[:d_k] @ V[:d_k]).softmax(-1), pattern) for d_k in range(1, 11)}
    return {words: makes[int(words)] and not makes[int(words) - 1] for words in ("3", "4", "9", "10")}


def eight_beat_two():
    few, many = (count_parameters(512, h, d_k=64).total for h in (2, 8))
    return {"Nothing": few == many, "four times": many == 4 * few, "not valid": False,
            "less memory": count_memory(1, 8, 512, 8, d_k=64).scores < count_memory(1, 8, 512, 2, d_k=64).scores}


def wider_than_64():
    return {name: PRESETS[name].d_k > 64
            for name in ("GPT-2 XL", "BERT-large", "GPT-3 175B", "T5-11B", "Llama-3-70B")}


KEYS = {
    "lesson01": [scale, row_of_weights, open_weight, outside, swapped, two_answers],
    "lesson02": [columns_read, size_of_w_o, double_w_k, concat, twins, averaged],
    "lesson03": [head_1, offset, copies, one_head, bare_views, fused_orders],
    "lesson04": [twice_the_heads, one_head_of_forty, narrow_heads, megabytes, equal_cost, more_in_torch],
    "lesson05": [first_token_in_torch, leak, finite_gradients, keys_with_a_cache, must_be_equal, padded,
                 not_batch_first],
    "lesson06": [predicted_accuracy, what_a_blend_loses, from_two_heads_to_eight, too_small, which_head],
    "lesson07": [adds_almost_nothing, even_over_four, keeps_its_pattern, mean_of_two, weight_of_a_word],
    "lesson08": [highest_rank, rank_after_softmax, what_changes_no_weight, smallest_width, eight_beat_two,
                 wider_than_64],
    "lesson09": [twice_the_text, two_calls, eight_times_the_work, megabytes_of_a_cache, one_step, what_is_exchanged],
    "lesson10": [same_parameters_if, settled_without_training, megabytes_of_a_course, one_clear_head,
                 when_the_heads_are_wide, growth_of_two_kernels],
}
