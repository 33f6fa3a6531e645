"""strongticket report: the page of a ticket, or of a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import JsonFlag, emit, fail

EXAMPLE = "strongticket report demo/language.ticket"


def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="F.ticket|DIR", help="A ticket, or a results folder such as demo/attention."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="F.html", help="Where to write a ticket's page; default: beside the ticket."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(metavar="F.txt", help="Text whose loss a language ticket's page measures."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make one HTML page that opens offline.

    The page of a ticket runs it: let it write or read a drawn digit, look at its weights and its mask, flip
    bits. The page of a results folder shows its figures.
    """
    from strongticket.report import remake_page
    from strongticket.report.ticket_page import write_ticket_page

    if not source.exists():
        fail(f"{source} does not exist.", "Name a ticket file, or a folder that a command wrote results to.")
    if out is not None and out.suffix not in (".html", ".htm"):
        fail(f"--out {out}: a page's name must end in .html.", f"Write --out {out.with_suffix('.html')}.")
    if source.is_file():
        text = None if sample is None else sample.read_text(encoding="utf-8", errors="replace")
        page = write_ticket_page(source, out or source.with_suffix(".html"), sample=text)
    elif out or sample:
        fail("--out and --sample belong to a ticket's page.", "Name a ticket file.")
    else:
        page = remake_page(source)
    result = {"page": str(page), "bytes": page.stat().st_size}
    emit(result, as_json=as_json, show=lambda: [f"open {page}"])
