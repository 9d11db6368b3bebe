"""Whose numbers an explorer shows: a layer trained on a toy task, or one with random numbers."""

from functools import cache

import torch
from torch import Tensor

from mhsa.checks import check_choice
from mhsa.layers import MultiHeadAttention
from mhsa.toys import SENTENCE, embed
from mhsa.train.example import load_examples

SOURCES = ("trained", "random")
examples = cache(load_examples)


def toy_layer(numbers: str, d_model: int, num_heads: int, seed: int) -> tuple[Tensor, MultiHeadAttention, str]:
    """(x, layer, a sentence that says whose numbers these are), for the words of toys.SENTENCE."""
    check_choice("numbers", numbers, SOURCES)
    example = examples().get((d_model, num_heads))
    if numbers == "trained" and example:
        return example.x, example.layer, "Trained until each word could tell who and what (lesson 6 shows how)."
    layer, generator = MultiHeadAttention(d_model, num_heads), torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=d_model**-0.5, generator=generator)
    sizes = ", ".join(str(width) for width in sorted({width for width, _ in examples()}))
    note = f"Random numbers (seed {seed}), nothing was learned: heads differ because their numbers do."
    return (
        embed(SENTENCE, d_model),
        layer,
        note if numbers == "random" else f"Trained at d_model = {sizes} alone. {note}",
    )
