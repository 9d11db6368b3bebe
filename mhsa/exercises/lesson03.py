"""Lesson 3, split and merge: where each number goes, other layouts, and the whole layer from an empty cell."""

import einops
import numpy as np
import torch
from torch.nn import functional as F

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of
from mhsa.heads import merge_heads, split_heads
from mhsa.masks import causal_mask

quiz = quiz_of(__name__)


def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def fingerprint(*shape):
    """0, 1, 2, …: each number is its own place in memory, so a wrong place shows."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float64).view(shape)


SPLIT_SIZES = ((2, 5, 3, 7), (1, 3, 2, 5), (3, 1, 5, 2), (2, 3, 1, 7))  # B, T, h, d


def head_1():
    x = torch.arange(30).view(1, 5, 6)
    return x.view(1, 5, 3, 2).transpose(1, 2)[0, 1].tolist()


HEAD_1 = Exercise(
    title="Predict a head",
    difficulty=2,
    minutes=4,
    reference=head_1,
    task="`torch.arange(30).view(1, 5, 6)` is split into 3 heads. Write head 1 by hand: five rows of two numbers. "
    "(Heads count from 0.)",
    hints=[
        "Write the 5 rows of 6 numbers down. One row is one token.",
        "Head 1 owns the same two columns of every token. Which?",
    ],
    mistakes=[
        (
            torch.arange(30).view(1, 3, 5, 2)[0, 1].tolist(),
            "You took ten neighbours in memory: that is a view straight into (B, h, T, d). Each row of a head must "
            "come from another token, so how far is it from one row to the next?",
        ),
        ([[0, 1], [6, 7], [12, 13], [18, 19], [24, 25]], "That is head 0. Heads count from 0."),
        (
            torch.arange(30).view(1, 5, 2, 3).permute(0, 3, 1, 2)[0, 1].tolist(),
            "Each row comes from the right token, but from columns that lie apart. A head owns *neighbouring* columns.",
        ),
        (
            torch.arange(30).view(1, 5, 6).mT.reshape(1, 3, 5, 2)[0, 1].tolist(),
            "You transposed first and cut afterwards. Then a row holds numbers of several tokens. Cut the columns "
            "first.",
        ),
        (
            torch.arange(30).view(1, 5, 3, 2)[0, 1].tolist(),
            "Those are the three heads of token 1. Which axis is the head?",
        ),
        (
            [[2, 8, 14, 20, 26], [3, 9, 15, 21, 27]],
            "The numbers are right, but turned round: a head has a row for each token.",
        ),
    ],
    also_right=[
        torch.arange(30).view(5, 6)[:, 2:4],
        ((2, 3), (8, 9), (14, 15), (20, 21), (26, 27)),
    ],
)


def my_split(x, num_heads):
    """x (B, T, h·d) -> (B, h, T, d)."""
    B, T, width = x.shape
    return x.view(B, T, num_heads, width // num_heads).transpose(1, 2)


def split_by_loop(x, num_heads):
    d = x.shape[-1] // num_heads
    return torch.stack([x[..., i * d : (i + 1) * d] for i in range(num_heads)], 1)


MY_SPLIT = Exercise(
    title="Split the heads",
    difficulty=2,
    minutes=5,
    reference=my_split,
    task="Head i gets columns i·d to (i+1)·d of every token. Write it without a loop, if you can.",
    inputs=[[fingerprint(B, T, h * d), h] for B, T, h, d in SPLIT_SIZES],
    fresh=[[fingerprint(3, 4, 10), 5], [fingerprint(2, 7, 6), 2]],
    hints=[
        "First cut the columns, then swap two axes.",
        "Cut: (B, T, h·d) becomes (B, T, h, d). Which two axes swap?",
        "Check with head 0 of 0, 1, 2, …: its second row must begin h·d further on.",
    ],
    mistakes=[
        (
            lambda x, h: x.reshape(x.shape[0], h, x.shape[1], -1),
            "You split straight into (B, h, T, d). The shape is right and the tokens are mixed: look at the rows of "
            "head 0, they hold neighbours of one token. With h=1 or T=1 you would not notice.",
        ),
        (
            lambda x, h: x.unflatten(-1, (h, -1)),
            "The columns are cut, and the order is token, then head: (B, T, h, d). One step is missing: attention "
            "works on the last two axes.",
        ),
        (
            lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
            "The shape is right, but head 0 has columns 0, h, 2h, …. A head owns neighbouring columns: in which "
            "order do you cut, (h, d) or (d, h)?",
        ),
        (
            lambda x, h: x.mT.reshape(x.shape[0], h, x.shape[1], -1),
            "You transpose before you cut, so a row of a head holds numbers of several tokens. Cut the columns first.",
        ),
        (
            lambda x, h: x.mT.view(x.shape[0], h, x.shape[1], -1),
            "`view` refuses: after a transpose the numbers of a new axis lie apart. Do not reach for reshape: cut the "
            "columns first, and let the transpose be the last step.",
        ),
        (
            lambda x, h: x.unflatten(-1, (h, -1)).transpose(2, 3),
            "You swap h with d. Which axis has to move in front of T?",
        ),
        (
            lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 3, 1),
            "Each head is turned round: d rows of T numbers. A row belongs to a token.",
        ),
        (
            lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1),
            "Batch and heads are one axis here. That is a layout in use for `bmm`; asked is (B, h, T, d).",
        ),
        (
            lambda x, h: torch.stack(x.chunk(x.shape[-1] // h, -1), 1),
            "You cut into pieces that are h wide. num_heads is the number of pieces: how wide is one?",
        ),
    ],
    also_right=[
        split_heads,
        split_by_loop,
        lambda x, h: einops.rearrange(x, "b t (h d) -> b h t d", h=h),
        lambda x, h: x.unflatten(-1, (h, -1)).movedim(2, 1),
    ],
)


def my_merge(x):
    """x (B, h, T, d) -> (B, T, h·d)."""
    B, h, T, d = x.shape
    return x.transpose(1, 2).reshape(B, T, h * d)


MY_MERGE = Exercise(
    title="Merge the heads",
    difficulty=2,
    minutes=5,
    reference=my_merge,
    task="The way back: for each token the heads side by side, head 0 first.",
    inputs=[[fingerprint(B, h, T, d)] for B, T, h, d in SPLIT_SIZES],
    fresh=[[fingerprint(3, 5, 4, 2)], [fingerprint(2, 2, 7, 3)]],
    hints=[
        "Two steps, in the reverse order of the split.",
        "Swap the axes back: (B, T, h, d). Then join the last two.",
        "`view` refuses here. Which function copies where it must?",
    ],
    mistakes=[
        (
            lambda x: x.reshape(x.shape[0], x.shape[2], -1),
            "You go straight to (B, T, h·d). The shape is right and the tokens are mixed: row 0 holds head 0 of "
            "several tokens. It even undoes a wrong split, so a round trip would not show it.",
        ),
        (
            lambda x: x.transpose(1, 2).view(x.shape[0], x.shape[2], -1),
            "The two steps are right. `view` cannot join axes that lie apart in memory: it needs numbers laid out "
            "anew. Which call does that before it, or which function copies by itself?",
        ),
        (
            lambda x: x.permute(0, 2, 3, 1).flatten(2),
            "The heads are interleaved: number 0 of each head, then number 1 of each. Asked is head by head: in which "
            "order do the last two axes join?",
        ),
        (
            lambda x: x.transpose(1, 2),
            "The axes are swapped back: (B, T, h, d). One step is missing: join the last two.",
        ),
        (lambda x: x.transpose(2, 3).flatten(2), "You swap T with d. Which axis has to move behind T?"),
        (lambda x: x.sum(1), "You add the heads up. They stand side by side; adding is the work of W_O."),
        (lambda x: x.mean(1), "You average the heads, and their differences are lost. They stand side by side."),
        (lambda x: x.flip(1).transpose(1, 2).flatten(2), "The last head comes first."),
        (lambda x: x.flatten(1, 2), "You joined heads with tokens: (B, h·T, d). A token should get wider."),
    ],
    also_right=[
        merge_heads,
        lambda x: torch.cat(x.unbind(1), -1),
        lambda x: einops.rearrange(x, "b h t d -> b t (h d)"),
    ],
)


def split_strides():
    return torch.zeros(2, 5, 21).view(2, 5, 3, 7).transpose(1, 2).stride()


SPLIT_STRIDES = Exercise(
    title="Predict the strides",
    difficulty=3,
    minutes=4,
    extra=True,
    reference=split_strides,
    task="x is contiguous, (2, 5, 21). What is `x.view(2, 5, 3, 7).transpose(1, 2).stride()`? Write a tuple.",
    hints=[
        "Strides count numbers, not bytes. Start with those of x.view(2, 5, 3, 7): the last is 1.",
        "transpose moves no number. What does it do to the strides?",
    ],
    mistakes=[
        (
            (105, 35, 7, 1),
            "These are the strides of a fresh (2, 3, 5, 7). But transpose moves no number: from one token to the "
            "next it is still as far as in x.",
        ),
        ((105, 21, 7, 1), "These are the strides before the transpose. It swaps two axes; what follows them?"),
        ((2, 3, 5, 7), "That is the shape. A stride says how many places it is to the next index of an axis."),
        ((105, 21, 1), "Those are the strides of x. The view has four axes."),
        ((420, 28, 84, 4), "Those are bytes. torch counts in numbers."),
    ],
    also_right=[
        [105, 7, 21, 1],
        torch.tensor([105, 7, 21, 1]),
    ],
)


def which_copy():
    x, lines = torch.zeros(2, 5, 21), {}
    heads = lines["a"] = x.view(2, 5, 3, 7).transpose(1, 2)
    lines["b"] = heads.transpose(1, 2).view(2, 5, 21)
    z = torch.ones(2, 3, 5, 5) @ heads
    lines["c"] = z.transpose(1, 2)
    lines["d"] = lines["c"].reshape(2, 5, 21)
    lines["e"] = lines["c"].contiguous()
    sources = dict.fromkeys("ab", x) | dict.fromkeys("cde", z)
    return tuple(name for name, line in lines.items() if line.data_ptr() != sources[name].data_ptr())


def in_order(answer):
    """The order of the letters does not matter, nor whether they are a tuple, a list or a set."""
    answer = answer() if callable(answer) else answer  # the reference
    if isinstance(answer, str):
        return "one text"
    several = isinstance(answer, (list, tuple, set)) and all(isinstance(x, str) for x in answer)
    return tuple(sorted(x.strip().lower() for x in answer)) if several else answer


WHICH_COPY = Exercise(
    title="Which lines copy?",
    difficulty=3,
    minutes=4,
    reference=which_copy,
    run=in_order,
    task="x is contiguous, (2, 5, 21), `heads` is line a, and `z = weights @ heads` is new. Which lines move numbers "
    "to new memory? (Not asked: what happens inside that product.) Write their letters as a tuple of strings.\n\n"
    "- a: `x.view(2, 5, 3, 7).transpose(1, 2)`\n- b: `heads.transpose(1, 2).view(2, 5, 21)`\n"
    "- c: `z.transpose(1, 2)`\n- d: `z.transpose(1, 2).reshape(2, 5, 21)`\n"
    "- e: `z.transpose(1, 2).contiguous()`",
    hints=[
        "view and transpose never copy. Which words may?",
        "In which order do the numbers of `heads` lie in memory? And those of z?",
    ],
    mistakes=[
        (("e",), "`contiguous` says that it copies. Which other word copies where it must, without saying so?"),
        (("d",), "`reshape` copies where it must. What does `contiguous` do with the same axes?"),
        (
            ("b", "d", "e"),
            "Line b undoes the split of x itself. Have these numbers ever left x? It contains no word that may copy.",
        ),
        (
            ("b", "d"),
            "Line b undoes the split of x itself, so its numbers have never left x. And `contiguous`: what does it do "
            "with axes that lie apart?",
        ),
        (("c", "d"), "A transpose swaps strides and moves no number. What does `contiguous` do after it?"),
        (("c", "e"), "A transpose swaps strides and moves no number. Which word copies where it must?"),
        (("b", "e"), "Line b undoes the split of x itself. Which other word copies where it must?"),
        (
            ("b", "c", "d", "e"),
            "Two of these move no number: one is a transpose, and one undoes the split of x itself.",
        ),
        (("a", "b", "c", "d", "e"), "Three of these write new strides alone. Which words may move numbers?"),
        ("de", "You wrote one text. Write a tuple, with a text for each letter and commas between them."),
        (("a", "b", "c"), "These three write new strides alone; it is the other two that you want."),
        (("c", "d", "e"), "A transpose swaps strides and moves no number."),
        (("a", "d", "e"), "view and transpose write new strides and move no number."),
        ((), "z was written head by head, and a token's numbers lie apart. Can one row of 21 be a view of them?"),
    ],
    also_right=[
        ["e", "d"],
        {"D", "E"},
    ],
)


def memory_offset(b, head, t, c, T, num_heads, d):
    """b, head, t, c: an index into heads (B, h, T, d), a view of x (B, T, h·d) -> the place in x's memory, from 0."""
    return b * T * num_heads * d + t * num_heads * d + head * d + c


MEMORY_OFFSET = Exercise(
    title="Find an element in memory",
    difficulty=3,
    minutes=6,
    extra=True,
    reference=memory_offset,
    task="x (B, T, h·d) is contiguous, begins at place 0 of its memory and was split without a copy. At which place "
    "lies `heads[b, head, t, c]`?",
    inputs=[
        [1, 2, 3, 4, 5, 3, 7],
        [0, 1, 2, 1, 3, 2, 5],
        [2, 4, 0, 1, 1, 5, 2],
        [0, 0, 4, 2, 7, 1, 3],
        [1, 1, 0, 0, 2, 3, 11],
    ],
    fresh=[[2, 1, 4, 0, 7, 5, 3], [1, 3, 2, 5, 11, 4, 6], [3, 0, 1, 1, 2, 2, 5]],
    hints=[
        "The place is the offset, here 0, plus the sum of index times stride. You need four strides.",
        "From one token to the next: a whole row of x.",
        "From one head to the next: the width of a head.",
    ],
    mistakes=[
        (
            lambda b, i, t, c, T, h, d: ((b * h + i) * T + t) * d + c,
            "You count as if the heads had been copied into (B, h, T, d). The split is a view: the numbers still lie "
            "token by token.",
        ),
        (
            lambda b, i, t, c, T, h, d: (t * h + i) * d + c,
            "The sentence does not enter. How many numbers come before sentence b?",
        ),
        (
            lambda b, i, t, c, T, h, d: ((b * T + t) * d + c) * h + i,
            "You interleave the heads. A head owns neighbouring columns: which index has stride 1?",
        ),
        (lambda b, i, t, c, T, h, d: ((b * T + t) * h + i) * d, "The column does not enter. What has stride 1?"),
        (
            lambda b, i, t, c, T, h, d: b * T * d + t * h * d + i * d + c,
            "From one sentence to the next it is T whole rows of x, and a row holds all heads.",
        ),
        (
            lambda b, i, t, c, T, h, d: b * T * h * d + t * h * d + i * h * d + c,
            "From one head to the next it is the width of a head. Yours steps a whole row.",
        ),
        (
            lambda b, i, t, c, T, h, d: 8 * (((b * T + t) * h + i) * d + c),
            "That is a number of bytes. Asked is the place, counted in numbers.",
        ),
        (lambda b, i, t, c, T, h, d: ((b * T + t) * h + i) * d + c + 1, "You count from 1. The first place is 0."),
        (
            lambda b, i, t, c, T, h, d: (b * T + t) * d + i * d + c,
            "From one token to the next it is a *whole* row of x: all heads of it.",
        ),
    ],
    also_right=[
        lambda b, i, t, c, T, h, d: np.ravel_multi_index((b, t, i, c), (b + 1, T, h, d)),
        lambda b, i, t, c, T, h, d: torch.arange((b + 1) * T * h * d).view(-1, T, h, d)[b, t, i, c],
    ],
)


def scores_bthd(q, k):
    """q (B, T_q, h, d), k (B, T_k, h, d) -> scores (B, h, T_q, T_k), unscaled."""
    return torch.einsum("bqhd,bkhd->bhqk", q, k)


SCORES_BTHD = Exercise(
    title="Scores without the transpose",
    difficulty=3,
    minutes=5,
    extra=True,
    reference=scores_bthd,
    task="Some kernels keep the layout (B, T, h, d). Compute the scores of each head from it. `torch.einsum` names "
    "the axes.",
    inputs=lambda rand: [
        [rand(B, T_q, h, d), rand(B, T_k, h, d)]
        for B, T_q, T_k, h, d in ((2, 3, 7, 5, 11), (1, 5, 2, 3, 7), (3, 1, 1, 2, 5), (2, 3, 3, 3, 3))
    ],
    hints=[
        "Give each axis a letter. Which letters does the result keep?",
        "d is summed over; h stays apart, like the batch.",
        '`torch.einsum("bqhd,bkhd->....", q, k)`',
    ],
    mistakes=[
        (
            lambda q, k: q @ k.mT,
            "`@` works on the last two axes, which are heads and width here: you compare heads with heads, and no "
            "token reads another. With T_q = T_k there is no error at all. Which axes must meet?",
        ),
        (
            lambda q, k: torch.einsum("bqhd,bkhd->bqkh", q, k),
            "The numbers are right, and the heads stand last. Asked is (B, h, T_q, T_k).",
        ),
        (
            lambda q, k: torch.einsum("bqhd,bkhd->bqhk", q, k),
            "The numbers are right, and the heads stand behind the queries. Asked is (B, h, T_q, T_k).",
        ),
        (
            lambda q, k: torch.einsum("bqhd,bkhd->bqk", q, k),
            "The heads are gone: a letter that is not in the result is summed over. Which one must stay?",
        ),
        (lambda q, k: torch.einsum("bqhd,bkhd->bhkq", q, k), "Row = key in your map. Asked is row = query."),
        (
            lambda q, k: torch.einsum("bqhd,bkgd->bhqk", q, k),
            "Your k has a letter of its own for the heads, so all its heads are added up. A head's queries meet the "
            "keys of the *same* head.",
        ),
        (
            lambda q, k: q.transpose(1, 2) @ k.transpose(1, 2).mT / q.shape[-1] ** 0.5,
            "These are scaled. Asked are the plain scores.",
        ),
    ],
    also_right=[
        lambda q, k: q.transpose(1, 2) @ k.permute(0, 2, 3, 1),
        lambda q, k: einops.einsum(q, k, "b q h d, b k h d -> b h q k"),
    ],
)


def unfuse(w, num_heads):
    """w (3·h·d, d_model), as in_proj_weight of nn.MultiheadAttention -> (3, h, d, d_model): q, k, v; head; row."""
    return w.view(3, num_heads, -1, w.shape[-1])


UNFUSE = Exercise(
    title="Take a fused matrix apart",
    difficulty=3,
    minutes=6,
    extra=True,
    reference=unfuse,
    task="`nn.MultiheadAttention` keeps W_Q, W_K and W_V below each other in one matrix: three blocks, each with the "
    "heads in order. Cut it, so that `unfuse(w, h)[0, 1]` is the part of W_Q of head 1.",
    inputs=[[fingerprint(3 * h * d, d_model), h] for h, d, d_model in ((2, 5, 7), (5, 2, 11), (1, 3, 2), (3, 3, 5))],
    fresh=[[fingerprint(3 * 4 * 2, 3), 4], [fingerprint(3 * 3 * 5, 7), 3]],
    hints=[
        "Only the first axis is cut; d_model stays.",
        "From the outside to the inside: block, head, row of the head.",
        "`unflatten(0, (…, …, …))` or `view`.",
    ],
    mistakes=[
        (
            lambda w, h: w.unflatten(0, (h, 3, -1)).transpose(0, 1),
            "You read the rows as q, k, v of head 0, then q, k, v of head 1 (as GPT-NeoX stores them). The shape is "
            "right and the numbers are not: torch keeps three blocks.",
        ),
        (
            lambda w, h: w.unflatten(0, (h, 3, -1)),
            "You cut by head first. Outermost in torch's order are the three blocks q, k, v.",
        ),
        (
            lambda w, h: w.unflatten(0, (3, -1, h)).transpose(1, 2),
            "Within a block you interleave the heads. The rows of a head are neighbours.",
        ),
        (lambda w, h: w.unflatten(0, (3, -1)), "The three blocks are right. Now cut each into its heads."),
        (
            lambda w, h: w.unflatten(0, (3, h, -1)).mT,
            "The blocks and heads are right; then you transpose. nn.Linear's (out, in) is asked: d_model last.",
        ),
    ],
    also_right=[
        lambda w, h: torch.stack([part.unflatten(0, (h, -1)) for part in w.chunk(3)]),
        lambda w, h: einops.rearrange(w, "(three h d) m -> three h d m", three=3, h=h),
    ],
)


def mix_heads(q, k, v, num_heads):
    """q, k, v (B, T, h·d), projected -> the heads' outputs side by side, (B, T, h·d)."""
    q, k, v = my_split(q, num_heads), my_split(k, num_heads), my_split(v, num_heads)
    out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return my_merge(out)


def mix_heads_given(q, k, v, num_heads):
    B, T, width = q.shape
    shape = (B, num_heads, T, width // num_heads)
    q, k, v = q.reshape(shape), k.reshape(shape), v.reshape(shape)
    out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return out.reshape(B, T, width)


def mix_with(q, k, v, h, cut=my_split, join=my_merge):
    return join(attend(cut(q, h), cut(k, h), cut(v, h)))


def bare_split(x, h):
    return x.reshape(x.shape[0], h, x.shape[1], -1)


def bare_merge(x):
    return x.reshape(x.shape[0], x.shape[2], -1)


MIX_HEADS = Exercise(
    title="Spot the bug: right shapes, wrong numbers",
    difficulty=3,
    minutes=8,
    extra=True,
    reference=mix_heads,
    given=mix_heads_given,
    task="This code runs, returns the right shape and survives a round trip. It is wrong for every h above 1. Mend it.",
    inputs=lambda rand: [
        [rand(B, T, h * d) for _ in range(3)] + [h]
        for B, T, h, d in ((2, 5, 3, 2), (1, 3, 2, 5), (3, 1, 5, 2), (2, 3, 1, 7))
    ],
    hints=[
        "Put 0, 1, 2, … through the split alone, and look at head 0. Or change token 0: must the last output change?",
        "There are two faults, and each hides the other.",
        "The split needs a view and a transpose; the merge needs them the other way round.",
    ],
    mistakes=[
        (
            lambda *a: mix_with(*a, join=bare_merge),
            "The split is right now. The merge goes straight to (B, T, h·d) and puts the numbers in other places: "
            "row 0 holds head 0 of several tokens.",
        ),
        (
            lambda *a: mix_with(*a, cut=bare_split),
            "The merge is right now. The split still goes straight to (B, h, T, d): a row of a head does not belong to "
            "one token.",
        ),
        (
            lambda q, k, v, h: my_merge(attend(my_split(q, h), my_split(k, h), bare_split(v, h))),
            "q and k are split right, v is not.",
        ),
        (
            lambda *a: mix_with(*a, join=lambda x: x.transpose(1, 2)),
            "The heads are back behind the tokens. Join the last two axes.",
        ),
        (
            lambda q, k, v, h: mix_with(q / h**0.5, k, v, h),
            "The layout is right. But now the scale uses the width of all heads: √d_k is that of one.",
        ),
        (lambda q, k, v, h: attend(q, k, v), "You took the heads out altogether. There must be h maps."),
        (
            lambda *a: mix_with(*a, join=lambda x: x.transpose(1, 2).view(a[0].shape)),
            "Split and transpose are right. `view` cannot join axes that lie apart in memory; what copies where it "
            "must?",
        ),
        (
            lambda q, k, v, h: attend(*(x.unflatten(-1, (h, -1)) for x in (q, k, v))).flatten(2),
            "Without the transpose `@` compares heads with heads, in each token. No token reads another.",
        ),
    ],
    also_right=[
        lambda q, k, v, h: torch.cat([attend(*head) for head in zip(*(x.chunk(h, -1) for x in (q, k, v)))], -1),
        lambda q, k, v, h: merge_heads(
            F.scaled_dot_product_attention(split_heads(q, h), split_heads(k, h), split_heads(v, h))
        ),
    ],
)


def multi_head(x, w_q, w_k, w_v, w_o, num_heads):
    """x (B, T, d_model), w_q, w_k, w_v (d_model, h·d), w_o (h·d, d_model), used as x @ w -> (B, T, d_model)."""
    B, T, _ = x.shape
    q, k, v = (((x @ w).view(B, T, num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))  # (B, h, T, d)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)  # (B, h, T, T)
    return (weights @ v).transpose(1, 2).reshape(B, T, -1) @ w_o


def multi_head_with(x, w_q, w_k, w_v, w_o, h, cut=my_split, join=my_merge, scale=None, axis=-1, mask=None):
    q, k, v = (cut(x @ w, h) for w in (w_q, w_k, w_v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.mT * scale
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return join(scores.softmax(axis) @ v) @ w_o


def multi_head_by_einops(x, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (einops.rearrange(x @ w, "b t (h d) -> b h t d", h=num_heads) for w in (w_q, w_k, w_v))
    return einops.rearrange(F.scaled_dot_product_attention(q, k, v), "b h t d -> b t (h d)") @ w_o


def multi_head_by_einsum(x, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (torch.einsum("btm,mhd->bhtd", x, w.unflatten(1, (num_heads, -1))) for w in (w_q, w_k, w_v))
    weights = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkd,hdm->bqm", weights, v, w_o.unflatten(0, (num_heads, -1)))


MULTI_HEAD = Exercise(
    title="Multi-head attention from an empty cell",
    difficulty=5,
    minutes=20,
    reference=multi_head,
    task="All heads at once, without a loop: project, split, attend, merge, project. h·d need not be d_model.",
    inputs=lambda rand: [
        [rand(B, T, m), rand(m, h * d), rand(m, h * d), rand(m, h * d), rand(h * d, m), h]
        for B, T, m, h, d in ((2, 5, 7, 3, 2), (1, 3, 10, 2, 5), (3, 1, 5, 5, 2), (2, 7, 11, 1, 3), (1, 2, 6, 2, 3))
    ],
    hints=[
        "Write one line a step, and its shape behind it.",
        "Every step is an exercise above: project, `my_split`, attention, `my_merge`, `@ w_o`.",
        "The scale is √d of one head, the last axis after the split.",
        "Test it against your loop of lesson 2.",
    ],
    mistakes=[
        (
            lambda *a: multi_head_with(*a, cut=bare_split, join=bare_merge),
            "Split *and* merge go straight to their shapes. Each undoes the other's shape, so it looks right, and "
            "tokens are mixed. Try 0, 1, 2, … on the split alone.",
        ),
        (
            lambda *a: multi_head_with(*a, cut=bare_split),
            "The split goes straight to (B, h, T, d). Look at head 0 of 0, 1, 2, …: are its rows different tokens?",
        ),
        (
            lambda *a: multi_head_with(*a, join=bare_merge),
            "The merge goes straight to (B, T, h·d). Which two axes must swap first?",
        ),
        (
            lambda *a: multi_head_with(*a, scale=a[0].shape[-1] ** -0.5),
            "You scale by √d_model. Scores of a head sum over the d columns of that head.",
        ),
        (
            lambda *a: multi_head_with(*a, scale=a[1].shape[-1] ** -0.5),
            "You scale by the width of all heads together. Do you read d after the split?",
        ),
        (lambda *a: multi_head_with(*a, scale=1), "The scores are not scaled."),
        (
            lambda *a: multi_head_with(*a, scale=(a[0].shape[-1] // a[5]) ** -0.5),
            "You scale by √(d_model / h). Here h·d need not be d_model: read d after the split.",
        ),
        (
            lambda *a: multi_head_with(
                *a, cut=lambda x, h: x.view(*x.shape[:2], h, a[0].shape[-1] // h).transpose(1, 2)
            ),
            "You cut into pieces of d_model / h. Here h·d need not be d_model: how wide is what you cut?",
        ),
        (
            lambda *a: multi_head_with(*a, join=lambda x: x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)),
            "All is right up to the merge. `view` cannot join axes that lie apart in memory; what copies where it "
            "must?",
        ),
        (
            lambda *a: multi_head_with(*a, axis=-2),
            "The softmax runs over the queries. Each *row* of a map must sum to 1.",
        ),
        (
            lambda *a: multi_head_with(*a, axis=1),
            "The softmax runs over axis 1. With four axes that is the heads: they compete for each pair of tokens. The "
            "keys are the last axis.",
        ),
        (lambda x, w_q, w_k, w_v, w_o, h: mix_heads(x @ w_q, x @ w_k, x @ w_v, h), "W_O is missing."),
        (
            lambda *a: multi_head_with(*a, join=lambda x: x.transpose(1, 2).reshape(a[0].shape)),
            "You merge into the shape of x. Here h·d need not be d_model: it is W_O that brings the width back.",
        ),
        (
            lambda *a: multi_head_with(*a, mask=causal_mask(a[0].shape[1])),
            "Your tokens do not read later ones: a causal mask has come along. None is asked here.",
        ),
        (
            lambda x, w_q, w_k, w_v, w_o, h: (
                my_merge(attend(my_split(x @ w_q, h), my_split(x @ w_k, h), bare_split(x @ w_v, h))) @ w_o
            ),
            "q and k are split right, v goes straight to (B, h, T, d).",
        ),
        (
            lambda x, w_q, w_k, w_v, w_o, h: attend(x @ w_q, x @ w_k, x @ w_v) @ w_o,
            "There is one map for all columns: the heads are never split.",
        ),
        (
            lambda *a: multi_head_with(*a, cut=lambda x, h: x.unflatten(-1, (h, -1)), join=lambda x: x.flatten(2)),
            "Without the transpose, `@` compares heads with heads in each token, and no token reads another.",
        ),
    ],
    also_right=[
        multi_head_by_einops,
        multi_head_by_einsum,
    ],
)
