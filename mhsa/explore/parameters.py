"""explore.parameters(): where the parameters of a layer are."""

from ipywidgets import Checkbox, Dropdown, HBox
from traitlets import Bool, Int

from mhsa.count import PRESETS, Preset, count_parameters
from mhsa.draw.parameters import draw_parameters
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie

WIDTHS = (8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 768, 1024, 1600, 2048, 4096, 8192, 12288)
MOST_HEADS = 128


class ParametersState(TiedHeads):
    """d_model, num_heads, num_kv_heads, bias; free_d_k lifts the tie d_k = d_model / num_heads, d_k then counts."""

    num_kv_heads = Int()
    free_d_k = Bool()
    d_k = Int()
    bias = Bool()
    _choosing = False

    def __init__(self, **values):
        super().__init__(**values)
        self.observe(self._settle, names=["d_model", "num_heads", "free_d_k"])

    def _keep_a_divisor(self, change):
        if not self.free_d_k:
            super()._keep_a_divisor(change)

    def choose(self, preset: Preset) -> None:
        """Take the sizes of a published model, all at once."""
        self._choosing = True
        with self.hold_trait_notifications():
            self.d_model, self.num_heads, self.d_k = preset.d_model, preset.num_heads, preset.d_k
            self.bias = preset.bias
            self.num_kv_heads = preset.num_kv_heads or preset.num_heads
            self.free_d_k = preset.num_heads * preset.d_k != preset.d_model
        self._choosing = False

    def _settle(self, change):
        if self._choosing or min(self.d_model, self.num_heads) < 1:
            return  # sizes below 1: the picture says so
        if change["name"] == "free_d_k":
            self._keep_a_divisor(change)
        was_full = change["name"] == "num_heads" and self.num_kv_heads == change["old"]
        most = self.num_heads if was_full else max(self.num_kv_heads, 1)
        with self.hold_trait_notifications():  # one redraw
            if not self.free_d_k and self.d_model % self.num_heads == 0:
                self.d_k = self.d_model // self.num_heads
            self.num_kv_heads = max(n for n in divisors(self.num_heads) if n <= most)


def draw(state: ParametersState) -> str:
    h, g = state.num_heads, state.num_kv_heads
    d_k = state.d_k if state.free_d_k else None
    n = count_parameters(state.d_model, h, num_kv_heads=g, d_k=d_k, bias=state.bias)
    if h > MOST_HEADS:
        raise ValueError(f"num_heads={h} is more than this picture can show; up to {MOST_HEADS} will do")
    counts = {"W_Q": n.w_q, "W_K": n.w_k, "W_V": n.w_v, "W_O": n.w_o} | ({"biases": n.bias} if state.bias else {})

    def full(heads: int) -> str:
        return f"{count_parameters(state.d_model, heads, d_k=d_k, bias=state.bias).total:,}"

    choices = [m for m in (divisors(state.d_model) if d_k is None else (1, 2, 4, 8, 16, 32)) if m <= MOST_HEADS]
    if d_k is None:
        comparison = f"Tied, h · d_k = d_model: {full(h)} in all, the same for h = {', '.join(map(str, choices[:8]))}"
        comparison += ", …" if len(choices) > 8 else "."
        note = "Every head more makes all heads narrower."
    else:
        comparison = "total with h heads:  " + "  ·  ".join(f"h={m} {full(m)}" for m in choices[:6])
        note = "d_k is free: every head more adds parameters of its own, and h · d_k need not equal d_model."
    if g < h:
        comparison = f"With keys and values of its own for each of the {h} heads the total would be {full(h)}."
        note = f"{h // g} query heads share each head of keys and values: only W_K and W_V shrink."
    return draw_parameters(state.d_model, h, g, d_k or state.d_model // h, counts, n.per_head, comparison, note)


def parameters(
    d_model: int = 512,
    num_heads: int = 8,
    *,
    num_kv_heads: int | None = None,
    d_k: int | None = None,
    bias: bool = False,
) -> Explorer:
    """The four matrices to scale, coloured by head; counts, formula and share; d_k free or tied; presets by name."""
    state = ParametersState(
        d_model=d_model,
        num_heads=num_heads,
        free_d_k=d_k is not None,
        bias=bias,
        num_kv_heads=num_heads if num_kv_heads is None else num_kv_heads,
        d_k=d_k if d_k is not None else d_model // max(num_heads, 1),
    )
    width = Choices(options=[1], description="d_model")
    heads = Choices(options=[1], description="heads")
    kv_heads = Choices(options=[1], description="KV heads")
    free = Checkbox(description="free d_k", indent=False)
    head_width = Choices(options=[1], description="d_k")
    with_bias = Checkbox(description="bias", indent=False)
    tie(state, "d_model", width, options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(
        state,
        "num_heads",
        heads,
        options=lambda: [
            n for n in (range(1, MOST_HEADS + 1) if state.free_d_k else divisors(state.d_model)) if n <= MOST_HEADS
        ],
    )
    tie(state, "num_kv_heads", kv_heads, options=lambda: divisors(state.num_heads))
    tie(state, "free_d_k", free)
    tie(
        state,
        "d_k",
        head_width,
        options=lambda: sorted({1, 2, 4, 8, 16, 32, 64, 128, 256, state.d_k}) if state.free_d_k else [state.d_k],
    )
    tie(state, "bias", with_bias)
    rows = [HBox([width, heads]), HBox([kv_heads, head_width]), HBox([free, with_bias, _presets(state)])]
    return Explorer(state, draw, rows)


def _presets(state: ParametersState) -> Dropdown:
    """A menu of published models; it shows a name as long as the state has that model's sizes."""
    menu = Dropdown(options=["own sizes", *PRESETS], description="preset")

    def follow(_change=None):
        d_k = state.d_k if state.free_d_k else state.d_model // max(state.num_heads, 1)
        g = None if state.num_kv_heads == state.num_heads else state.num_kv_heads
        sizes = Preset(state.d_model, state.num_heads, g, d_k, state.bias)
        if PRESETS.get(str(menu.value)) != sizes:  # two models may have the same sizes
            menu.value = next((name for name, preset in PRESETS.items() if preset == sizes), "own sizes")

    menu.observe(lambda change: change["new"] in PRESETS and state.choose(PRESETS[change["new"]]), names="value")
    state.observe(follow, names=state.trait_names())
    follow()
    return menu
