"""Right answers, written otherwise than the references: einsum, einops, loops, views."""

import math

import einops
import numpy as np
import torch
from torch.nn import functional as F

from mhsa import causal_mask, merge_heads, split_heads


def weights_by_hand(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def attend_by_loops(q, k, v):
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[2])
    for b in range(q.shape[0]):
        for i in range(q.shape[1]):
            scores = torch.stack([(q[b, i] * k[b, j]).sum() for j in range(k.shape[1])]) / q.shape[2] ** 0.5
            out[b, i] = sum(w * v[b, j] for j, w in enumerate(scores.softmax(0)))
    return out


def loop_by_einsum(x, w_q, w_k, w_v, w_o):
    q, k, v = (torch.einsum("btm,hmd->bhtd", x, w) for w in (w_q, w_k, w_v))
    out = torch.einsum("bhqk,bhkd->bhqd", (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1), v)
    return torch.einsum("bhqd,hdm->bqm", out, w_o.view(len(w_q), -1, x.shape[-1]))


def split_by_loop(x, num_heads):
    d = x.shape[-1] // num_heads
    return torch.stack([x[..., i * d : (i + 1) * d] for i in range(num_heads)], 1)


def multi_head_by_einops(x, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (einops.rearrange(x @ w, "b t (h d) -> b h t d", h=num_heads) for w in (w_q, w_k, w_v))
    return einops.rearrange(F.scaled_dot_product_attention(q, k, v), "b h t d -> b t (h d)") @ w_o


def causal_by_loops(T_q, T_k):
    return torch.tensor([[key <= query + T_k - T_q for key in range(T_k)] for query in range(T_q)])


def masked_by_kernel(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def masked_by_where(q, k, v, mask):
    scores = torch.where(mask, q @ k.mT / k.shape[-1] ** 0.5, -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v


def padding_by_loops(lengths, T):
    mask = torch.zeros(len(lengths), 1, 1, T, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, ..., :n] = True
    return mask


def merge_by_logs(out_a, top_a, sum_a, out_b, top_b, sum_b):
    log_a, log_b = top_a + sum_a.log(), top_b + sum_b.log()  # of each block's share of the whole
    share = torch.sigmoid(log_a - log_b)
    return out_a / sum_a * share + out_b / sum_b * (1 - share)


def decode_by_kernel(x, keys, values, w_q, w_k, w_v):
    keys, values = torch.cat((keys, x @ w_k), -2), torch.cat((values, x @ w_v), -2)
    return F.scaled_dot_product_attention(x @ w_q, keys, values), keys, values


def decode_by_einsum(x, keys, values, w_q, w_k, w_v):
    keys, values = (torch.hstack([old, x @ w]) for old, w in ((keys, w_k), (values, w_v)))
    scores = torch.einsum("bqd,bkd->bqk", x @ w_q, keys) * len(w_q.T) ** -0.5
    return [torch.einsum("bqk,bkd->bqd", scores.softmax(-1), values), keys, values]


def words_by_loops(weights, word):
    W = max(word) + 1
    out = torch.zeros(W, W)
    for q, row in zip(word, weights):
        for k, w in zip(word, row):
            out[q, k] += w / word.count(q)
    return out


def words_divided_by_their_rows(weights, word):
    pieces = F.one_hot(torch.tensor(word)).double()
    added = pieces.mT @ weights @ pieces
    return added / added.sum(-1, keepdim=True)


def words_by_index_add(weights, word):
    number = torch.tensor(word)
    out = torch.zeros(max(word) + 1, len(word)).index_add(0, number, weights) / number.bincount()[:, None]
    return torch.zeros(max(word) + 1, max(word) + 1).index_add(1, number, out)


ALSO_RIGHT = {
    "DOT_SCORES": [
        lambda q, k: torch.einsum("bqd,bkd->bqk", q, k),
        lambda q, k: torch.bmm(q, k.transpose(1, 2)),
        lambda q, k: (q[:, :, None] * k[:, None]).sum(-1),
        lambda q, k: (k @ q.mT).mT,
    ],
    "SCALE_SCORES": [lambda s, d_model, h: s * (h / d_model) ** 0.5, lambda s, d, h: s.div(torch.tensor(d / h).sqrt())],
    "TO_WEIGHTS": [weights_by_hand, lambda s: F.softmax(s, 2), torch.nn.Softmax(2), lambda s: s.log_softmax(2).exp()],
    "ATTEND": [
        attend_by_loops,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: ((k @ q.mT) * k.shape[-1] ** -0.5).softmax(1).mT @ v,
    ],
    "ONE_HEAD": [
        lambda x, a, b, c: F.scaled_dot_product_attention(x @ a, x @ b, x @ c),
        lambda x, a, b, c: (x @ (a @ b.mT) @ x.mT / a.shape[1] ** 0.5).softmax(-1) @ x @ c,
    ],
    "JOIN": [
        lambda heads, w: torch.stack(heads, -2).flatten(-2) @ w,
        lambda heads, w: sum(a @ b for a, b in zip(heads, w.split(heads[0].shape[-1]))),
    ],
    "MULTI_HEAD_LOOP": [
        loop_by_einsum,
        lambda x, w_q, w_k, w_v, w_o: sum(
            F.scaled_dot_product_attention(x @ q, x @ k, x @ v) @ o
            for q, k, v, o in zip(w_q, w_k, w_v, w_o.chunk(len(w_q)))
        ),
    ],
    "STACK_WEIGHTS": [lambda w: w.transpose(0, 1).flatten(1), lambda w: einops.rearrange(w, "h m d -> m (h d)")],
    "MAKE_HEADS": [
        lambda d, h, d_k: torch.nn.Sequential(*(torch.nn.Linear(d, d_k, bias=False) for _ in range(h))),
        lambda d, h, d_k: torch.nn.ModuleList([torch.nn.Linear(d, d_k, False) for i in range(h)]),
    ],
    "MY_SPLIT": [
        split_heads,
        split_by_loop,
        lambda x, h: einops.rearrange(x, "b t (h d) -> b h t d", h=h),
        lambda x, h: x.unflatten(-1, (h, -1)).movedim(2, 1),
    ],
    "MY_MERGE": [
        merge_heads,
        lambda x: torch.cat(x.unbind(1), -1),
        lambda x: einops.rearrange(x, "b h t d -> b t (h d)"),
    ],
    "MEMORY_OFFSET": [
        lambda b, i, t, c, T, h, d: np.ravel_multi_index((b, t, i, c), (b + 1, T, h, d)),
        lambda b, i, t, c, T, h, d: torch.arange((b + 1) * T * h * d).view(-1, T, h, d)[b, t, i, c],
    ],
    "SCORES_BTHD": [
        lambda q, k: q.transpose(1, 2) @ k.permute(0, 2, 3, 1),
        lambda q, k: einops.einsum(q, k, "b q h d, b k h d -> b h q k"),
    ],
    "UNFUSE": [
        lambda w, h: torch.stack([part.unflatten(0, (h, -1)) for part in w.chunk(3)]),
        lambda w, h: einops.rearrange(w, "(three h d) m -> three h d m", three=3, h=h),
    ],
    "MIX_HEADS": [
        lambda *a: merge_heads(F.scaled_dot_product_attention(*(split_heads(x, a[3]) for x in a[:3]))),
        lambda *a: torch.cat(
            [F.scaled_dot_product_attention(*parts) for parts in zip(*(x.chunk(a[3], -1) for x in a[:3]))], -1
        ),
    ],
    "MULTI_HEAD": [
        multi_head_by_einops,
        lambda x, w_q, w_k, w_v, w_o, h: loop_by_einsum(
            x, *(w.unflatten(1, (h, -1)).transpose(0, 1) for w in (w_q, w_k, w_v)), w_o
        ),
    ],
    "PRODUCT_FLOPS": [lambda T, d, h: 4 * T * d * (2 * d + T), lambda T, d, h: 8 * T * d**2 + 4.0 * h * T**2 * (d / h)],
    "SCORE_BYTES": [lambda B, T, h, n: float(n * B * h * T**2), lambda B, T, h, n: torch.tensor([B * h * T * T * n])],
    "MY_CAUSAL_MASK": [causal_mask, causal_by_loops, lambda q, k: torch.arange(k) <= torch.arange(k - q, k)[:, None]],
    "MY_PADDING_MASK": [padding_by_loops, lambda n, T: torch.arange(T).lt(torch.tensor(n).view(-1, 1, 1, 1))],
    "JOIN_MASKS": [torch.logical_and, lambda c, p: c * p, lambda c, p: p.masked_fill(~c, False)],
    "FOR_TORCH": [lambda m: m.logical_not(), lambda m: torch.zeros(m.shape).masked_fill(~m, -torch.inf)],
    "MASKED_ATTENTION": [masked_by_kernel, masked_by_where],
    "MERGE_BLOCKS": [merge_by_logs, lambda a, m, s, b, n, t: (a + b * (n - m).exp()) / (s + t * (n - m).exp())],
    "DECODE_STEP": [decode_by_kernel, decode_by_einsum],
    "SHARE_KV": [
        lambda k, h: k.unsqueeze(2).expand(-1, -1, h // k.shape[1], -1, -1).flatten(1, 2),
        lambda k, h: torch.stack([k[:, i * k.shape[1] // h] for i in range(h)], 1),
    ],
    "POOL_HEADS": [
        lambda w, h, g: einops.reduce(w, "m (g r d) -> m (g d)", "mean", g=g, r=h // g),
        lambda w, h, g: torch.cat([sum(part.chunk(h // g, 1)) * g / h for part in w.chunk(g, 1)], 1),
    ],
    "TOKENS_THAT_FIT": [
        lambda n, L, h, g, d, size: int(n / (2 * L * g * d * size)),
        lambda n, L, h, g, d, size: torch.tensor(n).div(2 * L * g * d * size, rounding_mode="floor"),
    ],
    "RANK_OUTPUT": [
        lambda m, w, rank, n: m.chunk(n, -1)[rank] @ w.chunk(n)[rank],
        lambda m, w, rank, n: torch.tensordot(m.tensor_split(n, 2)[rank], w.tensor_split(n)[rank], 1),
    ],
    "SINK_SHARE": [lambda w: w.transpose(0, 1)[..., 0].flatten(1).mean(1), lambda w: w.mean(2)[:, :, 0].mean(0)],
    "PREVIOUS_SHARE": [
        lambda w: sum(w[:, :, t, t - 1] for t in range(1, w.shape[2])).mean(0) / (w.shape[2] - 1),
        lambda w: (w * torch.eye(w.shape[2]).roll(-1, 1).tril()).sum((2, 3)).mean(0) / (w.shape[2] - 1),
    ],
    "RELATIVE_ENTROPY": [
        lambda w: torch.special.entr(w).sum(-1) / math.log(w.shape[-1]),
        lambda w: 1 - (w * (w * w.shape[-1]).log()).sum(-1) / math.log(w.shape[-1]),
        lambda w: torch.distributions.Categorical(w).entropy() / math.log(w.shape[-1]),
    ],
    "WORD_MAP": [words_by_loops, words_by_index_add, words_divided_by_their_rows],
    "WITHOUT_HEAD": [
        lambda x, w_o, i: merge_heads(x * (torch.arange(x.shape[1]) != i)[:, None, None]) @ w_o,
        lambda heads, w_o, i: sum(heads[:, j] @ block for j, block in enumerate(w_o.chunk(heads.shape[1])) if j != i),
    ],
    "DROP": [
        lambda w, p, training: F.dropout(w, p) if training else w,
        lambda w, p, training: torch.nn.Dropout(p).train(training)(w),
        lambda w, p, training: w * (torch.rand(w.shape) >= p) / (1 - p) if training else w,
    ],
    "TOKENS_BACK": [
        lambda x, m: torch.stack([torch.cat([x[:, -i:], x[:, :-i]], 1) for i in range(1, m + 1)], 2),
        lambda x, m: x[:, (torch.arange(x.shape[1])[:, None] - torch.arange(m) - 1) % x.shape[1]],
    ],
    "IDEAL_MAP": [
        lambda T, n: torch.eye(T).roll(-n, 1),
        lambda T, n: torch.eye(T).roll(n, 0),
        lambda T, n: torch.tensor([[float((q - k - n) % T == 0) for k in range(T)] for q in range(T)]),
    ],
    "EVEN_BLEND": [
        lambda v, t: sum(v[t[:, i]] for i in range(t.shape[1])) / t.shape[1],
        lambda v, t: F.one_hot(t, len(v)).double().mean(1) @ v,
    ],
    "RELATION_OF_HEADS": [
        lambda w, i: (w[:, None] * i).sum((-2, -1)).max(1).indices,
        lambda w, i: [int((head * i).sum((1, 2)).argmax()) for head in w],
        lambda w, i: ((w[:, None] - i) ** 2).sum((2, 3)).argmin(1),
    ],
    "HEADS_NEEDED": [
        lambda m, V, a: next(h for h in range(1, m + 1) if (h + (m - h) / V) / m >= a),
        lambda m, V, a: max(1, -int(-((m * a - m / V) / (1 - 1 / V)) // 1)),
    ],
    "HEADS_FOR": [
        lambda d, w: sorted((abs(d / h - w), h) for h in range(1, d + 1) if d % h == 0)[0][1],
        lambda d, w: d // min((k for k in range(1, d + 1) if d % k == 0), key=lambda k: abs(k - w)),
    ],
    "LEAST_WIDTH": [
        lambda p: torch.linalg.matrix_rank(p.log() - p.log()[:, :1]),
        lambda p: int((torch.linalg.svdvals(p.log() - p.log().mean(1, keepdim=True)) > 1e-8).sum()),
    ],
    "POINT_AT": [
        lambda t: (lambda k: (300 * len(t) ** 2 * k[t], k))(
            torch.view_as_real(
                torch.polar(torch.ones(len(t)).double(), 0.3 + 2 * torch.pi * torch.arange(len(t)).double() / len(t))
            )
        ),
        lambda t: (lambda x: (torch.stack([2 * x[t], -torch.ones(len(t))], 1) * 100, torch.stack([x, x**2], 1)))(
            torch.arange(len(t)) - 2.0
        ),
    ],
    "WITHOUT_HEADS": [
        lambda x, w, h, out: sum(
            (a @ b for i, (a, b) in enumerate(zip(x.chunk(h, -1), w.chunk(h))) if i not in out), torch.zeros(1)
        ),
        lambda x, w, h, out: (
            x @ (w.unflatten(0, (h, -1)) * torch.tensor([[[float(i not in out)]] for i in range(h)])).flatten(0, 1)
        ),
    ],
}
