"""Pictures in plain cells: figures of curves and points. The only file that imports matplotlib."""
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import combinations

from IPython.display import display
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from mhsa.draw.colors import HEADS, VALUE
from mhsa.draw.svg import describe

INK, PALE, PAPER = "#1b1b1b", "#d9dee3", "#ffffff"                  # its own light ground, in a dark theme too
LINES = cycler(color=[HEADS[5], HEADS[1], HEADS[3]], marker=["o", "s", "D"])    # those that read well on white
LOOK: dict = {"font.family": "DejaVu Sans", "font.size": 12, "figure.facecolor": PAPER, "axes.facecolor": PAPER,
              "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
              "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "grid.color": PALE,
              "axes.prop_cycle": LINES, "lines.linewidth": 2.5, "lines.markersize": 8, "legend.frameon": False}
SIZE, SHOWN_DPI, STORED_DPI = (7, 3.4), 100, 200                    # inches; stored twice as fine, for a projector


def show(figure: Figure, alt: str) -> None:
    """Display the figure as a PNG with its alternative text; the same figure always gives the same bytes."""
    png = BytesIO()
    figure.savefig(png, format="png", dpi=STORED_DPI, metadata={"Software": None})
    about = {"alt": alt, "width": round(figure.get_figwidth() * SHOWN_DPI)}
    display({"image/png": png.getvalue(), "text/plain": alt}, raw=True, metadata={"image/png": about})


def show_svg(svg: str) -> None:
    """Display a picture of mhsa.draw as a still, with its words for those who see no picture."""
    display({"image/svg+xml": svg, "text/plain": describe(svg)}, raw=True)


@rc_context(LOOK)
def curves(x: Sequence[float], series: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str,
           log: bool = False) -> Figure:
    """A line with markers for each named series over x, which runs in powers of two; log: y does so too."""
    figure, axes = _axes(xlabel, ylabel)
    for name, y in series.items():
        axes.plot(x, y, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{value:g}" for value in x])
    if log:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter("{x:g}")
    axes.grid()
    axes.legend()
    return figure


@rc_context(LOOK)
def mixtures(values: Mapping[str, Sequence[float]], outputs: Mapping[str, Sequence[float]], *, xlabel: str,
             ylabel: str) -> Figure:
    """Named points of the plane (values), the area of all their weighted averages, and some of these (outputs)."""
    figure, axes = _axes(xlabel, ylabel)
    for triangle in combinations(values.values(), 3):               # together the triangles fill the convex hull
        axes.fill(*zip(*triangle, strict=True), color=PALE, linewidth=0)
    for kind, points, color, marker, lift in (("value", values, VALUE, "o", 9), ("output", outputs, INK, "s", -19)):
        axes.plot(*zip(*points.values(), strict=True), marker, color=color, label=kind)
        for name, (x, y) in points.items():
            axes.annotate(name, (x, y), (0, lift), textcoords="offset points", ha="center")
    axes.margins(0.12)
    axes.legend()
    return figure


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(SIZE, layout="constrained")
    return figure, figure.add_subplot(xlabel=xlabel, ylabel=ylabel)
