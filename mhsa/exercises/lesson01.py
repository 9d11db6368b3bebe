"""Lesson 1, one head: scores, scale, softmax, attention, and what an average cannot do."""

import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)


def dot_scores(q, k):
    """q (B, T_q, d_k), k (B, T_k, d_k) -> (B, T_q, T_k)."""
    return q @ k.mT


def as_one_tensor(scores):
    """Lists of tensors, and lists of lists, stacked: a loop may collect its scores in them."""
    if not isinstance(scores, list):
        return scores
    parts = [as_one_tensor(part) for part in scores]
    return torch.stack(parts) if all(isinstance(part, torch.Tensor) for part in parts) else parts


DOT_SCORES = Exercise(
    title="All scores at once",
    difficulty=1,
    minutes=3,
    reference=dot_scores,
    run=lambda answer, q, k: as_one_tensor(answer(q, k)),
    task="Write the scores: the dot product of each query with each key. Row = query, column = key. Do not scale them "
    "yet.",
    inputs=lambda rand: [
        [rand(B, T_q, d_k), rand(B, T_k, d_k)]
        for B, T_q, T_k, d_k in ((2, 3, 7, 5), (1, 5, 3, 2), (3, 1, 1, 7), (1, 7, 7, 7))
    ],
    hints=[
        "One score is the sum over d_k of query times key. A matrix product does this for all pairs.",
        "For `@`, the last axis of the left side must be as long as the second-last of the right side. Which one is "
        "d_k in k?",
        "`k.mT` swaps the last two axes and leaves the batch alone.",
    ],
    mistakes=[
        (
            lambda q, k: k @ q.mT,
            "Your rows are keys and your columns queries. Row = query: which tensor stands on the left of the product?",
        ),
        (
            lambda q, k: q @ k,
            "You multiply q by k as it lies. Write the two shapes side by side: the product sums over the last axis "
            "of q and the second-last of k. Is that d_k in both?",
        ),
        (
            lambda q, k: q @ k.transpose(0, 1),
            "You swap the first two axes of k, the batch and the keys. Sentences stay apart: which two must swap?",
        ),
        (
            lambda q, k: torch.einsum("bqd,bkd->qk", q, k),
            "The batch is gone: the scores of all sentences are added up. A letter that is not in the result is summed "
            "over.",
        ),
        (
            lambda q, k: q.mT @ k,
            "You turn q round, not k. Write the two shapes side by side: the product must sum over d_k and leave T_q "
            "and T_k.",
        ),
        (
            lambda q, k: q @ k.permute(2, 1, 0),
            "Did you use `.T`? It turns round all axes, and the batch goes to the end. Only the last two may swap.",
        ),
        (
            lambda q, k: (q * k).sum(-1),
            "You multiply number by number. That pairs query 0 with key 0 and query 1 with key 1 only. Each query must "
            "meet every key.",
        ),
        (
            lambda q, k: (q[:, :, None] * k[:, None]).mean(-1),
            "Each score is too small by the same factor, d_k. A dot product adds up; do you take a mean?",
        ),
        (
            lambda q, k: q @ k.mT / q.shape[-1] ** 0.5,
            "These are the scaled scores. The root belongs to the next step; here the plain products are asked.",
        ),
        (
            lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
            "You compare directions only (a cosine): each vector is divided by its length. A score keeps the lengths.",
        ),
        (
            lambda q, k: (q @ k.mT).softmax(-1),
            "Your rows sum to 1, so a softmax has run. It comes later; here the plain products are asked.",
        ),
    ],
    also_right=[
        lambda q, k: torch.einsum("bqd,bkd->bqk", q, k),
        lambda q, k: torch.bmm(q, k.transpose(1, 2)),
        lambda q, k: (q[:, :, None] * k[:, None]).sum(-1),
        lambda q, k: (k @ q.mT).mT,
        lambda q, k: [[[torch.dot(a, b) for b in keys] for a in queries] for queries, keys in zip(q, k)],
    ],
)


def scale_scores(scores, d_model, num_heads):
    """scores (B, h, T, T) of h heads, each with d_k = d_model / h -> the same shape."""
    return scores / (d_model // num_heads) ** 0.5


def scale_scores_given(scores, d_model, num_heads):
    return ...  # your line


SCALE_SCORES = Exercise(
    title="Divide by the right root",
    difficulty=1,
    minutes=3,
    extra=True,
    reference=scale_scores,
    given=scale_scores_given,
    task="Fill in the missing line: scale the scores of each head by its width, so that queries and keys of spread 1 "
    "give scores of spread 1.",
    inputs=lambda rand: [
        [rand(B, h, T, T), h * d_k, h] for B, h, T, d_k in ((2, 3, 5, 7), (1, 2, 3, 11), (3, 5, 1, 2), (1, 1, 2, 13))
    ],
    hints=[
        "How many products does one score add up?",
        "A head's query has d_k numbers, not d_model.",
        "The spread of a sum of n independent products grows with the root of n.",
    ],
    mistakes=[
        (
            lambda s, d, h: s / d**0.5,
            "You divide by √d_model. A score of one head adds d_k products, not d_model. With 512 and 8 heads "
            "queries and keys of spread 1 then give scores of spread 0.35 instead of 1.",
        ),
        (
            lambda s, d, h: s / (d // h),
            "You divide by d_k itself. The *spread* of a sum of d_k products does not grow that fast: look at the "
            "table of lesson 1, section 6.",
        ),
        (
            lambda s, d, h: s / (d // h) * 0.5,
            "You divide by d_k and by 2. Is a `* 0.5` or a `** 1/2` meant as a root? A power is `**`, and it binds "
            "more tightly than `/`.",
        ),
        (
            lambda s, d, h: s / (d**0.5 / h),
            "Your root covers d_model alone, and the division by the heads comes after it. Of which number is the "
            "root?",
        ),
        (
            lambda s, d, h: s / d**0.5 / h,
            "You divide by √d_model and once more by h. One division is enough: by the root of one head's width.",
        ),
        (
            lambda s, d, h: s * (d // h) ** 0.5,
            "You multiply by the root, so wide heads get even larger scores. In which direction must the spread "
            "change?",
        ),
        (
            lambda s, d, h: s / h**0.5,
            "You divide by √h. The number of heads is not what a score sums over: how wide is one head's query?",
        ),
        (
            lambda s, d, h: s / s.shape[-1] ** 0.5,
            "You divide by √T. The number of tokens does not enter a score: over which axis does the dot product sum?",
        ),
        (lambda s, d, h: s, "The scores come back unscaled. What do you divide them by?"),
    ],
    also_right=[
        lambda s, d_model, h: s * (h / d_model) ** 0.5,
        lambda s, d, h: s.div(torch.tensor(d / h).sqrt()),
    ],
)


def to_weights(scores):
    """scores (B, T_q, T_k) -> weights, the same shape."""
    return scores.softmax(-1)


def weights_by_hand(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


TO_WEIGHTS = Exercise(
    title="Scores to weights",
    difficulty=1,
    minutes=4,
    reference=to_weights,
    task="Turn scores into attention weights by the softmax: for each query, numbers over the keys that sum to 1. "
    "Scores may be large (±1000).",
    inputs=lambda rand: [[rand(2, 3, 5)], [rand(1, 5, 2)], [rand(3, 1, 1)], [rand(1, 3, 3)], [1000 * rand(2, 3, 2)]],
    hints=[
        "softmax: exponentials, divided by their sum.",
        "Which axis must sum to 1? Row = query.",
        "torch's softmax takes that axis as its argument, and is safe for large scores.",
    ],
    mistakes=[
        (
            lambda s: s.softmax(-2),
            "Your *columns* sum to 1: queries compete for a key. Take [[1, 2], [3, 4]]: over the keys, each row must "
            "sum to 1. Which axis holds the keys?",
        ),
        (
            lambda s: s.softmax(0),
            "Your numbers sum to 1 over the batch: sentences compete with each other. Which axis holds the keys of one "
            "query?",
        ),
        (
            lambda s: s.flatten(1).softmax(-1).view(s.shape),
            "The whole map sums to 1, so all queries share one budget. Each query needs its own.",
        ),
        (
            lambda s: s.exp() / s.exp().sum(),
            "You divide by the sum over everything, so all queries share one budget. Each query needs its own sum, "
            "over its keys.",
        ),
        (
            lambda s: s.exp() / s.exp().sum(-1),
            "The sum has lost an axis, so it meets the wrong one. `keepdim=True` keeps it as an axis of size 1.",
        ),
        (
            lambda s: (e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-1),
            "It is safe to subtract each row's largest score. But the sum has lost an axis, so it meets the wrong one: "
            "`keepdim=True` keeps it as an axis of size 1.",
        ),
        (
            lambda s: (s - s.amin(-1, keepdim=True)) / (s - s.amin(-1, keepdim=True)).sum(-1, keepdim=True),
            "You subtract the smallest score and divide by the sum. No number is negative then, but where are the "
            "exponentials?",
        ),
        (
            lambda s: s.exp() / s.exp().sum(-1, keepdim=True),
            "The formula is right, but exp(1000) is infinite, and inf / inf is NaN. A softmax sees only differences: "
            "what may you subtract?",
        ),
        (
            lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True),
            "You subtract the largest score of *all*. A row that lies far below it is then 0 / 0, which is NaN. The "
            "largest of which scores keeps every row safe?",
        ),
        (
            lambda s: (e := (s - s.mean(-1, keepdim=True)).exp()) / e.sum(-1, keepdim=True),
            "You subtract the mean of each row. The largest score may still lie far above it, and its exponential is "
            "infinite. What else of the row can you subtract?",
        ),
        (
            lambda s: s / s.sum(-1, keepdim=True),
            "You divide the scores by their sum. Negative scores then give negative weights. Which function makes "
            "every number positive first?",
        ),
        (lambda s: s.log_softmax(-1), "These are the logarithms of the weights. Are they positive? Do they sum to 1?"),
        (
            lambda s: s.sigmoid(),
            "Each score was squeezed on its own, so a row need not sum to 1. The keys of a query must compete.",
        ),
        (
            lambda s: F.one_hot(s.argmax(-1), s.shape[-1]).double(),
            "All weight goes to the largest score. That passes no gradient; the softmax leaves something to every key.",
        ),
    ],
    also_right=[
        weights_by_hand,
        lambda s: F.softmax(s, 2),
        torch.nn.Softmax(2),
        lambda s: s.log_softmax(2).exp(),
    ],
)


def attend(q, k, v):
    """q (B, T_q, d_k), k (B, T_k, d_k), v (B, T_k, d_v) -> (B, T_q, d_v)."""
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return weights @ v


def attend_by_loops(q, k, v):
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[2])
    for b in range(q.shape[0]):
        for i in range(q.shape[1]):
            scores = torch.stack([(q[b, i] * k[b, j]).sum() for j in range(k.shape[1])]) / q.shape[2] ** 0.5
            out[b, i] = sum(w * v[b, j] for j, w in enumerate(scores.softmax(0)))
    return out


ATTEND = Exercise(
    title="Attention",
    difficulty=2,
    minutes=8,
    reference=attend,
    task="Write scaled dot-product attention, without a mask. Return the output alone. Keys and values may differ in "
    "width, and scores may be large.",
    inputs=lambda rand: [
        *(
            [rand(B, T_q, d_k), rand(B, T_k, d_k), rand(B, T_k, d_v)]
            for B, T_q, T_k, d_k, d_v in ((2, 3, 7, 5, 11), (1, 5, 2, 3, 7), (3, 1, 1, 5, 2), (2, 5, 5, 5, 3))
        ),
        [100 * rand(2, 3, 5), 100 * rand(2, 7, 5), rand(2, 7, 2)],
    ],
    hints=[
        "Four steps: scores, scale, softmax, mix. The first three are your exercises above.",
        "The mix is a sum of values, each times its weight: one matrix product.",
        "Take d_k from the shape of q. The softmax runs over the keys, the last axis of the scores.",
    ],
    mistakes=[
        (
            lambda q, k, v: (q @ k.mT).softmax(-1) @ v,
            "The scores are not scaled. What does lesson 1 divide them by, before the softmax?",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-2) @ v,
            "The softmax runs over the queries. Then the weights of one query do not sum to 1, and its output is no "
            "average.",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(0) @ v,
            "The softmax runs over the batch. The weights of one query must sum to 1 over its keys.",
        ),
        (
            lambda q, k, v: (q @ k.mT / v.shape[-1] ** 0.5).softmax(-1) @ v,
            "You scale by the width of the values. A score is a product of query and key: what is *their* width?",
        ),
        (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            "A causal mask has run: the first query reads the first key alone. Here every query reads every key.",
        ),
        (lambda q, k, v: (q @ k.mT / q.shape[-1]).softmax(-1) @ v, "You divide by d_k. Is there a root missing?"),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] / 2).softmax(-1) @ v,
            "You divide by d_k and by 2. Is that a `** 1/2`? `**` binds more tightly than `/`.",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[1] ** 0.5).softmax(-1) @ v,
            "You scale by √T_q, the number of queries. A score sums over d_k: from which axis do you read it?",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).softmax(-1) @ v,
            "The softmax has run twice. The first one gives weights already; a second one makes them nearly equal.",
        ),
        (
            lambda q, k, v: (e := (q @ k.mT / q.shape[-1] ** 0.5).exp()) @ v / e.sum(-1, keepdim=True),
            "The formula is right, but a large exponential is infinite, and inf / inf is NaN. What may you subtract "
            "from a row of scores first? torch's softmax does it.",
        ),
        (
            lambda q, k, v: (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1) @ v,
            "You multiply the scores by √d_k, which spreads them further. It should bring the spread back to 1.",
        ),
        (
            lambda q, k, v: (q @ k.mT).softmax(-1) / q.shape[-1] ** 0.5 @ v,
            "You scale *after* the softmax. Your weights then sum to 1/√d_k. What is the order of the four steps?",
        ),
        (
            lambda q, k, v: q @ k.mT / q.shape[-1] ** 0.5 @ v,
            "There is no softmax: you mix with the scaled scores themselves, which may be negative and do not sum to "
            "1.",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1),
            "These are the weights. One step is missing: what do they weigh?",
        ),
        (
            lambda q, k, v: (attend(q, k, v), (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)),
            "Output and weights come back. Only the output is asked.",
        ),
        (
            lambda q, k, v: (q @ k.mT / k.shape[-2] ** 0.5).softmax(-1) @ v,
            "You scale by √T_k, the number of keys. A score sums over d_k: from which axis do you read it?",
        ),
        (
            lambda q, k, v: (q @ v.mT / q.shape[-1] ** 0.5).softmax(-1) @ v,
            "You compare queries with values. What is a key for?",
        ),
        (
            lambda q, k, v: (k @ q.mT / q.shape[-1] ** 0.5).softmax(-1) @ v,
            "The rows of your map are keys. Row = query: which tensor stands on the left?",
        ),
        (
            lambda q, k, v: v @ (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1),
            "The values stand on the wrong side. Write the shapes side by side: the sum runs over the keys.",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).mT @ v,
            "You turn the weights round before the mix. A row of weights belongs to a query: it weighs the rows of v.",
        ),
        (
            lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).detach() @ v,
            "The values are right, but the weights are cut off from the gradient: q and k would never learn.",
        ),
    ],
    also_right=[
        attend_by_loops,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: ((k @ q.mT) * k.shape[-1] ** -0.5).softmax(1).mT @ v,
    ],
)


def attention_shapes():
    q, k, v = torch.zeros(2, 5, 3), torch.zeros(2, 7, 3), torch.zeros(2, 7, 11)
    weights = (q @ k.mT).softmax(-1)
    return tuple((weights @ v).shape)


ATTENTION_SHAPES = Exercise(
    title="Predict a shape",
    difficulty=1,
    minutes=2,
    extra=True,
    reference=attention_shapes,
    task="q is (2, 5, 3), k is (2, 7, 3), v is (2, 7, 11). What is the shape of the output of attention? Write a "
    "tuple.",
    hints=[
        "The weights have a row for each query and a column for each key.",
        "The output has a row for each query. How wide is what it averages?",
    ],
    mistakes=[
        ((2, 5, 7), "That is the shape of the weights. They still have to be multiplied by v."),
        ((2, 7, 11), "That is the shape of v. An output row belongs to a query: how many queries are there?"),
        (
            (2, 5, 3),
            "That is the shape of q. The number of rows is right, but an output is made of values: how wide are they?",
        ),
        ((2, 7, 5), "Row = query, column = key: that is the map of weights, turned round, and not yet the output."),
        ((5, 11), "The last two axes are right. What happened to the batch?"),
    ],
    also_right=[
        [2, 5, 11],
        torch.Size([2, 5, 11]),
    ],
)


def reachable():
    options, values = (0, 3, 5, 6, 9), (2, 4, 6)
    return tuple(x for x in options if min(values) < x < max(values))  # every weight is positive and below 1


REACHABLE = Exercise(
    title="What can an average reach?",
    difficulty=2,
    minutes=4,
    reference=reachable,
    task="A query sees three values, one number each: 2, 4 and 6. Which of 0, 3, 5, 6, 9 can be its output in *exact "
    "arithmetic*, with finite scores and no mask? Write a tuple, smallest first.",
    hints=[
        "In exact arithmetic the weights are positive and sum to 1. How small, how large can an average of 2, 4 and "
        "6 be?",
        "What would the weights have to be to give the largest value? Can a weight be 0 in exact arithmetic?",
    ],
    mistakes=[
        (
            (3, 5, 6),
            "Most are right. For one of them all weight must lie on a single key. A computer may round the other "
            "weights to 0; can they be 0 in exact arithmetic?",
        ),
        ((3, 5, 6, 9), "One of yours is larger than every value. Can an average be?"),
        (
            (0, 3, 5, 6, 9),
            "Weights are positive and sum to 1, so the output is an average. Which of these lie outside 2 to 6?",
        ),
        (
            (0, 3, 5, 6),
            "A value can be weighted down, but weights sum to 1: an output of 0 is below every value. Is that an "
            "average?",
        ),
        (
            (2, 3, 5, 6),
            "2 is not among the five numbers asked, and the largest value has the same flaw: all weight would lie on a "
            "single key. Can the other weights be 0 in exact arithmetic?",
        ),
        ((0, 3, 5), "One of yours is smaller than every value. Can an average be?"),
        ((3, 5, 9), "Two of these are averages; the third is larger than every value. Can an average be?"),
        ((6,), "A query need not pick one value: it mixes all three. Which mixtures of 2, 4 and 6 are on the list?"),
        ((5, 3), "These are the right ones. Write them smallest first."),
        (
            (3, 6),
            "One of yours needs all weight on a single key, and one is missing. Can the other weights be 0 in exact "
            "arithmetic?",
        ),
        ((3,), "3 is an average of 2 and 4. Are there other pairs to average?"),
        ((5,), "5 is an average of 4 and 6. Are there other pairs to average?"),
    ],
    also_right=[
        [3, 5],
        torch.tensor([3, 5]),
    ],
)
