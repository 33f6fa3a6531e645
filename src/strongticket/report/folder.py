"""A results folder: tidy CSV files, summary.json, page.json and the page (docs/results-folder.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strongticket import limits
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, parse_json, write_file
from strongticket.report import page_json
from strongticket.report.html import render
from strongticket.report.page import Page

FORMAT, VERSION = "strongticket-results", 1


@dataclass(frozen=True)
class RunSummary:
    """What made the results, and the numbers to quote. All of it plain JSON.

    command: makes the same results again
    seed: of everything random
    settings: what they were made with
    results: the numbers to quote, by name
    seconds: how long it took
    """

    command: str
    seed: int
    settings: JsonObject
    results: JsonObject
    seconds: float

    def to_json(self) -> JsonObject:
        made_by = {
            "strongticket": _running_version(),
            "command": self.command,
            "seed": self.seed,
            "settings": self.settings,
            "seconds": round(self.seconds, 2),
        }
        return {"format": FORMAT, "version": VERSION, "made_by": made_by, "results": self.results}


def write_results(
    folder: Path, page: Page, summary: RunSummary, tables: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Path:
    """Write a results folder and return the path of its page.

    folder: made if it does not exist
    page: what to show
    summary: what made the results
    tables: "name.csv" -> rows, each a column -> value
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        write_file(folder / name, _csv(name, rows).encode())
    write_file(folder / "summary.json", _dump(summary.to_json()).encode())
    write_file(folder / "page.json", _dump(page_json.to_json(page)).encode())
    return remake_page(folder)


def remake_page(folder: Path) -> Path:
    """Draw the page of a results folder again from its page.json and summary.json; return its path.

    folder: of the results
    """
    if not folder.is_dir():
        raise StrongTicketError(
            f"{folder} is not a folder", hint="Name the folder that a command wrote its results to."
        )
    page = page_json.from_json(_load(folder / "page.json"))
    summary = _load(folder / "summary.json")
    if not isinstance(summary, dict) or summary.get("format") != FORMAT or summary.get("version") != VERSION:
        raise StrongTicketError(
            f"summary.json in {folder} is not a summary of version {VERSION}",
            hint="See docs/results-folder.md.",
        )
    made_by = summary.get("made_by", {})
    if not isinstance(made_by, dict):
        raise StrongTicketError(
            f'"made_by" of summary.json in {folder} is not an object', hint="See docs/results-folder.md."
        )
    out = folder / "index.html"
    # Provenance may hold an unpaired surrogate, which no encoding can write.
    write_file(out, render(page, made_by, folder).encode(errors="replace"))
    return out


def _csv(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        raise StrongTicketError(f"table {name!r} has no rows", hint="Leave it out, or give at least one row.")
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    try:
        writer.writerows(rows)
    except ValueError as error:
        raise StrongTicketError(
            f"table {name!r}: {error}", hint="Give every row the columns of the first."
        ) from None
    return text.getvalue()


def _dump(data: Any) -> str:
    try:
        return json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError:
        raise StrongTicketError(
            "results hold NaN or infinity, which JSON cannot", hint="Use None for a gap."
        ) from None


def _other_folder(path: Path) -> str:
    """A hint where a folder inside is a results folder, as in that of `strongticket demo`."""
    found = sorted(inner.parent for inner in path.parent.glob(f"*/{path.name}"))
    return f"Name {' or '.join(map(str, found))}." if found else ""


def _load(path: Path) -> object:
    inside = path.resolve().is_relative_to(path.parent.resolve())  # a link may lead elsewhere
    if not inside or not path.is_file():
        raise StrongTicketError(
            f"{path.parent} has no {path.name}, so it is not a results folder",
            hint=_other_folder(path) or "Name a folder that `strongticket reproduce` wrote.",
        )
    if path.stat().st_size > limits.page():
        raise limits.exceeded(f"{path} has more than {limits.page():,} bytes, which is the limit")
    try:
        return parse_json(str(path), path.read_bytes())
    except StrongTicketError as error:
        raise StrongTicketError(error.what, hint="Run the command that made it again.") from None


def _running_version() -> str:
    from strongticket import __version__

    return __version__
