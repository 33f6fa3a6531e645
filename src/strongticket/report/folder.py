"""A results folder: tidy CSV files, summary.json, page.json and the page (docs/results-folder.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.files import parse_json, write_file
from strongticket.report import page_json
from strongticket.report.html import render
from strongticket.report.page import Page

FORMAT, VERSION = "strongticket-results", 1


@dataclass(frozen=True)
class RunSummary:
    """What made the results, and the numbers to quote. All of it plain JSON."""

    command: str
    seed: int
    settings: dict[str, Any]
    results: dict[str, Any]
    seconds: float

    def to_json(self) -> dict[str, Any]:
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
    """Write the folder's files and its page; `tables` maps "name.csv" to rows. Returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        write_file(folder / name, _csv(name, rows).encode())
    write_file(folder / "summary.json", _dump(summary.to_json()).encode())
    write_file(folder / "page.json", _dump(page_json.to_json(page)).encode())
    return remake_page(folder)


def remake_page(folder: Path) -> Path:
    """Draw `folder`/index.html again from its page.json and summary.json."""
    if not folder.is_dir():
        raise StrongTicketError(
            f"{folder} is not a folder", hint="Name the folder that a command wrote its results to."
        )
    page = page_json.from_json(_load(folder / "page.json"))
    summary = _load(folder / "summary.json")
    if not isinstance(summary, dict) or summary.get("format") != FORMAT or summary.get("version") != VERSION:
        raise StrongTicketError(
            f"summary.json in {folder} is no summary of version {VERSION}", hint="See docs/results-folder.md."
        )
    out = folder / "index.html"
    write_file(out, render(page, summary.get("made_by", {}), folder).encode())
    return out


def _csv(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        raise StrongTicketError(f"table {name!r} has no rows", hint="Leave it out, or give at least one.")
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


def _load(path: Path) -> Any:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise StrongTicketError(
            f"{path.parent} holds no {path.name}, so it is not a results folder",
            hint="Name a folder that `strongticket demo` wrote.",
        ) from None
    try:
        return parse_json(str(path), text)
    except StrongTicketError as error:
        raise StrongTicketError(f"{error}", hint="Run the command that made it again.") from None


def _running_version() -> str:
    from strongticket import __version__

    return __version__
