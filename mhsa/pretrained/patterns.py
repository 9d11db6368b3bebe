"""What a head does, in numbers: scores a head, how alike two heads are, and the output without a head.

Takes any weights (B, h, T, T), rows = queries. All heads of a model at once: torch.cat(encoding.weights, 1).
"""

import math
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mhsa.checks import check_float, check_size
from mhsa.heads import merge_heads, split_heads
from mhsa.layers import MultiHeadAttention

SHARES = ("previous", "next", "first", "separator", "punctuation", "same word", "self")
SPECIAL = ("[CLS]", "[SEP]", "[PAD]")  # set around a sentence by BERT; no words


def pattern_scores(
    tokens: Sequence[Sequence[str]], weights: Float[Tensor, "B h T T"]
) -> dict[str, Float[Tensor, " h"]]:
    """One score a head and pattern: {name: (h,)}; tokens: B lists, and what is beyond a list's length is padding.

    SHARES: the mean weight on the previous token, the next one, the first one, [SEP], punctuation, the same word
    elsewhere, the token itself. "entropy": as a share of its maximum log T. "distance": mean |query - key| in tokens.
    The mean is over the queries that have such a key, SPECIAL ones left out; it is NaN where there is none.
    Sub-words (WordPiece, "##ing") count as tokens, but "same word" compares whole words.
    Raises ValueError if tokens and weights do not fit.
    """
    check_weights(weights)
    if isinstance(tokens, str) or len(tokens) != len(weights) or any(isinstance(own, str) for own in tokens):
        raise ValueError(f"tokens must be {len(weights)} lists of tokens, one for each sentence of weights")
    total, rows = {}, {}
    for b, own in enumerate(tokens):
        check_size(f"len(tokens[{b}])", len(own))
        if len(own) > weights.shape[-1]:
            raise ValueError(f"tokens[{b}] has {len(own)} tokens, weights have T={weights.shape[-1]}")
        for name, (value, counts) in row_scores(own, weights[b, :, : len(own), : len(own)]).items():
            total[name] = total.get(name, 0) + value[:, counts].sum(-1)
            rows[name] = rows.get(name, 0) + counts.sum()
    return {name: total[name] / rows[name] for name in total}


def row_scores(
    tokens: Sequence[str], weights: Float[Tensor, "h T T"]
) -> dict[str, tuple[Float[Tensor, "h T"], Bool[Tensor, " T"]]]:
    """Of one sentence: the score of each query, and whether the query counts."""
    T, place = len(tokens), torch.arange(len(tokens))
    words = torch.tensor([token not in SPECIAL for token in tokens])
    scores = {
        name: ((weights * wanted).sum(-1), wanted.any(-1) & words) for name, wanted in wanted_keys(tokens).items()
    }
    scores["entropy"] = torch.special.entr(weights).sum(-1) / math.log(max(T, 2)), words & (T > 1)
    scores["distance"] = (weights * (place[:, None] - place).abs()).sum(-1), words
    return scores


def wanted_keys(tokens: Sequence[str]) -> dict[str, Bool[Tensor, "T T"]]:
    """For each pattern of SHARES: which keys (columns) a query (row) should read."""
    T = len(tokens)
    place = torch.arange(T)
    step = place - place[:, None]  # key minus query
    texts, numbers = whole_words(tokens)
    comparable = [not (text in (*SPECIAL, "[UNK]") or is_punctuation(text)) for text in texts]
    same_text = torch.tensor([[known and a == b for b in texts] for a, known in zip(texts, comparable)])
    number = torch.tensor(numbers)

    def columns(flags: list[bool]) -> Tensor:
        return torch.tensor(flags).expand(T, T)

    found = (
        step == -1,
        step == 1,
        (place == 0).expand(T, T),
        columns([token == "[SEP]" for token in tokens]),
        columns([is_punctuation(token) for token in tokens]),
        same_text & (number != number[:, None]),
        step == 0,
    )
    return dict(zip(SHARES, found, strict=True))


def whole_words(tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """For each token the word it is a piece of, and that word's number: play ##ing -> playing playing, 0 0."""
    words, numbers = [], []
    for token in tokens:
        if token.startswith("##") and words:
            words[-1] += token[2:]
        else:
            words.append(token)
        numbers.append(len(words) - 1)
    return [words[i] for i in numbers], numbers


def is_punctuation(token: str) -> bool:
    return bool(token) and all(c in string.punctuation or unicodedata.category(c).startswith("P") for c in token)


def head_similarity(weights: Float[Tensor, "B h T T"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "h h"]:
    """The share of attention that two heads have in common: the mean over queries of sum_k min(a_k, b_k).

    1: equal rows, 0: no key in common. mask (B, T), True = a real token; without it every token is.
    """
    check_weights(weights)
    rows = weights.transpose(0, 1)  # (h, B, T, T)
    rows = rows.flatten(1, 2) if mask is None else rows[:, mask]  # (h, rows, T)
    return torch.stack([torch.minimum(own, rows).sum(-1).mean(-1) for own in rows])


def ablate_heads(
    layer: MultiHeadAttention,
    x: Float[Tensor, "B T d_model"],
    heads: Mapping[int, str],
    *,
    mask: Bool[Tensor, "B 1 1 T"] | None = None,
) -> tuple[Float[Tensor, "B T d_model"], Float[Tensor, "B h T T"]]:
    """(out, weights) of a layer whose heads {head: "zero" or "mean"} hand over nothing, or always their mean.

    The mean is the head's own over all tokens of x; those a padding mask (True = may attend) hides are left out.
    Source: Michel et al. 2019, section 2.3 (zero).
    """
    for head, how in heads.items():
        check_size("head", head, minimum=0)
        if head >= layer.num_heads:
            raise ValueError(f"head={head} does not exist; the layer has heads 0 to {layer.num_heads - 1}")
        if how not in ("zero", "mean"):
            raise ValueError(f"heads[{head}]={how!r}; 'zero' or 'mean' is needed")
    out, weights = layer(x, mask=mask, need_weights=True)
    if not heads:
        return out, weights
    values = split_heads(layer.w_v(x), layer.num_kv_heads).repeat_interleave(layer.num_heads // layer.num_kv_heads, 1)
    mixed = weights @ values  # (B, h, T, d_v)
    real = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask[:, 0, 0].expand(x.shape[:2])
    for head, how in heads.items():
        mixed[:, head] = 0 if how == "zero" else mixed[:, head][real].mean(0)
    return layer.w_o(merge_heads(mixed)), weights


@torch.no_grad()
def ablation_effects(model, texts: Sequence[str], how: str = "zero") -> Float[Tensor, "num_layers num_heads"]:
    """What each head of a MiniLM means to the sentence embedding: its mean cosine with and without that head."""
    whole = model.encode(texts)
    mask = whole.mask[:, None, None]

    def cosine(place: int, head: int) -> float:
        x = whole.hidden[place - 1]  # up to here nothing changes
        for number, layer in enumerate(model.layers[place - 1 :], place):
            x, _ = layer(x, mask, {head: how} if number == place else {})
        return (replace(whole, hidden=[x]).embedding * whole.embedding).sum(-1).mean().item()

    return torch.tensor(
        [[cosine(place, head) for head in range(model.num_heads)] for place in range(1, model.num_layers + 1)]
    )


@torch.no_grad()
def direct_effects(model, texts: Sequence[str]) -> Float[Tensor, "num_layers num_heads"]:
    """As ablation_effects() by zeros, while all that comes after the head adds what it added with the head there.

    So nothing can make up for the loss, and nothing can enlarge it; the norms still act. This is path patching, of the
    path from the head to the output alone: Wang et al. 2022, https://arxiv.org/abs/2211.00593.
    """
    whole = model.encode(texts)
    mask = whole.mask[:, None, None]
    steps = [*zip(model.layers, whole.hidden)]
    attended = [ablate_heads(layer.attention, x, {}, mask=mask)[0] for layer, x in steps]
    fed = [layer.feed_forward(layer.attention_norm(x + out)) for (layer, x), out in zip(steps, attended)]

    def cosine(place: int, head: int) -> float:
        layer, x = steps[place]
        less, _ = ablate_heads(layer.attention, x, {head: "zero"}, mask=mask)
        for layer, out, added in zip(model.layers[place:], [less, *attended[place + 1 :]], fed[place:]):
            x = layer.output_norm(layer.attention_norm(x + out) + added)
        return (replace(whole, hidden=[x]).embedding * whole.embedding).sum(-1).mean().item()

    return torch.tensor([[cosine(place, head) for head in range(model.num_heads)] for place in range(model.num_layers)])


def check_weights(weights: Tensor) -> None:
    check_float("weights", weights)
    if weights.dim() != 4 or weights.shape[2] != weights.shape[3]:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; (B, h, T, T) is needed, one map a head")
