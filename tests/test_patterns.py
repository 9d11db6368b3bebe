"""Scores, similarity and ablation against values worked out by hand or by plain loops; no model's files are needed."""

import math

import pytest
import torch

from mhsa import MultiHeadAttention, MultiHeadAttentionLoop, padding_mask
from mhsa.pretrained import SHARES, ablate_heads, head_similarity, pattern_scores, whole_words

TOKENS = [["[CLS]", "the", "dog", ",", "the", "dog", "##s", "##s", ".", "[SEP]"], ["a", "b"]]


def random_weights(B, h, T, seed=0):
    return torch.randn(B, h, T, T, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def one_hot(rows):
    """A map whose query i reads key rows[i] alone, (1, 1, T, T)."""
    return torch.eye(len(rows), dtype=torch.float64)[rows][None, None]


def scores_by_loops(tokens, weights):
    """[(sentence, query, {name: keys})] written out for TOKENS[0]: the keys that each word should read."""
    keys = {
        "previous": lambda q: [q - 1],
        "next": lambda q: [q + 1],
        "first": lambda q: [0],
        "separator": lambda q: [9],
        "punctuation": lambda q: [3, 8],
        "same word": lambda q: {1: [4], 4: [1]}.get(q, []),
        "self": lambda q: [q],
    }
    result = {}
    for name, of in keys.items():
        shares = [sum(weights[:, q, k] for k in of(q)) for q in range(1, 9) if of(q)]
        result[name] = sum(shares) / len(shares)
    return result


def test_each_share_is_the_mean_over_the_words_that_have_such_a_key():
    """ "dog" and "dogss" are different words, a piece has the key before it, [CLS] and [SEP] do not ask."""
    weights = random_weights(1, 3, 10)
    scores = pattern_scores(TOKENS[:1], weights)
    assert tuple(scores) == (*SHARES, "entropy", "distance")
    for name, expected in scores_by_loops(TOKENS[0], weights[0]).items():
        torch.testing.assert_close(scores[name], expected, rtol=0, atol=1e-12, msg=name)


def test_entropy_and_distance():
    tokens = [["a", "b", "c", "d", "e"]]
    even = pattern_scores(tokens, torch.full((1, 2, 5, 5), 0.2))
    assert even["entropy"].tolist() == pytest.approx([1, 1])
    assert even["distance"].tolist() == pytest.approx([(10 + 7 + 6 + 7 + 10) / 25] * 2)
    sharp = pattern_scores(tokens, one_hot([3, 1, 2, 0, 4]))
    assert sharp["entropy"].item() == 0 and sharp["distance"].item() == pytest.approx(6 / 5)
    two = pattern_scores([["a", "b", "c"]], torch.tensor([[[[0.5, 0.5, 0.0]] * 3]]))
    assert two["entropy"].item() == pytest.approx(math.log(2) / math.log(3))


def test_padding_changes_nothing():
    alone = [random_weights(1, 3, 10, seed=1), random_weights(1, 3, 2, seed=2)]
    padded = torch.full((2, 3, 13, 13), 7.0, dtype=torch.float64)
    padded[0, :, :10, :10], padded[1, :, :2, :2] = alone[0][0], alone[1][0]
    both = pattern_scores(TOKENS, padded)
    first, second = (pattern_scores([own], w) for own, w in zip(TOKENS, alone))
    torch.testing.assert_close(both["self"], (8 * first["self"] + 2 * second["self"]) / 10)
    torch.testing.assert_close(both["same word"], first["same word"])  # the second has no such query
    torch.testing.assert_close(both["previous"], (8 * first["previous"] + second["previous"]) / 9)


def test_what_no_query_has_is_nan():
    scores = pattern_scores([["[CLS]", "[SEP]"]], random_weights(1, 2, 2))
    assert all(value.isnan().all() for value in scores.values())
    unknown = pattern_scores([["[UNK]", "[UNK]", "!", "!"]], random_weights(1, 2, 4))
    assert unknown["same word"].isnan().all() and unknown["separator"].isnan().all()
    one = pattern_scores([["a"]], torch.ones(1, 2, 1, 1))
    assert one["self"].tolist() == [1, 1] and one["entropy"].isnan().all() and one["previous"].isnan().all()


def test_a_toy_map_of_any_tokens_is_found():
    previous = one_hot([0, 0, 1, 2, 3])
    scores = pattern_scores([list("abcda")], torch.cat([previous, one_hot([4, 1, 2, 3, 0])], 1))
    assert scores["previous"].tolist() == [1, 0] and scores["same word"].tolist() == [0, 1]


def test_pieces_know_their_word():
    assert whole_words(["##x", "play", "##ing", "##s", "now"]) == (
        ["##x", "playings", "playings", "playings", "now"],
        [0, 1, 1, 1, 2],
    )


def test_similarity_is_what_two_rows_share():
    a, b, c = one_hot([0, 1, 2]), one_hot([0, 2, 2]), torch.full((1, 1, 3, 3), 1 / 3, dtype=torch.float64)
    found = head_similarity(torch.cat([a, b, c], 1))
    expected = torch.tensor([[1, 2 / 3, 1 / 3], [2 / 3, 1, 1 / 3], [1 / 3, 1 / 3, 1]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_similarity_leaves_padding_out():
    weights = random_weights(2, 3, 5)
    weights[1, :, 2:] = 0
    weights[1, :, :2, 2:] = 0
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    rows = torch.cat([weights[0], weights[1, :, :2]], 1)  # (h, 7, T)
    expected = sum(min(x, y) for x, y in zip(rows[0].flatten(), rows[2].flatten())) / 7
    assert head_similarity(weights, mask)[0, 2].item() == pytest.approx(expected.item())


@pytest.fixture
def loop():
    torch.manual_seed(0)
    return MultiHeadAttentionLoop(10, 5, d_k=3, d_v=2, bias=True).double()


def output_without(loop, x, changed, mask=None):
    """The loop's own heads, those of `changed` put through a function, then W_O."""
    outs = [head(x, mask=mask) for head in loop.heads]
    return loop.w_o(torch.cat([changed.get(i, lambda out: out)(out) for i, out in enumerate(outs)], -1))


def test_a_head_hands_over_nothing(loop):
    x = torch.randn(2, 7, 10, dtype=torch.float64)
    layer = MultiHeadAttention.from_loop(loop)
    out, weights = ablate_heads(layer, x, {3: "zero", 1: "zero"})
    torch.testing.assert_close(out, output_without(loop, x, dict.fromkeys((1, 3), torch.zeros_like)))
    torch.testing.assert_close(weights, layer(x, need_weights=True)[1])


def test_a_head_hands_over_its_mean_over_real_tokens(loop):
    x = torch.randn(2, 7, 10, dtype=torch.float64)
    mask = padding_mask([7, 3], 7)

    def mean(out):
        return (torch.cat([out[0], out[1, :3]]).sum(0) / 10).expand_as(out)

    out, _ = ablate_heads(MultiHeadAttention.from_loop(loop), x, {4: "mean"}, mask=mask)
    torch.testing.assert_close(out, output_without(loop, x, {4: mean}, mask))
    one = ablate_heads(MultiHeadAttention.from_loop(loop), x, {4: "mean"})[0]
    torch.testing.assert_close(one, output_without(loop, x, {4: lambda out: out.mean((0, 1)).expand_as(out)}))


def test_heads_that_share_keys_and_values_are_told_apart():
    torch.manual_seed(0)
    layer = MultiHeadAttention(6, 4, num_kv_heads=2, d_k=3).double()
    x = torch.randn(1, 5, 6, dtype=torch.float64)
    out, _ = ablate_heads(layer, x, {2: "zero"})
    layer.w_o.weight.data[:, 6:9] = 0
    torch.testing.assert_close(out, layer(x))


def test_no_head_is_the_layer_itself(loop):
    x = torch.randn(2, 7, 10, dtype=torch.float64)
    layer = MultiHeadAttention.from_loop(loop)
    torch.testing.assert_close(ablate_heads(layer, x, {})[0], layer(x))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: pattern_scores("ab", torch.ones(2, 1, 3, 3)), "tokens must be 2 lists"),
        (lambda: pattern_scores(["ab", "c"], torch.ones(2, 1, 3, 3)), "tokens must be 2 lists"),
        (lambda: pattern_scores([["a"]], torch.ones(2, 1, 3, 3)), "tokens must be 2 lists"),
        (lambda: pattern_scores([[]], torch.ones(1, 1, 3, 3)), r"len\(tokens\[0\]\)=0"),
        (lambda: pattern_scores([list("abcd")], torch.ones(1, 1, 3, 3)), "4 tokens, weights have T=3"),
        (lambda: pattern_scores([["a"]], torch.ones(1, 3, 3)), r"\(1, 3, 3\); \(B, h, T, T\) is needed"),
        (lambda: head_similarity(torch.ones(1, 2, 3, 5)), r"\(1, 2, 3, 5\); \(B, h, T, T\) is needed"),
        (lambda: ablate_heads(MultiHeadAttention(6, 3), torch.ones(1, 2, 6), {3: "zero"}), "head=3 .* heads 0 to 2"),
        (lambda: ablate_heads(MultiHeadAttention(6, 3), torch.ones(1, 2, 6), {-1: "zero"}), "head=-1"),
        (lambda: ablate_heads(MultiHeadAttention(6, 3), torch.ones(1, 2, 6), {1: "median"}), "'zero' or 'mean'"),
    ],
)
def test_what_does_not_fit_is_named(as_a_user, call, words):
    with pytest.raises(ValueError, match=words):
        call()
