"""Lesson 9, fast attention: blocks, caches, grouped heads, and heads over several processes."""

import einops
import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)


def partial_result(rand, *shape, keys, shift=0):
    """What one block of keys gives: out (…, T_q, d_v) without the division, largest score and sum (…, T_q, 1)."""
    *lead, T_q, d_v = shape
    scores = 3 * rand(*lead, T_q, keys) + shift
    top = scores.amax(-1, keepdim=True)
    e = (scores - top).exp()
    return e @ rand(*lead, keys, d_v), top, e.sum(-1, keepdim=True)


def masked_whole(block):
    """The same, with no key left for the first query: nothing is added up, and the largest of no scores is -inf."""
    out, top, total = (x.clone() for x in block)
    out[..., 0, :], top[..., 0, :], total[..., 0, :] = 0.0, -torch.inf, 0.0
    return out, top, total


def merge_blocks(out_a, top_a, sum_a, out_b, top_b, sum_b):
    """Of each block: out (B, T_q, d_v), the sum of exp(score - top)·v over its keys; top (B, T_q, 1), its largest
    score; sum (B, T_q, 1), that of exp(score - top) -> the attention output over the keys of both, like out_a."""
    top = torch.maximum(top_a, top_b)
    a, b = (top_a - top).exp(), (top_b - top).exp()
    return (out_a * a + out_b * b) / (sum_a * a + sum_b * b)


def merge_by_logs(out_a, top_a, sum_a, out_b, top_b, sum_b):
    log_a, log_b = top_a + sum_a.log(), top_b + sum_b.log()  # of each block's share of the whole
    share = torch.sigmoid(log_a - log_b)
    return out_a / sum_a * share + out_b / sum_b * (1 - share)


def merge_by_softmax(out_a, top_a, sum_a, out_b, top_b, sum_b):
    a, b = torch.softmax(torch.stack([top_a, top_b]), 0)  # in the ratio of exp(top_a) and exp(top_b), and never above 1
    return (out_a * a + out_b * b) / (sum_a * a + sum_b * b)


def merge_any_number(out_a, top_a, sum_a, out_b, top_b, sum_b):
    out, top, total = (torch.stack(blocks) for blocks in ((out_a, out_b), (top_a, top_b), (sum_a, sum_b)))
    scale = (top - top.amax(0)).exp()
    return (out * scale).sum(0) / (total * scale).sum(0)


MERGE_BLOCKS = Exercise(
    title="Merge two blocks of keys",
    difficulty=4,
    minutes=10,
    reference=merge_blocks,
    task="A fused kernel sees the keys block by block, and never a whole row of scores. Here are its results for two "
    "blocks. Merge them into the exact output of one softmax over all keys. (A mask may close a whole block for a "
    "query: its out and sum are 0 then, and its top is -inf.)",
    inputs=lambda rand: [
        [*partial_result(rand, 2, 3, 5, keys=7), *partial_result(rand, 2, 3, 5, keys=4)],
        [*partial_result(rand, 1, 1, 3, keys=2), *partial_result(rand, 1, 1, 3, keys=11)],
        [*partial_result(rand, 3, 2, 7, keys=5, shift=800), *partial_result(rand, 3, 2, 7, keys=3)],
        [*partial_result(rand, 2, 3, 5, keys=2), *partial_result(rand, 2, 3, 5, keys=3, shift=800)],
        [*partial_result(rand, 1, 3, 2, keys=5), *masked_whole(partial_result(rand, 1, 3, 2, keys=3))],
    ],
    hints=[
        "The two blocks subtracted different numbers. Which number would both have subtracted, had they known?",
        "exp(s - top_a) times exp(top_a - top) is exp(s - top). What has to be multiplied by it: out, sum, or both?",
        "Divide once, at the end.",
    ],
    mistakes=[
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (out_a + out_b) / (sum_a + sum_b),
            "You add the blocks as they are. Each has subtracted its own largest score, so their parts are in "
            "different units: bring both to one maximum first.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (out_a * top_a.exp() + out_b * top_b.exp()) / (sum_a * top_a.exp() + sum_b * top_b.exp())
            ),
            "Right on paper, but exp(800) is inf, and inf / inf is NaN. Which exponents are never above 0?",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (out_a / sum_a + out_b / sum_b) / 2,
            "You average the two outputs. A block with larger scores, or more keys, must weigh more.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: out_a / sum_a + out_b / sum_b,
            "You divide each block by its own sum. The attention weights of a row then sum to 2: divide once, by the "
            "sum over all.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (
                    out_a * (top_a - torch.maximum(top_a, top_b)).exp()
                    + out_b * (top_b - torch.maximum(top_a, top_b)).exp()
                )
                / (sum_a + sum_b)
            ),
            "You rescale the outputs, and not the sums. Both were made with the same exponentials.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                out_a * (top_a - torch.maximum(top_a, top_b)).exp()
                + out_b * (top_b - torch.maximum(top_a, top_b)).exp()
            ),
            "The sum over all keys is right, but the attention weights of a row do not sum to 1 yet. What is missing?",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (
                    out_a * (torch.maximum(top_a, top_b) - top_a).exp()
                    + out_b * (torch.maximum(top_a, top_b) - top_b).exp()
                )
                / (
                    sum_a * (torch.maximum(top_a, top_b) - top_a).exp()
                    + sum_b * (torch.maximum(top_a, top_b) - top_b).exp()
                )
            ),
            "Your exponent has the wrong sign: the block with the *smaller* maximum must shrink.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (out_a * torch.sigmoid(top_a - top_b) + out_b * torch.sigmoid(top_b - top_a)) / (sum_a + sum_b)
            ),
            "You weigh the blocks by a softmax of their two maxima alone. The number of keys and their other scores "
            "count too: they are in the sums, which must be rescaled like the outputs.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (out_a + out_b * (top_b - top_a).exp()) / (sum_a + sum_b * (top_b - top_a).exp())
            ),
            "You bring both to the top of block a. Where that of b is larger by 800, exp(800) is inf, and inf / inf is "
            "NaN: take the larger one.",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (
                    out_a * (top_a - torch.minimum(top_a, top_b)).exp()
                    + out_b * (top_b - torch.minimum(top_a, top_b)).exp()
                )
                / (
                    sum_a * (top_a - torch.minimum(top_a, top_b)).exp()
                    + sum_b * (top_b - torch.minimum(top_a, top_b)).exp()
                )
            ),
            "You bring both to the *smaller* maximum: exp(800) is inf, and inf / inf is NaN. Which exponents are never "
            "above 0?",
        ),
        (
            lambda out_a, top_a, sum_a, out_b, top_b, sum_b: (
                (
                    out_a * (top_b - torch.maximum(top_a, top_b)).exp()
                    + out_b * (top_a - torch.maximum(top_a, top_b)).exp()
                )
                / (
                    sum_a * (top_b - torch.maximum(top_a, top_b)).exp()
                    + sum_b * (top_a - torch.maximum(top_a, top_b)).exp()
                )
            ),
            "The two factors are exchanged: each block is rescaled from its *own* maximum to the common one.",
        ),
        (
            merge_by_logs,
            "Right, but for a block that is masked whole: its own output is 0 / 0, and NaN times a share of 0 is NaN. "
            "Divide once, at the end.",
        ),
    ],
    also_right=[
        merge_by_softmax,
        merge_any_number,
    ],
)


def decode_step(x, keys, values, w_q, w_k, w_v):
    """One head; x (B, 1, d_model), the new token; keys (B, T, d_k) and values (B, T, d_v) of the tokens before it;
    w_q and w_k (d_model, d_k), w_v (d_model, d_v) -> (output (B, 1, d_v), all keys (B, T + 1, d_k), all values)."""
    keys, values = torch.cat([keys, x @ w_k], 1), torch.cat([values, x @ w_v], 1)
    weights = (x @ w_q @ keys.mT / keys.shape[-1] ** 0.5).softmax(-1)
    return weights @ values, keys, values


def output_only(step):
    """The mistake `step` with the right keys and values beside it."""
    return lambda *a: (step(*a), *decode_step(*a)[1:])


def attend_over(q, keys, values):
    return (q @ keys.mT / keys.shape[-1] ** 0.5).softmax(-1) @ values


def decode_by_kernel(x, keys, values, w_q, w_k, w_v):
    keys, values = torch.cat((keys, x @ w_k), -2), torch.cat((values, x @ w_v), -2)
    return F.scaled_dot_product_attention(x @ w_q, keys, values), keys, values


def decode_by_einsum(x, keys, values, w_q, w_k, w_v):
    keys, values = (torch.hstack([old, x @ w]) for old, w in ((keys, w_k), (values, w_v)))
    scores = torch.einsum("bqd,bkd->bqk", x @ w_q, keys) * len(w_q.T) ** -0.5
    return [torch.einsum("bqk,bkd->bqd", scores.softmax(-1), values), keys, values]


DECODE_STEP = Exercise(
    title="One step with a cache",
    difficulty=3,
    minutes=10,
    reference=decode_step,
    task="Write one step of decoding for one head. Compute what is new, append it, attend, and hand the cache on.",
    inputs=lambda rand: [
        [rand(2, 1, 7), rand(2, 4, 5), rand(2, 4, 3), rand(7, 5), rand(7, 5), rand(7, 3)],
        [rand(1, 1, 5), rand(1, 6, 2), rand(1, 6, 3), rand(5, 2), rand(5, 2), rand(5, 3)],
    ],
    hints=[
        "The new token needs a query, a key and a value. Only two of them are kept.",
        "Append along the axis of tokens, then let the one query read all keys, its own among them.",
        "No mask: nothing in the cache lies in the future.",
    ],
    mistakes=[
        (
            lambda x, keys, values, w_q, w_k, w_v: (
                attend_over(x @ w_q, keys, values),
                torch.cat([keys, x @ w_k], 1),
                torch.cat([values, x @ w_v], 1),
            ),
            "The new token does not read itself: you attend first and append afterwards.",
        ),
        (
            output_only(lambda x, keys, values, w_q, w_k, w_v: values[:, :1]),
            "Your output is the value of the first token. Is there a causal mask that is aligned at the top left? One "
            "query over a cache may read every key.",
        ),
        (
            output_only(lambda x, keys, values, w_q, w_k, w_v: x @ w_v),
            "The new token reads only itself. The keys and values of the cache wait to be read.",
        ),
        (
            lambda x, keys, values, w_q, w_k, w_v: (x @ w_v, x @ w_k, x @ w_v),
            "You put the new key and value in place of the old ones. Append them.",
        ),
        (
            lambda x, keys, values, w_q, w_k, w_v: (decode_step(x, keys, values, w_q, w_k, w_v)[0], keys, values),
            "The output is right, but you hand the cache on as it was. The next step would not see this token.",
        ),
        (
            lambda x, keys, values, w_q, w_k, w_v: (
                decode_step(x, keys, values, w_q, w_k, w_v)[0],
                torch.cat([x @ w_k, keys], 1),
                torch.cat([x @ w_v, values], 1),
            ),
            "The output is right, but you put the new token in front. The cache keeps the order of the text: it "
            "matters as soon as there is a mask, or a position.",
        ),
        (
            lambda x, keys, values, w_q, w_k, w_v: (
                attend_over(x @ w_q, torch.cat([keys, x @ w_q], 1), torch.cat([values, x @ w_v], 1)),
                torch.cat([keys, x @ w_q], 1),
                torch.cat([values, x @ w_v], 1),
            ),
            "You keep the query as if it were a key. A query is used once and forgotten.",
        ),
        (
            output_only(
                lambda x, keys, values, w_q, w_k, w_v: attend_over(
                    x @ w_q * w_q.shape[1] ** 0.5, torch.cat([keys, x @ w_k], 1), torch.cat([values, x @ w_v], 1)
                )
            ),
            "The scores are not scaled. Which root divides them?",
        ),
        (
            output_only(
                lambda x, keys, values, w_q, w_k, w_v: attend_over(
                    x @ w_q * (w_q.shape[1] / len(w_q)) ** 0.5,
                    torch.cat([keys, x @ w_k], 1),
                    torch.cat([values, x @ w_v], 1),
                )
            ),
            "You scale by the width of the token. Scores are sums of d_k products.",
        ),
        (
            output_only(
                lambda x, keys, values, w_q, w_k, w_v: attend_over(
                    x @ w_q * (w_q.shape[1] / w_v.shape[1]) ** 0.5,
                    torch.cat([keys, x @ w_k], 1),
                    torch.cat([values, x @ w_v], 1),
                )
            ),
            "You scale by the width of the values. Scores are sums of d_k products, the width of queries and keys.",
        ),
        (
            output_only(lambda x, keys, values, w_q, w_k, w_v: torch.cat([values, x @ w_v], 1).sum(1, keepdim=True)),
            "Your output is the sum of all values. Is the softmax taken over the axis of the queries? With one query "
            "each weight is 1 there: take it over the keys, the last axis.",
        ),
        (
            lambda *a: (decode_step(*a)[0], *(x[:, -1:] for x in decode_step(*a)[1:])),
            "The output is right, but you hand on the new key and value alone. The next step needs all of them.",
        ),
        (
            lambda *a: (*decode_step(*a)[1:], decode_step(*a)[0]),
            "All three are there, in another order: the output comes first, then the keys, then the values.",
        ),
        (
            lambda x, keys, values, w_q, w_k, w_v: (
                attend_over(x @ w_q, torch.cat([keys[:, :-1], x @ w_k], 1), torch.cat([values[:, :-1], x @ w_v], 1)),
                torch.cat([keys[:, :-1], x @ w_k], 1),
                torch.cat([values[:, :-1], x @ w_v], 1),
            ),
            "You write the new key and value over the last old ones. Append them: the cache grows by one token.",
        ),
    ],
    also_right=[
        decode_by_kernel,
        decode_by_einsum,
    ],
)


def share_kv(k, num_heads):
    """k (B, g, T, d_k), num_heads a multiple of g -> (B, num_heads, T, d_k): for each query head the keys it reads."""
    return k.repeat_interleave(num_heads // k.shape[1], 1)


SHARE_KV = Exercise(
    title="Who shares which keys",
    difficulty=2,
    minutes=5,
    reference=share_kv,
    task="Grouped heads, written out: neighbouring query heads share one head of keys. Repeat the keys, so that each "
    "query head has its own copy. (A kernel reads them in place; this is what it must agree with.)",
    inputs=lambda rand: [[rand(3, 2, 5, 7), 6], [rand(1, 3, 1, 5), 12], [rand(2, 5, 3, 4), 5]],
    hints=[
        "With h = 6 and g = 2: heads 0, 1, 2 read key head 0, and heads 3, 4, 5 read key head 1.",
        "torch has two functions that repeat. Try both on torch.tensor([0, 1]).",
    ],
    mistakes=[
        (
            lambda k, h: k.repeat(1, h // k.shape[1], 1, 1),
            "Your heads read 0, 1, …, 0, 1, …: you repeat the whole row of heads. *Neighbours* share one.",
        ),
        (
            lambda k, h: k[:, :1].expand(-1, h, -1, -1),
            "All your query heads read key head 0. That is multi-query attention; here there are g heads.",
        ),
        (
            lambda k, h: k.mean(1, keepdim=True).expand(-1, h, -1, -1),
            "All your query heads read the mean of the key heads. Nothing is averaged here: each group has its own.",
        ),
        (lambda k, h: k.repeat_interleave(h // k.shape[1], 2), "You repeat the tokens. Which axis holds the heads?"),
        (
            lambda k, h: k.repeat_interleave(h, 1),
            "You repeat each head num_heads times. How many query heads share one?",
        ),
        (lambda k, h: k.repeat_interleave(h // k.shape[1], 1).flip(1), "You count the heads from the end."),
    ],
    also_right=[
        lambda k, h: k.unsqueeze(2).expand(-1, -1, h // k.shape[1], -1, -1).flatten(1, 2),
        lambda k, h: torch.stack([k[:, i * k.shape[1] // h] for i in range(h)], 1),
    ],
)


def pool_heads(w_k, num_heads, num_kv_heads):
    """w_k (d_model, num_heads·d_k), head by head -> (d_model, num_kv_heads·d_k), each head the mean of its group."""
    groups = w_k.unflatten(1, (num_kv_heads, num_heads // num_kv_heads, -1))  # (d_model, g, h / g, d_k)
    return groups.mean(2).flatten(1)


POOL_HEADS = Exercise(
    title="From eight heads of keys to two",
    difficulty=3,
    minutes=8,
    extra=True,
    reference=pool_heads,
    task="Make the W_K of grouped heads from that of a trained layer: each new head of keys is the mean of the "
    "neighbouring heads that it replaces.",
    inputs=lambda rand: [
        [rand(5, 6 * 7), 6, 2],
        [rand(3, 4 * 2), 4, 4],
        [rand(7, 10 * 3), 10, 1],
        [rand(2, 12 * 5), 12, 3],
    ],
    hints=[
        "Split the columns in three: group, head in the group, column in the head.",
        "Over which of the three does the mean run?",
    ],
    mistakes=[
        (
            lambda w, h, g: w.unflatten(1, (g, h // g, -1)).sum(2).flatten(1),
            "You add the heads of a group. The keys become h / g times too long, and so do the scores: take the mean.",
        ),
        (
            lambda w, h, g: w.unflatten(1, (g, h // g, -1))[:, :, 0].flatten(1),
            "You keep the first head of each group and drop the others. That is a choice too, but asked is the mean.",
        ),
        (
            lambda w, h, g: w.unflatten(1, (h // g, g, -1)).mean(1).flatten(1),
            "You average heads that stand g apart. A group is made of *neighbours*: which factor comes first?",
        ),
        (
            lambda w, h, g: w.unflatten(1, (g, -1, h // g)).mean(3).flatten(1),
            "You average neighbouring *columns* inside a head. Heads are averaged, column 0 with column 0: which "
            "axis is the head, which the column?",
        ),
        (
            lambda w, h, g: w.unflatten(1, (h, -1)).mean(1).repeat(1, g),
            "You average all heads and repeat the result. Each group has a mean of its own.",
        ),
        (
            lambda w, h, g: w.unflatten(1, (h, -1)).mean(1),
            "You average all heads into one: multi-query attention. Asked are num_kv_heads.",
        ),
        (lambda w, h, g: w[:, : w.shape[1] // h * g], "You keep the first num_kv_heads heads and drop the others."),
    ],
    also_right=[
        lambda w, h, g: einops.reduce(w, "m (g r d) -> m (g d)", "mean", g=g, r=h // g),
        lambda w, h, g: torch.cat([sum(part.chunk(h // g, 1)) * g / h for part in w.chunk(g, 1)], 1),
    ],
)


def tokens_that_fit(nbytes, num_layers, num_heads, num_kv_heads, d_k, bytes_per_number):
    """Bytes there are, and the sizes of a model with d_v = d_k -> the most tokens of one text, a whole number."""
    a_token = 2 * num_layers * num_kv_heads * d_k * bytes_per_number
    return nbytes // a_token


TOKENS_THAT_FIT = Exercise(
    title="How long a text fits",
    difficulty=2,
    minutes=5,
    reference=tokens_that_fit,
    task="So many bytes are left for the KV cache of one text. How many tokens can a model hold?",
    inputs=[
        [40 * 10**9, 80, 64, 8, 128, 2],
        [1079, 1, 6, 3, 5, 4],
        [1008000, 3, 12, 12, 7, 2],
        [10**5, 2, 10, 1, 11, 4],
    ],
    fresh=[[12345, 3, 8, 2, 7, 2], [9999, 1, 4, 4, 3, 4], [10**7, 24, 16, 2, 64, 2], [54321, 5, 6, 3, 11, 8]],
    hints=["How many bytes does one token need, in all layers?", "Half a token is no token."],
    mistakes=[
        (lambda n, L, h, g, d, size: n // (L * g * d * size), "You keep keys or values. Both are kept."),
        (
            lambda n, L, h, g, d, size: n // (2 * L * h * d * size),
            "You count the query heads. Which heads are kept in a cache?",
        ),
        (lambda n, L, h, g, d, size: n // (2 * g * d * size), "You count one layer. Every layer keeps its own."),
        (lambda n, L, h, g, d, size: n // (2 * L * g * d), "You count numbers. How many bytes has one?"),
        (lambda n, L, h, g, d, size: n // (2 * L * d * size), "You count one head of keys and values."),
        (lambda n, L, h, g, d, size: n // (3 * L * g * d * size), "You keep the queries too, in vain."),
        (lambda n, L, h, g, d, size: -(-n // (2 * L * g * d * size)), "You round up. Does the last token fit?"),
        (
            lambda n, L, h, g, d, size: round(n / (2 * L * g * d * size)),
            "You round to the nearest whole number. Does the last token fit?",
        ),
        (lambda n, L, h, g, d, size: n / (2 * L * g * d * size), "Only whole tokens are kept: round down."),
        (
            lambda n, L, h, g, d, size: int((n / (2 * L * g * d * size)) ** 0.5),
            "You take a square root. A cache grows with T; it is the score map that grows with T².",
        ),
        (
            lambda n, L, h, g, d, size: n // (2 * L * (h // g) * d * size),
            "h / g says how many query heads *share* one. How many are kept?",
        ),
        (
            lambda n, L, h, g, d, size: n // (2 * L * g * d * size * 8),
            "You count bits. Bytes there are, and bytes a number takes.",
        ),
        (
            lambda n, L, h, g, d, size: n // 2 * L * g * d * size,
            "`a // b * c` divides by b alone, then multiplies. Put the bytes of a token in brackets.",
        ),
    ],
    also_right=[
        lambda n, L, h, g, d, size: int(n / (2 * L * g * d * size)),
        lambda n, L, h, g, d, size: torch.tensor(n).div(2 * L * g * d * size, rounding_mode="floor"),
    ],
)


def rank_output(mixed, w_o, rank, num_processes):
    """mixed (B, T, h·d_v), the outputs of all h heads, side by side; w_o (h·d_v, d_model) -> (B, T, d_model), what
    process `rank` (0, 1, …) computes from its own h / num_processes heads."""
    own = slice(rank * len(w_o) // num_processes, (rank + 1) * len(w_o) // num_processes)
    return mixed[..., own] @ w_o[own]


RANK_OUTPUT = Exercise(
    title="One process's part of the output",
    difficulty=3,
    minutes=8,
    extra=True,
    reference=rank_output,
    task="The heads lie on several processes, in order. Each has its own heads and its own part of W_O; the layer's "
    "output is the *sum* of what they compute. Write what one of them computes.",
    inputs=lambda rand: [
        [rand(2, 3, 20), rand(20, 7), 1, 2],
        [rand(1, 1, 6), rand(6, 5), 2, 3],
        [rand(2, 5, 12), rand(12, 12), 0, 4],
        [rand(3, 2, 4), rand(4, 11), 0, 1],
    ],
    hints=[
        "Lesson 2, section 6: the output is the sum over heads of head_i times its rows of W_O.",
        "Which columns of `mixed` belong to the process? Which rows of w_o meet them?",
    ],
    mistakes=[
        (lambda m, w, rank, n: m @ w, "You compute the whole output. Where does `rank` come in?"),
        (lambda m, w, rank, n: m @ w / n, "You compute the whole output, and divide it. A process has its own heads."),
        (
            lambda m, w, rank, n: m @ w.chunk(n, 1)[rank],
            "You cut the *columns* of W_O. Then a process needs all heads. Cut it so that its own heads are enough.",
        ),
        (
            lambda m, w, rank, n: torch.cat(
                [part if i == rank else torch.zeros_like(part) for i, part in enumerate((m @ w).chunk(n, -1))], -1
            ),
            "You compute some columns of the output from all heads. A process has only some heads, and gives a part of "
            "*every* column.",
        ),
        (
            lambda m, w, rank, n: m[..., rank::n] @ w[rank::n],
            "You deal the columns out like cards. Heads stay whole and in order: process 0 has the first ones.",
        ),
        (
            lambda m, w, rank, n: (
                m.chunk(n, -1)[rank] @ w.chunk(n)[0] if rank else m.chunk(n, -1)[0] @ w.chunk(n)[n - 1]
            ),
            "Columns and rows do not belong together: head i meets its own rows of W_O.",
        ),
        (
            lambda m, w, rank, n: m.chunk(n, -1)[n - 1 - rank] @ w.chunk(n)[n - 1 - rank],
            "You count the processes from the end.",
        ),
        (
            lambda m, w, rank, n: m.chunk(n, -1)[rank] @ w.chunk(n)[rank] / n,
            "You divide by the number of processes. The parts are added, not averaged.",
        ),
        (
            lambda m, w, rank, n: sum(a @ b for a, b in zip(m.chunk(n, -1)[: rank + 1], w.chunk(n)[: rank + 1])),
            "You add up all processes so far. Each computes its own part, and the sum comes after.",
        ),
        (
            lambda m, w, rank, n: m.chunk(n, -1)[rank - 1] @ w.chunk(n)[rank - 1],
            "You count the ranks from 1. They are 0, 1, …: process 0 has the first heads.",
        ),
        (
            lambda m, w, rank, n: m.chunk(n, -1)[rank] @ w.chunk(n)[0],
            "The columns of `mixed` are right, but the rows of W_O are always the first ones. Head i meets its own.",
        ),
        (
            lambda m, w, rank, n: (m @ w).chunk(n, 1)[rank] if m.shape[1] >= n else m @ w,
            "You give each process some of the tokens. It has some of the *heads*, and all tokens.",
        ),
    ],
    also_right=[
        lambda m, w, rank, n: m.chunk(n, -1)[rank] @ w.chunk(n)[rank],
        lambda m, w, rank, n: torch.tensordot(m.tensor_split(n, 2)[rank], w.tensor_split(n)[rank], 1),
    ],
)
