"""Pictures in plain cells: figures of curves and points. The only file that imports matplotlib."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import combinations, product

from IPython.display import display
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from mhsa.draw.colors import HEADS, VALUE, mixed, weight_opacity

INK, PALE, PAPER = "#1b1b1b", "#d9dee3", "#ffffff"  # its own light ground, in a dark theme too
LINES = cycler(color=["#444444", *HEADS[:2]], marker=["o", "s", "D"])
LOOK: dict = {
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "axes.prop_cycle": LINES,
    "lines.linewidth": 2.5,
    "lines.markersize": 8,
    "legend.frameon": False,
}
Points = Mapping[float, tuple[float, float | None]]  # x: (mean, spread); None: a single run, so no error bar
SIZE, SHOWN_DPI, STORED_DPI = (7, 3.4), 100, 200  # inches; stored twice as fine, for a projector


def show(figure: Figure, alt: str) -> None:
    """Display the figure as a PNG with its alternative text; the same figure always gives the same bytes."""
    png = BytesIO()
    figure.savefig(png, format="png", dpi=STORED_DPI, metadata={"Software": None})
    about = {"alt": alt, "width": round(figure.get_figwidth() * SHOWN_DPI)}
    display({"image/png": png.getvalue(), "text/plain": alt}, raw=True, metadata={"image/png": about})


@rc_context(LOOK)
def curves(
    x: Sequence[float], series: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str, log: bool = False
) -> Figure:
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
def convex_hull(
    values: Mapping[str, Sequence[float]], outputs: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str
) -> Figure:
    """Named points of the plane (values), the area of all their weighted averages, and some of these (outputs)."""
    figure, axes = _axes(xlabel, ylabel)
    for triangle in combinations(values.values(), 3):  # together the triangles fill the convex hull
        axes.fill(*zip(*triangle, strict=True), color=PALE, linewidth=0)
    for kind, points, color, marker, lift in (("value", values, VALUE, "o", 9), ("output", outputs, INK, "s", -19)):
        axes.plot(*zip(*points.values(), strict=True), marker, color=color, label=kind)
        for name, (x, y) in points.items():
            axes.annotate(name, (x, y), (0, lift), textcoords="offset points", ha="center")
    axes.margins(0.12)
    axes.legend()
    return figure


@rc_context(LOOK)
def heat_tables(
    grids: Mapping[str, Sequence[Sequence[float]]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    xlabel: str,
    spreads: Mapping[str, Sequence[Sequence[float]]] | None = None,
) -> Figure:
    """Named tables of numbers from 0 to 1 side by side, coloured as weights are; spreads: what stands below as ±."""
    spreads = spreads or {}
    figure = Figure((4.6 * len(grids), 0.9 + 0.75 * len(rows)), layout="constrained")
    for place, (name, grid) in enumerate(grids.items(), start=1):
        axes = figure.add_subplot(1, len(grids), place, title=name, xlabel=xlabel)
        axes.imshow([[to_rgb(mixed(PAPER, HEADS[0], weight_opacity(n))) for n in row] for row in grid], aspect="auto")
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows if place == 1 else [""] * len(rows))
        axes.tick_params(length=0)
        for i, j in product(range(len(rows)), range(len(columns))):
            spread = f"\n±{spreads[name][i][j]:.2f}" if name in spreads else ""
            axes.text(
                j,
                i,
                f"{grid[i][j]:.2f}{spread}",
                ha="center",
                va="center",
                fontsize=11,
                color=INK,
            )
    return figure


@rc_context(LOOK)
def with_prediction(
    x: Sequence[float],
    measured: Mapping[str, Sequence[tuple[float, float]]],
    predicted: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """For each name the measured (mean, spread) with error bars, and a dashed line in the same colour: predicted."""
    figure, axes = _axes(xlabel, ylabel)
    for name, points in measured.items():
        means, spreads = zip(*points, strict=True)
        bars = axes.errorbar(x, means, spreads, label=name, capsize=5)
        axes.plot(x, predicted[name], "--", marker="", color=bars[0].get_color(), linewidth=1.5)
    axes.plot([], [], "--", marker="", color=INK, linewidth=1.5, label="predicted")
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.set_ylim(0, 1.05)
    axes.grid()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


@rc_context(LOOK)
def maps(rows: Sequence[Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    """Named attention maps, a row of pictures for each mapping; in each, rows are queries and the scale is 0 to 1."""
    across = max(map(len, rows))
    figure = Figure((2.6 * across, 2.7 * len(rows)), layout="constrained")
    for line, named in enumerate(rows):
        for place, (name, weights) in enumerate(named.items(), start=1):
            axes = figure.add_subplot(len(rows), across, line * across + place, title=name)
            axes.imshow(weights, cmap="cividis", vmin=0, vmax=1)
            axes.set_xticks(range(len(weights[0])))
            axes.set_yticks(range(len(weights)))
            axes.tick_params(length=0, labelsize=8)
            if place == 1:
                axes.set_ylabel("query")
            if line == len(rows) - 1:
                axes.set_xlabel("key")
    return figure


@rc_context(LOOK)
def points_and_lines(
    x: Sequence[float],
    points: Mapping[str, Sequence[float]],
    lines: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """For each name markers where something was measured, and thin lines to hold beside them; both axes double."""
    figure, axes = _axes(xlabel, ylabel)
    for name, y in points.items():
        axes.plot(x, y, linestyle="none", label=name)
    for (name, y), dashes in zip(lines.items(), ("--", ":"), strict=True):
        axes.plot(x, y, dashes, marker="", color=INK, linewidth=1.5, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


@rc_context(LOOK)
def panels_with_error_bars(
    panels: Mapping[str, Mapping[str, Points]], *, xlabel: str, ylabels: Sequence[str]
) -> Figure:
    """Panels side by side, by title; in each, for every named series {x: (mean, spread)} a line with error bars."""
    figure = Figure((10.4, 4), layout="constrained")
    for place, (title, series) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place, title=title, xlabel=xlabel, ylabel=ylabels[place - 1])
        for name, points in series.items():
            _error_bars(axes, name, points)
        axes.set_xscale("log", base=2)
        axes.set_xticks([*points], [f"{x:g}" for x in points])
        axes.margins(0.1)
        axes.grid()
        if len(series) > 1:
            axes.legend()
    return figure


@rc_context(LOOK)
def with_error_bars(series: Mapping[str, Points], *, xlabel: str, ylabel: str) -> Figure:
    """For each name {x: (mean, spread)}, as in panels_with_error_bars(), over an even scale."""
    figure, axes = _axes(xlabel, ylabel)
    for name, points in series.items():
        _error_bars(axes, name, points)
    axes.set_ylim(0, 1.05)
    axes.grid()
    axes.legend()
    return figure


@rc_context(LOOK)
def scatter(
    groups: Mapping[str, Sequence[tuple[float, float]]],
    names: Mapping[str, tuple[float, float]],
    *,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """A point for each pair of every group, and some points with a name; y runs in powers of ten."""
    figure, axes = _axes(xlabel, ylabel)
    for group, points in groups.items():
        axes.plot(*zip(*points, strict=True), linestyle="none", markersize=6, label=group)
    for name, point in names.items():
        axes.annotate(name, point, (6, 5), textcoords="offset points", fontsize=10)
    axes.set_yscale("log")
    axes.grid()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _error_bars(axes: Axes, name: str, points: Points) -> None:
    means, spreads = zip(*points.values(), strict=True)
    axes.errorbar([*points], means, None if None in spreads else spreads, label=name, capsize=5)


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(SIZE, layout="constrained")
    return figure, figure.add_subplot(xlabel=xlabel, ylabel=ylabel)
