"""Lesson 2, many heads: one head, the loop, stacked matrices, and heads that share what they must not."""

import copy
from typing import Any

import einops
import torch
from torch import nn
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise, torch_layer
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)


def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def one_head(x, w_q, w_k, w_v):
    """x (B, T, d_model), w_q and w_k (d_model, d_k), w_v (d_model, d_v) -> (B, T, d_v)."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


ONE_HEAD = Exercise(
    title="One head of the formula",
    difficulty=2,
    minutes=6,
    reference=one_head,
    task="Write head i: attention of x W_Q, x W_K and x W_V. The matrices are the paper's, (d_model, d_k), not "
    "transposed. Scores may be large.",
    inputs=lambda rand: [
        *(
            [rand(B, T, d), rand(d, d_k), rand(d, d_k), rand(d, d_v)]
            for B, T, d, d_k, d_v in ((2, 5, 7, 3, 2), (1, 3, 11, 5, 7), (3, 1, 5, 2, 3), (2, 7, 5, 5, 5))
        ),
        [100 * rand(2, 3, 7), rand(7, 5), rand(7, 5), rand(7, 2)],
    ],
    hints=[
        "Three products first: q, k and v.",
        "Then lesson 1: scores, scale, softmax, mix.",
        "The scale uses the width of q, which is the width of w_q.",
    ],
    mistakes=[
        (
            lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_k).mT / x.shape[-1] ** 0.5).softmax(-1) @ (x @ w_v),
            "You scale by √d_model, the width of x. A score of this head sums over the width of its *query*.",
        ),
        (lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_k).mT).softmax(-1) @ (x @ w_v), "The scores are not scaled."),
        (
            lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_k).mT / x.shape[1] ** 0.5).softmax(-1) @ (x @ w_v),
            "You scale by √T. How many products does one score of this head add up?",
        ),
        (
            lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_k).mT / w_v.shape[1] ** 0.5).softmax(-1) @ (x @ w_v),
            "You scale by √d_v. A score is a product of query and key: how wide are they?",
        ),
        (lambda x, w_q, w_k, w_v: attend(x @ w_q, x @ w_k, x @ w_q), "Your values are made by w_q. What is w_v for?"),
        (lambda x, w_q, w_k, w_v: attend(x @ w_q, x @ w_k, x @ w_k), "Your values are made by w_k. What is w_v for?"),
        (
            lambda x, w_q, w_k, w_v: F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, is_causal=True),
            "A causal mask has run: the first token reads itself alone. The formula here has no mask.",
        ),
        (
            lambda x, w_q, w_k, w_v: (
                (e := (x @ w_q @ (x @ w_k).mT / w_q.shape[1] ** 0.5).exp()) @ (x @ w_v) / e.sum(-1, keepdim=True)
            ),
            "The formula is right, but a large exponential is infinite, and inf / inf is NaN. torch's softmax is safe.",
        ),
        (lambda x, w_q, w_k, w_v: attend(x @ w_q, x @ w_k, x), "You average the tokens themselves. What is w_v for?"),
        (
            lambda x, w_q, w_k, w_v: attend(x @ w_k, x @ w_q, x @ w_v),
            "The rows of your map are keys. Which of W_Q and W_K makes the side that asks?",
        ),
        (
            lambda x, w_q, w_k, w_v: attend(x @ w_q, x @ w_q, x @ w_v),
            "Queries and keys come from the same matrix. What is w_k for?",
        ),
        (
            lambda x, w_q, w_k, w_v: attend(x, x, x @ w_v),
            "You compare the tokens themselves. w_q and w_k are not used.",
        ),
        (
            lambda x, w_q, w_k, w_v: x @ w_q.T,
            "You transpose a matrix. nn.Linear stores its matrix as (out, in) and needs that; here it is (d_model, "
            "d_k) already. Look at the shapes of the product.",
        ),
        (
            lambda x, w_q, w_k, w_v: (x @ w_q @ (x @ w_k).mT / w_q.shape[-1] ** 0.5).softmax(-2) @ (x @ w_v),
            "The softmax runs over the queries: the columns of your map sum to 1, not the rows.",
        ),
    ],
    also_right=[
        lambda x, w_q, w_k, w_v: F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v),
        lambda x, w_q, w_k, w_v: (x @ (w_q @ w_k.mT) @ x.mT / w_q.shape[1] ** 0.5).softmax(-1) @ x @ w_v,
    ],
)


def join(heads, w_o):
    """heads: a list of h tensors (B, T, d_v); w_o (h·d_v, d_model) -> (B, T, d_model)."""
    return torch.cat(heads, -1) @ w_o


JOIN = Exercise(
    title="Side by side, then W_O",
    difficulty=2,
    minutes=5,
    reference=join,
    task="The heads have done their work. Finish the formula: Concat(head_1, …, head_h) W_O.",
    inputs=lambda rand: [
        [[rand(B, T, d_v) for _ in range(h)], rand(h * d_v, d)]
        for B, T, h, d_v, d in ((2, 5, 3, 7, 11), (1, 3, 2, 5, 10), (3, 1, 5, 2, 7), (2, 2, 2, 2, 4))
    ],
    hints=[
        "After the concatenation a token has h·d_v numbers. Along which axis do you join?",
        "w_o has h·d_v rows: it stands on the right of the product.",
        "Head 0 must fill columns 0 to d_v - 1, head 1 the next d_v.",
    ],
    mistakes=[
        (
            lambda heads, w: torch.cat(heads, 1) @ w,
            "What meets W_O is still d_v wide: the heads are joined along the batch (cat's default) or the tokens, or "
            "stacked on an axis of their own. A token should get *wider*. Which axis is that?",
        ),
        (
            lambda heads, w: torch.stack(heads, -1).flatten(-2) @ w,
            "The heads are interleaved: column 0 of each head, then column 1 of each. The shape is right, but W_O "
            "expects head by head.",
        ),
        (
            lambda heads, w: torch.stack(heads, 1).reshape(*heads[0].shape[:2], -1) @ w,
            "The heads were stacked in front of the tokens and then reshaped: the shape is right, the tokens are "
            "mixed. Join along the last axis.",
        ),
        (
            lambda heads, w: torch.cat(heads[::-1], -1) @ w,
            "The last head comes first. W_O's first rows belong to head 0.",
        ),
        (
            lambda heads, w: sum(heads) @ w[: heads[0].shape[-1]],
            "You add the heads up first, so they all use the same rows of W_O. Each head has d_v rows of its own.",
        ),
        (
            lambda heads, w: sum(heads) / len(heads) @ w[: heads[0].shape[-1]],
            "You average the heads before W_O. An average can show what no head has: (1, 0) and (0, 1) become (0.5, "
            "0.5).",
        ),
        (
            lambda heads, w: torch.cat(heads, -1),
            "The concatenation is right. One step is missing: what brings the heads together?",
        ),
        (
            lambda heads, w: torch.cat(heads, -1) @ w.T,
            "You transpose w_o. Write the shapes side by side: does the product fit?",
        ),
        (
            lambda heads, w: sum(head @ part for head, part in zip(heads, w.split(heads[0].shape[-1]))) / len(heads),
            "Each output is too small by the factor h. W_O adds the heads' terms; do you take a mean?",
        ),
    ],
    also_right=[
        lambda heads, w: torch.stack(heads, -2).flatten(-2) @ w,
        lambda heads, w: sum(a @ b for a, b in zip(heads, w.split(heads[0].shape[-1]))),
    ],
)


def multi_head_loop(x, w_q, w_k, w_v, w_o):
    """x (B, T, d_model), w_q and w_k (h, d_model, d_k), w_v (h, d_model, d_v), w_o (h·d_v, d_model) -> like x."""
    heads = [one_head(x, *head) for head in zip(w_q, w_k, w_v)]
    return torch.cat(heads, -1) @ w_o


def loop_with(x, w_q, w_k, w_v, w_o, scale=None, axis=-1, own=lambda heads: heads):
    scale = w_q.shape[-1] ** -0.5 if scale is None else scale
    heads = [(x @ q @ (x @ k).mT * scale).softmax(axis) @ (x @ v) for q, k, v in own(list(zip(w_q, w_k, w_v)))]
    return torch.cat(heads, -1) @ w_o


def loop_by_einsum(x, w_q, w_k, w_v, w_o):
    q, k, v = (torch.einsum("btm,hmd->bhtd", x, w) for w in (w_q, w_k, w_v))
    out = torch.einsum("bhqk,bhkd->bhqd", (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1), v)
    return torch.einsum("bhqd,hdm->bqm", out, w_o.view(len(w_q), -1, x.shape[-1]))


def slices_of_x(x, w_q, w_k, w_v):
    """Wrong: head i gets columns of its own of x, all others are 0."""
    width = x.shape[-1] // len(w_q)
    own = [torch.zeros_like(x) for _ in w_q]
    for i, part in enumerate(own):
        part[..., i * width : (i + 1) * width] = x[..., i * width : (i + 1) * width]
    return torch.cat([one_head(part, *w) for part, *w in zip(own, w_q, w_k, w_v)], -1)


MULTI_HEAD_LOOP = Exercise(
    title="Multi-head attention as a loop",
    difficulty=3,
    minutes=12,
    reference=multi_head_loop,
    task="Write the whole formula with a loop over the heads. w_q[i], w_k[i] and w_v[i] belong to head i.",
    inputs=lambda rand: [
        [rand(B, T, d), rand(h, d, d_k), rand(h, d, d_k), rand(h, d, d_v), rand(h * d_v, d)]
        for B, T, d, h, d_k, d_v in ((2, 5, 7, 3, 2, 5), (1, 3, 6, 2, 3, 3), (3, 1, 5, 2, 7, 2), (1, 2, 5, 5, 3, 1))
    ],
    hints=[
        "Collect the heads in a list: each is your `one_head`, with the matrices of head i.",
        "Every head reads all of x. Then your `join`.",
        "The scale is that of one head: the last axis of w_q.",
    ],
    mistakes=[
        (
            lambda *a: loop_with(*a, own=lambda heads: [heads[0]] * len(heads)),
            "All your heads use the matrices of head 0. Does the loop variable appear inside the loop?",
        ),
        (
            lambda *a: loop_with(*a, own=lambda heads: heads[::-1]),
            "The last head comes first. W_O's first rows belong to head 0.",
        ),
        (
            lambda *a: loop_with(*a, scale=a[0].shape[-1] ** -0.5),
            "You scale by √d_model. Each head's scores sum over its own d_k.",
        ),
        (
            lambda *a: loop_with(*a, scale=(a[1].shape[0] * a[1].shape[2]) ** -0.5),
            "You scale by the width of all heads together, √(h·d_k). A score belongs to one head: how wide is one "
            "query?",
        ),
        (lambda *a: loop_with(*a, scale=1), "The scores are not scaled."),
        (
            lambda *a: loop_with(*a, scale=(a[0].shape[-1] // len(a[1])) ** -0.5),
            "You scale by √(d_model / h). That is d_k by convention only: here d_k is chosen freely. Which shape holds "
            "it?",
        ),
        (
            lambda x, w_q, w_k, w_v, w_o: one_head(x, w_q[-1], w_k[-1], w_v[-1]) @ w_o,
            "Only one head arrives at W_O. Is the list made anew in each turn of the loop, a name overwritten, or the "
            "return inside the loop?",
        ),
        (
            lambda x, *w: torch.cat([one_head(x, *one) for one in zip(*w[:3])], 1) @ w[3],
            "What meets W_O is still d_v wide: the heads are joined along the tokens or the batch, or stacked on an "
            "axis of their own. A token should get wider: which axis is that?",
        ),
        (lambda *a: loop_with(*a, axis=-2), "The softmax runs over the queries. Each *row* must sum to 1."),
        (lambda *a: loop_with(*a, axis=0), "The softmax runs over the batch. Each *row* must sum to 1."),
        (
            lambda x, w_q, w_k, w_v, w_o: torch.cat([one_head(x, *w) for w in zip(w_q, w_k, w_v)], -1),
            "The heads stand side by side, and W_O is missing.",
        ),
        (
            lambda *a: loop_with(
                *a, own=lambda heads: [(q, k, v) for (q, _, _), (_, k, v) in zip([heads[0]] * len(heads), heads)]
            ),
            "All heads share the queries of head 0. Look at the index of w_q.",
        ),
        (
            lambda *a: loop_with(*a, own=lambda heads: [(q, k, heads[0][2]) for q, k, _ in heads]),
            "All heads share the values of head 0. Look at the index of w_v.",
        ),
        (
            lambda *a: loop_with(*a, own=lambda heads: [(q, heads[0][1], v) for q, _, v in heads]),
            "All heads share the keys of head 0. Look at the index of w_k.",
        ),
        (
            lambda x, w_q, w_k, w_v, w_o: slices_of_x(x, w_q, w_k, w_v) @ w_o,
            "Each of your heads reads only its own columns of x. Heads split the projection, not the input: w_q[i] has "
            "d_model rows, and all of x goes in.",
        ),
    ],
    also_right=[
        loop_by_einsum,
        lambda x, w_q, w_k, w_v, w_o: sum(
            F.scaled_dot_product_attention(x @ q, x @ k, x @ v) @ o
            for q, k, v, o in zip(w_q, w_k, w_v, w_o.chunk(len(w_q)))
        ),
    ],
)


def stack_weights(w_q):
    """w_q (h, d_model, d_k), one matrix a head -> one matrix (d_model, h·d_k)."""
    return torch.cat(list(w_q), -1)


STACK_WEIGHTS = Exercise(
    title="From a loop to one product",
    difficulty=3,
    minutes=8,
    extra=True,
    reference=stack_weights,
    task="Make one matrix W of the h matrices, so that `x @ W` holds all queries: columns 0 to d_k - 1 are those of "
    "head 0, the next d_k those of head 1, and so on.",
    inputs=[
        [torch.arange(h * d * d_k, dtype=torch.float64).view(h, d, d_k)]
        for h, d, d_k in ((3, 5, 2), (2, 7, 3), (1, 3, 5), (5, 2, 1))
    ],
    fresh=[[torch.arange(30.0).double().view(3, 2, 5)], [torch.arange(42.0).double().view(2, 7, 3)]],
    hints=[
        "Row r of W holds what row r of each head's matrix holds, side by side.",
        "`torch.cat` along the last axis. Or bring the axes into the order (d_model, h, d_k), then flatten the last "
        "two.",
    ],
    mistakes=[
        (
            lambda w: w.reshape(w.shape[1], -1),
            "The shape is right, but a bare reshape keeps the order in memory: row 0 of yours holds several rows of "
            "head 0. Compare `x @ W` with `x @ w_q[0]`.",
        ),
        (
            lambda w: w.permute(1, 2, 0).flatten(1),
            "The heads are interleaved: column 0 of each head, then column 1 of each. Which index must run fastest "
            "inside a head?",
        ),
        (
            lambda w: w.flatten(0, 1),
            "You put the matrices below each other. For `x @ W`, which side of W must stay d_model long?",
        ),
        (
            lambda w: torch.cat(list(w), -1).T,
            "That is the transpose: nn.Linear stores its matrix so. Here `x @ W` is asked.",
        ),
        (lambda w: torch.cat(list(w.flip(0)), -1), "The last head comes first."),
        (
            lambda w: torch.cat([one.mT for one in w], -1),
            "You turn each matrix round before you join them. For `x @ W`, W has d_model rows, as each of them has.",
        ),
        (lambda w: w.sum(0), "You add the matrices up: all heads are mixed into one."),
    ],
    also_right=[
        lambda w: w.transpose(0, 1).flatten(1),
        lambda w: einops.rearrange(w, "h m d -> m (h d)"),
    ],
)


def make_heads(d_model, num_heads, d_k):
    """-> num_heads layers without bias, d_model -> d_k each, in a container that a module can register."""
    return nn.ModuleList(nn.Linear(d_model, d_k, bias=False) for _ in range(num_heads))


def make_heads_given(d_model, num_heads, d_k):
    head = nn.Linear(d_model, d_k, bias=False)
    return nn.ModuleList([head] * num_heads)


def what_it_takes(head, d_k):
    try:
        return f"(2, d_k): they make {tuple(head(torch.ones(2, d_k)).shape)} of it"
    except RuntimeError:
        return "no floats"


def look_into(answer, d_model, num_heads, d_k):
    """What a module that holds the heads would do, in words."""
    heads = answer(d_model, num_heads, d_k)
    if heads is None or heads is ...:
        return heads
    if not isinstance(heads, (list, tuple, nn.ModuleList, nn.ParameterList, nn.Sequential)):
        return f"no container of heads, but one {type(heads).__name__}"
    layer: Any = nn.Module()
    layer.heads = heads
    if not all(callable(head) for head in heads):
        return f"heads that cannot be called: {type(next(iter(heads))).__name__}"
    try:
        outs = [head(torch.ones(2, d_model)) for head in heads]
    except RuntimeError:
        return f"{len(heads)} heads that do not take (2, d_model), but {what_it_takes(heads[0], d_k)}"
    found = sum(p.numel() for p in layer.parameters())
    different = len({out[0, 0].item() for out in outs})
    return f"{len(outs)} heads, {different} different, {found} parameters; (2, d_model) becomes {tuple(outs[0].shape)}"


MAKE_HEADS = Exercise(
    title="Spot the bug: heads that are one head",
    difficulty=2,
    minutes=5,
    extra=True,
    reference=make_heads,
    given=make_heads_given,
    run=look_into,
    task="This code should make independent heads. Find out why all heads stay equal for ever, and mend it. The check "
    "counts the heads, the different ones, and the parameters that an optimiser finds; then it runs a head on a "
    "(2, d_model) input.",
    inputs=[[7, 3, 2], [5, 2, 3], [11, 5, 2], [3, 1, 3]],
    fresh=[[3, 4, 5], [13, 2, 7]],
    hints=[
        "Is `heads[0] is heads[1]`?",
        "`[head] * 3` is a list with the same object three times.",
        "Make a new layer in each turn of a loop. A plain Python list hides its layers from `parameters()`.",
    ],
    mistakes=[
        (
            lambda d, h, d_k: [nn.Linear(d, d_k, bias=False) for _ in range(h)],
            "The heads are different now, but `parameters()` finds none of them: a plain list does not register its "
            "layers, so they would never be trained. Which container of torch.nn does?",
        ),
        (
            lambda d, h, d_k: [nn.Linear(d, d_k, bias=False)] * h,
            "A plain list, and the same layer in every place: `parameters()` finds nothing, and the heads are one. "
            "Both need another way.",
        ),
        (
            lambda d, h, d_k: nn.Linear(d, h * d_k, bias=False),
            "One wide layer is the fast form, and a good idea. Here the heads are asked one by one: a container of h "
            "layers.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList([copy.deepcopy(head) for head in [nn.Linear(d, d_k, bias=False)] * h]),
            "The heads have parameters of their own, but all start equal. Equal heads get equal gradients: only "
            "rounding, dropout or chance would part them. Draw new numbers.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(h)),
            "Each of your heads is d_model wide. Here d_k is the width of *one* head; the concatenation has h·d_k.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Linear(d, d_k) for _ in range(h)),
            "There are more parameters than asked: nn.Linear has a bias unless you say otherwise.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Linear(d, max(1, d_k // h), bias=False) for _ in range(h)),
            "You divide d_k by the number of heads. It is the width of one head already.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Linear(d_k, d, bias=False) for _ in range(h)),
            "nn.Linear takes the width that goes *in* first. Which of yours is it: what a head reads, or what it "
            "makes?",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Embedding(d, d_k) for _ in range(h)),
            "An nn.Embedding picks a row by its number. A head multiplies: it takes d_model numbers and makes d_k.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList(nn.Linear(d, h * d_k, bias=False) for _ in range(h)),
            "Each of your heads is as wide as all heads together. d_k is the width of *one* head.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList([nn.Linear(d, d_k)] * h),
            "Still one layer, named h times, and it has a bias now. Make a new layer in each turn of a loop.",
        ),
        (
            lambda d, h, d_k: nn.ModuleList([nn.Linear(d, d_k, bias=False)]),
            "There is only one head. Where is the loop?",
        ),
        (
            lambda d, h, d_k: nn.ParameterList(nn.Parameter(torch.randn(d_k, d)) for _ in range(h)),
            "These are parameters, and an optimiser finds them. But a head is called, `head(x)`, and a parameter "
            "cannot be. Which layer holds one and multiplies by it?",
        ),
    ],
    also_right=[
        lambda d, h, d_k: torch.nn.Sequential(*(torch.nn.Linear(d, d_k, bias=False) for _ in range(h))),
        lambda d, h, d_k: torch.nn.ModuleList([torch.nn.Linear(d, d_k, False) for i in range(h)]),
    ],
)


def head_maps(layer, x):
    """layer: an nn.MultiheadAttention with batch_first=True; x (B, T, d_model) -> attention weights (B, h, T, T)."""
    return layer(x, x, x, average_attn_weights=False)[1]


def maps_from_in_proj(layer, x):
    projected = x @ layer.in_proj_weight.mT + layer.in_proj_bias
    q, k, _ = projected.unflatten(-1, (3, layer.num_heads, -1)).permute(2, 0, 3, 1, 4)
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)


HEAD_MAPS = Exercise(
    title="One map a head",
    difficulty=2,
    minutes=5,
    reference=head_maps,
    task="Get the attention maps of torch's layer: one for each head. `layer(query, key, value)` returns (output, "
    "weights), and the weights are averaged over the heads unless you ask for more. `help(layer.forward)` names "
    "the argument.",
    inputs=lambda rand: [
        [torch_layer(rand, d_model, h, batch_first=True), rand(B, T, d_model)]
        for B, T, d_model, h in ((2, 5, 6, 3), (1, 7, 10, 2), (3, 1, 5, 5))
    ],
    hints=[
        "What is the shape of `layer(x, x, x)[1]`? One axis is missing.",
        "An argument of the call keeps the maps apart.",
        "Look for `average` in `help(layer.forward)`.",
    ],
    mistakes=[
        (
            lambda layer, x: layer(x, x, x)[1],
            "There is one map for all heads: their average, torch's default. An average can show a pattern that no "
            "head has: [1, 0] and [0, 1] become [.5, .5].",
        ),
        (
            lambda layer, x: layer(x, x, x)[1][:, None].expand(-1, layer.num_heads, -1, -1),
            "The shape is right, but every head shows the same map: the average, repeated. The heads must be kept "
            "apart before it is taken.",
        ),
        (
            lambda layer, x: layer(x, x, x)[1][:, None],
            "You added an axis, but it holds one map: the average over heads.",
        ),
        (
            lambda layer, x: layer(x, x, x, average_attn_weights=False)[0],
            "That is the output of the layer. Which of its two results are the weights?",
        ),
        (
            lambda layer, x: layer(x, x, x, average_attn_weights=False),
            "Both results come back: output and weights. Only the weights are asked.",
        ),
        (
            lambda layer, x: layer(*3 * [x.transpose(0, 1)], average_attn_weights=False)[1],
            "You swapped batch and tokens. This layer was made with batch_first=True: it takes x as it is.",
        ),
        (
            lambda layer, x: layer(x, x, x, average_attn_weights=False)[1].mT,
            "Your maps are turned round. Row = query, column = key, and torch returns them so.",
        ),
    ],
    also_right=[
        maps_from_in_proj,
        lambda layer, x: layer(x, x, x, None, True, None, False)[-1],
    ],
)


def concat_shape():
    heads = [torch.zeros(2, 6, 2) for _ in range(2)]
    return tuple(torch.cat(heads, -1).shape)


CONCAT_SHAPE = Exercise(
    title="Per head or in all?",
    difficulty=1,
    minutes=2,
    extra=True,
    reference=concat_shape,
    task="A wrapper runs `num_heads=2` heads on a batch (2, 6, 3) and concatenates them. Each head is made with "
    "`d_out=2`. Which shape comes out? Write a tuple.",
    hints=["`d_out` is given to each head.", "Concatenation adds widths."],
    mistakes=[
        ((2, 6, 2), "`d_out` is the width of *one* head here. What does a concatenation of two do to it?"),
        ((2, 6, 3), "3 is the width that goes in. What comes out is made of the heads' outputs."),
        ((2, 12, 2), "You joined along the tokens. There are still 6 of them; each gets wider."),
        ((2, 6, 6), "You multiplied by the width that goes in. Each head returns d_out numbers for a token."),
        ((4, 6, 2), "You joined along the batch. There are still 2 sentences; each token gets wider."),
        ((2, 2, 6, 2), "That is a stack with an axis for the heads. A concatenation adds no axis."),
    ],
    also_right=[
        [2, 6, 4],
        torch.cat([torch.zeros(2, 6, 2)] * 2, -1).shape,
    ],
)


def head_width():
    d_model, num_heads = 1600, 25  # the 48 counts layers
    return d_model // num_heads


HEAD_WIDTH = Exercise(
    title="The width of a head",
    difficulty=1,
    minutes=2,
    extra=True,
    reference=head_width,
    task="GPT-2 XL: `n_embd=1600, n_layer=48, n_head=25`. How wide is one head?",
    hints=["d_k = d_model / h, by convention.", "Which of the three numbers is h?"],
    mistakes=[
        (33, "1600 / 48 is no whole number, which is a warning: 48 counts the layers. How many heads has a layer?"),
        (1600 / 48, "A width is a whole number. 48 counts the layers; how many heads has a layer?"),
        (1600, "That is d_model, the width of all heads together."),
        (25, "That is the number of heads. How wide is each?"),
        (40000, "You multiplied. The heads share d_model between them."),
        (48, "That is the number of layers."),
    ],
    also_right=[
        1600 / 25,
        torch.tensor(64),
    ],
)
