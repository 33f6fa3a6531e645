"""Text of a page -> HTML: everything is escaped, then `code`, **bold**, *emphasis*, n_K and 10^(−9) are drawn."""

import re
from html import escape

import numpy as np


def inline(text: str) -> str:
    """Return one line of text as HTML.

    >>> inline("a < **b**")
    'a &lt; <strong>b</strong>'
    >>> inline("n_K^¼ is `n_K**0.25`")
    'n<sub>K</sub><sup>¼</sup> is <code>n_K**0.25</code>'
    """
    parts = re.split(r"`([^`]+)`", escape(text))  # every second one is code
    return "".join(f"<code>{part}</code>" if i % 2 else _marked(part) for i, part in enumerate(parts))


def _marked(text: str) -> str:
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    text = re.sub(r"\b([A-Za-zγδβ])_([A-Za-z0-9]+)", r"\1<sub>\2</sub>", text)
    return re.sub(r"\^(?:\(([^()]+)\)|([¼½]))", r"<sup>\1\2</sup>", text)


def paragraphs(text: str, css_class: str = "") -> str:
    """Return text as HTML paragraphs; an empty line ends one.

    text: in the page's markup
    css_class: of every paragraph
    """
    attribute = f' class="{css_class}"' if css_class else ""
    parts = (part for part in re.split(r"\n\s*\n", text.strip()) if part)
    return "".join(f"<p{attribute}>{inline(part)}</p>" for part in parts)


def number(value: float | int) -> str:
    """Return a number as a person writes it, in the page's markup: 12,345 · −0.0123 · 4.5 × 10^(−9).

    >>> number(12345)
    '12,345'
    """
    if value < 0:
        return "−" + number(-value)
    if isinstance(value, int | np.integer) and value < 10**15:
        return f"{value:,}"
    if value == 0 or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return f"{value:g}"
    if 1e-3 <= value < 1e5:
        return f"{value:,.3f}".rstrip("0").rstrip(".") if value >= 100 else f"{value:.3g}"
    mantissa, exponent = _scientific(value)
    return f"{mantissa}\u202f×\u202f10^({str(exponent).replace('-', '−')})"  # narrow spaces that do not break


def _scientific(value: float | int) -> tuple[str, int]:
    if isinstance(value, int | np.integer):  # may be too large for a float
        digits = str(value)
        return f"{float(digits[0] + '.' + digits[1:17]):.1f}", len(digits) - 1
    mantissa, exponent = f"{value:.1e}".split("e")
    return mantissa, int(exponent)
