"""strongticket show: what a ticket file is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, emit, size, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.seeds import Law
    from strongticket.ticket import Description

EXAMPLE = "strongticket show demo/language.ticket"
SHOWN = 24  # tensors; --json lists them all


def show(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    as_json: JsonFlag = False,
) -> None:
    """Describe a ticket: its network, its random source, how much is kept, how large the file is."""
    description = describe(file)
    emit(description.facts, as_json=as_json, show=lambda: tables(description))


def describe(file: Path) -> "Description":
    """The ticket as rows for a person and as plain data, from the file's index alone."""
    from strongticket.ticket import Description, summarise
    from strongticket.ticket.kinds import from_file, kind_of

    summary = summarise(file)
    with from_file(summary.kind):
        own = kind_of(summary.kind).describe(summary)
    sizes = summary.sizes()
    facts = {
        "file": str(file),
        "kind": summary.kind,
        "settings": summary.settings,
        "seed": summary.seed,
        "weights": summary.weights,
        "kept": summary.kept,
        "kept_fraction": summary.kept / summary.weights if summary.weights else 0.0,
        "trained": summary.trained,
        "bytes": {
            "file": sizes.file,
            "packed_masks": sizes.packed,
            "entropy": sizes.entropy,
            "float16": sizes.float16,
            "float32": sizes.float32,
        },
        "tensors": [
            {
                "name": tensor.name,
                "shape": list(tensor.shape),
                "law": _law(tensor.law),
                "kept": tensor.kept,
                "kept_fraction": tensor.kept / tensor.weights if tensor.weights else 0.0,
            }
            for tensor in summary.tensors
            if tensor.law
        ],
        "certificate": summary.certificate,
        "metadata": summary.metadata,
    }
    return Description(own.rows, facts | own.facts)


def tables(description: "Description") -> list[RenderableType]:
    d = description.facts
    head = table(d["file"], "", "")
    for label, text in description.rows:
        head.add_row(label, text)
    head.add_row("seed", str(d["seed"]))
    head.add_row("weights", f"{d['weights']:,} random, {d['kept']:,} kept ({d['kept_fraction']:.1%})")
    head.add_row("trained numbers", f"{d['trained']:,}" if d["trained"] else "none")
    if d["certificate"]:
        head.add_row("certified error", certificate_line(d["certificate"]))
    sizes = table("size", "form", "bytes", "of last row", numbers=(1, 2))
    names = {
        "file": "this file",
        "entropy": "masks, entropy of independent bits",
        "packed_masks": "masks, one bit per weight",
        "float16": "the random network as float16",
        "float32": "the random network as float32",
    }
    forms = [(name, d["bytes"][key]) for key, name in names.items()]
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
    return [head, "", sizes, "", tensors]


def _law(law: "Law") -> str:
    formats = {"uniform": "U[±{:.4g}]", "normal": "N(0, {:.4g}²)", "signed": "±{:.4g}"}
    if law.name == "one-sided":
        return f"U[{law.scale / 2:.4g}, {law.scale:.4g}]"
    return formats.get(law.name, law.name + " ±{:.4g}").format(law.scale)


def certificate_line(certificate: JsonObject) -> str:
    bound, radius = certificate.get("bound"), certificate.get("radius")
    if bound is None:
        return "no finite bound"
    inputs = "every input" if radius is None else f"every input with ‖x‖ ≤ {radius:.4g}"
    if certificate.get("floors"):
        inputs += " that keeps to the floors of its norms"
    arithmetic = certificate.get("arithmetic", "exact")
    runs = "in exact arithmetic" if arithmetic == "exact" else f"run in {arithmetic}"
    return f"at most {bound:.3g} for {inputs}, every length and mask, {runs}"
