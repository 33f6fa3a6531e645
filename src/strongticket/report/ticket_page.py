"""A ticket -> one offline page that runs it: the file itself, and the JavaScript that reads it."""

from __future__ import annotations

import base64
import json
import re
from html import escape
from pathlib import Path

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, check_output, write_file
from strongticket.report.bundle import bundle, web_folder
from strongticket.ticket import Summary, summarise

MAX_BYTES = 32_000_000  # of a ticket: a browser opens larger pages slowly or not at all
MAX_WEIGHTS = 1 << 25  # which a browser draws and checks in seconds
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "vit")  # those of web/src/networks/network.js
SAMPLE_CHARACTERS = 2000


def write_ticket_page(ticket: Path, out: Path, *, attention: JsonObject | None = None) -> Path:
    """Write the page of a ticket file. A ticket that no page can run gets a small one that says why.

    Args:
        ticket: the file.
        out: the page.
        attention: what the demo shows below the ticket, see web/page/attention.js.
    """
    from strongticket import __version__

    check_output(out)
    if out.exists() and out.samefile(ticket):
        raise StrongTicketError(f"{out} is the ticket itself", hint="Give its page another name.")
    summary = summarise(ticket)
    reason = cannot_run(summary)
    data = {
        "name": ticket.name,
        "kind": summary.kind,
        "seed": str(summary.seed),
        "file": None if reason else base64.b64encode(ticket.read_bytes()).decode("ascii"),
        "sample": _search_text(summary),
        "attention": attention,
    }
    keeps = f"a mask that keeps {summary.kept:,} of {summary.weights:,} weights"
    if summary.chosen:
        keeps = f"for each of {summary.chosen:,} connections, which one of many random weights is kept"
    made = {
        "command": "strongticket demo" if attention else f"strongticket report {ticket.name}",
        "strongticket": __version__,
        "kind of ticket": summary.kind,
        "seed": str(summary.seed),
    }
    folder = web_folder() / "page"
    parts = {
        "title": escape(ticket.name),
        "style": (folder / "page.css").read_text("utf-8"),
        "lead": f"<code>{escape(ticket.name)}</code> takes {summary.file_bytes:,} bytes: {keeps}.",
        "status": f"This page cannot run it: {escape(reason)}." if reason else "Drawing the weights …",
        "made": "".join(f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>" for key, value in made.items()),
        # "</script>" inside the data must not end the element.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "script": bundle(folder / "main.js"),
    }
    template = (folder / "page.html").read_text("utf-8")
    # In one pass: what is put in may contain {{script}} itself.
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
    write_file(out, page.encode())
    return out


def cannot_run(summary: Summary) -> str:
    """Why no page can run the ticket, known from its index alone; empty if one may."""
    config = summary.settings.get("config")
    family = config.get("model_type") if isinstance(config, dict) else FAMILIES[0]
    if summary.settings.get("base") is not None:
        return "the rest of its network is a trained model, which is not in the file"
    if family not in FAMILIES:
        return f"its network is of type {family}, and a page runs only {', '.join(FAMILIES)}"
    if summary.file_bytes > MAX_BYTES:
        return (
            f"its file has {summary.file_bytes:,} bytes, and a page holds a ticket of at most {MAX_BYTES:,}"
        )
    if summary.settings.get("by") == "subset":
        return "it was built by subset sums, and a page runs tickets by choice"
    if (weights := summary.weights + summary.chosen) > MAX_WEIGHTS:
        return f"it draws {weights:,} weights, and a page at most {MAX_WEIGHTS:,}"
    return ""


def _search_text(summary: Summary) -> str:
    """The beginning of the text that the search was validated on, if this machine has it."""
    from strongticket.data.text import load_corpus

    search = summary.metadata.get("search")
    data = search.get("data") if isinstance(search, dict) else None
    if data != "builtin":  # any other is a path or a download: the ticket alone must do
        return ""
    text = load_corpus("builtin").valid
    return text[text.index("\n\n") + 2 :][:SAMPLE_CHARACTERS]  # from a paragraph's beginning
