"""strongticket report: the page of a ticket."""

from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import JsonFlag, emit, fail

EXAMPLE = "strongticket report demo/language.ticket"


def report(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="F.html", help="Where to write the page; default: beside the ticket."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make one HTML page that opens offline and runs the ticket.

    Let it write or read a drawn digit, look at its weights and its mask, flip bits.
    """
    from strongticket.report.ticket_page import cannot_run, write_ticket_page
    from strongticket.ticket import summarise

    if out is not None and out.suffix not in (".html", ".htm"):
        fail(f"--out {out}: a page's name must end in .html.", f"Write --out {out.with_suffix('.html')}.")
    page = write_ticket_page(file, out or file.with_suffix(".html"))
    why = cannot_run(summarise(file))
    more = [f"It only describes the ticket, and cannot run it: {why}."] if why else []
    found = {"page": str(page), "bytes": page.stat().st_size, "cannot_run": why or None}
    emit(found, as_json=as_json, show=lambda: [f"open {page}", *more])
