"""strongticket show: what a ticket file is."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, emit, size, table
from strongticket.files import JsonObject

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
    emit(facts, as_json=as_json, show=lambda: _tables(facts, described.rows))


def _tables(d: JsonObject, rows: tuple[tuple[str, str], ...]) -> list[RenderableType]:
    from strongticket.ticket.certificate import certificate_line

    head = table(d["file"], "", "")
    for label, text in rows:
        head.add_row(label, text)
    head.add_row("seed", str(d["seed"]))
    head.add_row("weights", f"{d['weights']:,} random, {d['kept']:,} kept ({d['kept_fraction']:.1%})")
    head.add_row("trained numbers", f"{d['trained']:,}" if d["trained"] else "none")
    if d["certificate"]:
        head.add_row("certified error", certificate_line(d["certificate"]))
    sizes = table("size", "form", "bytes", "of last row", numbers=(1, 2))
    forms = [(name, d["bytes"][key]) for key, name in _FORMS.items()]
    if "numbers" in d:  # of a trained model, which is smaller than the random network
        forms.append(("the model's numbers as float32", 4 * d["numbers"]))
    for name, count in forms:
        share = f"{count / forms[-1][1]:.1%}" if forms[-1][1] else ""
        sizes.add_row(name, size(count), share)
    tensors = table("tensors", "name", "shape", "drawn from", "kept", numbers=(3,))
    for t in d["tensors"][:SHOWN]:
        shape = " × ".join(map(str, t["shape"]))
        tensors.add_row(t["name"], shape, t["law"], f"{t['kept_fraction']:.1%}")
    if (rest := len(d["tensors"]) - SHOWN) > 0:
        tensors.add_row(f"and {rest:,} more", "", "", "")
    return [head, sizes, tensors]
