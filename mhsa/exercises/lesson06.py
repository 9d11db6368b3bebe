"""Lesson 6, one head against many: the task, its right maps, what one head hands over, and what a head has learned."""

import math

import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)


def tokens_back(tokens, m):
    """tokens (B, T), whole numbers -> (B, T, m): on the last axis the tokens 1 place back, 2 places back, …"""
    return torch.stack([tokens.roll(offset, dims=1) for offset in range(1, m + 1)], -1)


def number_tokens(B, T):
    return torch.arange(B * T).reshape(B, T)


TOKENS_BACK = Exercise(
    title="Make the task",
    difficulty=2,
    minutes=6,
    extra=True,
    reference=tokens_back,
    task="For every token, give the tokens that stand 1, 2, …, m places before it in the same sentence. Before the "
    "first token comes the last one: the sentence is a ring.",
    inputs=[[number_tokens(2, 7), 3], [number_tokens(1, 5), 2], [number_tokens(3, 8), 1], [number_tokens(5, 3), 2]],
    fresh=[[number_tokens(3, 11), 4], [number_tokens(2, 6), 5]],
    hints=[
        "`torch.roll` moves a tensor round in a ring. Along which axis, and which way?",
        "Rolling by 1 puts the token of place 0 at place 1: there it is the token one place back.",
        "One rolled tensor for each offset, then `torch.stack`.",
    ],
    mistakes=[
        (
            lambda x, m: torch.stack([x.roll(-i, 1) for i in range(1, m + 1)], -1),
            "You look forward. Which way must a sentence roll so that place 3 shows what stood at place 2?",
        ),
        (
            lambda x, m: torch.stack([x.roll(i) for i in range(1, m + 1)], -1),
            "Without `dims`, `roll` makes one long ring of all sentences: the first token of a sentence then gets the "
            "last one of the sentence before.",
        ),
        (
            lambda x, m: torch.stack([x.roll(i, 0) for i in range(1, m + 1)], -1),
            "You roll the batch: every token comes from another sentence. Axis 0 is B; which one is T?",
        ),
        (
            lambda x, m: torch.stack([x.roll(i, 1) for i in range(m)], -1),
            "Your first answer is the token itself: the offsets start at 1.",
        ),
        (
            lambda x, m: torch.stack([x.roll(i, 1) for i in range(1, m + 1)], 1),
            "The right tokens, on the wrong axis: the m answers of one token belong on the last axis.",
        ),
        (
            lambda x, m: torch.stack([x.roll(i, 1) for i in range(1, m + 1)]),
            "The right tokens, on the wrong axis: `stack` puts the new one first unless told otherwise.",
        ),
        (
            lambda x, m: [x.roll(i, 1) for i in range(1, m + 1)],
            "You return a list of m tensors. Asked is one tensor: put them side by side on a new axis, the last.",
        ),
        (lambda x, m: torch.stack([x.roll(m, 1)] * m, -1), "All your answers are the token m places back."),
        (
            lambda x, m: torch.stack([x.roll(i, 1) for i in range(m, 0, -1)], -1),
            "All of the right tokens, in the opposite order: the one 1 place back comes first.",
        ),
        (
            lambda x, m: x[..., None][..., :0] if m == 1 else torch.stack([x.roll(i, 1) for i in range(1, m)], -1),
            "One answer a token is missing, the last: `range(1, m)` ends before m.",
        ),
        (
            lambda x, m: torch.stack([F.pad(x[:, :-i], (i, 0)) for i in range(1, m + 1)], -1),
            "The first tokens have nothing before them in yours. The sentence is a ring: before the first comes the "
            "last.",
        ),
    ],
    also_right=[
        lambda x, m: torch.stack([torch.cat([x[:, -i:], x[:, :-i]], 1) for i in range(1, m + 1)], 2),
        lambda x, m: x[:, (torch.arange(x.shape[1])[:, None] - torch.arange(m) - 1) % x.shape[1]],
    ],
)


def ideal_map(T, offset):
    """Whole numbers, offset < T -> weights (T, T), rows are queries: query i reads key i - offset alone, in a ring."""
    right_key = (torch.arange(T) - offset) % T
    return torch.eye(T)[right_key]  # row i of the result: row right_key[i] of eye


IDEAL_MAP = Exercise(
    title="The map of a perfect head",
    difficulty=2,
    minutes=5,
    reference=ideal_map,
    task="A head is to answer one question: which token stands `offset` places before this one, in a ring? Write down "
    "the attention map that does it without error.",
    inputs=[[8, 1], [5, 2], [7, 3], [3, 1]],
    fresh=[[11, 4], [6, 2], [9, 8]],
    hints=["Each row holds a single 1. In which column, for query i?", "`%` takes a negative place into the ring."],
    mistakes=[
        (
            lambda T, n: torch.eye(T).roll(n, 1),
            "This head looks forward. Or are your rows the keys? Rows are queries: query 3 with offset 1 reads key 2.",
        ),
        (
            lambda T, n: torch.diag(torch.ones(T - n), -n),
            "Your first rows are empty, and a row of weights sums to 1. The sentence is a ring: whom does query 0 "
            "read?",
        ),
        (
            lambda T, n: F.one_hot((torch.arange(T) - n).clamp(0), T).double(),
            "Your first queries all read key 0. The sentence is a ring: before key 0 comes the last one.",
        ),
        (lambda T, n: torch.eye(T), "Here every token reads itself. Where does `offset` come in?"),
        (lambda T, n: torch.eye(T).roll(1 - n, 1), "One place too near: offset 1 is the token before, not the token."),
        (
            lambda T, n: torch.eye(T).roll(-1 - n, 1),
            "One place too far: offset 1 is the token before, not the next one.",
        ),
        (
            lambda T, n: torch.eye(T).roll(-n, 1).bool(),
            "The right map, but of Booleans. Weights are numbers: multiply it by 1.0.",
        ),
        (
            lambda T, n: sum(torch.eye(T).roll(-i, 1) for i in range(1, n + 1)) / n,
            "You share the weight among all offsets up to this one. A perfect head reads one key.",
        ),
        (
            lambda T, n: torch.eye(T)[(torch.arange(T) - n).abs()],
            "Your first queries read forward: a negative place is not made positive, it is counted from the end.",
        ),
        (
            lambda T, n: torch.full((T, T), 1 / T),
            "An even row asks nobody in particular. A perfect head puts its whole weight on one key.",
        ),
        (
            lambda T, n: torch.ones(T, T).tril(-1).triu(-n) / n,
            "Yours reads all of the last `offset` tokens. Asked is the one that stands exactly there.",
        ),
    ],
    also_right=[
        lambda T, n: torch.eye(T).roll(-n, 1),
        lambda T, n: torch.eye(T).roll(n, 0),
        lambda T, n: torch.tensor([[float((q - k - n) % T == 0) for k in range(T)] for q in range(T)]),
    ],
)


def even_blend(v, targets):
    """v (T, d_v); targets (T, m), the right keys of every query, whole numbers -> (T, d_v)."""
    return v[targets].mean(1)


EVEN_BLEND = Exercise(
    title="What one head hands over",
    difficulty=2,
    minutes=5,
    reference=even_blend,
    task="A single head has m right keys for every query, and one row of weights. It shares the weight evenly among "
    "the m keys. What does it hand over for each query?",
    inputs=lambda rand: [
        [rand(7, 3), torch.tensor([[6, 5], [0, 6], [1, 0], [2, 1], [3, 2], [4, 3], [5, 4]])],
        [rand(5, 2), torch.tensor([[4, 3, 2], [0, 4, 3], [1, 0, 4], [2, 1, 0], [3, 2, 1]])],
        [rand(3, 11), torch.tensor([[2], [0], [1]])],
    ],
    hints=["`v[targets]` has three axes. Which are they?", "A weight of 1/m for each of m vectors: which axis goes?"],
    mistakes=[
        (lambda v, t: v[t].sum(1), "Your weights are 1 each, so a row sums to m. A softmax leaves 1 for all of them."),
        (
            lambda v, t: v[t].flatten(1),
            "That is what m heads hand over: every answer in a place of its own. One head must put them into one "
            "vector.",
        ),
        (lambda v, t: v[t[:, 0]], "This head reads its first key alone. It shares its weight among all m."),
        (lambda v, t: v[t].mean(2), "You average the columns of each vector. The weighted sum runs over the *keys*."),
        (
            lambda v, t: v.mean(0).expand(len(v), -1),
            "Yours reads every token of the sentence. Only the m right keys get weight.",
        ),
        (lambda v, t: v[t].amax(1), "Attention adds vectors up, by weight. It cannot pick the larger of each column."),
        (
            lambda v, t: F.one_hot(t, len(v)).double().mean(1).mT @ v,
            "Your matrix of weights is turned round: a row is a query, and holds its m right keys.",
        ),
        (lambda v, t: v[t].sum(1) / len(t), "You divide by T. How many keys share the weight of a query?"),
        (
            lambda v, t: v[t].sum(1) / t.shape[1] ** 0.5,
            "You divide by the root of m. m equal weights sum to 1: so 1/m.",
        ),
        (
            lambda v, t: v[t.double().mean(1).long()],
            "You average the *places*, and read one key between them. Look up the values first, then average.",
        ),
    ],
    also_right=[
        lambda v, t: sum(v[t[:, i]] for i in range(t.shape[1])) / t.shape[1],
        lambda v, t: F.one_hot(t, len(v)).double().mean(1) @ v,
    ],
)


def relation_of_heads(weights, ideals):
    """weights (h, T_q, T_k); ideals (m, T_q, T_k), a single 1 in every row -> h whole numbers from 0 to m - 1."""
    on_target = torch.einsum("hqk,mqk->hm", weights, ideals)
    return on_target.argmax(1)


def random_maps(rand, h, m, T_q, T_k):
    right = rand(m, T_q, T_k).argmax(-1)
    return [(rand(h, T_q, T_k) * 2).softmax(-1), F.one_hot(right, T_k).double()]


RELATION_OF_HEADS = Exercise(
    title="Which head took which relation?",
    difficulty=3,
    minutes=8,
    reference=relation_of_heads,
    task="Every relation has its ideal map. A head's relation is the one whose right keys get most of the head's "
    "weight, all queries together. Name it for every head.",
    inputs=lambda rand: [
        random_maps(rand, 5, 2, 3, 7),
        random_maps(rand, 1, 3, 2, 4),
        random_maps(rand, 2, 5, 1, 11),
        random_maps(rand, 7, 3, 5, 8),
    ],
    hints=[
        "An ideal map times a head's map keeps the weights on the right keys. Add them up.",
        "You need a table (h, m): one row a head, one column a relation. `einsum`, or `[:, None]` and a product.",
    ],
    mistakes=[
        (
            lambda w, i: torch.einsum("hqk,mqk->hm", w, i).argmax(0),
            "You name a head for every relation. Asked is a relation for every head: h numbers.",
        ),
        (
            lambda w, i: torch.einsum("hqk,mqk->hm", w, i).argmin(1),
            "That is the relation which each head looks at *least*.",
        ),
        (
            lambda w, i: (w[:, None] * i).amax((2, 3)).argmax(1),
            "You go by the largest single weight. One sharp row does not make a relation: add up all queries.",
        ),
        (
            lambda w, i: (F.one_hot(w.argmax(-1), w.shape[-1])[:, None] * i).sum((2, 3)).argmax(1),
            "You count queries whose largest weight is on the right key, so a head that shares its weight counts as "
            "nothing. Add up the weights themselves.",
        ),
        (
            lambda w, i: torch.einsum("hqk,mqk->hm", w, i),
            "The table is right. Now name the relation of each head: one whole number a row.",
        ),
        (
            lambda w, i: torch.einsum("hqk,mqk->hm", w, i).argmax(1) + 1,
            "Each number is one too large: relations count from 0 here.",
        ),
        (
            lambda w, i: torch.einsum("hqk,mqk->hm", w, i).amax(1),
            "That is how much weight the relation gets. Asked is which relation it is.",
        ),
        (
            lambda w, i: (w[:, None] * i).sum((0, 2, 3)).argmax().expand(len(w)),
            "You added up the heads, too, and all got the same answer. Every head has one of its own.",
        ),
    ],
    also_right=[
        lambda w, i: (w[:, None] * i).sum((-2, -1)).max(1).indices,
        lambda w, i: [int((head * i).sum((1, 2)).argmax()) for head in w],
        lambda w, i: ((w[:, None] - i) ** 2).sum((2, 3)).argmin(1),
    ],
)


def heads_needed(m, V, accuracy):
    """m relations, V tokens to guess from, an accuracy up to 1 -> the smallest number of heads, a whole number."""
    predicted = [(h + (m - h) / V) / m for h in range(1, m + 1)]
    return 1 + sum(p < accuracy for p in predicted)


HEADS_NEEDED = Exercise(
    title="Turn the prediction round",
    difficulty=3,
    minutes=6,
    extra=True,
    reference=heads_needed,
    task="The prediction says: one relation a head, the rest is guessed among V tokens. How many heads does it ask for "
    "to reach a given accuracy?",
    inputs=[
        [2, 8, 0.9],
        [5, 2, 0.75],
        [8, 16, 0.5],
        [4, 8, 0.7],
        [3, 8, 0.1],
        [2, 8, 0.6],
        [7, 11, 1.0],
        [2, 8, 0.5625],
    ],
    fresh=[[6, 5, 0.8], [9, 3, 0.45], [3, 32, 0.7], [10, 4, 0.93], [5, 7, 0.2]],
    hints=[
        "Write the prediction for h heads first; h = m is always enough.",
        "A guess among V tokens is right one time in V. How often, over the m - h relations that have no head?",
        "Try h = 1, 2, … until it is enough.",
    ],
    mistakes=[
        (
            lambda m, V, a: next(h for h in range(1, m + 1) if h / m >= a),
            "You let a relation without a head count as wrong every time. It is guessed, and a guess is right one "
            "time in V.",
        ),
        (
            lambda m, V, a: next((h for h in range(1, m + 1) if (h + (m - h) / V) / m > a), m),
            "You ask for more than the given accuracy. To reach it exactly is enough.",
        ),
        (lambda m, V, a: m, "m heads are always enough. Asked is the smallest number that is."),
        (
            lambda m, V, a: max([h for h in range(1, m + 1) if (h + (m - h) / V) / m < a], default=1),
            "Your number is the last that is *not* enough.",
        ),
        (
            lambda m, V, a: next(h for h in range(1, m + 1) if (h + (m - h) / m) / m >= a),
            "You guess among the m relations. The answer to guess is a *token*: one of V.",
        ),
        (
            lambda m, V, a: next(h for h in range(0, m + 1) if (h + (m - h) / V) / m >= a),
            "With no head at all you would be guessing everything. A layer has at least one.",
        ),
        (
            lambda m, V, a: (m * a - m / V) / (1 - 1 / V),
            "The formula is turned round rightly, but heads come in whole numbers, and there is at least one.",
        ),
        (
            lambda m, V, a: max(1, int((m * a - m / V) / (1 - 1 / V))),
            "You round down, and then it is not enough any more.",
        ),
        (
            lambda m, V, a: int((m * a - m / V) / (1 - 1 / V)),
            "Rounded down it is not enough any more, and for a low accuracy yours asks for no head at all.",
        ),
        (
            lambda m, V, a: math.floor(round((m * a - m / V) / (1 - 1 / V), 9)) + 1,
            "One more than rounded down is one too many where the accuracy is reached exactly.",
        ),
    ],
    also_right=[
        lambda m, V, a: next(h for h in range(1, m + 1) if (h + (m - h) / V) / m >= a),
        lambda m, V, a: max(1, math.ceil((m * a - m / V) / (1 - 1 / V))),
    ],
)
