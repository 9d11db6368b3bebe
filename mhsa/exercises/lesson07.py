"""Lesson 7, heads in a real model: scores of a map, sub-words, and the output without a head."""

import math

import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of
from mhsa.heads import merge_heads

quiz = quiz_of(__name__)


def measured(answer, weights):
    """A score of a map is not trained through: no gradient is asked, and numbers in a list or a tensor are right."""
    return answer(weights.detach())


def sink_share(weights):
    """weights (B, h, T, T), rows = queries -> (h,): the mean weight that each head gives to the first token."""
    return weights[..., 0].mean((0, 2))


SINK_SHARE = Exercise(
    title="How much goes to the first token",
    difficulty=2,
    minutes=5,
    reference=sink_share,
    task="One score a head, over all sentences and all queries. There is no padding.",
    inputs=lambda rand: [
        [rand(2, 3, 5, 5).softmax(-1)],
        [rand(1, 7, 3, 3).softmax(-1)],
        [rand(3, 1, 2, 2).softmax(-1)],
    ],
    run=measured,
    hints=[
        "The first token as a *key* is a column. Which axis are the keys?",
        "`weights[..., 0]` has the shape (B, h, T). Which axes must go?",
    ],
    mistakes=[
        (
            lambda w: w[:, :, 0].mean((0, 2)),
            "You took the first *row*: what [CLS] gives. Its mean is 1/T for every head. Asked is what [CLS] gets.",
        ),
        (lambda w: w[..., 0].sum((0, 2)), "You added up. A share lies between 0 and 1: take a mean."),
        (lambda w: w[..., 0].sum(2).mean(0), "You added the queries up. A share lies between 0 and 1: average them."),
        (lambda w: w[..., 0].mean(2), "That is one number for each sentence and head. Average the sentences too."),
        (lambda w: w[..., 0].mean((1, 2)), "You averaged the heads away and kept the sentences. Which axis is h?"),
        (lambda w: w[..., 0].mean((0, 1)), "You kept the queries and averaged the heads. Which axis is h?"),
        (lambda w: w[..., 0].mean(), "That is one number for all heads. An average over heads hides who does what."),
        (lambda w: w[..., -1].mean((0, 2)), "That is the *last* token, [SEP]. The first one is number 0."),
        (lambda w: w[..., 0].amax((0, 2)), "That is the largest weight. Asked is the mean."),
        (lambda w: w[:, :, 1:, 0].mean((0, 2)), "You left the first query out. Here every query counts."),
    ],
    also_right=[
        lambda w: w.transpose(0, 1)[..., 0].flatten(1).mean(1),
        lambda w: w.mean(2)[:, :, 0].mean(0),
    ],
)


def previous_share(weights):
    """weights (B, h, T, T), T of at least 2 -> (h,): the mean weight on the token before, where there is one."""
    return weights.diagonal(-1, 2, 3).mean((0, 2))


PREVIOUS_SHARE = Exercise(
    title="Find a previous-token head",
    difficulty=3,
    minutes=7,
    reference=previous_share,
    task="Query t has the key t - 1 before it. The first query has none: it does not count.",
    inputs=lambda rand: [
        [rand(2, 3, 5, 5).softmax(-1)],
        [rand(1, 7, 3, 3).softmax(-1)],
        [rand(3, 1, 2, 2).softmax(-1)],
    ],
    run=measured,
    hints=[
        "Row 1, column 0; row 2, column 1; … Which line of the map is that?",
        "`diagonal(offset, dim1, dim2)` takes it: which sign has the offset below the main diagonal?",
        "There are T - 1 such places. The mean must divide by that.",
    ],
    mistakes=[
        (
            lambda w: w.diagonal(1, 2, 3).mean((0, 2)),
            "That line lies above the main diagonal: row t, column t + 1. It is the *next* token.",
        ),
        (lambda w: w.diagonal(0, 2, 3).mean((0, 2)), "That is the main diagonal: each token reads itself."),
        (
            lambda w: w.diagonal(-1, 2, 3).sum(2).mean(0) / w.shape[2],
            "The first query has no token before it, and you divide by all T queries. How many do count?",
        ),
        (lambda w: w.diagonal(-1, 2, 3).sum((0, 2)), "You added up. A share lies between 0 and 1: take a mean."),
        (
            lambda w: w.diagonal(-1, 2, 3).mean(2),
            "That is one number for each sentence and head. Average the sentences too.",
        ),
        (lambda w: w.diagonal(-1, 2, 3).mean((1, 2)), "You averaged the heads away. Which axis is h?"),
        (
            lambda w: w.diagonal(-1).mean((0, 2)),
            "`diagonal(-1)` runs over the first two axes, batch and heads. Name the axes of queries and keys.",
        ),
        (
            lambda w: w.diagonal(-1).mean((0, 1)),
            "Without dim1 and dim2, `diagonal` takes the batch for queries and the heads for keys. Name the axes.",
        ),
        (
            lambda w: w[:, :, range(w.shape[2]), range(-1, w.shape[2] - 1)].mean((0, 2)),
            "At i = 0, i - 1 is -1, and that is the *last* key. The first query does not count.",
        ),
        (
            lambda w: w[:, :, range(w.shape[2]), [0, *range(w.shape[2] - 1)]].mean((0, 2)),
            "You let query 0 read key 0. It has no token before it: it does not count.",
        ),
        (
            lambda w: w.diagonal(-1, 2, 3)[..., 1:].mean((0, 2)),
            "You left out query 1. It has a token before it, key 0.",
        ),
        (
            lambda w: (w.argmax(-1)[..., 1:] == torch.arange(w.shape[2] - 1)).double().mean((0, 2)),
            "You count how often the token before gets the *most*. Asked is how much it gets.",
        ),
    ],
    also_right=[
        lambda w: torch.stack([w[:, :, t, t - 1].mean(0) for t in range(1, w.shape[2])]).mean(0),
        lambda w: (w * torch.eye(w.shape[2]).roll(-1, 1).tril()).sum((2, 3)).mean(0) / (w.shape[2] - 1),
    ],
)


def two_ahead():
    return 2, 4  # the tests find it in the model


TWO_AHEAD = Exercise(
    title="Find a head by yourself",
    difficulty=3,
    minutes=7,
    reference=two_ahead,
    task="Over the 20 sentences of `FIRST`: which of the 72 heads gives most of its weight to the token *two places "
    "after* the query, on average? `first.weights`, one (B, h, T, T) a layer, lies ready; rows of filling may count. "
    "Name it as in the lesson, but as two numbers: layer, head.",
    hints=[
        "`maps` of section 3 holds all 72 heads, (B, 72, T, T). Which line of a map lies two places after the query?",
        "`maps.diagonal(2, 2, 3)`, then a mean for each head, then `argmax`.",
        "From the number of a head to its name: `name` of section 3. Layers count from 1.",
    ],
    mistakes=[
        ((1, 4), "Which layer is `first.weights[0]`? In names, layers count from 1."),
        ((4, 2), "Layer and head have changed places."),
        ((2, 8), "That head looks *one* place ahead."),
        ((1, 2), "That head looks one place *back*."),
        ((1, 5), "That head looks two places *back*: the other side of the main diagonal."),
        (16, "That is the head's number among the 72. In which layer is it, and which head there?"),
        ("2.4", "Two numbers are asked, layer and head, and not a text."),
    ],
    also_right=[[2, 4], torch.tensor([2, 4])],
)


def relative_entropy(weights):
    """weights (..., T), each row sums to 1, all above 0, T of at least 2 -> (...): 0 for a sharp row, 1 for an even."""
    return -(weights * weights.log()).sum(-1) / torch.tensor(float(weights.shape[-1])).log()


def plain_entropy(w):
    return -(w * w.log()).sum(-1)


RELATIVE_ENTROPY = Exercise(
    title="Broad or sharp",
    difficulty=2,
    minutes=5,
    extra=True,
    reference=relative_entropy,
    task="The entropy of a row is $-\\sum_k w_k \\log w_k$. Divide it by its maximum, which an even row has.",
    inputs=lambda rand: [[rand(2, 3, 5)], [rand(1, 2, 7)], [rand(2, 1, 3)], [torch.zeros(1, 1, 2).double()]],
    run=lambda answer, scores: answer(scores.softmax(-1)),  # rows stay rows when a gradient moves them
    hints=["An even row over T keys has the weights 1/T. What is its entropy?", "It is log T. What is T here?"],
    mistakes=[
        (
            plain_entropy,
            "That is the entropy. Its maximum grows with T, so sentences of other lengths could not be "
            "compared. Divide by the maximum.",
        ),
        (lambda w: plain_entropy(w) / torch.tensor(2.0).log(), "That is in bits. Divide by the maximum, not by log 2."),
        (
            lambda w: relative_entropy(w) / torch.tensor(2.0).log(),
            "You use two logarithms with different bases. Take the same one for the entropy and for its maximum.",
        ),
        (lambda w: relative_entropy(w.softmax(-1)), "The weights come from a softmax already. Another changes them."),
        (
            lambda w: -plain_entropy(w) / torch.tensor(float(w.shape[-1])).log(),
            "The sign: a logarithm of a weight is negative, and an entropy is not.",
        ),
        (
            lambda w: 1 - plain_entropy(w) / torch.tensor(float(w.shape[-1])).log(),
            "Yours is 1 for a sharp row and 0 for an even one: turned round.",
        ),
        (lambda w: plain_entropy(w) / w.shape[-1], "You divide by T. An even row has another entropy: work it out."),
        (
            lambda w: plain_entropy(w) / plain_entropy(w).max(),
            "You divide by the largest entropy that occurs. The maximum is what an *even* row would have.",
        ),
        (lambda w: -w.log().mean(-1), "Each logarithm counts as much as its weight: multiply by it, then add."),
        (
            lambda w: plain_entropy(w) / torch.tensor(float(w.shape[-2])).log(),
            "You take the number of rows for the number of keys. Which axis do the weights of one row run along?",
        ),
    ],
    also_right=[
        lambda w: torch.special.entr(w).sum(-1) / math.log(w.shape[-1]),
        lambda w: 1 - (w * (w * w.shape[-1]).log()).sum(-1) / math.log(w.shape[-1]),
        lambda w: torch.distributions.Categorical(w).entropy() / math.log(w.shape[-1]),
    ],
)


def word_map(weights, word):
    """weights (T, T); word: a list of T numbers from 0, the word of each token, in order -> (W, W)."""
    pieces = F.one_hot(torch.tensor(word)).to(weights)  # (T, W)
    return (pieces / pieces.sum(0)).mT @ weights @ pieces


def grouped(weights, word, rows, columns):
    """Rows of one word become one by the function `rows`, then columns by `columns`."""
    places = [[t for t, own in enumerate(word) if own == w] for w in range(max(word) + 1)]
    part = torch.stack([rows(weights[p], 0) for p in places])
    return torch.stack([columns(part[:, p], 1) for p in places], 1)


def words_by_loops(weights, word):
    W = max(word) + 1
    out = torch.zeros(W, W)
    for q, row in zip(word, weights):
        for k, w in zip(word, row):
            out[q, k] += w / word.count(q)
    return out


def words_by_index_add(weights, word):
    number = torch.tensor(word)
    out = torch.zeros(max(word) + 1, len(word)).index_add(0, number, weights) / number.bincount()[:, None]
    return torch.zeros(max(word) + 1, max(word) + 1).index_add(1, number, out)


def words_divided_by_their_rows(weights, word):
    pieces = F.one_hot(torch.tensor(word)).double()
    added = pieces.mT @ weights @ pieces
    return added / added.sum(-1, keepdim=True)


WORD_MAP = Exercise(
    title="From pieces to words",
    difficulty=4,
    minutes=10,
    extra=True,
    reference=word_map,
    task="A word may be cut in pieces: *tr ##om ##bon ##ist*. Make a map of words. What a word *gets* is the sum of "
    "what its pieces get. What a word *gives* is the mean of what its pieces give. (Clark et al. 2019, section 4.1)",
    inputs=lambda rand: [
        [rand(5, 5), [0, 0, 1, 2, 2]],
        [rand(7, 7), [0, 1, 1, 1, 2, 3, 3]],
        [rand(2, 2), [0, 1]],
        [rand(3, 3), [0, 0, 0]],
    ],
    run=lambda answer, scores, word: answer(scores.softmax(-1), word),  # rows stay rows when a gradient moves them
    hints=[
        "Columns first: add the columns of one word.",
        "Then rows: the mean of the rows of one word. Does each new row sum to 1?",
        "`one_hot(torch.tensor(word))` is (T, W), 1 where a token belongs to a word. What does `weights @` it do?",
    ],
    mistakes=[
        (
            lambda w, word: grouped(w, word, torch.sum, torch.sum),
            "You added both rows and columns. A row of a word with two pieces now sums to 2.",
        ),
        (
            lambda w, word: grouped(w, word, torch.mean, torch.mean),
            "You averaged both. Then a word in two pieces gets half of what it should, and rows no longer sum to 1.",
        ),
        (
            lambda w, word: grouped(w, word, torch.sum, torch.mean),
            "Turned round: you added the rows and averaged the columns. Which of them are what a word *gets*?",
        ),
        (
            lambda w, word: grouped(w, word, lambda x, d: x.amax(d), torch.sum),
            "You took the largest of the rows. Then a row no longer sums to 1.",
        ),
        (
            lambda w, word: grouped(w, word, torch.mean, lambda x, d: x.amax(d)),
            "You took the largest of the columns. What the other pieces get belongs to the word as well.",
        ),
        (
            lambda w, word: grouped(w, word, lambda x, d: x[0], torch.sum),
            "You kept the row of the first piece alone. The other pieces of the word ask, too.",
        ),
        (
            lambda w, word: grouped(w, word, lambda x, d: x[-1], torch.sum),
            "You kept the row of the last piece alone. The other pieces of the word ask, too.",
        ),
        (
            lambda w, word: grouped(w, word, lambda x, d: x[0], lambda x, d: x[:, 0]),
            "You kept the first pieces and dropped the others: what they got is lost, and rows no longer sum to 1.",
        ),
        (
            lambda w, word: grouped(w, word, torch.sum, torch.sum).softmax(-1),
            "A softmax makes every row sum to 1, and changes all shares. Average the rows in place of that.",
        ),
    ],
    also_right=[
        words_by_loops,
        words_by_index_add,
        words_divided_by_their_rows,
    ],
)


def without_head(heads, w_o, i):
    """heads (B, h, T, d_v), w_o (h·d_v, d_model), i: a head from 0 -> (B, T, d_model), as if head i were zero."""
    B, h, T, d_v = heads.shape
    kept = torch.cat([heads[:, :i], torch.zeros(B, 1, T, d_v).to(heads), heads[:, i + 1 :]], 1)
    return kept.transpose(1, 2).reshape(B, T, h * d_v) @ w_o


def merged(heads, w_o, factor=1.0):
    return heads.transpose(1, 2).flatten(2) @ w_o * factor


def without_sentence(heads, w_o, i):
    heads = heads.clone()
    heads[i] = 0
    return merged(heads, w_o)


def own_term(heads, w_o, i, block):
    return heads[:, i] @ w_o.unflatten(0, (heads.shape[1], heads.shape[3]))[block]


WITHOUT_HEAD = Exercise(
    title="Remove a head",
    difficulty=3,
    minutes=8,
    reference=without_head,
    task="Zero ablation: head i hands over nothing, the others stay as they are. Then merge and project. Leave `heads` "
    "as it is.",
    inputs=lambda rand: [
        [rand(2, 3, 5, 7), rand(21, 11), 1],
        [rand(1, 3, 2, 5), rand(15, 4), 2],
        [rand(3, 2, 1, 3), rand(6, 5), 0],
    ],
    hints=[
        "The output is the sum of one term a head: lesson 2, section 6.",
        "Head i's term is heads[:, i] times its own d_v rows of w_o. Which rows are these?",
        "Or: clone, set head i to zero, merge as in lesson 3, times w_o.",
    ],
    mistakes=[
        (lambda heads, w_o, i: merged(heads, w_o), "All heads are still there."),
        (lambda heads, w_o, i: own_term(heads, w_o, i, i), "That is what head i adds. Asked is all the rest."),
        (
            lambda heads, w_o, i: merged(heads, w_o) - own_term(heads, w_o, i, 0),
            "You took the first block of W_O for the head's own. Head i has the rows from i·d_v on.",
        ),
        (
            lambda heads, w_o, i: (
                (merged(heads, w_o) - own_term(heads, w_o, i, i)) * (heads.shape[1] / max(heads.shape[1] - 1, 1))
            ),
            "You made the other heads larger, to make up for the missing one, as dropout does. An ablation leaves "
            "them.",
        ),
        (
            lambda heads, w_o, i: merged(heads, w_o) - own_term(heads, w_o, i, i).mean((0, 1)),
            "You took away the head's *mean* and left the rest of it. Zero ablation removes all it adds.",
        ),
        (
            lambda heads, w_o, i: (
                merged(heads, w_o) - own_term(heads, w_o, i, i) + own_term(heads, w_o, i, i).mean((0, 1))
            ),
            "That is mean ablation: the head always hands over its mean. Here it hands over nothing.",
        ),
        (
            lambda heads, w_o, i: merged(torch.cat([heads[:, :i], heads[:, i + 1 :], 0 * heads[:, :1]], 1), w_o),
            "You closed the gap: the heads after i moved up, and now meet the W_O rows of their neighbours.",
        ),
        (lambda heads, w_o, i: 0 * merged(heads, w_o), "All is zero. Only head i should be."),
        (
            lambda heads, w_o, i: merged(heads, w_o) - own_term(heads, w_o, i - 1, i - 1),
            "You removed head i - 1. Heads count from 0 here: head i is heads[:, i].",
        ),
        (without_sentence, "`heads[i]` is a *sentence*: the first axis is the batch. Head i is heads[:, i]."),
        (
            lambda heads, w_o, i: merged(heads * (torch.arange(heads.shape[2]) != i)[:, None], w_o),
            "You zeroed a *token* in every head: that axis is T. Which one is h?",
        ),
        (
            lambda heads, w_o, i: (
                (heads * (torch.arange(heads.shape[1]) != i)[:, None, None]).reshape(len(heads), heads.shape[2], -1)
                @ w_o
            ),
            "No transpose before the merge: rows of several tokens now meet in one. Lesson 3, the common trap, has "
            "this.",
        ),
    ],
    also_right=[
        lambda x, w_o, i: merge_heads(x * (torch.arange(x.shape[1]) != i)[:, None, None]) @ w_o,
        lambda heads, w_o, i: sum(heads[:, j] @ block for j, block in enumerate(w_o.chunk(heads.shape[1])) if j != i),
    ],
)
