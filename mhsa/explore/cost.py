"""explore.cost(): what a layer needs as the text grows."""

from bisect import bisect

import torch
from ipywidgets import HBox, SelectionSlider
from traitlets import Enum, Int

from mhsa.count import count_flops, count_memory
from mhsa.draw.cost import draw_cost
from mhsa.explore.base import Choices, Explorer, TiedHeads, divisors, tie

TOKENS = [2**i for i in range(4, 18)]  # 16 to 131,072
WIDTHS = (64, 128, 256, 512, 768, 1024, 1600, 2048, 4096, 8192, 12288)
DTYPES = ("float32", "bfloat16", "float64")


class CostState(TiedHeads):
    """B sentences of T tokens (a power of 2 from 16 to 131,072), d_model, num_heads, and the dtype by name."""

    B = Int()
    T = Int()
    dtype = Enum(DTYPES)


def draw(state: CostState) -> str:
    if state.T not in TOKENS:
        raise ValueError(f"T={state.T} is not on the axis; these are: {', '.join(map(str, TOKENS))}")
    sizes = (state.d_model, state.num_heads)
    memory = [count_memory(state.B, T, *sizes, dtype=getattr(torch, state.dtype)) for T in TOKENS]
    series = {part: [getattr(m, part) for m in memory] for part in ("weights", "qkv", "scores", "kv_cache")}
    flops = count_flops(state.B, state.T, *sizes)
    larger = bisect(
        range(1, TOKENS[-1] + 1),
        0,
        key=lambda T: count_memory(state.B, T, *sizes).scores > count_memory(state.B, T, *sizes).weights,
    )  # the first T whose scores are larger
    crossing = larger + 1 if larger < TOKENS[-1] else None
    title = (
        f"{state.B} sentence{'s' * (state.B > 1)} of {state.T:,} tokens, d_model {state.d_model:,}, "
        f"{state.num_heads} head{'s' * (state.num_heads > 1)}, {state.dtype}"
    )
    return draw_cost(
        TOKENS,
        series,
        state.T,
        crossing,
        flops._asdict(),
        title,
        "Scores grow with h · T², the rest with T or not at all. The products' FLOPs are the same for every h.",
    )


def cost(B: int = 1, T: int = 1024, d_model: int = 512, num_heads: int = 8, *, dtype: str = "float32") -> Explorer:
    """Bytes and FLOPs by part, T up to 131,072: explicit and fused, KV cache, and where scores outgrow parameters."""
    state = CostState(B=B, T=T, d_model=d_model, num_heads=num_heads, dtype=dtype)
    sliders = {
        name: Choices(options=[1], description=label)
        for name, label in {"T": "tokens T", "B": "batch B", "d_model": "d_model", "num_heads": "heads"}.items()
    }
    types = SelectionSlider(options=DTYPES, description="dtype")
    tie(state, "T", sliders["T"], options=lambda: TOKENS)
    tie(state, "B", sliders["B"], options=lambda: sorted({1, 2, 4, 8, 16, 32, 64, state.B}))
    tie(state, "d_model", sliders["d_model"], options=lambda: sorted({*WIDTHS, state.d_model}))
    tie(state, "num_heads", sliders["num_heads"], options=lambda: divisors(state.d_model))
    tie(state, "dtype", types)
    rows = [HBox([sliders["T"], sliders["B"], types]), HBox([sliders["d_model"], sliders["num_heads"]])]
    return Explorer(state, draw, rows)
