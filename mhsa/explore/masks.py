"""explore.masks(): which keys a query may read, and what is left of its weights."""

import torch
from ipywidgets import Button, Checkbox, HBox, IntSlider
from torch import Tensor
from traitlets import Any, Bool, HasTraits, Int, validate

from mhsa.checks import check_mask, check_size
from mhsa.draw.masks import draw_masks
from mhsa.explore.base import Choices, Explorer, tie
from mhsa.layers import attention
from mhsa.masks import causal_mask, padding_mask
from mhsa.toys import embed, words

LARGEST = 6  # more cells would be too small for their numbers
D_K = 8


class MasksState(HasTraits):
    """Sizes, and the three masks that are joined: causal, padding (the first `length` keys are real) and painted.

    painted: None or a (T_q, T_k) mask, True = may attend, as a tensor or lists; kept as lists.
    """

    T_q = Int()
    T_k = Int()
    is_causal = Bool()
    length = Int()
    painted = Any(allow_none=True)

    def __init__(self, **values):
        super().__init__(**values)
        self.observe(self._resize, names=["T_q", "T_k"])

    @validate("painted")
    def _as_lists(self, proposal):
        value = proposal["value"]
        return value.tolist() if isinstance(value, Tensor) else value

    def _resize(self, change):
        """A full length stays full; what was painted on another grid is dropped."""
        with self.hold_trait_notifications():  # one redraw
            self.painted = None
            if change["name"] == "T_k":
                was_full = self.length in (change["old"], self.T_k)
                self.length = self.T_k if was_full else max(min(self.length, self.T_k), 0)

    def press(self, key: str) -> None:
        """Close or open the cell "query,key" by hand."""
        q, k = map(int, key.split(","))
        if q < self.T_q and k < self.T_k:  # a press may come after the mask has shrunk
            mask = torch.ones(self.T_q, self.T_k, dtype=torch.bool)
            mask = mask if self.painted is None else mask & torch.tensor(self.painted)
            mask[q, k] = ~mask[q, k]
            self.painted = mask


def joined(state: MasksState) -> tuple[dict[str, Tensor], str]:
    """The masks in use, (T_q, T_k) each, by letter, and the code that joins them. Raises ValueError for a bad one."""
    T_q, T_k = state.T_q, state.T_k
    masks, code = {}, []
    if state.is_causal:
        masks["C"] = causal_mask(T_q, T_k)
        code.append(f"causal_mask({T_q})" if T_q == T_k else f"causal_mask({T_q}, {T_k})")
    if state.length != T_k:
        masks["P"] = padding_mask([state.length], T_k)[0, 0]
        code.append(f"padding_mask([{state.length}], {T_k})[0, 0]")
    if state.painted is not None:
        masks["H"] = torch.tensor(state.painted)
        check_mask(masks["H"], (T_q, T_k), masks["H"].device)
        code.append("painted")
    return (
        {letter: mask.expand(T_q, T_k) for letter, mask in masks.items()},
        "mask = " + (" & ".join(code) or f"torch.ones({T_q}, {T_k}, dtype=torch.bool)"),
    )


def draw(state: MasksState) -> str:
    T_q, T_k = state.T_q, state.T_k
    for name, size in (("T_q", T_q), ("T_k", T_k)):
        check_size(name, size)
        if size > LARGEST:
            raise ValueError(f"{name}={size} is more than this picture can show; 1 to {LARGEST} will do")
    masks, code = joined(state)
    mask = torch.ones(T_q, T_k, dtype=torch.bool)
    for other in masks.values():
        mask = mask & other
    keys = words(T_k)
    queries = keys[-T_q:] if T_q <= T_k else [f"q{i}" for i in range(T_q)]
    w_q, w_k = torch.randn(2, D_K, D_K, generator=torch.Generator().manual_seed(0)) * D_K**-0.5
    q, k = embed(queries, D_K)[0] @ w_q, embed(keys, D_K)[0] @ w_k
    scores = q @ k.mT * D_K**-0.5
    weights = attention(q, k, k, mask)[1]
    closed_by = [
        ["".join(letter for letter, m in masks.items() if not m[i, j]) for j in range(T_k)] for i in range(T_q)
    ]
    return draw_masks(queries, keys, closed_by, scores.tolist(), weights.tolist(), code)


def masks(
    T_q: int = 4,
    T_k: int | None = None,
    *,
    is_causal: bool = False,
    length: int | None = None,
    painted: Tensor | None = None,
) -> Explorer:
    """A causal, a padding and a hand-painted mask; scores, weights, and rows that may read nothing.

    T_k > T_q: the last T_q tokens ask, as with a cache. length: how many keys are real. painted: (T_q, T_k), True =
    may attend. Press a cell, or Enter or space on it, to close or open it.
    """
    T_k = T_q if T_k is None else T_k
    state = MasksState(T_q=T_q, T_k=T_k, is_causal=is_causal, length=T_k if length is None else length, painted=painted)
    queries = IntSlider(min=1, max=LARGEST, description="T_q")
    keys = IntSlider(min=1, max=LARGEST, description="T_k")
    lengths = Choices(options=[0], description="padding length", style={"description_width": "initial"})
    causal = Checkbox(description="causal mask", indent=False)
    clear = Button(description="clear the painting")
    tie(state, "T_q", queries)
    tie(state, "T_k", keys)
    tie(state, "length", lengths, options=lambda: range(min(max(state.T_k, 0), LARGEST) + 1))
    tie(state, "is_causal", causal)
    clear.on_click(lambda _: setattr(state, "painted", None))
    explorer = Explorer(state, draw, [HBox([queries, keys]), HBox([lengths, causal, clear])])
    explorer.view.on_msg(lambda _, content, __: state.press(content["press"]))
    return explorer
