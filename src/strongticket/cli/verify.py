"""strongticket verify: is the file undamaged?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, emit, step, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.ticket import Ticket, Verification

EXAMPLE = "strongticket verify demo/attention/attention.ticket"


def verify(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    as_json: JsonFlag = False,
) -> None:
    """Regenerate every weight and compare it with its checksum; exit code 1 if the file is damaged.

    How close the network is to its model is what `strongticket compare` measures.
    """
    from strongticket.ticket import Ticket

    ticket = Ticket.load(file)
    with step("regenerating the weights"):
        checked = ticket.verify()
    result = {
        "file": str(file),
        "tensors": [{"name": t.name, "shape": list(t.shape), "kept": t.kept} for t in checked.tensors],
        "weights": checked.weights,
        "kept": checked.kept,
        "certificate": ticket.certificate,
        **_scope(ticket, checked),
    }
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _scope(ticket: "Ticket", found: "Verification") -> dict[str, list[str]]:
    """What was checked, and what was not."""
    checked = ["the file's sha256", "every weight, regenerated and compared with its checksum"]
    not_checked = []
    whose = "that the certificate was computed for these masks"
    if found.certificate_bound:
        checked.append(whose)
    elif ticket.certificate:
        not_checked.append(f"{whose}: the file does not say")
    claim = "that the certified bound is true" if ticket.certificate else "how close it is to its model"
    not_checked.append(f"{claim}: run strongticket compare F.ticket MODEL")
    return {"checked": checked, "not_checked": not_checked}


def _tables(d: JsonObject) -> list[RenderableType]:
    from strongticket.ticket.certificate import certificate_line

    head = table(d["file"], "", "")
    head.add_row("weights", f"{d['weights']:,} regenerated, all as saved; {d['kept']:,} kept")
    for label, lines in (("checked", d["checked"]), ("not checked", d["not_checked"])):
        for number, line in enumerate(lines):
            head.add_row("" if number else label, line)
    if d["certificate"]:
        head.add_row("the file certifies", certificate_line(d["certificate"]))
    return [head]
