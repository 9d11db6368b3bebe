"""Whose numbers an explorer shows: a layer trained on a toy task, or one with random numbers."""

from functools import cache

import torch
from torch import Tensor

from mhsa.checks import check_choice
from mhsa.layers import MultiHeadAttention
from mhsa.toys import SENTENCE, embed
from mhsa.train.example import load_examples

SOURCES = ("trained", "by hand", "random")
examples = cache(load_examples)

# Lessons 1 and 2: is a word a person, an action, a noun? W_Q of one head alone, of *who*, and of *what*; W_O as in
# lesson 2, section 6: *who* writes a person, *what* a noun. One head alone writes both.
WORDS = [[1.0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
W_Q = {1: [[[1.0, 1], [0, 1], [1, -1]]], 2: [[[1.0, 1], [2, 2], [1, -1]], [[1, 1], [-2, 2], [1, -1]]]}
W_K, W_V = [[2.0, 0], [0, 0], [0, 2]], [[3.0, 0], [0, 1], [1, 2]]
W_O = {1: [[0.25, 0, 0], [0, 0, 0.5]], 2: [[0.25, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0.5]]}


@cache
def by_hand(num_heads: int) -> tuple[Tensor, MultiHeadAttention]:
    layer = MultiHeadAttention(3, num_heads, d_k=2)
    columns = {"w_q": torch.tensor(W_Q[num_heads]), "w_k": torch.tensor([W_K] * num_heads)}
    columns["w_v"] = torch.tensor([W_V] * num_heads)  # (h, d_model, 2) each
    numbers = {f"{name}.weight": heads.mT.flatten(0, 1) for name, heads in columns.items()}
    layer.load_state_dict(numbers | {"w_o.weight": torch.tensor(W_O[num_heads]).T})
    return torch.tensor([WORDS]), layer


def toy_layer(numbers: str, d_model: int, num_heads: int, seed: int) -> tuple[Tensor, MultiHeadAttention, str]:
    """(x, layer, a sentence that says whose numbers these are), for the words of toys.SENTENCE."""
    check_choice("numbers", numbers, SOURCES)
    if numbers == "by hand" and num_heads in W_Q:
        back = f"W_O brings {2 * num_heads} numbers back to 3"
        return *by_hand(num_heads), f"Picked by hand in lessons 1 and 2: d_model is 3 (person, action, noun); {back}."
    example = examples().get((d_model, num_heads))
    if numbers == "trained" and example:
        return (
            example.x,
            example.layer,
            "Trained until each word could tell its who and its what: for lost, Mia and keys. A dash: negative.",
        )
    layer, generator = MultiHeadAttention(d_model, num_heads), torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=d_model**-0.5, generator=generator)
    sizes = ", ".join(str(width) for width in sorted({width for width, _ in examples()}))
    note = f"Random numbers (seed {seed}), nothing was learned: heads differ because their numbers do."
    missing = {
        "trained": f"Trained at d_model = {sizes} alone. ",
        "by hand": "Picked by hand for 1 and 2 heads alone. ",
    }
    return embed(SENTENCE, d_model), layer, missing.get(numbers, "") + note
