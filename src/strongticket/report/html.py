"""Page -> one self-contained HTML document: no request leaves the file, plotly.js is in it once."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.report import page as p
from strongticket.report.picture import DIVERGING, SEQUENTIAL, Picture, Ramp, mask_picture, matrix_picture

_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".svg": "image/svg+xml"}
_NUMBERED_CELLS = 64  # matrices up to this size show their numbers
# The browser itself then refuses any request: the page cannot but work offline.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def render(page: p.Page, provenance: dict[str, Any], folder: Path) -> str:
    """The page as HTML; `folder` is where its images lie, `provenance` is printed at the foot."""
    plots: list[dict[str, Any]] = []
    sections = "".join(_section(section, folder, plots) for section in page.sections)
    # A bare page would load nearly 5 MB of plotly.js for nothing.
    scripts = f"<script>{_plotly_js()}</script><script>{_own('page.js')}</script>" if plots else ""
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
<header><h1>{_inline(page.title)}</h1>{_paragraphs(page.lead, "lead")}</header>
{sections}
<footer>{_provenance(provenance)}</footer>
</main>
{"".join(_plot_data(i, plot) for i, plot in enumerate(plots))}{scripts}
</body>
</html>
"""


def number(value: float | int) -> str:
    """A number as a person writes it, in the page's markup: 12,345 · −0.0123 · 4.5 × 10^(−9)."""
    if value < 0:
        return "−" + number(-value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= value < 1e5:
        return f"{value:,.3f}".rstrip("0").rstrip(".") if value >= 100 else f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}\u202f×\u202f10^({str(int(exponent)).replace('-', '−')})"  # narrow spaces that do not break


def _section(section: p.Section, folder: Path, plots: list[dict[str, Any]]) -> str:
    blocks = "".join(_block(block, folder, plots) for block in section.blocks)
    return f'<section id="{section.anchor}"><h2>{_inline(section.heading)}</h2>{blocks}</section>\n'


def _block(block: p.PageBlock, folder: Path, plots: list[dict[str, Any]]) -> str:
    if isinstance(block, p.Plot):
        plots.append({"data": block.data, "layout": block.layout})
        return _plot(block, len(plots) - 1)
    if isinstance(block, p.Images):
        return f'<div class="grid">{"".join(_image(image, folder) for image in block.images)}</div>'
    draw: dict[type, Callable[[Any], str]] = {
        p.Text: lambda b: _paragraphs(b.text),
        p.Facts: _facts,
        p.Table: _table,
        p.Masks: _masks,
        p.Heatmaps: _heatmaps,
    }
    return draw[type(block)](block)


def _facts(block: p.Facts) -> str:
    items = "".join(f"<div><dt>{_inline(what)}</dt><dd>{_inline(v)}</dd></div>" for v, what in block.items)
    count = len(block.items)
    columns = count if count < 5 else 3 if count % 3 == 0 else 4
    return f'<dl class="facts" style="--columns:{columns}">{items}</dl>'


def _table(block: p.Table) -> str:
    numeric = [
        all(isinstance(row[c], int | float) or row[c] is None for row in block.rows)
        for c in range(len(block.columns))
    ]
    kind = [' class="number"' if n else "" for n in numeric]
    head = "".join(f'<th scope="col"{k}>{_inline(c)}</th>' for c, k in zip(block.columns, kind, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{_cell(cell)}</td>" for cell, k in zip(row, kind, strict=True)) + "</tr>"
        for row in block.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _figure("table", f'<div class="scroll" tabindex="0">{table}</div>', block.caption)


def _cell(cell: str | int | float | None) -> str:
    if cell is None:
        return "–"
    return _inline(cell if isinstance(cell, str) else number(cell))


def _plot(block: p.Plot, index: int) -> str:
    plot = (
        f'<div class="plot" id="plot-{index}" role="img" aria-label="{escape(block.alt)}"'
        f' style="height:{block.height}px"><noscript>{escape(block.alt)}</noscript></div>'
    )
    source = f" Numbers: `{block.source}`." if block.source else ""
    return _figure("plot-figure", plot, block.caption + source)


def _plot_data(index: int, plot: dict[str, Any]) -> str:
    # "</script>" inside the data must not end the element.
    data = json.dumps(plot, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" class="plot-data" data-plot="plot-{index}">{data}</script>\n'


def _masks(block: p.Masks) -> str:
    parts = []
    for mask in block.masks:
        rows, columns = mask.mask.shape
        share = mask.mask.mean()
        alt = f"Mask {mask.title}: {rows} × {columns} weights, {share:.0%} kept, one square a weight."
        note = f"{rows} × {columns}, {share:.0%} kept"
        parts.append(
            f'<div class="mask"><p class="panel-title">{_inline(mask.title)} <span>{note}</span></p>'
            f"{_img(mask_picture(mask.mask), alt)}</div>"
        )
    legend = '<p class="legend"><i class="kept"></i> kept <i class="dropped"></i> dropped</p>'
    return _figure("masks", "".join(parts) + legend, block.caption)


def _heatmaps(block: p.Heatmaps) -> str:
    top = max(float(np.abs(panel.values).max()) for panel in block.panels) or 1.0
    signed = any(float(panel.values.min()) < 0 for panel in block.panels)
    low, ramp = (-top, DIVERGING) if signed else (0.0, SEQUENTIAL)
    panels = "".join(_panel(panel, low, top, ramp, block) for panel in block.panels)
    ticks = [_inline(number(t)) for t in ((-top, 0, top) if signed else (0, top))]
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
            f"<span class={'strong' if abs(v) > 0.55 * high else 'weak'}>{_inline(number(float(v)))}</span>"
            for v in panel.values.flat
        )
        numbers = f'<div class="cells" aria-hidden="true">{cells}</div>'
    kind = "panel wide" if columns >= 4 * rows else "panel"
    axes = f'<p class="axes">{_inline(block.columns)} →, {_inline(block.rows)} ↓</p>' if block.rows else ""
    picture = _img(matrix_picture(panel.values, low, high, ramp), f"{panel.title}. {block.alt}")
    return (
        f'<div class="{kind}" style="--columns:{columns};--rows:{rows}">'
        f'<p class="panel-title">{_inline(panel.title)}</p>'
        f'<div class="matrix">{picture}{numbers}</div>{axes}</div>'
    )


def _image(image: p.Image, folder: Path) -> str:
    path = folder / image.file
    mime = _MIME.get(path.suffix.lower())
    if mime is None:
        raise StrongTicketError(f"image {image.file!r} is of no known type", hint=f"Use {', '.join(_MIME)}.")
    # A page description may come from elsewhere: it shows files of its own folder only.
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise StrongTicketError(
            f"image {image.file!r} is not in the results folder {folder}", hint="Put it there."
        )
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return _figure(
        "image",
        f'<img src="data:{mime};base64,{data}" alt="{escape(image.alt)}">',
        image.caption,
    )


def _img(picture: Picture, alt: str) -> str:
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{picture.dark}">'
        f'<img class="pixels" src="{picture.light}" width="{picture.width}" height="{picture.height}"'
        f' alt="{escape(alt)}"></picture>'
    )


def _provenance(provenance: dict[str, Any]) -> str:
    rows = "".join(
        f"<div><dt>{escape(str(name))}</dt><dd><code>{escape(_short(value))}</code></dd></div>"
        for name, value in provenance.items()
    )
    return f"<h2>How this page was made</h2><dl>{rows}</dl>" if rows else ""


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={_short(v)}" for k, v in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _figure(kind: str, content: str, caption: str) -> str:
    caption = f"<figcaption>{_inline(caption)}</figcaption>" if caption.strip() else ""
    return f'<figure class="{kind}">{content}{caption}</figure>'


def _paragraphs(text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return "".join(
        f"<p{attribute}>{_inline(part)}</p>" for part in re.split(r"\n\s*\n", text.strip()) if part
    )


def _inline(text: str) -> str:
    text = escape(text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\^\(([^()]+)\)", r"<sup>\1</sup>", text)


def _own(name: str) -> str:
    return (files("strongticket.report") / name).read_text(encoding="utf-8")


def _plotly_js() -> str:
    return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
