"""explore.heads(): h and d_model under sliders."""

import torch
from ipywidgets import Checkbox, HBox, IntSlider
from traitlets import Bool, Int

from mhsa.draw.heads import draw_heads
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie
from mhsa.layers import MultiHeadAttention
from mhsa.masks import causal_mask
from mhsa.toys import SENTENCE, embed

WIDTHS = (8, 12, 16, 24, 32, 48, 64)
LARGEST = 128


class HeadsState(TiedHeads):
    """d_model, num_heads, is_causal, and the seed of the random weights."""

    is_causal = Bool()
    seed = Int()


def weights(state: HeadsState) -> torch.Tensor:
    """The weights (h, T, T) of a layer with random numbers: nothing was learned."""
    layer = MultiHeadAttention(state.d_model, state.num_heads)
    generator = torch.Generator().manual_seed(state.seed)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=state.d_model**-0.5, generator=generator)
    with torch.no_grad():
        return layer(embed(SENTENCE, state.d_model), is_causal=state.is_causal, need_weights=True)[1][0]


def draw(state: HeadsState) -> str:
    if state.d_model > LARGEST:
        raise ValueError(f"d_model={state.d_model} is more than this picture can show; up to {LARGEST} will do")
    allowed = causal_mask(len(SENTENCE)).tolist() if state.is_causal else None
    maps = weights(state).tolist()
    h, d_k = state.num_heads, state.d_model // state.num_heads
    note = (
        f"d_model = {state.d_model} = {h} head{'s' * (h > 1)} × {d_k} column{'s' * (d_k > 1)} of Q, K and V. "
        f"Random weights (seed {state.seed}), not learned: heads differ because their numbers do."
    )
    return draw_heads(SENTENCE, maps, allowed=allowed, d_k=d_k, note=note)


def heads(d_model: int = 8, num_heads: int = 2, *, is_causal: bool = False, seed: int = 0) -> Explorer:
    """Attention maps of `Mia lost her keys`, one a head; move the heads, d_model, the causal mask and the seed."""
    state = HeadsState(d_model=d_model, num_heads=num_heads, is_causal=is_causal, seed=seed)
    width = Choices(options=[1], description="d_model")
    count = Choices(options=[1], description="heads")
    causal = Checkbox(description="causal mask", indent=False)
    seeds = IntSlider(max=9, description="seed")
    tie(state, "d_model", width, options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(state, "num_heads", count, options=lambda: divisors(state.d_model))
    tie(state, "is_causal", causal)
    tie(state, "seed", seeds)
    return Explorer(state, draw, [HBox([width, count]), HBox([seeds, causal])])
