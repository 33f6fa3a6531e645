"""strongticket report: draw the page of a results folder again."""

from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import JsonFlag, emit

EXAMPLE = "strongticket report demo"


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder, such as demo wrote.")],
    as_json: JsonFlag = False,
) -> None:
    """Make the page of a results folder: one HTML file that opens offline, with interactive plots."""
    from strongticket.report import remake_page

    page = remake_page(folder)
    result = {"page": str(page), "bytes": page.stat().st_size}
    emit(result, as_json=as_json, show=lambda: [f"open {page}"])
