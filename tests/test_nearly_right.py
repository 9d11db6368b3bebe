"""Answers that are right on most inputs, or on paper: a check refuses them, in words of their own."""

import math

import pytest
import torch
from exercise_helpers import ALL

from mhsa.exercises.judge import check_answer


def one_less(p):
    return torch.linalg.matrix_rank(p.log()) - 1


def centred_twice(p):
    scores = p.log()
    return torch.linalg.matrix_rank(scores - scores.mean(1, keepdim=True) - scores.mean(0) + scores.mean())


def largest_taken_away(p):
    return torch.linalg.matrix_rank(p.log() - p.log().amax(1, keepdim=True))


def rounded(nbytes, L, h, g, d, size):
    return round(nbytes / (2 * L * g * d * size))


def never_full(nbytes, L, h, g, d, size):
    return (nbytes - 1) // (2 * L * g * d * size)


def more_than_asked(m, V, accuracy):
    return 1 + sum((h + (m - h) / V) / m <= accuracy for h in range(1, m))


def merged_at_the_smaller(out_a, top_a, sum_a, out_b, top_b, sum_b):
    top = torch.minimum(top_a, top_b)
    a, b = (top_a - top).exp(), (top_b - top).exp()
    return (out_a * a + out_b * b) / (sum_a * a + sum_b * b)


def not_stacked(tokens, m):
    return [tokens.roll(i, 1) for i in range(1, m + 1)]


def nearest_ratio(d_model, width):
    return min((abs(math.log(d_model / h / width)), h) for h in range(1, d_model + 1) if d_model % h == 0)[1]


def by_the_output(concat, w_o, num_heads, removed):
    concat, d = concat.clone(), w_o.shape[1] // num_heads
    for head in removed:
        concat[..., head * d : (head + 1) * d] = 0
    return concat @ w_o


def wraps(w):
    return torch.stack([w[:, :, i, i - 1].mean(0) for i in range(w.shape[-1])]).mean(0)


def two_bases(w):
    return -(w * w.log2()).sum(-1) / math.log(w.shape[-1])


def softmax_twice(w):
    return torch.distributions.Categorical(logits=w).entropy() / math.log(w.shape[-1])


def last_piece(weights, word):
    rows = weights[[max(t for t, own in enumerate(word) if own == i) for i in range(word[-1] + 1)]]
    return rows @ torch.nn.functional.one_hot(torch.tensor(word)).double()


def without(place, transpose):
    """WITHOUT_HEAD with an index of its own, and the transpose before the merge or none."""

    def answer(heads, w_o, i):
        B, _, T, _ = heads.shape
        heads = heads.clone()
        heads[place(i)] = 0
        return (heads.transpose(1, 2) if transpose else heads).reshape(B, T, -1) @ w_o

    return answer


@pytest.mark.parametrize(
    "name, answer, words",
    [
        ("PREVIOUS_SHARE", wraps, "the *last* key"),
        ("PREVIOUS_SHARE", lambda w: w.diagonal(-1).mean((0, 1)), "takes the batch for queries"),
        ("RELATIVE_ENTROPY", two_bases, "two logarithms with different bases"),
        ("RELATIVE_ENTROPY", softmax_twice, "from a softmax already"),
        ("WORD_MAP", last_piece, "the last piece alone"),
        ("WITHOUT_HEAD", without(lambda i: i, True), "is a *sentence*"),
        ("WITHOUT_HEAD", without(lambda i: (slice(None), i - 1), True), "Heads count from 0"),
        ("WITHOUT_HEAD", without(lambda i: (slice(None), i), False), "No transpose before the merge"),
        ("LEAST_WIDTH", one_less, "Often one less is enough"),
        ("LEAST_WIDTH", centred_twice, "You centre the columns too"),
        ("LEAST_WIDTH", largest_taken_away, "largest score of each row"),
        ("TOKENS_THAT_FIT", rounded, "You round to the nearest"),
        ("TOKENS_THAT_FIT", never_full, "`(nbytes - 1) // a_token` stands in place"),
        ("HEADS_NEEDED", more_than_asked, "You ask for more than the given accuracy"),
        ("MERGE_BLOCKS", merged_at_the_smaller, "exp(800) is inf"),
        ("TOKENS_BACK", not_stacked, "a list of m tensors"),
        ("HEADS_FOR", nearest_ratio, "the width whose *ratio*"),
        ("WITHOUT_HEADS", by_the_output, "the width of the *output*"),
    ],
)
def test_an_answer_that_is_only_nearly_right_is_told_why(name, answer, words):
    right, text = check_answer(ALL[name], answer)
    assert not right and words in text


def rank_as_int(p):
    return ALL["LEAST_WIDTH"].reference(p).item()


def relations_as_list(weights, ideals):
    return ALL["RELATION_OF_HEADS"].reference(weights, ideals).tolist()


def map_as_list(T, offset):
    return ALL["IDEAL_MAP"].reference(T, offset).tolist()


def shares_as(kind):
    return lambda w: kind([w[:, i, :, 0].mean().item() for i in range(w.shape[1])])


@pytest.mark.parametrize(
    "name, answer",
    [
        ("LEAST_WIDTH", rank_as_int),
        ("RELATION_OF_HEADS", relations_as_list),
        ("IDEAL_MAP", map_as_list),
        ("SINK_SHARE", shares_as(list)),
        ("SINK_SHARE", shares_as(torch.tensor)),
    ],
)
def test_where_nothing_is_trained_numbers_need_no_tensor(name, answer):
    right, text = check_answer(ALL[name], answer)
    assert right and "remark" not in text


def test_every_pattern_of_least_width_needs_a_column():
    """The even pattern, whose centred scores have rank 0, is not among them: its card says so."""
    assert all(1 <= ALL["LEAST_WIDTH"].reference(*inputs) < len(inputs[0]) for inputs in ALL["LEAST_WIDTH"].cases)


@pytest.mark.parametrize("value, words", [(3, "This is an int, perhaps"), (torch.ones(2), "This is a Tensor, perhaps")])
def test_the_article_fits_the_type(value, words):
    assert words in check_answer(ALL["HEADS_FOR"], value)[1]
