"""assets/optimal_head_count: a published sweep over h beside our own."""

from io import StringIO

from matplotlib import rc_context
from matplotlib.figure import Figure

from mhsa.draw import plots
from mhsa.train import recorded

# (BLEU, perplexity) on newstest2013, English to German, d_model = 512: Vaswani et al. 2017, table 3. One run each.
PUBLISHED = {1: (24.9, 5.29), 4: (25.5, 5.00), 8: (25.8, 4.92), 16: (25.8, 4.91), 32: (25.4, 5.01)}  # by h: (A), base
NARROWED = {16: (25.1, 5.16), 32: (25.4, 5.01), 64: (25.8, 4.92)}  # by d_k alone, 8 heads, d_v = 64: (B) and base
TASKS = {"1 relation": "relations, m=1", "2 relations": "relations, m=2", "4 relations": "relations, m=4"}
HEADS = (1, 2, 4, 8, 16)


def draw_head_count() -> Figure:
    """Published BLEU, and the accuracy that mhsa.train recorded; each over h, with equal parameters for every h."""
    sweep = recorded("map")
    results = {label: {h: sweep.result(task, h) for h in HEADS} for label, task in TASKS.items()}
    return plots.panels_with_error_bars(
        {
            "Vaswani et al. 2017, one run each": {"published": {h: (bleu, None) for h, (bleu, _) in PUBLISHED.items()}},
            "our toy task, d_model = 16": {
                label: {h: (result.mean, result.spread) for h, result in row.items()} for label, row in results.items()
            },
        },
        xlabel="heads h",
        ylabels=("BLEU (axis cut)", "accuracy, ± 1 sd over 5 seeds (axis cut)"),
    )


def head_count_svg() -> str:
    svg = StringIO()
    with rc_context({"svg.hashsalt": "mhsa"}):  # the same ids in the text on every run
        draw_head_count().savefig(
            svg, format="svg", metadata={"Date": None, "Creator": None, "Title": "How many heads: two sweeps"}
        )
    return svg.getvalue()
