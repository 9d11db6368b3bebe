"""Claims about how many heads there should be, each beneath its function. Trained numbers are those of lesson 6."""

import torch

from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import before_training, close, numbers
from mhsa.count import PRESETS
from mhsa.draw.head_count import PUBLISHED
from mhsa.layers import attention
from mhsa.train import recorded

BLEU = {h: bleu for h, (bleu, _) in PUBLISHED.items()}  # Vaswani et al. 2017, table 3, rows (A)
PERPLEXITY = {h: perplexity for h, (_, perplexity) in PUBLISHED.items()}


def one_head_in_the_paper() -> Evidence:
    bleu = 100 * (BLEU[8] - BLEU[1]) / BLEU[1]
    perplexity = 100 * (PERPLEXITY[1] - PERPLEXITY[8]) / PERPLEXITY[8]
    return 3 <= bleu <= 5 <= perplexity <= 10, dict(
        one=BLEU[1], eight=BLEU[8], bleu=bleu, ppl_one=PERPLEXITY[1], ppl_eight=PERPLEXITY[8], perplexity=perplexity
    )


N1 = Claim(
    "N1",
    "Eight heads do 3 to 5 % better than one; elsewhere: one does 5 to 10 % worse than eight.",
    "holds if",
    "if you say of what. {Vaswani}, table 3, rows A, one run each, English to German: {eight} BLEU is {bleu:.1f} % "
    "more than the {one} of one head; a perplexity of {ppl_one} is {perplexity:.1f} % more than the {ppl_eight} of "
    "eight.",
    lessons=[8],
    measure=one_head_in_the_paper,
    published=True,
)


def more_than_sixteen() -> Evidence:
    return BLEU[16] == max(BLEU.values()) > BLEU[32], dict(eight=BLEU[8], sixteen=BLEU[16], more=BLEU[32])


N2 = Claim(
    "N2",
    "16 heads or more are slightly worse.",
    "does not hold",
    "Same table: 16 heads do as well as 8, {sixteen} and {eight} BLEU; 32 do worse, {more}. (That GPT-3 has 96 and "
    "Llama-3-70B 64 is practice, no evidence.)",
    lessons=[8],
    measure=more_than_sixteen,
    published=True,
)


def few_heads() -> Evidence:
    points = BLEU[8] - BLEU[4]
    return points < 0.5, dict(points=points, four=BLEU[4])


N3 = Claim(
    "N3",
    "One to four heads are only for toys, or where resources are short.",
    "not shown",
    "No measurement is given. Small models do have 4, such as Gemma 3 1B ({Gemma}) and MobileBERT ({MobileBERT}). "
    "But in the one published sweep, of a layer 512 wide, 4 heads have {four} BLEU, {points:.1f} below 8 ({Vaswani}, "
    "table 3, one run each).",
    lessons=[8],
    measure=few_heads,
    published=True,
)


def the_64_rule() -> Evidence:
    fits = {name for name, p in PRESETS.items() if p.num_heads == min(16, p.d_model / 64)}
    others = sorted(PRESETS.keys() - fits)
    return {"Transformer base", "BERT-base", "GPT-2 small", "BERT-large", "GPT-J-6B"} == fits, dict(
        fits=len(fits), models=len(PRESETS), others=", ".join(others), wide=PRESETS["GPT-J-6B"].d_k
    )


N4 = Claim(
    "N4",
    "h = d_model / 64, at most 16.",
    "holds if",
    "if the model is one of {fits}: Transformer base, the two BERTs, GPT-2 small, and by the cap alone GPT-J-6B, "
    "whose heads are {wide} wide. Of our {models} presets it does not fit {others}.",
    lessons=[8],
    measure=the_64_rule,
    published=True,
)


def bert_sizes() -> Evidence:
    base, large = PRESETS["BERT-base"], PRESETS["BERT-large"]
    return 8 != base.num_heads != large.num_heads != 12, dict(
        base=base.num_heads, width=base.d_model, large=large.num_heads, large_width=large.d_model
    )


N5 = Claim(
    "N5",
    "BERT has 8 heads, BERT-large 12.",
    "does not hold",
    "BERT-base has {base} at d_model = {width}, BERT-large {large} at {large_width:,} ({Devlin}, section 3).",
    lessons=[4],
    measure=bert_sizes,
    published=True,
)


def gpt2_sizes() -> Evidence:
    small, xl = PRESETS["GPT-2 small"], PRESETS["GPT-2 XL"]
    return (xl.d_model, xl.num_heads) == (1600, 25) and small.num_heads < 16, dict(
        small=small.num_heads, small_width=small.d_model
    )


N6 = Claim(
    "N6",
    "GPT-2 has d_model = 1600 and 25 heads.",
    "holds if",
    "if you mean GPT-2 XL: widths are in {Radford}, heads in the released configurations. GPT-2 small has "
    "{small_width} and {small}, so “16 heads or more” does not fit it either.",
    lessons=[4],
    measure=gpt2_sizes,
    published=True,
)


def published_sizes() -> Evidence:
    wanted = {"GPT-2 small": (768, 12, 64), "Llama-3-70B": (8192, 64, 128), "GPT-3 175B": (12288, 96, 128)}
    there = {name: (p.d_model, p.num_heads, p.d_k) for name, p in PRESETS.items() if name in wanted}
    return there == wanted and all(h * d_k == d for d, h, d_k in there.values()), dict(
        kv=PRESETS["Llama-3-70B"].num_kv_heads
    )


N7 = Claim(
    "N7",
    "GPT-2 small is 768 = 12 · 64, GPT-3 12,288 = 96 · 128, Llama-3-70B 8,192 = 64 · 128.",
    "holds",
    "{Brown}, table 2.1; {Grattafiori}, table 3. In Llama-3-70B the 64 query heads share {kv} heads of keys and "
    "values.",
    lessons=[4],
    measure=published_sizes,
    published=True,
)


def heads_against_width() -> Evidence:
    def growth(small: str, large: str) -> tuple[float, float]:
        a, b = PRESETS[small], PRESETS[large]
        return b.d_model / a.d_model, b.num_heads / a.num_heads

    kept, wider = growth("GPT-2 small", "GPT-2 XL"), growth("GPT-2 XL", "GPT-3 175B")
    follows = kept[0] == kept[1] and wider[1] < 0.6 * wider[0]
    return follows, dict(same=kept[0], width=wider[0], heads=wider[1])


N8 = Claim(
    "N8",
    "The number of heads grows in proportion to the model.",
    "holds if",
    "if the width of a head is kept: from GPT-2 small to XL both grow {same:.2f} times. From there to GPT-3 d_model "
    "grows {width:.1f} times and h {heads:.1f} times: the heads became wider.",
    lessons=[8],
    measure=heads_against_width,
    published=True,
)


def head_widths() -> Evidence:
    widths, best = {p.d_k for p in PRESETS.values()}, sorted(BLEU, key=lambda h: BLEU[h])[-3:]
    return widths >= {32, 64, 128} and sorted(512 // h for h in best) == [32, 64, 128], dict(
        widths=", ".join(map(str, sorted(widths)))
    )


N9 = Claim(
    "N9",
    "A d_k of 32 to 128 is reasonable.",
    "holds",
    "In {Vaswani}, table 3, 128, 64 and 32 have the three best BLEU scores of five widths; our presets have "
    "{widths}, most of them 64 or 128.",
    lessons=[8],
    measure=head_widths,
    published=True,
)


N10 = Claim(
    "N10",
    "All modern transformers have 8 heads or more.",
    "does not hold",
    "Gemma 3 1B has 4 query heads, and one head of keys and values ({Gemma}); MobileBERT has 4 ({MobileBERT}).",
    lessons=[8, 9],
)


def best_number_depends_on_the_task() -> Evidence:
    best = {}
    for m in (1, 2, 4):
        results = [recorded("map").result(f"relations, m={m}", h) for h in (1, 2, 4, 8, 16)]
        best[m] = min(result.num_heads for result in results if result.mean > 0.95)
    return list(best.values()) == [1, 2, 4], dict(best=", ".join(map(str, best.values())))


N11 = Claim(
    "N11",
    "8 to 16 heads are best for most tasks, 8 to 12 on GLUE.",
    "not shown",
    "No sweep is named. In lesson 6 the task decides: the fewest heads above 0.95 are {best} for 1, 2 and 4 relations.",
    lessons=[6, 8],
    measure=best_number_depends_on_the_task,
)

N12 = Claim(
    "N12",
    "More heads make training less stable.",
    "not shown",
    "No measurement is given. {Liu} compare 24 layers of 16 heads with 384 of one: the first train more stably, "
    "since they are fewer layers. About more heads in as many layers that says nothing.",
    lessons=[6],
)


def as_many_heads_as_tokens() -> Evidence:
    results = [recorded("map").result(f"relations, m={m}", 8) for m in (1, 2, 4)]
    return all(result.num_heads == result.T and result.mean > 0.9 for result in results), dict(
        means=" / ".join(f"{result.mean:.2f}" for result in results)
    )


N13 = Claim(
    "N13",
    "With as many heads as tokens the result is terrible.",
    "does not hold",
    "Not through h = T: in lesson 6's map T = 8, and 8 heads are right in {means} for 1, 2 and 4 relations. The case "
    "that is meant, T = 512 with d_k of 1 or 2, nobody measures; there the width of a head would limit (N14).",
    lessons=[6, 8],
    measure=as_many_heads_as_tokens,
)


def too_narrow() -> Evidence:
    one, two = (recorded(f"T=8 d_k={d_k} for 900 steps").result("relations, m=1", 1).mean for d_k in (1, 2))
    sixteen = recorded("lr 0.005 for 3000 steps").result("relations, m=2", 16).mean
    scores = numbers(100, 1) @ numbers(100, 1, seed=1).T
    rank, favourites = torch.linalg.matrix_rank(scores).item(), len(scores.argmax(-1).unique())
    follows = rank == 1 and favourites == 2 and two - one > 0.3 and sixteen > 0.9
    return follows, dict(rank=rank, one=one, two=two, sixteen=sixteen)


N14 = Claim(
    "N14",
    "With d_k = 1 a score is a product of two numbers, and much is lost.",
    "holds if",
    "if you mean one head: the scores have rank {rank}, and at most two keys can be a favourite. On one relation "
    "among 8 tokens such a head is right in {one:.2f}, one of d_k = 2 in {two:.2f}. Sixteen of them reach "
    "{sixteen:.2f} on two relations, after ten times as many steps as in the map (lesson 6, section 9).",
    lessons=[6, 8],
    measure=too_narrow,
)


def not_sparse() -> Evidence:
    one, many = before_training(1)[0], before_training(16)[0]
    return many > 0.75 and abs(many - one) < 0.05, dict(one=one, many=many)


N15 = Claim(
    "N15",
    "With h = T the maps become sparse.",
    "not shown",
    "Before training they do not: at h = T = 16 (d_model = 64) the rows have {many:.2f} of the largest entropy, with "
    "one head {one:.2f}. For trained layers no measurement comes with the claim.",
    lessons=[8],
    measure=not_sparse,
)


def gradients_do_not_vanish() -> Evidence:
    ratio = before_training(16)[1] / before_training(8)[1]
    return 0.5 < ratio < 2, dict(ratio=ratio)


N16 = Claim(
    "N16",
    "With h = T gradients vanish.",
    "not shown",
    "Before training the gradient of W_Q at h = T = 16 is {ratio:.2f} times that at h = 8. No measurement comes with "
    "the claim.",
    lessons=[8],
    measure=gradients_do_not_vanish,
)


def width_of_any_map() -> Evidence:
    """A random map of T = 8: the width of a head that makes it from independent tokens, and the ranks at d_k = 2."""
    wanted = numbers(8, 8).softmax(-1)
    centred = wanted.log() - wanted.log().mean(-1, keepdim=True)
    U, S, V = torch.linalg.svd(centred)
    made = [close(attention(d_k**0.5 * U[:, :d_k] * S[:d_k], V[:d_k].T, wanted)[1], wanted) for d_k in (6, 7)]
    q, k = numbers(8, 2), numbers(8, 2, seed=1)
    ranks = [torch.linalg.matrix_rank(t).item() for t in (q @ k.T, attention(q, k, k)[1])]
    return made == [False, True] and ranks[0] == 2 < ranks[1], dict(scores=ranks[0], weights=ranks[1])


N17 = Claim(
    "N17",
    "Heads with d_k below T cannot make every attention map.",
    "holds if",
    "if any tokens are allowed: theorem 1 of {Bhojanapalli}. For independent tokens T - 1 is enough: a random map of "
    "T = 8 needs d_k = 7. A trap: rank ≤ d_k is a fact of the *scores*; at d_k = 2 they have rank {scores}, the "
    "attention weights rank {weights}.",
    lessons=[8],
    measure=width_of_any_map,
)


N18 = Claim(
    "N18",
    "More heads reduce redundancy; elsewhere: far above 16 heads are redundant.",
    "not shown",
    "Both are said, and neither is measured. {Michel} could remove a fifth of the heads of a model with 16 a layer, "
    "two fifths of one with 12.",
    lessons=[8],
)


def beyond_sixteen() -> Evidence:
    return BLEU[16] == BLEU[8] > BLEU[32], dict(eight=BLEU[8], sixteen=BLEU[16], more=BLEU[32])


N19 = Claim(
    "N19",
    "Beyond 12 to 16 heads returns diminish.",
    "holds if",
    "if one table is enough: {Vaswani}, table 3, one run each: {eight} BLEU with 8 heads, {sixteen} with 16, {more} "
    "with 32. Per task it may be otherwise: N11.",
    lessons=[8],
    measure=beyond_sixteen,
    published=True,
)

N20 = Claim(
    "N20",
    "One head does reasonably well if its projection is much wider.",
    "not shown",
    "No measurement is given. A wider head is still one row of attention weights, and a row can only average (H1).",
    lessons=[1, 6],
)

N21 = Claim(
    "N21",
    "With h = T most heads become alike, and the overhead is severe.",
    "not shown",
    "No measurement is given. In lesson 6 the 8 heads of T = 8 solve four relations (N13), which takes several maps; "
    "what more heads cost is in M8 and M11.",
    lessons=[6, 8],
)
