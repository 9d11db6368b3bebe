"""Lesson 5, masks and cross-attention: who may read whom, in which polarity, and what to do where nobody may."""

import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise, random_numbers, torch_layer
from mhsa.exercises.quiz import quiz_of
from mhsa.masks import causal_mask, padding_mask

quiz = quiz_of(__name__)
INF = float("inf")


def my_causal_mask(T_q, T_k):
    """T_q queries, the last of T_k tokens -> Boolean (T_q, T_k), True = may attend."""
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def causal_by_loops(T_q, T_k):
    return torch.tensor([[key <= query + T_k - T_q for key in range(T_k)] for query in range(T_q)])


MY_CAUSAL_MASK = Exercise(
    title="A causal mask that knows a cache",
    difficulty=2,
    minutes=6,
    reference=my_causal_mask,
    task="Each token may read itself and all before it. The T_q queries are the *last* of the T_k tokens.",
    inputs=[[5, 5], [3, 7], [1, 4], [1, 1], [2, 3]],
    fresh=[[4, 4], [2, 7], [5, 6], [1, 3]],
    hints=[
        "Start with T_q = T_k: which triangle is open?",
        "The last query is the last token: it may read everything. Align there.",
        "`torch.ones(..., dtype=torch.bool).tril(...)`: its argument shifts the diagonal.",
    ],
    mistakes=[
        (
            lambda q, k: torch.ones(q, k).tril().bool(),
            "Right for T_q = T_k. With T_q = 1 and T_k = 4 yours opens the first key alone, but the new token is the "
            "last of four. In which corner must the triangle be aligned?",
        ),
        (
            lambda q, k: ~torch.ones(q, k).tril(k - q).bool(),
            "Yours is turned round: True = may attend. The first row of (5, 5) must open exactly one key.",
        ),
        (
            lambda q, k: ~torch.ones(q, k).tril().bool(),
            "Two things: yours is turned round (True = may attend), and for T_q below T_k it is aligned at the wrong "
            "corner.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(),
            "Two things: numbers are *added* to scores, so make it Boolean; and for T_q below T_k, align at the other "
            "corner.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(k - q - 1).bool(),
            "A token must be able to read *itself*. Is your diagonal open?",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(k - q),
            "The triangle is right, but it holds numbers. Numbers are *added* to the scores: zero scores plus this "
            "give row 0 weights of .576 .212 .212. Make it Boolean.",
        ),
        (lambda q, k: torch.ones(q, k).triu(k - q).bool(), "Your triangle opens the future. Which one opens the past?"),
        (
            lambda q, k: torch.zeros(q, k).masked_fill(torch.ones(q, k).tril(k - q) == 0, -INF),
            "That is the additive form, 0 and -inf. Asked is a Boolean mask, True = may attend.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(q - k).bool(),
            "Right for T_q = T_k. For fewer queries you shift the diagonal the wrong way: the *last* query reads all.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(k - q + 1).bool(),
            "One later token is open in yours: the next one. A token reads itself and what lies *before*.",
        ),
        (
            lambda q, k: torch.ones(k, q).triu(q - k).bool(),
            "Yours is (T_k, T_q): rows and columns are swapped. Row = query.",
        ),
        (
            lambda q, k: torch.ones(k, k).tril().bool(),
            "Yours is (T_k, T_k). There are only T_q queries: which rows belong to them?",
        ),
    ],
    also_right=[
        causal_mask,
        causal_by_loops,
        lambda q, k: torch.arange(k) <= torch.arange(k - q, k)[:, None],
    ],
)


def my_padding_mask(lengths, T):
    """lengths: a list of B whole numbers from 0 to T -> Boolean (B, 1, 1, T), True = a real token."""
    return (torch.arange(T) < torch.tensor(lengths)[:, None])[:, None, None]


def real(lengths, T):
    return torch.arange(T) < torch.tensor(lengths)[:, None]


def padding_by_loops(lengths, T):
    mask = torch.zeros(len(lengths), 1, 1, T, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, ..., :n] = True
    return mask


MY_PADDING_MASK = Exercise(
    title="A padding mask",
    difficulty=2,
    minutes=5,
    reference=my_padding_mask,
    task="Sentence b has lengths[b] real tokens, then filling. Hide the filling from all heads and queries.",
    inputs=[[[4, 2, 5], 5], [[0, 3], 3], [[1], 1], [[7, 2], 7], [[2], 3]],
    fresh=[[[1, 6, 0, 3], 6], [[2, 2], 7], [[5], 11]],
    hints=[
        "Position t is real if t is below the length.",
        "`torch.arange(T)` against the lengths as a column gives (B, T).",
        "Filling is hidden as a *key*: the last axis. Heads and queries are axes of size 1.",
    ],
    mistakes=[
        (real, "(B, T) is ambiguous beside scores (B, h, T_q, T_k): the numbers are right, two axes are missing."),
        (
            lambda n, T: real(n, T).flip(-1)[:, None, None],
            "Yours puts the filling on the *left*. Here the real tokens come first.",
        ),
        (
            lambda n, T: real(n, T)[:, None, :, None],
            "Your mask closes whole *queries* of the filling and leaves it open as a key. Which axis of the scores are "
            "the keys?",
        ),
        (
            lambda n, T: (~real(n, T))[:, None, None],
            "Yours is turned round: True = may attend. (key_padding_mask of nn.MultiheadAttention means it your way.)",
        ),
        (
            lambda n, T: torch.arange(T) < torch.tensor(n),
            "You compare T positions with B lengths, side by side. Make the lengths a column: each meets all "
            "positions.",
        ),
        (
            lambda n, T: (torch.arange(T) <= torch.tensor(n)[:, None])[:, None, None],
            "One key too many is open: with length 2, positions 0 and 1 are real.",
        ),
        (
            lambda n, T: real(n, T)[:, None, None].double(),
            "The numbers are right, and they are floats. A float mask is *added* to the scores. Make it Boolean.",
        ),
        (
            lambda n, T: real(n, T)[:, None],
            "One axis is missing: (B, 1, T) would be read as one for each *head* by some. Heads and queries are both "
            "of size 1.",
        ),
        (
            lambda n, T: (real(n, T)[:, :, None] & real(n, T)[:, None])[:, None],
            "You also close the rows of the filling. Then these queries have no key at all; here only keys are hidden, "
            "and (B, 1, 1, T) is enough.",
        ),
    ],
    also_right=[
        padding_by_loops,
        lambda n, T: torch.arange(T).lt(torch.tensor(n).view(-1, 1, 1, 1)),
    ],
)


def join_masks(causal, padding):
    """causal (T, T), padding (B, 1, 1, T), Boolean, True = may attend -> (B, 1, T, T)."""
    return causal & padding


JOIN_MASKS = Exercise(
    title="Two masks at once",
    difficulty=1,
    minutes=3,
    reference=join_masks,
    task="A key may be read if the causal mask *and* the padding mask allow it.",
    inputs=[[causal_mask(T), padding_mask(n, T)] for n, T in (([5, 2, 3], 5), ([1], 1), ([2], 3), ([0, 7], 7))],
    fresh=[[causal_mask(T), padding_mask(n, T)] for n, T in (([3, 1, 4, 0], 4), ([6, 2], 6))],
    hints=["Booleans have operators of their own.", "Broadcasting brings (T, T) and (B, 1, 1, T) together."],
    mistakes=[
        (
            lambda c, p: c | p,
            "A key is open in yours if *either* mask allows it (`|`, and `+` of Booleans, mean or). Both must.",
        ),
        (lambda c, p: c ^ p, "Yours opens a key that exactly one mask allows. Both must."),
        (
            lambda c, p: c == p,
            "Yours opens a key also where *both* masks close it: they agree there. Both must allow it.",
        ),
        (lambda c, p: c, "The filling is open. Where does the padding mask come in?"),
        (lambda c, p: p, "The future is open. Where does the causal mask come in?"),
        (lambda c, p: ~(c & p), "Yours is turned round: True = may attend."),
        (
            lambda c, p: c.double() * p,
            "The product of floats has the right pattern, but it is no Boolean mask. `&` stays Boolean.",
        ),
    ],
    also_right=[
        torch.logical_and,
        lambda c, p: c * p,
        lambda c, p: p.masked_fill(~c, False),
    ],
)


def open_keys():
    cached, new = 6, 1
    return cached + new


OPEN_KEYS = Exercise(
    title="One new token",
    difficulty=1,
    minutes=2,
    extra=True,
    reference=open_keys,
    task="A cache holds the keys of 6 tokens. One new token arrives, and its key is added. How many keys may its "
    "query read under a causal mask?",
    hints=["The new token is the last one. What lies before it?", "May it read itself?"],
    mistakes=[
        (1, "That is torch's is_causal flag, aligned at the top left. Which place in the sentence has the new token?"),
        (6, "All that came before. May a token read itself?"),
        (8, "One too many: the 6 in the cache, and the new token once."),
    ],
    also_right=[
        7.0,
        torch.tensor(7),
    ],
)


def as_row(answer):
    """A row in a batch of one is that row."""
    answer = answer() if callable(answer) else answer  # the reference
    return answer.squeeze(0) if isinstance(answer, torch.Tensor) and answer.dim() == 2 else answer


def float_mask_row():
    scores, mask = torch.zeros(4, 4), torch.tril(torch.ones(4, 4))
    return (scores + mask).softmax(-1)[1].tolist()


FLOAT_MASK_ROW = Exercise(
    title="Predict a leak",
    difficulty=3,
    minutes=4,
    extra=True,
    reference=float_mask_row,
    run=as_row,
    tolerance=0.006,
    task="All scores are 0. Someone passes `torch.tril(torch.ones(4, 4))`, floats, as a mask to "
    "`F.scaled_dot_product_attention`. What is row 1 of the weights, the *second*? Four numbers, two decimals.",
    hints=[
        "A float mask is not a yes or no. What is done with it?",
        "Row 1 of the sum is 1, 1, 0, 0. Take its softmax, with e = 2.72.",
    ],
    mistakes=[
        ([0.5, 0.5, 0, 0], "So it would be with a Boolean mask. What is done with floats?"),
        ([0.25, 0.25, 0.25, 0.25], "Zero scores alone give quarters. Then the mask changes them: how?"),
        ([0, 0, 0.5, 0.5], "You read 1 as 'closed'. A float mask closes nothing: what is done with its numbers?"),
        ([0.48, 0.17, 0.17, 0.17], "That is row 0, with a single 1. How many has the second row?"),
        ([0.73, 0.73, 0.27, 0.27], "A row must sum to 1. There are four exponentials below the line."),
        ([0.37, 0.37, 0, 0], "You found the first two. What do the others get? The row sums to 1."),
        ([0.13, 0.13, 0.37, 0.37], "The numbers are right, their places are not: which keys have the 1?"),
    ],
    also_right=[
        torch.tensor([1.0, 1.0, 0.0, 0.0]).softmax(-1),
        (0.37, 0.37, 0.13, 0.13),
        torch.tensor([[1.0, 1.0, 0.0, 0.0]]).softmax(-1),
    ],
)


def for_torch(mask):
    """mask (T, T), Boolean, True = may attend -> what nn.MultiheadAttention needs as attn_mask."""
    return ~mask


TORCH_LAYER = torch_layer(random_numbers("TORCH_LAYER"), 6, 2, batch_first=True)


def in_torch(answer, mask, x):
    attn_mask = answer(mask)
    if attn_mask is None or attn_mask is ... or isinstance(attn_mask, tuple):
        return attn_mask
    attn_mask = torch.as_tensor(attn_mask)
    return TORCH_LAYER(x, x, x, attn_mask=attn_mask.to(x) if attn_mask.is_floating_point() else attn_mask)[0]


FOR_TORCH = Exercise(
    title="The same mask for torch's layer",
    difficulty=2,
    minutes=4,
    reference=for_torch,
    run=in_torch,
    task="Convert a mask of this course for `nn.MultiheadAttention(...)(x, x, x, attn_mask=...)`. The check looks at "
    "the output of that layer.",
    inputs=lambda rand: (
        [
            [mask, rand(B, len(mask), 6)]
            for B, mask in (
                (2, causal_mask(5)),
                (1, causal_mask(3).mT),
                (3, causal_mask(1)),
                (2, causal_mask(7).flip(1)),
            )
        ]
        + [[causal_mask(11), 100 * rand(2, 11, 6)]]
    ),  # scores far above and below 0
    hints=["What does True mean here, and there?", "Booleans can be turned round with one sign."],
    mistakes=[
        (
            lambda m: m,
            "Yours closes what may be read, and opens the rest. In nn.MultiheadAttention True means may *not* attend, "
            "the opposite of this course, and -inf closes.",
        ),
        (
            lambda m: m.double(),
            "A float mask is added to the scores: 1 for what may be read, 0 for the rest. That prefers, and closes "
            "nothing.",
        ),
        (
            lambda m: (~m).double(),
            "A float mask is added to the scores: yours raises what should be closed. Only -inf closes.",
        ),
        (lambda m: (~m).mT, "The polarity is right, but rows and columns are swapped. Row = query in both."),
        (
            lambda m: (1 - m.double()) * -INF,
            "Yours holds NaN: 0 times inf is no number. Fill with -inf only where the mask closes.",
        ),
        (
            lambda m: (~m).double() * -100,
            "You close by a number that is not low enough: one input has scores far below -100, and beside them the "
            "closed key is the best. Only -inf, or a Boolean, closes always.",
        ),
    ],
    also_right=[
        lambda m: m.logical_not(),
        lambda m: torch.zeros(m.shape).masked_fill(~m, -torch.inf),
    ],
)


def masked_attention(q, k, v, mask):
    """q (B, T_q, d_k), k (B, T_k, d_k), v (B, T_k, d_v), mask (T_q, T_k), True = may attend -> (B, T_q, d_v)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0) @ v  # no key: nothing is read


def masked_with(q, k, v, closed, fill=-INF):
    return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(closed, fill).softmax(-1) @ v


def masked_after(q, k, v, mask, least):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True).clamp(min=least) @ v


def additive_with_nan(q, k, v, mask):
    return (q @ k.mT / q.shape[-1] ** 0.5 + torch.zeros(mask.shape).masked_fill(~mask, -INF)).softmax(-1)


EMPTY_ROW = torch.tensor([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()


def masked_by_kernel(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def masked_by_where(q, k, v, mask):
    scores = torch.where(mask, q @ k.mT / k.shape[-1] ** 0.5, -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v


MASKED_ATTENTION = Exercise(
    title="Attention with a mask, and rows with no key",
    difficulty=4,
    minutes=12,
    reference=masked_attention,
    task="Write attention with a Boolean mask. A query that may read nothing gets the output 0, and gradients without "
    "NaN. Scores may be as low as -100,000: a closed key gets no weight beside such scores, either.",
    inputs=lambda rand: (
        [
            [rand(B, T_q, d_k), rand(B, T_k, d_k), rand(B, T_k, d_v), mask]
            for B, T_q, T_k, d_k, d_v, mask in (
                (2, 5, 5, 3, 7, causal_mask(5)),
                (2, 3, 5, 7, 2, EMPTY_ROW),
                (1, 1, 1, 2, 3, causal_mask(1)),
                (3, 1, 2, 5, 2, ~causal_mask(1, 2)),
            )
        ]
        + [[-10_000 * (low := rand(2, 7, 5).abs()), low, rand(2, 7, 3), causal_mask(7)]]  # every score far below 0
    ),
    hints=[
        "First without empty rows: close scores before the softmax, with masked_fill.",
        "An empty row filled with -inf is 0/0. Fill with a large finite number, and the softmax stays finite.",
        "`mask.any(-1)` tells which rows have a key. Set the weights of the others to 0.",
    ],
    mistakes=[
        (
            lambda q, k, v, m: masked_with(q, k, v, ~m),
            "Right where a query has a key. A row with none becomes NaN: a softmax of -inf alone, or a division by a "
            "sum of 0. Which rows are these, and what should they read?",
        ),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~m, -1e9),
            "Right where a query has a key. In an empty row all scores are equal, so each key gets an equal share of "
            "what must not be read. Which weights should such a row have?",
        ),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~m, -100).masked_fill(~m.any(-1, keepdim=True), 0),
            "You close keys by a number that is not low enough: the last input has scores of some -10,000, and beside "
            "them the closed key is the best. What lies below *every* score?",
        ),
        (
            lambda q, k, v, m: masked_after(q, k, v, m, 1e-12),
            "You close keys after the softmax and bring the rows back to 1. On paper that is right. But where a closed "
            "key has by far the best score, the open weights are 0 already. Close *before* the softmax.",
        ),
        (
            lambda q, k, v, m: masked_after(q, k, v, m, 0),
            "You close keys after the softmax and divide by what is left: 0/0 in a row with no key, and where a closed "
            "key has by far the best score. Close *before* the softmax.",
        ),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~(m | ~m.any(-1, keepdim=True))),
            "Right where a query has a key. You open all keys for a query that has none: then it reads what it must "
            "not.",
        ),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~torch.cat([m[:, :1] | ~m.any(-1, keepdim=True), m[:, 1:]], -1)),
            "Right where a query has a key. You open key 0 for a query that has none: then it reads what it must not.",
        ),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~m).nan_to_num(0),
            "The output is right, but its gradient is NaN: replacing NaN *after* the softmax does not mend the way "
            "back. Keep NaN from arising.",
        ),
        (
            lambda *a: additive_with_nan(*a).nan_to_num(0) @ a[2],
            "The output is right, but a gradient is NaN: replacing NaN in the weights does not mend the way back "
            "through a softmax of -inf alone. Keep NaN from arising.",
        ),
        (
            lambda q, k, v, m: ((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) * m) @ v,
            "You multiply by the mask *after* the softmax. Open weights then sum to less than 1: closed keys still "
            "took their share.",
        ),
        (
            lambda q, k, v, m: (q @ k.mT / q.shape[-1] ** 0.5 + m.double()).softmax(-1) @ v,
            "You add the mask to the scores. That prefers open keys by a factor e and closes none.",
        ),
        (lambda *a: masked_with(*a), "You close what is True. In this course True = may attend."),
        (
            lambda q, k, v, m: masked_with(q, k, v, ~m, 0),
            "Closed scores become 0 in yours, by filling or by a product with the mask. The softmax still gives them "
            "e⁰ = 1 over the sum: which number gives 0?",
        ),
        (lambda q, k, v, m: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v, "The mask is not used."),
        (
            lambda q, k, v, m: (
                (q @ k.mT).masked_fill(~m, -1e9).softmax(-1).masked_fill(~m.any(-1, keepdim=True), 0) @ v
            ),
            "The mask is right. The scores are not scaled.",
        ),
    ],
    also_right=[
        masked_by_kernel,
        masked_by_where,
    ],
)


def cross_attention(query, source, w_q, w_k, w_v):
    """query (B, T_q, d), source (B, T_k, e), w_q (d, d_k), w_k (e, d_k), w_v (e, d_v) -> (B, T_q, d_v)."""
    q, k, v = query @ w_q, source @ w_k, source @ w_v
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def cross_with(q, k, v, w_q, w_k, w_v, width=None, axis=-1):
    width = w_q.shape[-1] if width is None else width
    return (q @ w_q @ (k @ w_k).mT / width**0.5).softmax(axis) @ (v @ w_v)


CROSS_ATTENTION = Exercise(
    title="One sentence reads another",
    difficulty=2,
    minutes=6,
    reference=cross_attention,
    task="One head of cross-attention: each token of `query` reads the tokens of `source`. No mask.",
    inputs=lambda rand: [
        [rand(B, T_q, d), rand(B, T_k, s), rand(d, d_k), rand(s, d_k), rand(s, d_v)]
        for B, T_q, T_k, d, s, d_k, d_v in (
            (2, 3, 5, 7, 7, 2, 11),
            (1, 5, 2, 3, 3, 7, 5),
            (3, 1, 1, 5, 2, 3, 7),
            (2, 5, 5, 7, 7, 3, 2),
        )
    ],
    hints=[
        "Who asks? Who is asked, and who hands over?",
        "Keys and values come from the same sentence.",
        "The scale is that of the queries and keys.",
    ],
    mistakes=[
        (lambda x, s, *w: cross_with(x, x, x, *w), "That is self-attention: `source` is not read at all."),
        (lambda x, s, *w: cross_with(s, s, s, *w), "The source reads itself. Who should ask?"),
        (
            lambda x, s, *w: cross_with(s, x, x, *w),
            "The roles are swapped: your output has a row for each token of the source.",
        ),
        (
            lambda x, s, *w: cross_with(x, s, x, *w),
            "Keys come from the source, values from the query. What a key finds must hand over its own value.",
        ),
        (
            lambda x, s, *w: cross_with(x, x, s, *w),
            "Keys come from the query, values from the source. What a key finds must hand over its own value.",
        ),
        (
            lambda x, s, *w: cross_with(x, s, s, *w, width=w[2].shape[-1]),
            "You scale by √d_v. A score is a product of query and key.",
        ),
        (
            lambda x, s, *w: cross_with(x, s, s, *w, width=x.shape[-1]),
            "You scale by the width of a token. How wide is a query?",
        ),
        (lambda x, s, *w: cross_with(x, s, s, *w, width=1), "The scores are not scaled."),
        (
            lambda x, s, *w: cross_with(x, s, s, *w, axis=-2),
            "The softmax runs over the queries. Each query shares out its weight over the *source*.",
        ),
    ],
    also_right=[
        lambda x, s, w_q, w_k, w_v: F.scaled_dot_product_attention(x @ w_q, s @ w_k, s @ w_v),
        lambda x, s, w_q, w_k, w_v: (x @ (w_q @ w_k.mT) @ s.mT / w_q.shape[1] ** 0.5).softmax(-1) @ s @ w_v,
    ],
)


def choose_masks():
    return "causal", "padding", "both", "padding", "none"


CHOOSE_MASKS = Exercise(
    title="Choose the mask",
    difficulty=3,
    minutes=5,
    reference=choose_masks,
    task="Which mask does each need, at least? Write five of the words `none`, `causal`, `padding`, `both`, as a "
    "tuple of strings.\n\n1. A text generator trains on pieces of equal length.\n2. An encoder reads a batch of "
    "sentences of different lengths.\n3. A translator's decoder trains on target sentences of different lengths, with "
    "the filling on the *left* (its self-attention).\n4. That decoder reads the source sentences, of different lengths "
    "(its cross-attention).\n5. A text generator with a cache writes one more token of one sentence.",
    hints=[
        "Two questions each: is there filling among the keys that stay open? Would a query see a key of its own "
        "future?",
        "The source of a translation is known before the first word is written.",
        "With a cache, what lies in the future of the newest token?",
    ],
    mistakes=[
        (("causal", "padding", "both", "both", "none"), "Look at number 4. Is any word of the *source* in the future?"),
        (
            ("causal", "padding", "both", "none", "none"),
            "Look at number 4. The sources differ in length: what stands at the end of the short ones?",
        ),
        (
            ("causal", "padding", "both", "padding", "causal"),
            "Look at number 5. The newest token is the last: which key would a causal mask close?",
        ),
        (
            ("causal", "padding", "causal", "padding", "none"),
            "Look at number 3. Filling at the *end* is in the future of every real word (section 2). Where is it here?",
        ),
        (
            ("causal", "padding", "padding", "padding", "none"),
            "Look at number 3. In training all target words are there at once: may a word read the next?",
        ),
        (
            ("causal", "both", "both", "padding", "none"),
            "Look at number 2. An encoder does not write: may a word read what follows?",
        ),
        (
            ("both", "padding", "both", "padding", "none"),
            "Look at number 1. All pieces have equal length: is there any filling?",
        ),
        (
            ("causal", "none", "both", "padding", "none"),
            "Look at number 2. The sentences differ in length: what stands at the end of the short ones?",
        ),
        (
            ("causal", "causal", "both", "padding", "none"),
            "Look at number 2. A causal mask would hide the filling, and with it what an encoder may read. Which mask "
            "hides the filling alone?",
        ),
        (
            ("causal", "padding", "none", "padding", "none"),
            "Look at number 3. All target words are there at once, and filling too: may a word read either?",
        ),
        (
            ("causal", "padding", "both", "causal", "none"),
            "Look at number 4. No word of the *source* is in the future. What hides the filling of the short sources?",
        ),
        (
            ("causal", "padding", "both", "padding", "padding"),
            "Look at number 5. There is one sentence: is anything filled up?",
        ),
        (
            ("causal", "padding", "both", "padding", "both"),
            "Look at number 5. There is one sentence, and its newest token is the last: is there a key to close?",
        ),
        (
            ("padding", "padding", "both", "padding", "none"),
            "Look at number 1. All pieces have equal length. What must a token not read while it learns to predict the "
            "next?",
        ),
        (
            ("none", "padding", "both", "padding", "none"),
            "Look at number 1. It learns to predict the next token: may it read it?",
        ),
    ],
    also_right=[
        ["causal", "padding", "both", "padding", "none"],
        ("Causal", "padding ", "BOTH", "padding", "none"),
    ],
)


def drop(weights, p, training):
    """weights (B, T, T), p: the probability to drop one, training: True or False -> the weights to apply."""
    return F.dropout(weights, p, training)


def what_is_dropped(answer, weights, p, training):
    """What becomes of the weights, in words; and a 0 through which the gradient must flow."""
    out, again = answer(weights, p, training), answer(weights, p, training)
    if out is None or out is ...:
        return out
    if not isinstance(out, torch.Tensor):
        return f"a {type(out).__name__}", weights.sum()
    if out.shape != weights.shape:
        return f"shape {tuple(out.shape)}", weights.sum()
    zero = (out == 0).double()
    share, lines = zero.mean().item(), (zero.mean(-1), zero.mean(-2), zero.mean(0))
    whole = 0 < share < 1 and any(((line == 0) | (line == 1)).all() for line in lines)
    dropped = "whole lines become 0 at once" if whole else f"{share:.1f} of the weights become 0, each on its own"
    kept = (out / weights)[out != 0].detach().double().round(decimals=4).unique().tolist()
    factors = " and ".join(f"{factor:g}" for factor in kept) if len(kept) < 3 else "many different numbers"
    same = ", in the same places at each call" * (training and torch.equal(out == 0, again == 0))
    return f"{dropped}{same}, the others are multiplied by {factors or 'nothing'}", 0 * out.sum()


DROP = Exercise(
    title="Dropout on the weights",
    difficulty=2,
    minutes=4,
    extra=True,
    reference=drop,
    run=what_is_dropped,
    task="Drop weights in training, each on its own, and leave them alone otherwise. In training a weight is either 0 "
    "or divided by 1 - p. The check counts the zeros, and by what the other weights were multiplied.",
    inputs=lambda rand: [
        [rand(2, 101, 103).softmax(-1), p, training] for p in (0.5, 0.2) for training in (True, False)
    ],
    hints=[
        "`F.dropout` has a third argument. What is its default?",
        "Nothing has to be divided by hand: F.dropout does it.",
    ],
    mistakes=[
        (
            lambda w, p, training: F.dropout(w, p),
            "Yours keeps dropping when `training` is False: the functional form, and a fresh nn.Dropout, think they "
            "are in training unless told. model.eval() does not reach them.",
        ),
        (lambda w, p, training: w, "Nothing is ever dropped."),
        (lambda w, p, training: F.dropout(w, float(training)), "You pass `training` in the place of p."),
        (lambda w, p, training: F.dropout(w, p, not training), "Yours drops outside of training. Look at the flag."),
        (
            lambda w, p, training: w * (torch.rand(w.shape) >= p) if training else w,
            "Dropped weights are 0, but the rest keeps its size, so the sum shrinks on average. By what are the kept "
            "ones divided?",
        ),
        (
            lambda w, p, training: F.dropout1d(w, p, training),
            "Whole rows, whole columns or the same places in every sentence become 0 at once. Every weight should be "
            "drawn on its own: is your random mask as large as the weights?",
        ),
        (
            lambda w, p, training: F.normalize(F.dropout(w, p, training), p=1, dim=-1),
            "You bring each row back to a sum of 1. Dropout does not: after it the rows sum to 1 on average only.",
        ),
        (
            lambda w, p, training: w * (torch.rand(w.shape) < p) / (1 - p) if training else w,
            "Yours keeps a weight with probability p. p is the probability to *drop*: try p = 0.2 and count the zeros.",
        ),
        (
            lambda w, p, training: (
                w * (torch.rand(w.shape, generator=torch.Generator().manual_seed(0)) >= p) / (1 - p) if training else w
            ),
            "Yours drops the same places at each call. A fixed seed has no place here: draw anew.",
        ),
        (
            lambda w, p, training: w * (torch.rand(w.shape) >= p) / p if training else w,
            "The right share is dropped. But the others are divided by p: what is the probability to *keep* one?",
        ),
        (
            lambda w, p, training: F.dropout(w, 1 - p, training),
            "You swapped keep and drop: p is the probability to *drop*.",
        ),
        (
            lambda w, p, training: F.dropout(w, p, training) if training else w * (1 - p),
            "Outside of training you shrink the weights. F.dropout has made up for the loss in training already.",
        ),
    ],
    also_right=[
        lambda w, p, training: F.dropout(w, p) if training else w,
        lambda w, p, training: torch.nn.Dropout(p).train(training)(w),
        lambda w, p, training: w * (torch.rand(w.shape) >= p) / (1 - p) if training else w,
    ],
)


def batch_first(layer, x):
    """layer: an nn.MultiheadAttention made *without* batch_first=True; x (B, T, d_model) -> (B, T, d_model)."""
    x = x.transpose(0, 1)
    return layer(x, x, x)[0].transpose(0, 1)


def batch_first_given(layer, x):
    return layer(x, x, x)[0]


BATCH_FIRST = Exercise(
    title="Spot the bug: sentences that read each other",
    difficulty=3,
    minutes=5,
    extra=True,
    reference=batch_first,
    given=batch_first_given,
    task="The layer was made by `nn.MultiheadAttention(6, 2)`, without `batch_first=True`: it takes the *first* axis "
    "for the tokens. This code runs and returns the right shape. But changing sentence 1 changes the output of "
    "sentence 0. Mend it, and leave the layer as it is.",
    inputs=lambda rand: [
        [torch_layer(rand, 6, 2, batch_first=False), rand(B, T, 6)] for B, T in ((2, 5), (1, 3), (3, 1), (3, 3))
    ],
    hints=["Which axis does this layer take for the tokens?", "It wants (T, B, d_model), and returns that, too."],
    mistakes=[
        (
            lambda layer, x: layer(*[x.transpose(0, 1)] * 3)[0],
            "The layer reads the tokens now. Its output is (T, B, d_model): bring it back.",
        ),
        (
            lambda layer, x: layer(*[x.reshape(x.shape[1], x.shape[0], -1)] * 3)[0].reshape(x.shape),
            "A reshape has the right shape and mixes the sentences. Swapping two axes is something else.",
        ),
        (
            lambda layer, x: layer(*[x.transpose(0, 1)] * 3)[0].reshape(x.shape),
            "The way in is right. On the way back a reshape mixes the sentences: swap the axes.",
        ),
        (
            lambda layer, x: layer(x, x, x)[0].transpose(0, 1),
            "You swap the axes behind the layer only. It has then already mixed the sentences.",
        ),
        (
            lambda layer, x: layer(*[x.transpose(0, 1)] * 3),
            "Two results come back, output and weights. Only the output is asked.",
        ),
        (lambda layer, x: layer(*[x.mT] * 3)[0], "You swap tokens with width. Which two axes are in the wrong order?"),
    ],
    also_right=[
        lambda layer, x: torch.stack([layer(one, one, one)[0] for one in x]),
        lambda layer, x: layer(*[x.movedim(1, 0)] * 3, need_weights=False)[0].movedim(1, 0),
    ],
)
