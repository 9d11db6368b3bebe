"""explore.flow(): one word on its way through the layer, all its heads at once."""

import torch
from ipywidgets import Checkbox, HBox, IntSlider, ToggleButtons
from traitlets import Bool, Float, Int, Unicode

from mhsa.checks import check_choice
from mhsa.draw.flow import STEPS, draw_flow
from mhsa.draw.lane import products, sums_to
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie
from mhsa.explore.numbers import SOURCES, toy_layer
from mhsa.follow import Flow, follow
from mhsa.masks import causal_mask
from mhsa.toys import SENTENCE

WIDTHS = (4, 6, 8, 12, 16, 24)
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)


class FlowState(TiedHeads):
    """d_model, num_heads; the word that asks, by its place; the step shown (0: all, up to 8); the head spelled out;
    numbers: one of SOURCES."""

    numbers = Unicode("trained")
    word = Int(1)
    step = Int()
    head = Int()
    is_causal = Bool()
    seed = Int()
    temperature = Float(1.0)

    def press(self, key: str) -> None:
        """A press on a word lets it ask; one on a head spells out its numbers."""
        if key.startswith("word"):
            self.word = int(key.removeprefix("word"))
        elif key.startswith("head"):
            self.head = int(key.removeprefix("head"))


def spelled_out(flow: Flow, step: int, head: int, temperature: float) -> list[str]:
    """The step in words, in code with its shape, and one of its numbers worked out."""
    h, T, d_model, d_k = len(flow.q), len(flow.tokens), len(flow.x[0]), len(flow.q[0])
    scores, weights, z = (" ".join(f"{n:.2f}" for n in row[head]) for row in (flow.scores, flow.weights, flow.z))
    best = max(range(T), key=flow.weights[head].__getitem__)
    heat = "" if temperature == 1 else f" · {temperature:g}"
    first = [v[0] for v in flow.v[head]]
    return {
        0: [
            f"{flow.name} asks {h} question{'s' * (h > 1)} at once. Blue: what it asks (query); orange: what a word is "
            "found by (key); green: what it hands over (value)."
        ],
        1: [
            f"The query: one rope, {h * d_k} numbers thick. Keys (orange), values (green): likewise, for each word.",
            f"q = x @ W_Q → {(1, T, h * d_k)}",
        ],
        2: [
            f"The rope parts into {h} strand{'s' * (h > 1)}, together as thick as before.",
            f"q = q.view(B, T, h, d_k).transpose(1, 2) → {(1, h, T, d_k)}",
        ],
        3: [
            "Each head compares its query with the key of every word.",
            f"s = q @ k.mT → {(1, h, T, T)}",
            f"head {head}, {flow.name} · {flow.tokens[best]}: "
            + products(flow.q[head], flow.k[head][best], flow.scores[head][best]),
        ],
        4: [
            "The scores become shares of 1.",
            f"w = softmax(s / sqrt(d_k)) → {(1, h, T, T)}",
            f"head {head}: softmax([{scores}] / (√{d_k}{heat})) = [{weights}]",
        ],
        5: [
            "Every value comes along, as thick as its share.",
            f"z = w @ v → {(1, h, T, d_k)}",
            f"head {head}, first number: {products(flow.weights[head], first, flow.z[head][0])}",
        ],
        6: [
            "The heads lie side by side: as thick as the query was, and now it is what they found.",
            f"z = z.transpose(1, 2).reshape(B, T, h * d_k) → {(1, T, h * d_k)}",
            f"columns {head * d_k} to {(head + 1) * d_k - 1} are head {head}'s: [{z}]",
        ],
        7: ["W_O mixes what the heads found.", f"out = z @ W_O → {(1, T, d_model)}"],
        8: [
            "The result is added to the word.",
            f"x + out → {(1, T, d_model)}",
            f"first number: {sums_to([flow.x[flow.word][0], flow.out[0]], flow.total[0])}",
        ],
    }[step]


def draw(state: FlowState) -> str:
    for name, value, most in (("word", state.word, len(SENTENCE) - 1), ("step", state.step, len(STEPS))):
        if not 0 <= value <= most:
            raise ValueError(f"{name}={value} does not exist; 0 to {most} will do")
    x, layer, note = toy_layer(state.numbers, state.d_model, state.num_heads, state.seed)
    T, head = x.shape[1], min(state.head, state.num_heads - 1)
    allowed = causal_mask(T) if state.is_causal else torch.ones(T, T, dtype=torch.bool)
    flow = follow(layer, x, SENTENCE, state.word, allowed, state.temperature)
    lines = spelled_out(flow, state.step, head, state.temperature)
    return draw_flow(flow, step=state.step, head=head, lines=lines, note=note)


def flow(
    num_heads: int = 2,
    d_model: int = 12,
    *,
    numbers: str = "trained",
    word: int = 1,
    step: int = 0,
    is_causal: bool = False,
) -> Explorer:
    """One word and all its heads: the query parts into h strands, each reads the sentence, W_O joins them, the word
    takes the result along. Move the heads: the rope never gets thicker. Press a word to let it ask.

    numbers: "trained" (for d_model 8 and 12), "by hand" (lessons 1 and 2: for 1 and 2 heads) or "random". step: 0 shows
    all, 1 to 8 the way up to there.
    """
    check_choice("numbers", numbers, SOURCES)
    state = FlowState(d_model=d_model, num_heads=num_heads, numbers=numbers, word=word, step=step, is_causal=is_causal)
    steps = IntSlider(max=len(STEPS), description="step")
    count, width = Choices(options=[1], description="heads"), Choices(options=[1], description="d_model")
    heat = Choices(options=TEMPERATURES, value=1.0, description="temperature")
    source = ToggleButtons(options=SOURCES, description="numbers", style={"button_width": "auto"})
    causal = Checkbox(description="causal mask", indent=False)
    tie(state, "step", steps)
    tie(state, "num_heads", count, options=lambda: divisors(state.d_model))
    tie(state, "d_model", width, options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(state, "temperature", heat, options=lambda: TEMPERATURES)
    tie(state, "numbers", source)
    tie(state, "is_causal", causal)
    explorer = Explorer(state, draw, [HBox([count, steps]), HBox([width, heat, causal]), HBox([source])])
    explorer.view.on_msg(lambda _, content, __: state.press(content["press"]))
    return explorer
