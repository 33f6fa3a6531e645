"""A ticket -> one offline page that runs it: the file itself, the JavaScript that reads it, and a sample."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, check_output, write_file
from strongticket.report.javascript import bundle, web_folder
from strongticket.ticket import Summary, summarise

MAX_BYTES = 32_000_000  # of a ticket: a browser opens larger pages slowly or not at all
SAMPLE_CHARACTERS = 2000


def write_ticket_page(
    ticket: Path,
    out: Path,
    *,
    sample: str | None = None,
    images: Sequence[tuple[np.ndarray, int]] = (),
    next_page: tuple[str, str] | None = None,
) -> Path:
    """Write the page of a ticket file.

    sample: text whose loss the page measures; None takes the validation text of the search, where it is at hand
    images: (pixels from 0 to 1, label) of images that an image ticket's page shows and measures; none takes those
        that the ticket carries
    next_page: (relative address, text) of a link at the end
    """
    check_output(out)
    if out.exists() and out.samefile(ticket):
        raise StrongTicketError(f"{out} is the ticket itself", hint="Give its page another name.")
    summary = summarise(ticket)
    if sample is not None and ("tokenizer" not in summary.metadata or not sample.strip()):
        why = "is empty" if "tokenizer" in summary.metadata else "is for tickets that read text"
        raise StrongTicketError(
            f"the sample {why}", hint="Leave it out, or give a text to a language ticket."
        )
    data = ticket.read_bytes()
    if len(data) > MAX_BYTES:
        raise StrongTicketError(
            f"{ticket} has {len(data):,} bytes, a page holds a ticket of at most {MAX_BYTES:,}",
            hint="Use `strongticket show` and `strongticket generate` for it.",
        )
    page = {
        "name": ticket.name,
        "file": base64.b64encode(data).decode("ascii"),
        "sample": {
            "text": _search_text(summary) if sample is None else sample[:SAMPLE_CHARACTERS],
            "images": [
                {"pixels": np.round(image, 3).ravel().tolist(), "label": int(n)}
                for image, n in images or _samples(summary)
            ],
        },
        "made": _made(ticket, summary),
        "next": None if next_page is None else {"page": next_page[0], "text": next_page[1]},
    }
    write_file(out, render(ticket.name, page).encode())
    return out


def render(title: str, page: JsonObject) -> str:
    """The page as HTML; page: what main.js reads."""
    folder = web_folder() / "page"
    parts = {
        "title": escape(title),
        "style": (files("strongticket.report") / "page.css").read_text("utf-8")
        + (folder / "page.css").read_text("utf-8"),
        # "</script>" inside the data must not end the element.
        "data": json.dumps(page, allow_nan=False).replace("<", "\\u003c"),
        "script": bundle(folder / "main.js"),
    }
    html = (folder / "page.html").read_text("utf-8")
    for name, text in parts.items():
        html = html.replace("{{" + name + "}}", text)
    return html


def _search_text(summary: Summary) -> str:
    """The beginning of the text that the search was validated on, if this machine has it."""
    from strongticket.data.text import load_corpus

    search = summary.metadata.get("search")
    data = search.get("data") if isinstance(search, dict) else None
    if data != "builtin":  # any other is a path or a download: the ticket alone must do
        return ""
    text = load_corpus("builtin").valid
    return text[text.index("\n\n") + 2 :][:SAMPLE_CHARACTERS]  # from a paragraph's beginning


def _samples(summary: Summary) -> list[tuple[np.ndarray, int]]:
    """The held-out grey images that the search stored with the ticket; what does not look like one is left out."""
    found = []
    stored = summary.metadata.get("samples")
    for sample in stored if isinstance(stored, list) else ():
        try:
            pixels = np.frombuffer(base64.b64decode(sample["pixels"], validate=True), np.uint8)
            label = int(sample["label"])
        except (TypeError, ValueError, KeyError, OverflowError):
            continue
        if len(pixels) == _grey_pixels(summary):
            found.append((pixels / 255, label))
    return found


def _grey_pixels(summary: Summary) -> int:
    """Pixels of an image with one channel that the network reads; -1 if it reads none."""
    config = summary.settings.get("config")
    size = config.get("image_size") if isinstance(config, dict) else None
    grey = isinstance(config, dict) and config.get("num_channels") == 1
    return size * size if grey and isinstance(size, int) else -1


def _made(ticket: Path, summary: Summary) -> list[tuple[str, str]]:
    from strongticket import __version__

    return [
        ("command", f"strongticket report {ticket.name}"),
        ("strongticket", __version__),
        ("kind of ticket", summary.kind),
        ("seed", str(summary.seed)),
    ]
