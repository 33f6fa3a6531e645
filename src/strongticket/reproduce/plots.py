"""Pictures of a study, for screen (PNG) and print (PDF); the same numbers give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from strongticket.files import write_file
from strongticket.reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is an extra, loaded to draw

Band = Literal["", "quantiles", "std"]
COLOURS = ("#1f5fbf", "#c8553d", "#2a7f62", "#a8327d", "#946300", "#6b7280")
FIT, BOUND, PRINTED = "--", "-.", ":"  # line styles of what was not measured
_STYLE: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.labelspacing": 0.3,
    "axes.titlesize": 9,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "pdf.fonttype": 42,
}


def curve(
    axis: Axes,
    rows: Sequence[Row],
    x: str = "n",
    y: str = "median",
    *,
    band: Band = "",
    **style: Any,
) -> None:
    """Draw one column of rows against another.

    Args:
        axis: to draw on.
        rows: in the order of x.
        x: name of a column.
        y: name of a column.
        band: "quantiles" shows the columns low to high (the middle 80 %), "std" one standard deviation around y.
        style: of matplotlib's plot; the band has the line's colour.
    """
    places, heights = [row[x] for row in rows], [row[y] for row in rows]
    (line,) = axis.plot(places, heights, **{"marker": "o", **style})
    if band:
        low = [row["low"] if band == "quantiles" else row[y] - row["std"] for row in rows]
        high = [row["high"] if band == "quantiles" else row[y] + row["std"] for row in rows]
        axis.fill_between(places, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def label(
    axis: Axes, title: str, x: str, y: str, *, log: str = "y", ticks: Sequence[float] = (), below: int = 0
) -> None:
    """Name an axis's title and directions and draw its legend.

    Args:
        axis: of the plot.
        title: of the axis.
        x: name of the horizontal direction.
        y: name of the vertical one.
        log: the directions that are logarithmic: "", "x", "y" or "xy".
        ticks: of x; by default matplotlib's.
        below: columns of a legend below the axis; by default it is inside.
    """
    axis.set(title=title, xlabel=x, ylabel=y)
    if "x" in log:
        axis.set_xscale("log")
    if "y" in log:
        axis.set_yscale("log")
    if ticks:
        axis.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
    if axis.get_legend_handles_labels()[0]:
        place = dict(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=below) if below else {}
        axis.legend(**place)


def within(values: Sequence[float], ticks: Sequence[float], slack: float = 1.001) -> list[float]:
    """Return those of the ticks that lie between the lowest and the highest value, or by the factor `slack` beyond."""
    return [tick for tick in ticks if min(values) <= tick * slack and tick <= max(values) * slack]


def save(path: Path, panels: int, draw: Callable[[Sequence[Axes]], None]) -> None:
    """Write path.png and path.pdf."""
    import matplotlib
    from cycler import cycler
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE | {"axes.prop_cycle": cycler(color=COLOURS)}):
        figure = Figure(figsize=(4.4 * panels, 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.subplots(1, panels, squeeze=False)[0])
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, for both files
        # A date in the file would make two equal runs differ.
        for suffix, metadata in (("png", None), ("pdf", {"CreationDate": None})):
            data = io.BytesIO()
            figure.savefig(data, format=suffix, dpi=200, metadata=metadata)
            write_file(path.with_name(f"{path.name}.{suffix}"), data.getvalue())
