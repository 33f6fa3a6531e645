"""strongticket show: what a ticket file is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, emit, size, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.ticket import Description

EXAMPLE = "strongticket show demo/language.ticket"
SHOWN = 24  # tensors; --json lists them all
_FORMS = {
    "file": "this file",
    "entropy": "masks, entropy of independent bits",
    "packed_masks": "masks, one bit per weight",
    "float16": "the random network as float16",
    "float32": "the random network as float32",
}


def show(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    as_json: JsonFlag = False,
) -> None:
    """Describe a ticket: its network, its random source, how much is kept, how large the file is."""
    from strongticket.ticket import summarise
    from strongticket.ticket.kinds import describe

    summary = summarise(file)
    described = describe(summary)
    facts = {"file": str(file)} | summary.to_json() | described.facts
    emit(facts, as_json=as_json, show=lambda: _tables(facts, described))


def _tables(d: JsonObject, described: "Description") -> list[RenderableType]:
    from strongticket.ticket.certificate import certificate_line

    head = table(d["file"], "", "", rows=described.rows)
    head.add_row("seed", str(d["seed"]))
    if d["weights"]:
        head.add_row("weights", f"{d['weights']:,} random, {d['kept']:,} kept ({d['kept_fraction']:.1%})")
    if d["chosen"]:
        head.add_row("choices", f"{d['chosen']:,}, each one of many random weights")
    head.add_row("trained numbers", f"{d['trained']:,}" if d["trained"] else "none")
    if d["certificate"]:
        head.add_row("certified error", certificate_line(d["certificate"]))
    sizes = table("size", "form", "bytes", "of last row", numbers=(1, 2))
    forms = [(name, d["bytes"][key]) for key, name in _FORMS.items() if key in d["bytes"]]
    if "numbers" in d:  # of a trained model, which is smaller than a random network
        forms = [form for form in forms if not form[0].startswith("the random network")]
        forms += [(f"the model's numbers as float{8 * count}", count * d["numbers"]) for count in (2, 4)]
    for name, count in forms:
        share = f"{count / forms[-1][1]:.1%}" if forms[-1][1] else ""
        sizes.add_row(name, size(count), share)
    return [head, sizes, _tensors(d, described.tensors)]


def _tensors(d: JsonObject, listed: tuple[tuple[str, ...], ...]) -> RenderableType:
    """A row for each tensor of the network, or of the ticket."""
    if listed:
        headings, *rows = listed
        numbers = range(2, len(headings))
    else:
        headings, numbers = ("name", "shape", "drawn from", "kept"), range(3, 4)
        rows = [
            (t["name"], " × ".join(map(str, t["shape"])), t["law"], f"{t['kept_fraction']:.1%}")
            for t in d["tensors"]
        ]
    tensors = table("tensors", *headings, rows=rows[:SHOWN], numbers=numbers)
    if (rest := len(rows) - SHOWN) > 0:
        tensors.add_row(f"and {rest:,} more", *[""] * (len(headings) - 1))
    return tensors
