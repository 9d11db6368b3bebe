"""assets/data_flow: every step of the layer, as mhsa.trace ran it: code, shape, what it costs."""

from mhsa.draw.colors import KEY, QUERY, VALUE
from mhsa.draw.diagram import CODE, GREY, INK, PALE, arrow, box
from mhsa.draw.svg import picture, standalone, text
from mhsa.trace import Step, trace_shapes

B, T, D_MODEL, H = 2, 4, 768, 12  # GPT-2 small's width and heads
LANES = (("q", QUERY), ("k", KEY), ("v", VALUE))
WIDE, GAP, TOP, HIGH, PITCH = 228, 12, 96, 36, 58
LEFT = [20 + i * (WIDE + GAP) for i in range(3)]  # of each lane


def draw_data_flow() -> str:
    steps = trace_shapes(B, T, D_MODEL, H)
    maps = [row for row, step in enumerate(steps) if step.axes == "B h T T"]  # before them q, k and v go side by side
    title = "Data flow of multi-head attention"
    parts = [
        text(title, 20, 34, size=20, fill=INK, font_weight="700"),
        text(
            f"B = {B} sentences, T = {T} tokens, d_model = {D_MODEL}, h = {H} heads, d_k = {steps[0].d_k}; "
            "float32, plain products (the fused CPU kernel stores neither s nor w, copies nothing)",
            20,
            58,
            size=14,
            fill=GREY,
        ),
        text("shape", 760, 80, fill=GREY),
        text("what the step does", 900, 80, fill=GREY),
    ]
    for row, step in enumerate(steps):
        y = TOP + row * PITCH
        parts += [
            *_boxes(step, y, row, maps),
            *_arrows(y, row, maps, last=step is steps[-1]),
            text(str(step.shape), 760, y + 23, size=14, fill=INK, font_family=CODE),
            text(cost(step), 900, y + 23, size=14, fill=INK, font_weight="700" if step.copied else None),
        ]
    desc = "; ".join(f"{step.code}: {step.shape}, {cost(step)}" for step in steps)
    return standalone(picture(1200, TOP + len(steps) * PITCH + 4, title, desc, *parts))


def cost(step: Step) -> str:
    """What a step does to memory, or what its product costs."""
    if step.kind == "input":
        return "the input"
    if step.kind == "layout":
        return f"copies {step.nbytes:,} bytes" if step.copied else "no copy: same numbers, new strides"
    times = "3 × " if step.name == "project" else ""
    note = (
        " (5 a score)" if step.kind == "softmax" else f", copies {' and '.join(step.copied)} first" * bool(step.copied)
    )
    return f"{times}{step.flops:,} FLOPs{note}"


def _boxes(step: Step, y: float, row: int, maps: list[int]) -> list:
    """Three boxes where queries, keys and values go the same way; one where they meet."""
    if 0 < row < maps[0]:
        codes = (step.code.replace("q", name).replace("Q", name.upper()) for name, _ in LANES)
        return [
            box(x, y, WIDE, HIGH, code, fill=color, size=13, font=CODE)
            for x, code, (_, color) in zip(LEFT, codes, LANES)
        ]
    last = LEFT[1] if row in maps else LEFT[2]  # v goes past the maps
    return [box(LEFT[0], y, last + WIDE - LEFT[0], HIGH, step.code, fill=PALE, font=CODE)]


def _arrows(y: float, row: int, maps: list[int], last: bool) -> list:
    """To the next step; from v's last box past the maps to the product that takes it in."""
    q, k, v = (x + WIDE / 2 for x in LEFT)
    middles = [] if last else [q, k, v] if row < maps[0] else [(q + k) / 2] if row in maps else [k]
    past = len(maps) if row == maps[0] - 1 else 0
    return [arrow(x, y + HIGH, x, y + PITCH * (1 + past * (x == v))) for x in middles]
