"""Claims about what heads learn, each beneath the function that measures it. The real model is that of lesson 7."""

from functools import cache

import torch
from torch import Tensor

from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import close, numbers, seeded
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop
from mhsa.pretrained import FIRST, load_minilm, pattern_scores
from mhsa.train import recorded


def one_row_averages() -> Evidence:
    rows = (3 * numbers(100_000, 4)).softmax(-1)
    weaker = rows[:, [0, 3]].min(-1).values.max().item()  # the best of many rows gives each target half
    one, two = (recorded("map").result("relations, m=2", h) for h in (1, 2))
    deep = recorded("two layers").result("relations, m=2", 1)
    follows = weaker <= 0.5 and abs(one.mean - one.predicted) < 0.1 and min(two.mean, deep.mean) > 0.9
    return follows, dict(weaker=weaker, one=one.mean, predicted=one.predicted, two=two.mean, deep=deep.mean)


H1 = Claim(
    "H1",
    "A single head that needs two targets can only average them.",
    "holds if",
    "if one layer and a linear read-out are all there is. Of 100,000 random rows none gives both targets more than "
    "{weaker:.2f}. Trained on two relations (lesson 6), one head is right in {one:.2f}; one answer and one guess "
    "make {predicted:.2f}. Two heads: {two:.2f}. One head in each of two layers: {deep:.2f}.",
    lessons=[1, 6],
    measure=one_row_averages,
)


def own_distributions() -> Evidence:
    maps = seeded(MultiHeadAttention, 12, 3)(numbers(1, 5, 12), need_weights=True)[1][0]
    differ = all(not close(maps[i], maps[j]) for i in range(3) for j in range(i))
    return differ and close(maps.sum(-1), torch.ones(3, 5).double()), dict(maps=len(maps))


H2 = Claim(
    "H2",
    "h heads give each token h distributions over the sentence.",
    "holds",
    "{maps} heads, {maps} different maps, and every row sums to 1.",
    lessons=[2],
    measure=own_distributions,
)


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


H3 = Claim(
    "H3",
    "Heads must learn different things, since each has its own weights.",
    "does not hold",
    "Nothing forces it: two equal heads stay equal through 50 steps of training. And trained heads can be redundant: "
    "{Michel} removed a fifth (WMT) to two fifths (BERT) with little loss, {Voita} 38 of 48 encoder heads for 0.15 "
    "BLEU.",
    lessons=[2, 8],
    measure=twins_stay_twins,
)


def trained_together() -> Evidence:
    """Does the gradient of head 1 change when only head 0 changes?"""

    def gradient_of_head_1(factor: float) -> Tensor:
        loop, x = seeded(MultiHeadAttentionLoop, 6, 3), numbers(1, 4, 6)
        with torch.no_grad():
            loop.heads[0].w_v.weight *= factor
        (loop(x) - x.flip(1)).square().mean().backward()
        return loop.heads[1].w_q.weight.grad

    return not close(gradient_of_head_1(1), gradient_of_head_1(-2)), {}


H4 = Claim(
    "H4",
    "Each head is trained on its own.",
    "does not hold",
    "The loss sees their sum. Other values in head 0 change the gradient of head 1.",
    lessons=[2],
    measure=trained_together,
)


def shared_over_places() -> Evidence:
    x, order = numbers(1, 5, 12), [3, 1, 4, 0, 2]
    layers = [seeded(MultiHeadAttention, 12, h) for h in (1, 3)]
    return all(close(layer(x[:, order]), layer(x)[:, order]) for layer in layers), {}


H5 = Claim(
    "H5",
    "One transformation for all positions is a limit of the single head.",
    "does not hold",
    "It is no difference: with 1 head and with 3, tokens in another order give the same outputs in that order.",
    lessons=[1],
    measure=shared_over_places,
)


def numbers_mean_nothing() -> Evidence:
    loop, x, order = seeded(MultiHeadAttentionLoop, 6, 3), numbers(1, 4, 6), [2, 0, 1]
    expected = loop(x)
    blocks = loop.w_o.weight.detach().split(2, -1)
    with torch.no_grad():
        loop.w_o.weight.copy_(torch.cat([blocks[i] for i in order], -1))
    loop.heads = torch.nn.ModuleList(loop.heads[i] for i in order)
    return close(loop(x), expected), {}


H6 = Claim(
    "H6",
    "Head 1 looks at neighbours, head 2 at rare words, head 3 at grammar, heads 4 to 8 at abstract things.",
    "does not hold",
    "The number of a head means nothing: reorder heads and blocks of W_O, and the layer computes the same. "
    "Positional, syntactic and rare-word heads exist ({Voita}), but in no fixed place.",
    lessons=[7],
    measure=numbers_mean_nothing,
)


@cache
def minilm():
    return load_minilm()  # 0.5 s and 120 MB, for two claims


def heads_of_a_real_model() -> Evidence:
    encoding = minilm().encode(FIRST)
    scores = pattern_scores(encoding.tokens, torch.cat(encoding.weights, 1))
    most = {name: scores[name].max().item() for name in ("previous", "next", "first")}
    sinks = (scores["first"] > 0.5).sum().item()
    return most["previous"] > 0.9 and most["next"] > 0.5 and sinks > 72 / 4, most | dict(sinks=sinks)


H7 = Claim(
    "H7",
    "Some heads look at the token before, the next one, or the first.",
    "holds",
    "In the encoder of lesson 7 some head gives over 0.9 of its weight to the token before, some over half to the "
    "next, and more than a quarter of its 72 heads over half to the first.",
    lessons=[7],
    measure=heads_of_a_real_model,
)

H8 = Claim(
    "H8",
    "In BERT, head 8-10 finds direct objects, 7-6 possessives, 9-6 punctuation.",
    "does not hold",
    "Two of three. {Clark}, BERT-base, heads counted from 1: 8-10 direct object 86.8 % (a fixed offset 40.0), 7-6 "
    "possessive 80.5 (47.7), but 9-6 the object of a preposition, 76.3 (34.6).",
    lessons=[7],
)

H9 = Claim(
    "H9",
    "Head 2 of layer 4 finds direct objects, head 8 of layer 7 coreference over paragraphs.",
    "not shown",
    "No model is named. In BERT-base {Clark} find direct objects at 8-10, coreference at 5-4 (65.1 %).",
    lessons=[7],
)

H10 = Claim(
    "H10",
    "“Attention is not Explanation” shows what the layers of BERT do.",
    "does not hold",
    "{Jain} argue against reading weights as explanations, and do not look at BERT; {Wiegreffe} answer that it "
    "depends on the definition. What BERT's heads look at: {Clark}.",
    lessons=[7],
)

H11 = Claim(
    "H11",
    "Layers go from local patterns to abstract ones.",
    "holds if",
    "if read as a tendency: {LinTanFrank} find positional information in BERT's lower layers, hierarchical "
    "information in its higher ones.",
    lessons=[7],
)


def subspaces() -> Evidence:
    w_v = seeded(MultiHeadAttention, 64, 4).w_v.weight.detach()
    bases = [torch.linalg.qr(block.T).Q for block in w_v.split(16)]
    cosines = [torch.linalg.svdvals(bases[i].T @ bases[j]).max().item() for i in range(4) for j in range(i)]
    rank = torch.linalg.matrix_rank(w_v).item()
    return rank == 64 and min(cosines) > 0.5, dict(smallest=min(cosines), largest=max(cosines), rank=rank)


H12 = Claim(
    "H12",
    "Heads live in orthogonal subspaces and cannot disturb each other.",
    "does not hold",
    "The largest cosine between two of four random heads (16 of 64 dimensions) lies between {smallest:.2f} and "
    "{largest:.2f}; orthogonal is 0. W_O then adds all heads up in one space.",
    lessons=[2],
    measure=subspaces,
)


H13 = Claim(
    "H13",
    "The subspaces of the heads make up the whole space as a direct sum.",
    "holds if",
    "if W_V has full rank, as random weights have ({rank} of 64). It does not follow that they are orthogonal: H12.",
    lessons=[2],
    measure=subspaces,
)


def rank_of_scores() -> Evidence:
    x, ranks = numbers(16, 16), {}
    for h in (1, 4, 16):
        mha = seeded(MultiHeadAttention, 16, h)
        q, k = split_heads(mha.w_q(x), h), split_heads(mha.w_k(x), h)
        ranks[h] = torch.linalg.matrix_rank(q @ k.mT).max().item()
    return ranks == {1: 16, 4: 4, 16: 1}, dict(ranks=" / ".join(map(str, ranks.values())))


H14 = Claim(
    "H14",
    "h heads are h times as expressive, for free.",
    "does not hold",
    "The scores of a head have rank d_k at most, and d_k shrinks: rank {ranks} for h = 1, 4, 16 at d_model = 16.",
    lessons=[8],
    measure=rank_of_scores,
)

H15 = Claim(
    "H15",
    "Many heads help because they force diverse features, or strengthen gradients.",
    "not shown",
    "No measurement comes with it. {Liu} find 384 layers of one head no worse than 24 of 16 at like size, and put "
    "the advantage of many heads down mostly to stable training.",
    lessons=[6],
)


def heads_that_do_not_matter() -> Evidence:
    def left(heads: list[tuple[int, int]]) -> float:
        """Cosine of the sentence embeddings with and without these heads, the mean over five sentences."""
        embedding = minilm().encode(FIRST[:5], ablate=dict.fromkeys(heads, "zero")).embedding
        return (embedding * whole).sum(-1).mean().item()

    whole = minilm().encode(FIRST[:5]).embedding
    last_layer = left([(6, head) for head in range(12)])
    return min(left([(2, 9)]), left([(3, 11)])) > 0.999 and last_layer < 0.9, {}


H16 = Claim(
    "H16",
    "Removing heads costs quality.",
    "holds if",
    "if they matter; most do little alone. In lesson 7's encoder head 2.9 or 3.11 can go, and the sentence embedding "
    "keeps a cosine above 0.999. Without the twelve of layer 6 it falls below 0.9. {Michel}: alone, 8 of 96 encoder "
    "heads changed the result significantly.",
    lessons=[7, 8],
    measure=heads_that_do_not_matter,
)

H17 = Claim(
    "H17",
    "Removing heads hurts more than reducing the width.",
    "not shown",
    "No comparison is given. {Michel} removed many heads with little loss; yet cutting one layer's encoder-decoder "
    "attention to a single head cost 13.56 BLEU.",
    lessons=[8],
)

H18 = Claim(
    "H18",
    "Some heads follow open quotation marks, indentation or rhyme.",
    "not shown",
    "No model, data or paper is named. The scores of lesson 7 could be extended to measure it.",
    lessons=[7],
)

H19 = Claim(
    "H19",
    "Few heads are easier to interpret.",
    "not shown",
    "No measurement is given. A clear map is not yet an important one: H16.",
    lessons=[7],
)
