"""One description of a chart, two drawings of it: PNG and PDF for print, plotly for the page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any, Literal

from strongticket.experiments.spread import Row, column
from strongticket.files import write_file
from strongticket.report import Plot

Kind = Literal["data", "fit", "bound", "printed"]

# The page's light colours (report/page.css), in the order of its variables --series-1 … --series-6.
COLOURS = ("#1f5fbf", "#c8553d", "#2a7f62", "#a8327d", "#946300", "#6b7280")
_DASH = {"data": "solid", "fit": "dash", "bound": "dashdot", "printed": "dot"}
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
class Curve:
    """One line of a chart.

    colour: 1 to 6
    kind: "data" was measured, "fit" fitted to it, "bound" proven, "printed" taken from the papers
    band: its lower and upper edge
    marker: matplotlib's letter; the page draws the same shape
    line: False draws the markers alone
    legend: whether the legend lists it
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int
    kind: Kind = "data"
    band: tuple[Sequence[float], Sequence[float]] | None = None
    marker: str = "o"
    line: bool = True
    legend: bool = True


@dataclass(frozen=True)
class Chart:
    """Curves on common axes. Texts may hold n_K for a subscript and n^(¼) for an exponent.

    x_ticks, y_range: None lets the drawing choose
    legend_columns: of a legend below the printed chart; 0 puts it inside, where there is space
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = True
    x_ticks: tuple[float, ...] | None = None
    y_range: tuple[float, float] | None = None
    legend_columns: int = 0


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
    return Curve(name, column(rows, x), height, colour, kind, edges, marker, line, legend)


_SHAPES = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "x": "x", "": "circle"}


def plot(chart: Chart, alt: str, caption: str = "", *, source: str = "", height: int = 460) -> Plot:
    """Draw the chart for a page.

    alt: what it shows, in words; caption: below it; source: the CSV file with its numbers; height: in pixels
    """
    data: list[dict[str, Any]] = []
    for curve in chart.curves:
        colour = f"var(--series-{curve.colour})"
        if curve.band is not None:
            low, high = curve.band
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [*curve.x, *reversed(curve.x)],
                    "y": [*low, *reversed(high)],
                    "fill": "toself",
                    "fillcolor": colour,
                    "opacity": 0.15,
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": curve.name,
                }
            )
        marked = curve.kind == "data" and curve.marker
        data.append(
            {
                "type": "scatter",
                "name": _html(curve.name),
                "mode": ("lines+markers" if curve.line else "markers") if marked else "lines",
                "showlegend": curve.legend,
                "x": list(curve.x),
                "y": list(curve.y),
                "line": {"color": colour, "dash": _DASH[curve.kind], "width": 2 if marked else 1.5},
                "marker": {"symbol": _SHAPES[curve.marker], "size": 6, "color": colour},
                "legendgroup": curve.name,
            }
        )
    x_axis: dict[str, Any] = {
        "title": {"text": _html(chart.x_label)},
        "type": "log" if chart.log_x else "linear",
    }
    if chart.x_ticks is not None:
        x_axis |= {
            "tickmode": "array",
            "tickvals": list(chart.x_ticks),
            "ticktext": _tick_texts(chart.x_ticks),
        }
    y_axis: dict[str, Any] = {
        "title": {"text": _html(chart.y_label)},
        "type": "log" if chart.log_y else "linear",
    }
    if chart.y_range is not None:
        y_axis["range"] = [log10(y) for y in chart.y_range] if chart.log_y else list(chart.y_range)
    return Plot(tuple(data), {"xaxis": x_axis, "yaxis": y_axis}, alt, caption, height, source)


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
        axis.plot(
            curve.x,
            curve.y,
            linestyle=_LINE[curve.kind] if curve.line else "",
            color=colour,
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


def _html(text: str) -> str:
    text = re.sub(r"\b([A-Za-zγδ])_([A-Za-z0-9]+)", r"\1<sub>\2</sub>", text)
    return re.sub(r"\^\(([^()]+)\)", r"<sup>\1</sup>", text)


def _tex(text: str) -> str:
    text = re.sub(r"\b([A-Za-zγδ])_([A-Za-z0-9]+)", r"$\1_{\\mathrm{\2}}$", text)
    return re.sub(r"\^\(([^()]+)\)", r"$^{\1}$", text)


def _tick_texts(ticks: Sequence[float]) -> list[str]:
    return [f"{tick:g}" for tick in ticks]
