"""Page -> one self-contained HTML document that asks for nothing else."""

from __future__ import annotations

import base64
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from strongticket import limits
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.report import page as p
from strongticket.report.markup import inline, number, paragraphs
from strongticket.report.page_json import plain
from strongticket.report.picture import DIVERGING, SEQUENTIAL, Picture, Ramp, mask_picture, matrix_picture

_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".svg": "image/svg+xml"}
_NUMBERED_CELLS = 64  # matrices up to this size show their numbers
# The browser itself then refuses any request: the page must work offline.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def render(page: p.Page, provenance: JsonObject, folder: Path) -> str:
    """Return the page as HTML.

    page: what to show
    provenance: what made it, shown at its foot
    folder: where its images are
    """
    drawing = _Drawing(folder)
    sections = "".join(drawing.section(section) for section in page.sections)
    scripts = f"<script>{_own('plot.js')}</script>" if drawing.charts else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(page.title)}</title>
<link rel="icon" href="data:,">
<style>{_own("page.css")}</style>
</head>
<body>
<main>
<header><h1>{inline(page.title)}</h1>{paragraphs(page.lead, "lead")}</header>
{sections}
<footer>{_provenance(provenance)}</footer>
</main>
{"".join(_chart_data(i, chart) for i, chart in enumerate(drawing.charts))}{scripts}
</body>
</html>
"""


class _Drawing:
    """HTML of the sections of one page, and what they have used up so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.charts: list[p.Chart] = []
        self._anchors: set[str] = set()
        self._image_bytes = 0

    def section(self, section: p.Section) -> str:
        blocks = "".join(self.block(block) for block in section.blocks)
        return f'<section id="{self._anchor(section)}"><h2>{inline(section.heading)}</h2>{blocks}</section>\n'

    def block(self, block: p.PageBlock) -> str:
        match block:
            case p.Text():
                return paragraphs(block.text)
            case p.Facts():
                return _facts(block)
            case p.Table():
                return _table(block)
            case p.Masks():
                return _masks(block)
            case p.Heatmaps():
                return _heatmaps(block)
            case p.Images():
                return f'<div class="grid">{"".join(self._image(image) for image in block.images)}</div>'
            case p.Plot():
                self.charts.append(block.chart)
                return _plot(block, len(self.charts) - 1)

    def _anchor(self, section: p.Section) -> str:
        """An id of its own, whatever the headings."""
        anchor, count = section.anchor or "section", 1
        while (name := anchor if count == 1 else f"{anchor}-{count}") in self._anchors:
            count += 1
        self._anchors.add(name)
        return name

    def _image(self, image: p.Image) -> str:
        path = self.folder / image.file
        mime = _MIME.get(path.suffix.lower())
        if mime is None:
            raise StrongTicketError(
                f"image {image.file!r} is not of a known type", hint=f"Use {', '.join(_MIME)}."
            )
        # A page description may come from elsewhere: it shows files of its own folder only.
        try:
            inside = path.resolve().is_relative_to(self.folder.resolve()) and path.is_file()
        except (OSError, ValueError):  # not a name that a file can have
            inside = False
        if not inside:
            raise StrongTicketError(
                f"image {image.file!r} is not in the results folder {self.folder}", hint="Put it there."
            )
        self._image_bytes += path.stat().st_size
        if self._image_bytes > limits.page_images():
            raise limits.exceeded(
                f"the images of the page have more than {limits.page_images():,} bytes, which is the limit"
            )
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        picture = f'<img src="data:{mime};base64,{data}" alt="{escape(image.alt)}">'
        return _figure("image", picture, image.caption)


def _facts(block: p.Facts) -> str:
    items = "".join(f"<div><dt>{inline(what)}</dt><dd>{inline(v)}</dd></div>" for v, what in block.items)
    count = len(block.items)
    columns = count if count < 5 else 3 if count % 3 == 0 else 4
    return f'<dl class="facts" style="--columns:{columns}">{items}</dl>'


def _table(block: p.Table) -> str:
    numeric = [
        all(isinstance(row[c], int | float) or row[c] is None for row in block.rows)
        for c in range(len(block.columns))
    ]
    kind = [' class="number"' if n else "" for n in numeric]
    head = "".join(f'<th scope="col"{k}>{inline(c)}</th>' for c, k in zip(block.columns, kind, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{_cell(cell)}</td>" for cell, k in zip(row, kind, strict=True)) + "</tr>"
        for row in block.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _figure("table", f'<div class="scroll" tabindex="0">{table}</div>', block.caption)


def _cell(cell: str | int | float | None) -> str:
    if cell is None:
        return "–"
    return inline(cell if isinstance(cell, str) else number(cell))


def _plot(block: p.Plot, index: int) -> str:
    alt = escape(block.alt)
    # No section has such an id: an anchor has no underscore.
    plot = (
        f'<div class="plot" id="plot_{index}" data-alt="{alt}" data-height="{block.height}">'
        f"<noscript>{alt}</noscript></div>"
    )
    title = f'<p class="panel-title">{inline(block.chart.title)}</p>' if block.chart.title else ""
    source = f" Numbers: `{block.source}`." if block.source else ""
    return _figure("plot-figure", title + plot, block.caption + source)


def _chart_data(index: int, chart: p.Chart) -> str:
    # "</script>" inside the data must not end the element.
    data = json.dumps(plain(chart), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" class="plot-data" data-plot="plot_{index}">{data}</script>\n'


def _masks(block: p.Masks) -> str:
    parts = []
    for mask in block.masks:
        rows, columns = mask.mask.shape
        share = mask.mask.mean()
        alt = f"Mask {mask.title}: {rows} × {columns} weights, {share:.0%} kept, one square per weight."
        note = f"{rows} × {columns}, {share:.0%} kept"
        parts.append(
            f'<div class="mask"><p class="panel-title">{inline(mask.title)} <span>{note}</span></p>'
            f"{_img(mask_picture(mask.mask), alt)}</div>"
        )
    legend = '<p class="legend"><i class="kept"></i> kept <i class="dropped"></i> dropped</p>'
    return _figure("masks", "".join(parts) + legend, block.caption)


def _heatmaps(block: p.Heatmaps) -> str:
    top = max(float(np.abs(panel.values).max()) for panel in block.panels) or 1.0
    signed = any(float(panel.values.min()) < 0 for panel in block.panels)
    low, ramp = (-top, DIVERGING) if signed else (0.0, SEQUENTIAL)
    panels = "".join(_panel(panel, low, top, ramp, block) for panel in block.panels)
    ticks = [inline(number(t)) for t in ((-top, 0, top) if signed else (0, top))]
    bar = matrix_picture(np.linspace(low, top, 256)[None, :], low, top, ramp)
    legend = (
        f'<div class="scale" aria-hidden="true">{_img(bar, "")}'
        f"<p>{''.join(f'<span>{t}</span>' for t in ticks)}</p></div>"
    )
    return _figure("heatmaps", f'<div class="panels">{panels}</div>{legend}', block.caption)


def _panel(panel: p.Panel, low: float, high: float, ramp: Ramp, block: p.Heatmaps) -> str:
    rows, columns = panel.values.shape
    numbers = ""
    if panel.values.size <= _NUMBERED_CELLS:
        cells = "".join(
            f"<span class={'strong' if abs(v) > 0.55 * high else 'weak'}>{inline(number(float(v)))}</span>"
            for v in panel.values.flat
        )
        numbers = f'<div class="cells" aria-hidden="true">{cells}</div>'
    kind = "panel wide" if columns >= 4 * rows else "panel"
    axes = f'<p class="axes">{inline(block.columns)} →, {inline(block.rows)} ↓</p>' if block.rows else ""
    picture = _img(matrix_picture(panel.values, low, high, ramp), f"{panel.title}. {block.alt}")
    return (
        f'<div class="{kind}" style="--columns:{columns};--rows:{rows}">'
        f'<p class="panel-title">{inline(panel.title)}</p>'
        f'<div class="matrix">{picture}{numbers}</div>{axes}</div>'
    )


def _img(picture: Picture, alt: str) -> str:
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{picture.dark}">'
        f'<img class="pixels" src="{picture.light}" width="{picture.width}" height="{picture.height}"'
        f' alt="{escape(alt)}"></picture>'
    )


def _provenance(provenance: JsonObject) -> str:
    rows = "".join(
        f"<div><dt>{escape(str(name))}</dt><dd><code>{escape(_short(value))}</code></dd></div>"
        for name, value in provenance.items()
    )
    return f"<h2>How this page was made</h2><dl>{rows}</dl>" if rows else ""


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _figure(kind: str, content: str, caption: str) -> str:
    caption = f"<figcaption>{inline(caption)}</figcaption>" if caption.strip() else ""
    return f'<figure class="{kind}">{content}{caption}</figure>'


def _own(name: str) -> str:
    return (files("strongticket.report") / name).read_text(encoding="utf-8")
