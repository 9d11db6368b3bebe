"""Lesson 8, how many heads: a pattern's least width, two columns that point, a silent head, and a width to aim at."""

from math import pi

import torch

from mhsa.exercises.exercise import Exercise
from mhsa.exercises.quiz import quiz_of
from mhsa.layers import attention

quiz = quiz_of(__name__)


def heads_for(d_model, width):
    """d_model and the wished width of a head, whole numbers -> num_heads, a whole number."""
    divisors = [h for h in range(1, d_model + 1) if d_model % h == 0]
    return min(divisors, key=lambda h: abs(d_model // h - width))


HEADS_FOR = Exercise(
    title="Heads of about this width",
    difficulty=2,
    minutes=5,
    reference=heads_for,
    task="Choose h so that it divides d_model and d_k = d_model / h comes as near as it can to the wished width.",
    inputs=[[512, 64], [1600, 64], [1000, 64], [90, 64], [90, 62], [7, 64], [12288, 128], [96, 50], [8, 1], [12, 2]],
    fresh=[[768, 96], [2048, 100], [60, 13], [84, 20], [1000, 8], [36, 7]],
    hints=["First list all h that divide d_model.", "Then compare their widths with the wish: which is nearest?"],
    mistakes=[
        (lambda d, w: d // w, "Does that divide d_model? Try 1000; and for d_model = 7 it is no head at all."),
        (lambda d, w: max(1, d // w), "Never 0: good. But does it divide d_model? Try d_model = 1000."),
        (lambda d, w: round(d / w), "Rounded, it need not divide d_model: try d_model = 1000."),
        (
            lambda d, w: min(16, heads_for(d, w)),
            "You stop at 16 heads. GPT-2 XL has 25, GPT-3 has 96: nothing in attention ends at 16.",
        ),
        (lambda d, w: d // heads_for(d, w), "That is d_k, the width. How many heads of it are there?"),
        (
            lambda d, w: min([h for h in range(1, d + 1) if d % h == 0], key=lambda h: abs(h - d / w)),
            "You take the h nearest to d_model / width. Asked is the nearest *width*: try d_model = 90, width = 64.",
        ),
        (
            lambda d, w: min([h for h in range(1, d + 1) if d % h == 0], key=lambda h: max(d / h / w, w * h / d)),
            "You take the width whose *ratio* to the wish is nearest to 1. Asked is the smallest difference: try "
            "d_model = 90, width = 64.",
        ),
        (
            lambda d, w: max(h for h in range(1, d + 1) if d % h == 0 and d // h >= min(w, d)),
            "Your heads are never narrower than the wish. One a little narrower may be nearer: try d_model = 1000.",
        ),
        (
            lambda d, w: next(h for h in range(max(1, d // w), d + 1) if d % h == 0),
            "You take the first h from d_model / width on that divides. One below it may give the nearer width.",
        ),
        (
            lambda d, w: min((h for h in range(1, max(2, d // 2)) if d % h == 0), key=lambda h: abs(d // h - w)),
            "Your search ends too early: h may be as large as d_model. Try d_model = 8, width = 1.",
        ),
        (
            lambda d, w: min((2**i for i in range(14) if d % 2**i == 0), key=lambda h: abs(d // h - w)),
            "You try powers of two alone. Other numbers divide d_model, too: try d_model = 1600, width = 64.",
        ),
    ],
    also_right=[
        lambda d, w: sorted((abs(d / h - w), h) for h in range(1, d + 1) if d % h == 0)[0][1],
        lambda d, w: d // min((k for k in range(1, d + 1) if d % k == 0), key=lambda k: abs(k - w)),
    ],
)


def least_width(p):
    """p (T, T): a pattern, positive, not all weights alike, each row sums to 1 -> the smallest d_k that can make it."""
    scores = p.log()
    return torch.linalg.matrix_rank(scores - scores.mean(-1, keepdim=True), atol=1e-9)


def pattern(rand, T, d_k):
    return (rand(T, d_k) @ rand(T, d_k).mT).softmax(-1)


def one_favourite(rand, T):
    """A pattern of width 2 in which all queries read key 0 most."""
    return (rand(T, 1) @ rand(1, T) + 9 * torch.eye(T)[0]).softmax(-1)


LEAST_WIDTH = Exercise(
    title="How wide must the head be?",
    difficulty=4,
    minutes=8,
    extra=True,
    reference=least_width,
    task="Find the smallest d_k of a head that can make this very pattern. The tokens are independent, so q and k may "
    "be any numbers you like.",
    inputs=lambda rand: [
        [pattern(rand, 5, 2)],
        [pattern(rand, 7, 3)],
        [pattern(rand, 4, 4)],
        [pattern(rand, 6, 1)],
        [torch.cat([x := pattern(rand, 5, 2), x[:1]])[:, [0, 1, 2, 3, 4, 0]].softmax(-1)],
        [rand(1, 3).softmax(-1).expand(3, 3)],
        [one_favourite(rand, 7)],
    ],
    hints=[
        "What do you know of the rank of q kᵀ?",
        "Which scores give the pattern back? The logarithm of it does. Which others?",
        "A number added to a whole row of scores changes no weight. Which one gives the lowest rank?",
    ],
    mistakes=[
        (
            lambda p: torch.linalg.matrix_rank(p),
            "That is the rank of the *weights*. The limit holds for the scores, before the softmax.",
        ),
        (
            lambda p: torch.linalg.matrix_rank(p.log()),
            "Nearly: the logarithm gives scores that work. Others work too, since adding a number to a row of scores "
            "changes no weight. Take that freedom away first.",
        ),
        (
            lambda p: torch.linalg.matrix_rank(p.log()) - 1,
            "Often one less is enough, but not always. Try it on a pattern whose rows are all alike.",
        ),
        (
            lambda p: torch.linalg.matrix_rank(
                p.log() - p.log().mean(-1, keepdim=True) - p.log().mean(0) + p.log().mean()
            ),
            "You centre the columns too. A number added to a whole *column* of scores changes the weights.",
        ),
        (
            lambda p: torch.linalg.matrix_rank(p.log() - p.log().amax(-1, keepdim=True)),
            "To take the largest score of each row away changes no weight, but it can leave the rank too high. Which "
            "other number of a row would you try?",
        ),
        (
            lambda p: torch.linalg.matrix_rank(p.log() - p.log().mean(0)),
            "You centre the columns. What may be added to scores without effect is one number a *row*.",
        ),
        (
            lambda p: len(p.argmax(-1).unique()),
            "That is the number of favourites. Few favourites do not make the head narrow: look at all scores.",
        ),
        (lambda p: len(p), "T is enough for every pattern. Asked is the least for this one."),
        (lambda p: len(p) - 1, "T - 1 is enough for every pattern. Asked is the least for this one."),
        (
            lambda p: torch.linalg.matrix_rank(p - p.mean(-1, keepdim=True)),
            "Centred, but not the scores: these are weights. What gives the scores back?",
        ),
    ],
    also_right=[
        lambda p: torch.linalg.matrix_rank(p.log() - p.log()[:, :1]),
        lambda p: int((torch.linalg.svdvals(p.log() - p.log().mean(1, keepdim=True)) > 1e-8).sum()),
    ],
)


def point_at(targets):
    """targets (T,): the key that each query should read -> q (T, 2), k (T, 2)."""
    T = len(targets)
    angle = 2 * pi * torch.arange(T) / T
    k = torch.stack([angle.cos(), angle.sin()], -1)
    return T**2 * k[targets], k  # to the next key it is about 2π²/T² of a query's length, for any T


def point_at_given(targets):
    T = len(targets)
    angle = 2 * pi * torch.arange(T) / (T - 1)
    k = torch.stack([angle.cos(), angle.sin()], -1)
    return k[targets], k


def weights_on_targets(point_at, targets):
    """The keys that queries read most, and whether each gets a weight above 0.99."""
    q, k = point_at(targets)
    weights = attention(q, k, k)[1]
    return weights.argmax(-1), weights[torch.arange(len(targets)), targets] > 0.99


def on_a_circle(T, steps):
    angle = 2 * pi * torch.arange(T) / steps
    return torch.stack([angle.cos(), angle.sin()], -1)


def on_a_line(targets):
    x = torch.arange(len(targets)) - (len(targets) - 1) / 2
    k = torch.stack([x, torch.zeros(len(targets))], -1)
    return 1000 * k[targets], k


def with_growing_radius(targets):
    k = on_a_circle(len(targets), len(targets)) * (1 + torch.arange(len(targets)))[:, None]
    return 1000 * k[targets], k


def from_an_angle_of_its_own(targets):
    T = len(targets)
    angle = 0.3 + 2 * pi * torch.arange(T).double() / T
    k = torch.view_as_real(torch.polar(torch.ones(T).double(), angle))
    return 300 * T**2 * k[targets], k


def on_a_parabola(targets):
    x = torch.arange(len(targets)) - 2.0
    q = torch.stack([2 * x[targets], -torch.ones(len(targets))], 1)
    return 100 * q, torch.stack([x, x**2], 1)


POINT_AT = Exercise(
    title="Spot the bug: two columns that should point",
    difficulty=3,
    minutes=8,
    reference=point_at,
    given=point_at_given,
    run=weights_on_targets,
    task="With d_k = 2, query i should give more than 0.99 of its weight to key `targets[i]`. The weights are "
    "softmax(q kᵀ / √2). This code does not do it, for two reasons. Mend it.",
    inputs=[
        [torch.tensor([2, 0, 4, 1, 3])],
        [torch.tensor([7, 6, 5, 4, 3, 2, 1, 0, 8])],
        [torch.tensor([1, 1, 0])],
        [torch.tensor([3, 3, 16, 0, 5, 9, 9, 12, 1, 2, 4, 6, 7, 8, 10, 11, 15])],
        [torch.arange(40).flip(0)],
        [7 * torch.arange(60) % 60],
    ],
    fresh=[[torch.tensor([3, 1, 0, 2])], [torch.tensor([6, 0, 5, 1, 4, 2, 3])], [torch.tensor([0, 0, 4, 4, 2, 1])]],
    hints=[
        "Print the T keys for T = 5. Are there five?",
        "Print the largest weight of a query. The favourite may be right, and still not get 0.99.",
        "Long queries make large scores, and large scores a sharp row. The more keys, the nearer the neighbours: a "
        "length of about T² does it.",
    ],
    mistakes=[
        (on_a_line, "Your keys lie on a line. Whatever the query, only the two ends can get the largest score."),
        (
            lambda t: (500 * len(t) ** 2 * on_a_circle(len(t), len(t) - 1)[t], on_a_circle(len(t), len(t) - 1)),
            "Your first and last key are the same point: a whole turn was cut into T - 1 steps.",
        ),
        (with_growing_radius, "Your keys are not equally long: a long one gets the weight that is meant for others."),
        (
            lambda t: (500 * len(t) ** 2 * on_a_circle(len(t), len(t)), on_a_circle(len(t), len(t))),
            "Each of your queries points at its own key. Where do the targets come in?",
        ),
        (
            lambda t: (500 * len(t) ** 2 * on_a_circle(len(t), len(t)), on_a_circle(len(t), len(t))[t]),
            "You moved the keys, not the queries: key j now lies where key targets[j] should.",
        ),
        (
            lambda t: (on_a_circle(len(t), len(t))[t], on_a_circle(len(t), len(t))),
            "The right keys are ahead, but not by enough: the scores are too small for a sharp row.",
        ),
        (
            lambda t: (10 * on_a_circle(len(t), len(t))[t], on_a_circle(len(t), len(t))),
            "Long enough for a few keys. With more of them the neighbours come nearer, so the length must grow with T.",
        ),
        (
            lambda t: (1000 * on_a_circle(len(t), len(t))[t], on_a_circle(len(t), len(t))),
            "Long enough for some tens of keys, not for 60: make the length grow with T.",
        ),
        (
            lambda t: (-500 * len(t) ** 2 * on_a_circle(len(t), len(t))[t], on_a_circle(len(t), len(t))),
            "Your queries point away from their keys: the largest score goes to the other side of the circle.",
        ),
    ],
    also_right=[
        from_an_angle_of_its_own,
        on_a_parabola,
    ],
)


def without_heads(concat, w_o, num_heads, removed):
    """concat (B, T, h·d_v), heads side by side; w_o (h·d_v, d_model); removed: a list of heads -> (B, T, d_model)."""
    keep = torch.ones(num_heads)
    keep[removed] = 0
    return concat * keep.repeat_interleave(len(w_o) // num_heads) @ w_o


def switched_off(concat, w_o, columns):
    keep = torch.ones(len(w_o))
    keep[columns] = 0
    return concat * keep @ w_o


def columns_of(w_o, num_heads, heads):
    d_v = len(w_o) // num_heads
    return [head * d_v + c for head in heads for c in range(d_v)]


WITHOUT_HEADS = Exercise(
    title="Silence some heads",
    difficulty=3,
    minutes=6,
    extra=True,
    reference=without_heads,
    task="The heads have done their work and lie side by side. Finish the layer, but leave some heads out. This is "
    "what pruning tries out.",
    inputs=lambda rand: [
        [rand(2, 3, 10), rand(10, 7), 5, [1, 3]],
        [rand(1, 1, 6), rand(6, 5), 3, [2]],
        [rand(3, 5, 8), rand(8, 6), 2, [0]],
        [rand(5, 2, 12), rand(12, 3), 4, []],
    ],
    hints=[
        "Which columns of `concat` belong to head i?",
        "Set them to zero in a copy; or leave out these columns and the rows of `w_o` that meet them.",
    ],
    mistakes=[
        (
            lambda x, w, h, out: switched_off(x, w, [c for c in range(len(w)) if c % h in out]),
            "You take every h-th column. Heads lie side by side: head i owns d_v columns in a row.",
        ),
        (
            lambda x, w, h, out: switched_off(x, w, out),
            "You silence single columns. A head is d_v columns wide: which ones are they?",
        ),
        (
            lambda x, w, h, out: switched_off(
                x, w, [head * (w.shape[1] // h) + c for head in out for c in range(w.shape[1] // h)]
            ),
            "You divide the width of the *output* by h. The heads lie in the columns of `concat`: how wide is one?",
        ),
        (
            lambda x, w, h, out: x @ w - switched_off(x, w, columns_of(w, h, out)),
            "These are the removed heads alone. Asked are all the others.",
        ),
        (
            lambda x, w, h, out: switched_off(x, w, columns_of(w, h, out)) * h / (h - len(out)),
            "You make the other heads louder, as dropout does in training. A removed head leaves the others as they "
            "are.",
        ),
        (
            lambda x, w, h, out: switched_off(x, w, columns_of(w, h, out[:1])),
            "You remove the first of the list alone. All of them are to go.",
        ),
        (
            lambda x, w, h, out: (
                x @ w * torch.tensor([float(c not in columns_of(w, h, out)) for c in range(w.shape[1])])
            ),
            "You zero columns of `w_o`: these are the *output's*. Which of its rows meet the columns of a head?",
        ),
        (lambda x, w, h, out: x @ w, "All heads still speak. Which part of `concat` is to go?"),
        (
            lambda x, w, h, out: switched_off(x, w, columns_of(w, h, [h - 1 - i for i in out])),
            "You count the heads from the other end: head 0 owns the first columns.",
        ),
    ],
    also_right=[
        lambda x, w, h, out: sum(
            (a @ b for i, (a, b) in enumerate(zip(x.chunk(h, -1), w.chunk(h))) if i not in out), torch.zeros(1)
        ),
        lambda x, w, h, out: (
            x @ (w.unflatten(0, (h, -1)) * torch.tensor([[[float(i not in out)]] for i in range(h)])).flatten(0, 1)
        ),
    ],
)
