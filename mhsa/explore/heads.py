"""explore.heads(): h and d_model under sliders, and the sum behind each cell."""

import torch
from ipywidgets import Checkbox, HBox, IntSlider, ToggleButtons
from traitlets import Any, Bool, Int, Unicode

from mhsa.checks import check_choice
from mhsa.draw.heads import draw_heads
from mhsa.draw.sum_card import draw_sum
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie
from mhsa.explore.numbers import toy_layer
from mhsa.follow import follow
from mhsa.masks import causal_mask
from mhsa.toys import SENTENCE

SOURCES = ("trained", "random")
WIDTHS = (8, 12, 16, 24, 32, 48, 64)
LARGEST = 128


class HeadsState(TiedHeads):
    """d_model, num_heads, is_causal; numbers: one of SOURCES, seed of the random ones; chosen: (head, query, key), the
    cell whose sum is shown, or None."""

    is_causal = Bool()
    numbers = Unicode("trained")
    seed = Int()
    chosen = Any(allow_none=True)

    def press(self, key: str) -> None:
        """Show the sum of the cell "…, head:query,key"; a second press puts it away."""
        head, _, cell = key.rpartition(" ")[2].partition(":")
        if cell:
            q, k = map(int, cell.split(","))
            chosen = (int(head), q, k)
            self.chosen = None if self.chosen == chosen else chosen


def draw(state: HeadsState) -> str:
    d_model, h, T = state.d_model, state.num_heads, len(SENTENCE)
    if d_model > LARGEST:
        raise ValueError(f"d_model={d_model} is more than this picture can show; up to {LARGEST} will do")
    x, layer, note = toy_layer(state.numbers, d_model, h, state.seed)
    allowed = causal_mask(T) if state.is_causal else torch.ones(T, T, dtype=torch.bool)
    with torch.no_grad():
        weights = layer(x, mask=allowed, need_weights=True)[1][0]
    card, chosen = None, state.chosen
    if chosen and chosen[0] < h:  # a head may have gone since
        card = draw_sum(follow(layer, x, SENTENCE, chosen[1], allowed), chosen[0], chosen[2])
    d_k = d_model // h
    sizes = f"d_model = {d_model} = {h} head{'s' * (h > 1)} × {d_k} column{'s' * (d_k > 1)} of Q, K and V."
    return draw_heads(
        SENTENCE,
        weights.tolist(),
        allowed=allowed.tolist(),
        d_k=d_k,
        chosen=chosen if card else None,
        card=card,
        note=f"{sizes} {note} Press a cell for its sum.",
    )


def heads(
    d_model: int = 12, num_heads: int = 2, *, numbers: str = "trained", is_causal: bool = False, seed: int = 0
) -> Explorer:
    """Attention maps of `Mia lost her keys`, one a head; move the heads, d_model and the causal mask. Press a cell, and
    the sum behind it stands beside the maps.

    numbers: "trained" (there are such for d_model 8 and 12) or "random", drawn from the seed.
    """
    check_choice("numbers", numbers, SOURCES)
    state = HeadsState(
        d_model=d_model, num_heads=num_heads, numbers=numbers, is_causal=is_causal, seed=seed, chosen=(0, 1, 3)
    )
    width = Choices(options=[1], description="d_model")
    count = Choices(options=[1], description="heads")
    causal = Checkbox(description="causal mask", indent=False)
    seeds = IntSlider(max=9, description="seed")
    source = ToggleButtons(options=SOURCES, description="numbers", style={"button_width": "auto"})
    tie(state, "d_model", width, options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(state, "num_heads", count, options=lambda: divisors(state.d_model))
    tie(state, "is_causal", causal)
    tie(state, "numbers", source)
    tie(state, "seed", seeds)
    explorer = Explorer(state, draw, [HBox([width, count]), HBox([seeds, causal]), HBox([source])])
    explorer.view.on_msg(lambda _, content, __: state.press(content["press"]))
    return explorer
