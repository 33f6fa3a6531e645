"""What a page shows, as small frozen data: a title, a lead, sections of blocks. `html.py` draws it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strongticket.errors import StrongTicketError

Cell = str | int | float | None
Kind = Literal["data", "fit", "bound", "printed"]
MARKERS = ("o", "s", "^", "D", "x", "")


@dataclass(frozen=True)
class Text:
    """Prose. An empty line ends a paragraph; `code`, **bold**, *emphasis* and 10^(−9) are drawn."""

    text: str


@dataclass(frozen=True)
class Facts:
    """A few headline numbers: (value, what it is) each."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Cells are strings or numbers; columns of numbers are set flush right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise StrongTicketError(
                    f"row {i} of a table has {len(row)} cells, its header has {len(self.columns)}",
                    hint=f"Give every row one cell per column ({', '.join(self.columns)}).",
                )


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    colour: 1 to 6, a colour of the page that follows light and dark
    kind: "data" was measured, "fit" fitted to it, "bound" proven, "printed" taken from elsewhere
    band: its lower and upper edge
    marker: o, s, ^, D or x as in matplotlib; empty for none
    line: False draws the markers alone
    shape: "steps" holds each value halfway to its neighbours, "bars" draws bars from zero
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
    shape: Literal["line", "steps", "bars"] = "line"
    legend: bool = True

    def __post_init__(self) -> None:
        lengths = {len(self.x), len(self.y), *(len(edge) for edge in self.band or ())}
        if len(lengths) > 1:
            raise StrongTicketError(
                f"curve {self.name!r} has {len(self.x)} x and {len(self.y)} y, or a band of another length",
                hint="Give one y, and one of each edge of the band, per x.",
            )
        if not 1 <= self.colour <= 6:
            raise StrongTicketError(f"curve {self.name!r} has colour {self.colour}", hint="Use 1 to 6.")
        if self.marker not in MARKERS:
            raise StrongTicketError(
                f"curve {self.name!r} has the marker {self.marker!r}", hint="Use o, s, ^, D, x or nothing."
            )


@dataclass(frozen=True)
class Chart:
    """Curves on common axes. Texts may hold n_K for a subscript and n^(¼) for an exponent.

    log_x, log_y: whether an axis is logarithmic; readers of the page can switch y
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

    def __post_init__(self) -> None:
        if not any(len(curve.x) for curve in self.curves):
            raise StrongTicketError(
                f"chart {self.title!r} has no point", hint="Give at least one curve with a point."
            )
        if self.y_range is not None and not self.y_range[0] < self.y_range[1]:
            raise StrongTicketError(
                f"chart {self.title!r} has the y_range {self.y_range}", hint="Give the lower end first."
            )


@dataclass(frozen=True)
class Plot:
    """A chart that readers can explore.

    alt: says in words what it shows
    height: in pixels
    source: names the CSV file that holds its numbers
    """

    chart: Chart
    alt: str
    caption: str = ""
    height: int = 420
    source: str = ""

    def __post_init__(self) -> None:
        _need_alt("a plot", self.alt)
        if not 100 <= self.height <= 2000:
            raise StrongTicketError(f"a plot is {self.height} pixels high", hint="Use 100 to 2000.")


@dataclass(frozen=True)
class Mask:
    """One boolean matrix of a `Masks` block, kept = True."""

    title: str
    mask: np.ndarray

    def __post_init__(self) -> None:
        if self.mask.ndim != 2 or self.mask.dtype != bool or self.mask.size == 0:
            raise StrongTicketError(
                f"mask picture {self.title!r} has shape {self.mask.shape} and dtype {self.mask.dtype}",
                hint="Give a boolean matrix with at least one entry (reshape it first).",
            )


@dataclass(frozen=True)
class Masks:
    """Masks as pictures, one below the other, one pixel per weight (averaged in blocks when large)."""

    masks: tuple[Mask, ...]
    caption: str = ""


@dataclass(frozen=True)
class Panel:
    """One real matrix of a `Heatmaps` block."""

    title: str
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.size == 0 or not np.isfinite(self.values).all():
            raise StrongTicketError(
                f"heat map {self.title!r} has shape {self.values.shape} or an entry that is not finite",
                hint="Give a matrix of finite numbers with at least one entry.",
            )


@dataclass(frozen=True)
class Heatmaps:
    """Matrices side by side on one colour scale: diverging around zero, sequential when none is negative."""

    panels: tuple[Panel, ...]
    alt: str
    caption: str = ""
    rows: str = ""  # what a row is, e.g. "query"
    columns: str = ""

    def __post_init__(self) -> None:
        _need_alt("a heat map block", self.alt)
        if not self.panels:
            raise StrongTicketError("a heat map block has no panel", hint="Give at least one matrix.")


@dataclass(frozen=True)
class Image:
    """A PNG, JPEG or SVG file of the results folder, by its path inside the folder."""

    file: str
    alt: str
    caption: str = ""

    def __post_init__(self) -> None:
        _need_alt(f"image {self.file!r}", self.alt)


@dataclass(frozen=True)
class Images:
    """A grid of images; it folds to one column on a phone."""

    images: tuple[Image, ...]


PageBlock = Text | Facts | Table | Plot | Masks | Heatmaps | Images


@dataclass(frozen=True)
class Section:
    heading: str
    blocks: tuple[PageBlock, ...]

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.heading.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    title: str
    lead: str
    sections: tuple[Section, ...] = ()


def _need_alt(what: str, alt: str) -> None:
    if not alt.strip():
        raise StrongTicketError(
            f"{what} has no alt text", hint="Describe in a sentence what a person would see."
        )
