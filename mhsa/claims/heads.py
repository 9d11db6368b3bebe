"""Measurements about what heads do and how many there should be, as in mhsa/claims/layer.py.

Trained numbers come from mhsa/train/recorded (lesson 6; `python -m mhsa.train` makes it anew); the real model is
that of lesson 7.
"""

from functools import cache
from math import log

import torch
from torch import Tensor
from torch.nn import functional as F

from mhsa.claims.layer import Evidence, close, numbers, seeded
from mhsa.count import PRESETS
from mhsa.draw.head_count import PUBLISHED
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop, attention
from mhsa.pretrained import FIRST, load_minilm, pattern_scores
from mhsa.train import recorded

BLEU = {h: bleu for h, (bleu, _) in PUBLISHED.items()}  # Vaswani et al. 2017, table 3, rows (A)
PERPLEXITY = {h: perplexity for h, (_, perplexity) in PUBLISHED.items()}


# What heads learn


def one_row_averages() -> Evidence:
    rows = (3 * numbers(100_000, 4)).softmax(-1)
    weaker = rows[:, [0, 3]].min(-1).values.max().item()  # the best of many rows gives each target half
    one, two = (recorded("map").result("relations, m=2", h) for h in (1, 2))
    deep = recorded("two layers").result("relations, m=2", 1)
    follows = weaker <= 0.5 and abs(one.mean - one.predicted) < 0.1 and min(two.mean, deep.mean) > 0.9
    return follows, dict(weaker=weaker, one=one.mean, predicted=one.predicted, two=two.mean, deep=deep.mean)


def own_distributions() -> Evidence:
    maps = seeded(MultiHeadAttention, 12, 3)(numbers(1, 5, 12), need_weights=True)[1][0]
    differ = all(not close(maps[i], maps[j]) for i in range(3) for j in range(i))
    return differ and close(maps.sum(-1), torch.ones(3, 5).double()), dict(maps=len(maps))


def twins_stay_twins() -> Evidence:
    loop, x = seeded(MultiHeadAttentionLoop, 6, 3), numbers(1, 4, 6)
    with torch.no_grad():
        loop.heads[1].load_state_dict(loop.heads[0].state_dict())
        loop.w_o.weight[:, 2:4] = loop.w_o.weight[:, 0:2]
    before = loop.heads[0].w_q.weight.clone()
    optimizer = torch.optim.SGD(loop.parameters(), lr=0.1)
    for _ in range(50):
        optimizer.zero_grad()
        (loop(x) - x.flip(1)).square().mean().backward()
        optimizer.step()
    moved = not close(before, loop.heads[0].w_q.weight)
    return moved and close(loop.heads[0].w_q.weight, loop.heads[1].w_q.weight), {}


def trained_together() -> Evidence:
    """Does the gradient of head 1 change when only head 0 changes?"""

    def gradient_of_head_1(factor: float) -> Tensor:
        loop, x = seeded(MultiHeadAttentionLoop, 6, 3), numbers(1, 4, 6)
        with torch.no_grad():
            loop.heads[0].w_v.weight *= factor
        (loop(x) - x.flip(1)).square().mean().backward()
        return loop.heads[1].w_q.weight.grad

    return not close(gradient_of_head_1(1), gradient_of_head_1(-2)), {}


def numbers_mean_nothing() -> Evidence:
    loop, x, order = seeded(MultiHeadAttentionLoop, 6, 3), numbers(1, 4, 6), [2, 0, 1]
    expected = loop(x)
    blocks = loop.w_o.weight.detach().split(2, -1)
    with torch.no_grad():
        loop.w_o.weight.copy_(torch.cat([blocks[i] for i in order], -1))
    loop.heads = torch.nn.ModuleList(loop.heads[i] for i in order)
    return close(loop(x), expected), {}


def subspaces() -> Evidence:
    w_v = seeded(MultiHeadAttention, 64, 4).w_v.weight.detach()
    bases = [torch.linalg.qr(block.T).Q for block in w_v.split(16)]
    cosines = [torch.linalg.svdvals(bases[i].T @ bases[j]).max().item() for i in range(4) for j in range(i)]
    rank = torch.linalg.matrix_rank(w_v).item()
    return rank == 64 and min(cosines) > 0.5, dict(smallest=min(cosines), largest=max(cosines), rank=rank)


def shared_over_places() -> Evidence:
    x, order = numbers(1, 5, 12), [3, 1, 4, 0, 2]
    layers = [seeded(MultiHeadAttention, 12, h) for h in (1, 3)]
    return all(close(layer(x[:, order]), layer(x)[:, order]) for layer in layers), {}


def rank_of_scores() -> Evidence:
    x, ranks = numbers(16, 16), {}
    for h in (1, 4, 16):
        mha = seeded(MultiHeadAttention, 16, h)
        q, k = split_heads(mha.w_q(x), h), split_heads(mha.w_k(x), h)
        ranks[h] = torch.linalg.matrix_rank(q @ k.mT).max().item()
    return ranks == {1: 16, 4: 4, 16: 1}, dict(ranks=" / ".join(map(str, ranks.values())))


@cache
def minilm():
    return load_minilm()  # 0.5 s and 120 MB, for two claims


def heads_of_a_real_model() -> Evidence:
    encoding = minilm().encode(FIRST)
    scores = pattern_scores(encoding.tokens, torch.cat(encoding.weights, 1))
    most = {name: scores[name].max().item() for name in ("previous", "next", "first")}
    sinks = (scores["first"] > 0.5).sum().item()
    return most["previous"] > 0.9 and most["next"] > 0.5 and sinks > 72 / 4, most | dict(sinks=sinks)


def heads_that_do_not_matter() -> Evidence:
    def left(heads: list[tuple[int, int]]) -> float:
        """Cosine of the sentence embeddings with and without these heads, the mean over five sentences."""
        embedding = minilm().encode(FIRST[:5], ablate=dict.fromkeys(heads, "zero")).embedding
        return (embedding * whole).sum(-1).mean().item()

    whole = minilm().encode(FIRST[:5]).embedding
    last_layer = left([(6, head) for head in range(12)])
    return min(left([(2, 9)]), left([(3, 11)])) > 0.999 and last_layer < 0.9, {}


# How many heads


def one_head_in_the_paper() -> Evidence:
    bleu = 100 * (BLEU[8] - BLEU[1]) / BLEU[8]
    perplexity = 100 * (PERPLEXITY[1] - PERPLEXITY[8]) / PERPLEXITY[8]
    return 3 <= bleu <= 5 <= perplexity <= 10, dict(
        one=BLEU[1], eight=BLEU[8], bleu=bleu, ppl_one=PERPLEXITY[1], ppl_eight=PERPLEXITY[8], perplexity=perplexity
    )


def more_than_sixteen() -> Evidence:
    return BLEU[16] == max(BLEU.values()) > BLEU[32], dict(eight=BLEU[8], sixteen=BLEU[16], more=BLEU[32])


def few_heads() -> Evidence:
    points = BLEU[8] - BLEU[4]
    one_relation = recorded("map").result("relations, m=1", 1).mean
    return points < 0.5 and one_relation > 0.95, dict(points=points, four=BLEU[4], one_relation=one_relation)


def the_64_rule() -> Evidence:
    fits = {name for name, p in PRESETS.items() if p.num_heads == min(16, p.d_model / 64)}
    others = sorted(PRESETS.keys() - fits)
    return {"Transformer base", "BERT-base", "GPT-2 small", "BERT-large"} == fits, dict(
        fits=len(fits), models=len(PRESETS), others=", ".join(others)
    )


def bert_sizes() -> Evidence:
    base, large = PRESETS["BERT-base"], PRESETS["BERT-large"]
    return (base.d_model, base.num_heads) == (768, 12) and (large.d_model, large.num_heads) != (768, 12), dict(
        d_model=large.d_model, heads=large.num_heads
    )


def gpt2_sizes() -> Evidence:
    small, xl = PRESETS["GPT-2 small"], PRESETS["GPT-2 XL"]
    return (xl.d_model, xl.num_heads) == (1600, 25) and small.num_heads < 16, dict(
        small=small.num_heads, small_width=small.d_model
    )


def published_sizes() -> Evidence:
    wanted = {"GPT-2 small": (768, 12, 64), "Llama-3-70B": (8192, 64, 128), "GPT-3 175B": (12288, 96, 128)}
    there = {name: (p.d_model, p.num_heads, p.d_k) for name, p in PRESETS.items() if name in wanted}
    return there == wanted and all(h * d_k == d for d, h, d_k in there.values()), dict(
        kv=PRESETS["Llama-3-70B"].num_kv_heads
    )


def heads_against_width() -> Evidence:
    small, large = PRESETS["GPT-2 XL"], PRESETS["GPT-3 175B"]
    width, heads = large.d_model / small.d_model, large.num_heads / small.num_heads
    return heads < 0.6 * width, dict(width=width, heads=heads)


def head_widths() -> Evidence:
    widths, best = {p.d_k for p in PRESETS.values()}, sorted(BLEU, key=lambda h: BLEU[h])[-3:]
    return widths == {64, 128} and sorted(512 // h for h in best) == [32, 64, 128], dict(
        widths=" or ".join(map(str, sorted(widths)))
    )


def eight_or_more() -> Evidence:
    fewest = min(p.num_heads for p in PRESETS.values())
    return fewest == 8, dict(fewest=fewest, models=len(PRESETS))


def as_many_heads_as_tokens() -> Evidence:
    results = [recorded("map").result(f"relations, m={m}", 8) for m in (1, 2, 4)]
    return all(result.num_heads == result.T and result.mean > 0.9 for result in results), dict(
        means=" / ".join(f"{result.mean:.2f}" for result in results)
    )


def too_narrow() -> Evidence:
    eight, sixteen = (recorded("map").result("relations, m=2", h).mean for h in (8, 16))
    scores = numbers(100, 1) @ numbers(100, 1, seed=1).T
    rank, favourites = torch.linalg.matrix_rank(scores).item(), len(scores.argmax(-1).unique())
    return rank == 1 and favourites == 2 and eight - sixteen > 0.1, dict(rank=rank, eight=eight, sixteen=sixteen)


def width_of_any_map() -> Evidence:
    """A random map of T = 8: the width of a head that makes it from independent tokens, and the ranks at d_k = 2."""
    wanted = numbers(8, 8).softmax(-1)
    centred = wanted.log() - wanted.log().mean(-1, keepdim=True)
    U, S, V = torch.linalg.svd(centred)
    made = [close(attention(d_k**0.5 * U[:, :d_k] * S[:d_k], V[:d_k].T, wanted)[1], wanted) for d_k in (6, 7)]
    q, k = numbers(8, 2), numbers(8, 2, seed=1)
    ranks = [torch.linalg.matrix_rank(t).item() for t in (q @ k.T, attention(q, k, k)[1])]
    return made == [False, True] and ranks[0] == 2 < ranks[1], dict(scores=ranks[0], weights=ranks[1])


def before_training(num_heads: int) -> tuple[float, float]:
    """As in lesson 8, section 3, at T = 16: entropy of the rows as a share of its maximum, gradient of W_Q."""
    mha, (x, target) = seeded(MultiHeadAttention, 64, num_heads), numbers(2, 32, 16, 64, seed=1)
    for p in mha.parameters():
        torch.nn.init.normal_(p, std=64**-0.5)
    out, maps = mha(x, need_weights=True)
    F.mse_loss(out, target).backward()
    entropy = torch.special.entr(maps).sum(-1).mean().item() / log(16)
    return entropy, mha.w_q.weight.grad.norm().item()


def not_sparse() -> Evidence:
    one, many = before_training(1)[0], before_training(16)[0]
    return many > 0.75 and abs(many - one) < 0.05, dict(one=one, many=many)


def gradients_do_not_vanish() -> Evidence:
    ratio = before_training(16)[1] / before_training(8)[1]
    return 0.5 < ratio < 2, dict(ratio=ratio)


def best_number_depends_on_the_task() -> Evidence:
    best = {}
    for m in (1, 2, 4):
        results = [recorded("map").result(f"relations, m={m}", h) for h in (1, 2, 4, 8, 16)]
        best[m] = min(result.num_heads for result in results if result.mean > 0.95)
    return list(best.values()) == [1, 2, 4], dict(best=", ".join(map(str, best.values())))
