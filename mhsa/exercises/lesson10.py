"""Lesson 10, claims checked: exercises in checking, and the forms of the lesson."""

from functools import partial
from math import log

import torch

from mhsa import claims
from mhsa.exercises import form
from mhsa.exercises.exercise import Exercise
from mhsa.exercises.questions10 import INTERVIEW
from mhsa.exercises.quiz import quiz_of

quiz = quiz_of(__name__)
interview = partial(form.points, INTERVIEW)


def predict(letter: str) -> form.Form:
    """The claims of a group, to be marked before their verdicts are shown."""
    return form.predict(claims.group(letter))


def growth(small, large, factor):
    """small, large: bytes at T and at factor · T, factor above 1 -> the power p, where bytes grow like T to the p."""
    return log(large / small) / log(factor)


GROWTH = Exercise(
    title="Like which power of T?",
    difficulty=2,
    minutes=5,
    reference=growth,
    task="“It saves half the memory” is a number for one T. What tells more is the power: bytes that grow like T¹ or "
    "like T². You measured the bytes at T and at factor · T. Which power is it?",
    inputs=[[35, 140, 2], [4, 12, 3], [1000, 1250, 1.5], [7, 7, 5], [2, 686, 7]],
    fresh=[[3, 24, 2], [10, 17, 1.3], [5, 500, 10], [40, 20, 4]],
    hints=["If bytes = c · T^p, what is large / small?", "factor^p = large / small. A logarithm brings the p down."],
    mistakes=[
        (
            lambda s, g, f: g / s,
            "That is how many times as many bytes. Twice the tokens and four times the bytes is a "
            "power of 2, not of 4.",
        ),
        (
            lambda s, g, f: g / s / f,
            "Growth divided by the factor is 1 for a power of 1, but 2 for T² at factor 2, and "
            "3 at factor 3. The power should not depend on the factor.",
        ),
        (lambda s, g, f: log(g / s) / log(2), "You take the logarithm to base 2. That fits a factor of 2 alone."),
        (lambda s, g, f: log(s / g) / log(f), "The sign is turned: bytes that grow have a positive power."),
        (
            lambda s, g, f: log(f) / log(g / s) if g != s else 0.0,
            "That is turned upside down: it answers how T grows with the bytes.",
        ),
        (
            lambda s, g, f: log(g) / log(s) / log(f) if s > 1 else 0.0,
            "log(large) / log(small) is not log(large / small): compare the ratio.",
        ),
        (lambda s, g, f: log(g / s), "That is the logarithm of the growth. How far did T grow?"),
        (
            lambda s, g, f: log(g) / log(s),
            "log(large) / log(small) is not log(large / small), and where is the factor?",
        ),
    ],
    also_right=[
        lambda small, large, factor: log(large / small, factor),
        lambda s, g, f: (log(g) - log(s)) / log(f),
    ],
)


def heads_by_rule(d_model):
    """d_model: a multiple of 64, or smaller than 64 -> a whole number of heads."""
    return min(16, max(1, d_model // 64))


HEADS_BY_RULE = Exercise(
    title="A rule as a function",
    difficulty=1,
    minutes=3,
    extra=True,
    reference=heads_by_rule,
    task="“h = d_model / 64, but at least 1 and at most 16.” Written as a function, a rule can be held against models. "
    "(Row N4 did.)",
    inputs=[[512], [768], [1600], [64], [32], [8192], [1024]],
    fresh=[[256], [128], [960], [16], [2048], [704]],
    hints=["Three cases: below, between, above.", "`min` and `max`, one inside the other."],
    mistakes=[
        (lambda d: d // 64, "The rule has two bounds. What does it say for 8192, and for 32?"),
        (lambda d: max(1, d // 64), "The lower bound is there. What does the rule say for 8192?"),
        (lambda d: min(16, d // 64), "The upper bound is there. What does the rule say for 32?"),
        (lambda d: max(16, min(1, d // 64)), "`min` and `max` are exchanged: `max(16, …)` is never below 16."),
        (lambda d: min(16, max(1, d // 16)), "You divide by the bound. By what does the rule divide?"),
        (lambda d: min(16, max(1, 64 // d)), "You divide the wrong way round."),
        (lambda d: min(1, max(16, d // 64)), "`min` and `max` are exchanged: `min(1, …)` is never above 1."),
        (lambda d: min(12, max(1, d // 64)), "Your upper bound is 12. The rule says at most 16."),
        (
            lambda d: max(1, d // 64) if d // 64 <= 16 else d,
            "Above the bound you return d_model. What does the rule say?",
        ),
    ],
    also_right=[
        lambda d_model: sorted([1, d_model // 64, 16])[1],
        lambda d: 1 if d < 64 else 16 if d > 1024 else d // 64,
    ],
)


def percent_worse(score, best):
    """Two scores, higher is better -> by how many per cent of the best score falls short of it."""
    return 100 * (best - score) / best


PERCENT_WORSE = Exercise(
    title="Worse by how many per cent?",
    difficulty=1,
    minutes=3,
    reference=percent_worse,
    task="“4 % worse” needs a base. Take the best score as 100 %, and a score for which higher is better.",
    inputs=[[20.0, 25.0], [25.4, 25.8], [7.0, 7.0], [0.0, 3.0], [30.0, 24.0]],
    fresh=[[31.0, 40.0], [12.5, 13.0], [90.0, 72.0], [4.0, 11.0]],
    hints=["How far apart are the two?", "Divide by what counts as 100 %."],
    mistakes=[
        (lambda s, b: b - s, "These are *points*: 25.8 and 25.4 BLEU are 0.4 points apart. Per cent of what?"),
        (lambda s, b: (b - s) / b, "That is a share, from 0 to 1. Asked are per cent."),
        (lambda s, b: 100 * (b - s) / s if s else 0.0, "You took the *score* as 100 %. The best one is the base here."),
        (lambda s, b: 100 * (s - b) / b, "The sign is turned: a lower score is worse by a *positive* number."),
        (lambda s, b: 100 * s / b, "That is what is left, in per cent. How much is missing?"),
        (lambda s, b: abs(100 * (b - s) / b), "A score above the “best” is worse by a negative number: no `abs`."),
    ],
    also_right=[
        lambda score, best: 100 - 100 * score / best,
        lambda s, b: (1 - s / b) * 100,
    ],
)


def reorder_heads(w_q, w_o, order):
    """w_q (h, d_model, d_k), w_o (h·d_v, d_model), order: a list of h numbers -> (w_q, w_o) reordered, same shapes."""
    h, d_model = len(order), w_o.shape[-1]
    return w_q[order], w_o.view(h, -1, d_model)[order].reshape(w_o.shape)


def inverse(order):
    return torch.tensor(order).argsort().tolist()


def columns_of(w_o, order):
    return w_o.unflatten(1, (len(order), -1))[:, order].flatten(1) if w_o.shape[1] % len(order) == 0 else w_o


def reorder_by_pieces(w_q, w_o, order):
    blocks = w_o.chunk(len(order))
    return torch.stack([w_q[i] for i in order]), torch.cat([blocks[i] for i in order])


REORDER_HEADS = Exercise(
    title="Give the heads other numbers",
    difficulty=3,
    minutes=8,
    extra=True,
    reference=reorder_heads,
    task="New head i shall be old head order[i], and the layer shall compute what it did. (W_K and W_V go the way of "
    "W_Q, so they are left out.) Row H6 rests on this.",
    inputs=lambda rand: [
        [rand(h, d_model, d_k), rand(h * d_v, d_model), order]
        for h, d_model, d_k, d_v, order in (
            (3, 6, 2, 5, [2, 0, 1]),
            (4, 8, 3, 2, [1, 3, 0, 2]),
            (1, 1, 2, 3, [0]),
            (5, 10, 1, 1, [4, 2, 0, 1, 3]),
        )
    ],
    hints=[
        "w_q has an axis of heads: index it with the list.",
        "Which rows of w_o belong to head i? Give w_o an axis of heads first.",
        "`w_o.view(h, -1, d_model)`, index, and back to the old shape.",
    ],
    mistakes=[
        (
            lambda w_q, w_o, order: (w_q[order], w_o),
            "The queries moved, and W_O still expects the old order: each head's output meets the rows of another.",
        ),
        (
            lambda w_q, w_o, order: (w_q, w_o.view(len(order), -1, w_o.shape[-1])[order].reshape(w_o.shape)),
            "W_O is in the new order, the queries are not.",
        ),
        (
            lambda w_q, w_o, order: (
                w_q[inverse(order)],
                w_o.view(len(order), -1, w_o.shape[-1])[inverse(order)].reshape(w_o.shape),
            ),
            "That is the way back: your new head order[i] is old head i. Asked is new head i = old head order[i].",
        ),
        (
            lambda w_q, w_o, order: (w_q[order], w_o.view(-1, len(order), w_o.shape[-1])[:, order].reshape(w_o.shape)),
            "The rows of a head are neighbours in W_O: h blocks of d_v rows. You moved single rows.",
        ),
        (
            lambda w_q, w_o, order: (w_q[order], columns_of(w_o, order)),
            "You moved columns of W_O. Its columns are the output; the heads are in its *rows*.",
        ),
        (
            lambda w_q, w_o, order: (w_q[order], w_o[[*order, *range(len(order), len(w_o))]]),
            "You moved the first h rows of W_O. A head owns d_v rows of it, a whole block.",
        ),
    ],
    also_right=[
        reorder_by_pieces,
        lambda w_q, w_o, order: (w_q[order], w_o.unflatten(0, (len(order), -1))[order].flatten(0, 1)),
    ],
)
