"""assets/data_flow: every step of the layer, as mhsa.trace ran it: code, shape, what it costs."""

from mhsa.draw.colors import KEY, QUERY, VALUE
from mhsa.draw.diagram import CODE, GREY, INK, PALE, arrow, box
from mhsa.draw.svg import picture, standalone, text
from mhsa.trace import Step, trace_shapes

B, T, D_MODEL, H = 2, 4, 768, 12  # GPT-2 small's width and heads
LANES = (("q", QUERY), ("k", KEY), ("v", VALUE))
WIDE, GAP, TOP, HIGH, PITCH = 228, 12, 96, 36, 58
SPANS = {"input": 3, "scores": 2, "weights": 2}  # lanes that a step is drawn across; else 3, or one


def draw_data_flow() -> str:
    steps = trace_shapes(B, T, D_MODEL, H)
    title = "Data flow of multi-head attention"
    parts = [
        text(title, 20, 34, size=20, fill=INK, font_weight="700"),
        text(
            f"B = {B} sentences, T = {T} tokens, d_model = {D_MODEL}, h = {H} heads, d_k = {steps[0].d_k}; "
            "float32, explicit product (a fused kernel stores neither s nor w)",
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
            *_boxes(step, y),
            *_arrows(step, y),
            text(str(step.shape), 760, y + 23, size=14, fill=INK, font_family=CODE),
            text(cost(step), 900, y + 23, size=14, fill=INK, font_weight="700" if step.copies else None),
        ]
    desc = "; ".join(f"{step.code}: {step.shape}, {cost(step)}" for step in steps)
    return standalone(picture(1180, TOP + len(steps) * PITCH + 4, title, desc, *parts))


def cost(step: Step) -> str:
    """What a step does to memory, or what its product costs."""
    if step.flops:
        return f"{'3 × ' * (step.name == 'project')}{step.flops:,} FLOPs{' (5 a score)' * (step.name == 'weights')}"
    if step.copies:
        return f"copies {step.nbytes:,} bytes"
    return "the input" if step.name == "input" else "no copy: same numbers, new strides"


def _lanes(step: Step) -> bool:
    return step.code.startswith("q = ")


def _boxes(step: Step, y: float) -> list:
    """Three boxes where queries, keys and values go the same way; one where they meet."""
    if _lanes(step):
        codes = (step.code.replace("q", name).replace("Q", name.upper()) for name, _ in LANES)
        return [
            box(20 + i * (WIDE + GAP), y, WIDE, HIGH, code, fill=color, size=13, font=CODE)
            for i, (code, (_, color)) in enumerate(zip(codes, LANES))
        ]
    span = SPANS.get(step.name, 3)
    return [box(20, y, span * WIDE + (span - 1) * GAP, HIGH, step.code, fill=PALE, font=CODE)]


def _arrows(step: Step, y: float) -> list:
    """To the next step: three ways down to the scores, where values go past scores and weights, and one from there."""
    lanes = [20 + i * (WIDE + GAP) + WIDE / 2 for i in range(3)]
    ways = {"input": lanes, "scores": [sum(lanes[:2]) / 2], "weights": [sum(lanes[:2]) / 2], "output": []}
    middles = ways.get(step.name, lanes if _lanes(step) else lanes[1:2])
    far = 3 * PITCH if step.name == "heads forward" else PITCH
    return [arrow(x, y + HIGH, x, y + (far if x == lanes[2] else PITCH)) for x in middles]
