"""The demo's language ticket: a character model of Python's documentation that comes with the package.

Found by `strongticket search --preset laptop --out language.ticket`. A search needs transformers and some
minutes; the demo needs neither. Its weights are drawn again and checked every time: by the page, and here with
transformers.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from strongticket.errors import MissingDependency
from strongticket.files import write_file
from strongticket.report.ticket_page import write_ticket_page
from strongticket.ticket import Summary, Ticket, summarise


@dataclass(frozen=True)
class LanguageDemo:
    page: Path
    summary: Summary

    def numbers(self) -> dict[str, Any]:
        summary = self.summary
        return {
            "weights": summary.weights,
            "kept": summary.kept,
            "bytes": summary.file_bytes,
            "float32": 4 * summary.weights,
            "loss": summary.metadata["loss"],
            "data": summary.metadata["data"],
        }


def write_language_page(folder: Path, attention_page: str) -> LanguageDemo:
    """Write the ticket and the page that runs it.

    attention_page: where the page leads to at its end
    """
    data = (files("strongticket.experiments.demo") / "language.ticket").read_bytes()
    file = folder / "language.ticket"
    write_file(file, data)
    with suppress(MissingDependency):  # the page draws and checks every weight too
        Ticket.load(file).verify()
    link = (attention_page, "Next: a ticket with a proof, of the paper's attention layer →")
    page = write_ticket_page(file, folder / "index.html", next_page=link)
    return LanguageDemo(page, summarise(file))
