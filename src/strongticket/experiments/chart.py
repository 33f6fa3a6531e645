"""Charts of experiments: curves of spreads, and drawings for page and print."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strongticket.experiments.spread import Row, column
from strongticket.files import write_file
from strongticket.report import Chart as Chart
from strongticket.report import Curve as Curve
from strongticket.report import Kind, Plot

# The page's light colours (report/page.css), in the order of its variables --series-1 … --series-6.
COLOURS = ("#1f5fbf", "#c8553d", "#2a7f62", "#a8327d", "#946300", "#6b7280")
_LINE = {"data": "-", "fit": "--", "bound": "-.", "printed": ":"}
_STYLE: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.7,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Print:
    """Charts side by side in `name`.png and `name`.pdf; alt says in words what they show."""

    name: str
    charts: tuple[Chart, ...]
    alt: str


def spread_curve(
    name: str,
    rows: Sequence[Row],
    colour: int,
    *,
    x: str = "n",
    y: str = "median",
    band: Literal["", "quantiles", "std"] = "",
    kind: Kind = "data",
    marker: str = "o",
    line: bool = True,
    legend: bool = True,
) -> Curve:
    """Return the curve of one column of `spreads`.

    rows: of `spreads`, in the order of x
    x, y: the columns to draw
    band: "quantiles" shows the middle 80 %, "std" one standard deviation around y
    name, colour, kind, marker, line, legend: see Curve
    """
    height = column(rows, y)
    edges = None
    if band == "quantiles":
        edges = column(rows, "low"), column(rows, "high")
    elif band == "std":
        stds = column(rows, "std")
        edges = (
            [value - std for value, std in zip(height, stds, strict=True)],
            [value + std for value, std in zip(height, stds, strict=True)],
        )
    return Curve(name, column(rows, x), height, colour, kind, edges, marker, line, legend=legend)


def plot(chart: Chart, alt: str, caption: str = "", *, source: str = "", height: int = 460) -> Plot:
    """Return the chart for a page.

    chart: to draw
    alt: what it shows, in words
    caption: below it
    source: the CSV file with its numbers
    height: in pixels
    """
    return Plot(chart, alt, caption, height, source)


def save(picture: Print, folder: Path) -> None:
    """Write the PNG and the PDF into a folder; the same numbers give the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        count = len(picture.charts)
        figure = Figure(figsize=(3.9 * count, 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, count, squeeze=False)[0]
        for chart, axis in zip(picture.charts, axes, strict=True):
            _draw(chart, axis)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, for both files
        # A date in the file would make two equal runs differ.
        for suffix, metadata in (("png", None), ("pdf", {"CreationDate": None})):
            data = io.BytesIO()
            figure.savefig(data, format=suffix, dpi=200, metadata=metadata)
            write_file(folder / f"{picture.name}.{suffix}", data.getvalue())


def _draw(chart: Chart, axis: Any) -> None:
    for curve in chart.curves:
        colour = COLOURS[curve.colour - 1]
        measured = curve.kind == "data"
        if curve.shape == "bars":
            axis.bar(curve.x, curve.y, color=colour, alpha=1 if measured else 0.35, label=_tex(curve.name))
            continue
        axis.plot(
            curve.x,
            curve.y,
            linestyle=_LINE[curve.kind] if curve.line else "",
            color=colour,
            drawstyle="steps-mid" if curve.shape == "steps" else "default",
            label=_tex(curve.name) if curve.legend else None,
            linewidth=1.2 if measured else 0.9,
            marker=curve.marker if measured else "",
            markersize=3 if curve.line else 5,
        )
        if curve.band is not None:
            axis.fill_between(curve.x, *curve.band, color=colour, alpha=0.15, linewidth=0)
    axis.set_title(_tex(chart.title), fontsize=9)
    axis.set_xlabel(_tex(chart.x_label))
    axis.set_ylabel(_tex(chart.y_label))
    if chart.log_y:
        axis.set_yscale("log")
    if chart.log_x:
        axis.set_xscale("log")
    if chart.x_ticks is not None:
        axis.set_xticks(chart.x_ticks, _tick_texts(chart.x_ticks), minor=False)
        axis.minorticks_off()
    if chart.y_range is not None:
        axis.set_ylim(*chart.y_range)
    below = (
        dict(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=chart.legend_columns)
        if chart.legend_columns
        else {}
    )
    axis.legend(frameon=False, handlelength=2.4, labelspacing=0.3, **below)


def _tex(text: str) -> str:
    text = re.sub(r"\b([A-Za-zγδ])_([A-Za-z0-9]+)", r"$\1_{\\mathrm{\2}}$", text)
    return re.sub(r"\^\(([^()]+)\)", r"$^{\1}$", text)


def _tick_texts(ticks: Sequence[float]) -> list[str]:
    return [f"{tick:g}" for tick in ticks]
