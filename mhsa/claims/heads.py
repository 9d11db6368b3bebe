"""Claims about what heads learn, each beneath the function that measures it. The real model is that of lesson 7."""

from functools import cache

import torch
from torch import Tensor

from mhsa.claims.claim import Claim, Evidence
from mhsa.claims.common import before_training, close, numbers, seeded
from mhsa.heads import split_heads
from mhsa.layers import MultiHeadAttention, MultiHeadAttentionLoop
from mhsa.pretrained import FIRST, head_similarity, load_minilm, pattern_scores
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


def heads_alike() -> Evidence:
    encoding = minilm().encode(FIRST)
    alike = {}
    for number, weights in enumerate(encoding.weights, 1):
        common = head_similarity(weights, real_tokens(encoding)).triu(1)
        alike.update({(number, i, j): common[i, j].item() for i in range(12) for j in range(i + 1, 12)})
    layer, i, j = max(alike, key=lambda pair: alike[pair])
    return alike[layer, i, j] > 0.75, dict(layer=layer, first=i, second=j, common=alike[layer, i, j])


def real_tokens(encoding) -> Tensor:
    lengths = torch.tensor([len(tokens) for tokens in encoding.tokens])
    return torch.arange(encoding.weights[0].shape[-1]) < lengths[:, None]


H3 = Claim(
    "H3",
    "Heads must learn different things, since each starts from random parameters of its own.",
    "does not hold",
    "Trained heads can be much alike: in lesson 7's encoder heads {layer}.{first} and {layer}.{second} have "
    "{common:.2f} of their attention in common. And many can go: {Michel} removed a fifth (WMT) to two fifths (BERT) "
    "with little loss, {Voita} 38 of 48 encoder heads for 0.15 BLEU.",
    lessons=[7, 8],
    measure=heads_alike,
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
    "In the encoder of lesson 7 some head gives over 0.9 of its attention to the token before, some over half to the "
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
    "{Jain} argue against reading attention weights as explanations, and do not look at BERT; {Wiegreffe} answer "
    "that it depends on the definition. What BERT's heads look at: {Clark}.",
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
    """Of trained heads: the largest cosine between two of a layer's, by layer, and the rank of all twelve together."""
    largest, ranks = [], []
    for layer in (m for m in minilm().modules() if isinstance(m, MultiHeadAttention)):
        w_v = layer.w_v.weight.detach().double()
        bases = torch.stack([torch.linalg.qr(head.T).Q for head in w_v.split(layer.d_v)])  # (h, d_model, d_v)
        cosines = torch.linalg.matrix_norm(bases.mT[:, None] @ bases, 2)  # (h, h)
        largest += cosines[~torch.eye(layer.num_heads, dtype=torch.bool)].view(layer.num_heads, -1).amax(1).tolist()
        ranks.append(torch.linalg.matrix_rank(w_v).item())
    follows = set(ranks) == {384} and min(largest) > 0.4
    return follows, dict(smallest=min(largest), largest=max(largest), rank=min(ranks), layers=len(ranks))


H12 = Claim(
    "H12",
    "Heads live in orthogonal subspaces and cannot disturb each other.",
    "does not hold",
    "In lesson 7's encoder each head's W_V has a neighbour of its layer at a largest cosine of {smallest:.2f} to "
    "{largest:.2f}; orthogonal is 0. W_O then adds all heads up in one space.",
    lessons=[2, 7],
    measure=subspaces,
)


H13 = Claim(
    "H13",
    "The subspaces of the heads make up the whole space as a direct sum, so that each vector splits in one way only.",
    "holds if",
    "if W_V has full rank, which is the same thing. It has in lesson 7's encoder: {rank} of 384 in all {layers} "
    "layers. It does not follow that the subspaces are orthogonal: H12.",
    lessons=[2, 7],
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
    "No measurement comes with it. {Liu} stabilise the training of 384 layers of one head, find them better than 24 "
    "layers of 16 at like size, and put the advantage of many heads down mostly to stable training.",
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
    "if many go at once, or the wrong ones. In lesson 7's encoder head 2.9 or 3.11 can go, and the sentence "
    "embedding keeps a cosine above 0.999; without the twelve of layer 6 it falls below 0.9. {Michel}: alone, 8 of "
    "96 encoder heads changed BLEU significantly, half of them for the better.",
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
    "Some heads follow open quotation marks, indentation or rhyme; others synonyms or moods.",
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

H20 = Claim(
    "H20",
    "Heads specialise without being told to.",
    "holds",
    "{Clark} find heads for objects, determiners and coreference in BERT, which was trained on hidden words alone.",
    lessons=[7],
)

H21 = Claim(
    "H21",
    "Several heads act as a regulariser, like an ensemble.",
    "not shown",
    "No measurement is given. Members of an ensemble are trained apart; heads are not (H4).",
    lessons=[2],
)


def mixing() -> Evidence:
    one, eight = (before_training(h)[0] for h in (1, 8))
    return abs(one - eight) < 0.05 and one > 0.75, dict(one=one, eight=eight)


H22 = Claim(
    "H22",
    "One head mixes everything, eight mix selectively, at several scales.",
    "not shown",
    "Before training there is no such difference: the rows of one head have {one:.2f} of the largest entropy, those "
    "of eight {eight:.2f}. For trained layers no measurement comes with the claim.",
    lessons=[8],
    measure=mixing,
)

H23 = Claim(
    "H23",
    "With 96 heads GPT-3 watches 96 distinct channels at a time.",
    "not shown",
    "A layer of it has 96 heads ({Brown}, table 2.1). That they are distinct nobody shows, and trained heads can be "
    "alike (H3).",
    lessons=[7],
)
