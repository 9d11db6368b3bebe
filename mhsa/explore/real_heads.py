"""explore.real_heads(): the 72 heads of a trained model on your own sentence."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from ipywidgets import Button, FloatSlider, HBox, IntSlider, Layout, SelectionSlider, Text
from traitlets import Enum, Float, HasTraits, Int, Unicode

from mhsa.draw.colors import HEADS
from mhsa.draw.real_heads import PATTERNS, draw_real_heads, thumbnails
from mhsa.draw.sum_card import draw_sum
from mhsa.draw.svg import Svg, standalone
from mhsa.explore.base import Explorer, tie
from mhsa.follow import Flow, follow
from mhsa.pretrained import SHARES, SPECIAL, MiniLM, ModelFilesError, check_texts, load_minilm, pattern_scores

LARGEST = 128  # tokens; what the model was trained on
BROAD = 0.85  # from this share of the largest entropy on
SENTENCE = "Mia lost her keys, so she looked for the keys in her other bag."


class RealHeadsState(HasTraits):
    """The text; the head that is read (layer from 1, head from 0); which pattern names heads, from which score on; the
    place of the token whose arcs are drawn (None: the last but one, for the last is a mark), and of the key whose sum
    is shown (None: no sum)."""

    text = Unicode()
    layer = Int()
    head = Int()
    pattern = Enum(("any", *PATTERNS))
    least = Float()
    query = Int(None, allow_none=True)
    key = Int(None, allow_none=True)


class Reading(NamedTuple):
    """What the model's heads did with a text: weights (L, h, T, T), drawn small, and each pattern's scores (L, h).

    follow: (layer from 1, place of a token) -> every number that the layer computes for it.
    """

    tokens: list[str]
    weights: np.ndarray
    maps: Svg
    scores: dict[str, np.ndarray]
    follow: Callable[[int, int], Flow]


@lru_cache(1)
def minilm() -> MiniLM:
    return load_minilm()


def read(model: MiniLM, text: str) -> Reading:
    """Raises ValueError, a sentence, for a text that is too short, too long to draw, or holds the model's own marks."""
    [text] = check_texts(text)
    for mark in SPECIAL:
        if mark in text:
            raise ValueError(f"{mark} is a mark that the model sets by itself. Leave it out of the text.")
    T = len(model.tokenizer.encode(text).ids)
    if T > LARGEST:
        raise ValueError(
            f"This text has {T} tokens, and up to {LARGEST} are drawn: the model learned on texts of at "
            f"most {LARGEST}. Take a shorter one."
        )
    if T == 2:  # [CLS] [SEP]
        raise ValueError("There is nothing to read yet. Type a sentence above, then press Enter.")
    if T == 3:
        raise ValueError(
            "This is a single token: whatever it reads, itself or a mark beside it, is a pattern. Type more words."
        )
    encoding = model.encode(text)
    weights = torch.cat(encoding.weights)  # (L, h, T, T)
    L, h, _, _ = weights.shape
    found = pattern_scores(encoding.tokens, weights.flatten(0, 1)[None])
    scores = {name: found["entropy" if name == "broad" else name].view(L, h).numpy() for name in PATTERNS}
    tokens = encoding.tokens[0]

    def way(layer: int, query: int) -> Flow:
        attention: Any = model.layers[layer - 1].attention  # a MultiHeadAttention; nn.Module hides it from pyright
        return follow(attention, encoding.hidden[layer - 1], tokens, query)

    return Reading(tokens, weights.numpy(), thumbnails(weights.numpy()), scores, way)


def name_heads(scores: dict[str, np.ndarray], pattern: str, least: float) -> list[list[str]]:
    """The pattern of each head (L, h), "" for none.

    "any": the strongest share, if its score is at least `least`; else broad, if the entropy is at least BROAD.
    """
    if pattern != "any":
        return np.where(scores[pattern] >= least, pattern, "").tolist()
    shares = np.nan_to_num(np.stack([scores[name] for name in SHARES]), nan=-1)
    strongest = np.array(SHARES)[shares.argmax(0)]
    rest = np.where(scores["broad"] >= BROAD, "broad", "")
    return np.where(shares.max(0) >= least, strongest, rest).tolist()


def draw(state: RealHeadsState, reading: Reading) -> str:
    L, h, T, _ = reading.weights.shape
    for name, value, first, last in (("layer", state.layer, 1, L), ("head", state.head, 0, h - 1)):
        if not first <= value <= last:
            raise ValueError(f"{name}={value} does not exist; {first} to {last} do")
    if not 0 <= state.least <= 1:
        raise ValueError(f"least={state.least} is not a score; 0 to 1 are")
    names = name_heads(reading.scores, state.pattern, state.least)
    count = sum(bool(name) for row in names for name in row)
    what = "a pattern" if state.pattern == "any" else f"“{state.pattern}”"
    note = f"{count} of {L * h} have {what} at {state.least:.2f} or more."
    note += f" Broad: from {BROAD:.2f} on." if state.pattern == "any" else ""
    query = T - 2 if state.query is None else min(max(state.query, 0), T - 1)
    card = None
    if state.key is not None and state.key < T:
        card = draw_sum(reading.follow(state.layer, query), state.head, state.key, HEADS[0])
    tokens, weights, maps, scores, _ = reading
    return draw_real_heads(tokens, weights, maps, scores, names, state.layer, state.head, note, query, card)


def real_heads(
    text: str = SENTENCE,
    layer: int = 1,
    head: int = 2,
    *,
    pattern: str = "any",
    least: float = 0.5,
    model: MiniLM | None = None,
) -> Explorer:
    """Type a sentence, see all heads, pick one and read its map; colour and filter the heads by pattern; save it.

    layer from 1, head from 0. pattern: a name of mhsa.pretrained.SHARES, "broad" or "any". Heads whose score is below
    `least` are drawn pale. Without a model, all-MiniLM-L6-v2 is loaded when it is first needed.
    """
    state = RealHeadsState(text=text, layer=layer, head=head, pattern=pattern, least=least)
    num_layers, num_heads = (model.num_layers, model.num_heads) if model else (6, 12)
    sentence = Text(
        description="sentence",
        placeholder="type a sentence, then press Enter",
        continuous_update=False,
        layout=Layout(width="calc(100% - 4px)", max_width="856px"),
    )
    layers = IntSlider(min=1, max=num_layers, description="layer")
    heads = IntSlider(max=num_heads - 1, description="head")
    patterns = SelectionSlider(options=("any", *PATTERNS), description="pattern")
    score = FloatSlider(max=1, step=0.05, description="score from")
    for name, control in (
        ("text", sentence),
        ("layer", layers),
        ("head", heads),
        ("pattern", patterns),
        ("least", score),
    ):
        tie(state, name, control)
    reading = lru_cache(8)(lambda text: read(model or minilm(), text))

    def picture(state: RealHeadsState) -> str:
        try:
            return draw(state, reading(state.text))
        except ModelFilesError as error:  # its text is the whole sentence, with the command
            raise ValueError(str(error)) from error

    saves = [
        Button(description=f"save as {kind}", tooltip=f"download this picture as {kind}") for kind in ("SVG", "PNG")
    ]
    explorer = Explorer(state, picture, [HBox([sentence]), HBox([layers, heads]), HBox([patterns, score, *saves])])
    for button, kind in zip(saves, ("svg", "png")):
        button.on_click(
            lambda _, kind=kind: explorer.view.send(
                {"save": f"layer_{state.layer}_head_{state.head}.{kind}", "svg": standalone(explorer.view.svg)}
            )
        )
    explorer.view.on_msg(lambda _, content, __: jump(state, content["press"]))
    return explorer


def jump(state: RealHeadsState, key: str) -> None:
    """A press on a thumbnail, key "layer.head", reads that head; on the name of a pattern, its first head; on a word,
    its arcs are drawn; on a cell of the map, the sum behind it as well."""
    with state.hold_trait_notifications():  # one redraw
        if place := re.match(r"(\d+)\.(\d+)", key):
            state.layer, state.head = map(int, place.groups())
        elif cell := re.fullmatch(r"(\d+),(\d+)", key):
            state.query, state.key = map(int, cell.groups())
        elif word := re.match(r"(?:ask|q)?(\d+)", key):
            state.query, state.key = int(word[1]), None
