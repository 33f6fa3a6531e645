"""One description of a chart, two drawings of it: PNG and PDF for print, plotly for the page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any, Literal

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
    """kind: "data" was measured, "fit" fitted to it, "bound" proven, "printed" taken from the papers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int  # 1 … 6
    kind: Kind = "data"
    band: tuple[Sequence[float], Sequence[float]] | None = None  # lower and upper edge
    marker: str = "o"  # matplotlib's letter; plotly draws the same shape
    line: bool = True  # False: markers alone
    legend: bool = True


@dataclass(frozen=True)
class Chart:
    """Texts may hold n_K for a subscript and n^(¼) for an exponent."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = True
    x_ticks: tuple[float, ...] | None = None
    y_range: tuple[float, float] | None = None
    legend_columns: int = 0  # of a legend below the print; 0: inside, where there is room


_SHAPES = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "x": "x", "": "circle"}


def plot(chart: Chart, alt: str, caption: str = "", *, source: str = "", height: int = 460) -> Plot:
    """For the page."""
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
        x_axis |= {"tickmode": "array", "tickvals": list(chart.x_ticks), "ticktext": _texts(chart.x_ticks)}
    y_axis: dict[str, Any] = {
        "title": {"text": _html(chart.y_label)},
        "type": "log" if chart.log_y else "linear",
    }
    if chart.y_range is not None:
        y_axis["range"] = [log10(y) for y in chart.y_range] if chart.log_y else list(chart.y_range)
    return Plot(tuple(data), {"xaxis": x_axis, "yaxis": y_axis}, alt, caption, height, source)


def save(charts: Sequence[Chart], folder: Path, name: str) -> None:
    """Charts side by side as `name`.png and `name`.pdf; the same numbers give the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(3.9 * len(charts), 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(charts), squeeze=False)[0]
        for chart, axis in zip(charts, axes, strict=True):
            _draw(chart, axis)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, for both files
        # A date in the file would make two equal runs differ.
        for suffix, metadata in (("png", None), ("pdf", {"CreationDate": None})):
            data = io.BytesIO()
            figure.savefig(data, format=suffix, dpi=200, metadata=metadata)
            write_file(folder / f"{name}.{suffix}", data.getvalue())


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
        axis.set_xticks(chart.x_ticks, _texts(chart.x_ticks), minor=False)
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


def _texts(ticks: Sequence[float]) -> list[str]:
    return [f"{tick:g}" for tick in ticks]
