"""What a page shows, as small frozen data: a title, a lead, sections of blocks. `html.py` draws it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket.errors import StrongTicketError

Cell = str | int | float | None


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
                    hint=f"Give every row one cell a column ({', '.join(self.columns)}).",
                )


@dataclass(frozen=True)
class Plot:
    """A plotly figure: `data` and `layout` as plotly's JSON. A colour may be a CSS variable of the page, as
    "var(--series-1)" … "var(--series-6)", "var(--muted)": it then follows light and dark.

    `alt` says in words what the plot shows; `source` names the CSV file that holds its numbers.
    """

    data: tuple[dict[str, Any], ...]
    layout: dict[str, Any]
    alt: str
    caption: str = ""
    height: int = 420
    source: str = ""

    def __post_init__(self) -> None:
        _need_alt("a plot", self.alt)


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
    """Masks as pictures, one under the other, one pixel a weight (averaged in blocks when large)."""

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
        raise StrongTicketError(f"{what} has no alt text", hint="Say in a sentence what a person would see.")
