"""strongticket show: what a ticket file is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, emit, size, table

if TYPE_CHECKING:
    from strongticket.seeds import Distribution
    from strongticket.ticket import Ticket

EXAMPLE = "strongticket show demo/demo.ticket"


def show(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    as_json: JsonFlag = False,
) -> None:
    """Tell what a ticket is: its network, its random source, how much is kept, how large the file is."""
    from strongticket.pretrained.summary import is_pretrained

    if is_pretrained(file):
        from strongticket.cli.pretrained_tables import describe_ticket, ticket_tables

        told = describe_ticket(file)
        emit(told, as_json=as_json, show=lambda: ticket_tables(told))
        return
    from strongticket.ticket import Ticket

    described = describe(Ticket.load(file), file)
    emit(described, as_json=as_json, show=lambda: tables(described))


def describe(ticket: "Ticket", file: Path) -> dict[str, Any]:
    """The ticket as plain data; `file` is where it was read from."""
    sizes = ticket.sizes()
    tensors = [
        {
            "name": name,
            "shape": list(mask.shape),
            "distribution": _law(ticket.distributions[name]),
            "kept": int(mask.sum()),
            "kept_fraction": ticket.kept[name],
        }
        for name, mask in ticket.masks.items()
    ]
    weights = sum(mask.size for mask in ticket.masks.values())
    kept = sum(int(mask.sum()) for mask in ticket.masks.values())
    return {
        "file": str(file),
        "kind": ticket.kind,
        "settings": ticket.settings,
        "seed": ticket.seed,
        "weights": weights,
        "kept": kept,
        "kept_fraction": kept / weights if weights else 0.0,
        "trained": sum(tensor.size for tensor in ticket.floats.values()),
        "bytes": {
            "file": file.stat().st_size,
            "packed_masks": sizes.packed,
            "entropy": sizes.entropy,
            "float16": sizes.float16,
            "float32": sizes.float32,
        },
        "tensors": tensors,
        "certificate": ticket.certificate,
        "metadata": ticket.metadata,
    }


def tables(d: dict[str, Any]) -> list[RenderableType]:
    head = table(d["file"], "", "")
    head.add_row("network", d["kind"])
    head.add_row("settings", _settings_line(d["settings"]))
    head.add_row("seed", str(d["seed"]))
    head.add_row("weights", f"{d['weights']:,} random, {d['kept']:,} kept ({d['kept_fraction']:.1%})")
    head.add_row("trained numbers", f"{d['trained']:,}" if d["trained"] else "none")
    if d["certificate"]:
        head.add_row("certified error", certificate_line(d["certificate"]))
    sizes = table("size", "form", "bytes", "of float32", numbers=(1, 2))
    names = {
        "file": "this file",
        "entropy": "entropy of the masks",
        "packed_masks": "masks, 1 bit a weight",
        "float16": "float16 weights",
        "float32": "float32 weights",
    }
    for key, name in names.items():
        count = d["bytes"][key]
        share = f"{count / d['bytes']['float32']:.1%}" if d["bytes"]["float32"] else ""
        sizes.add_row(name, size(count), share)
    tensors = table("tensors", "name", "shape", "drawn from", "kept", numbers=(3,))
    for t in d["tensors"]:
        shape = " × ".join(map(str, t["shape"]))
        tensors.add_row(t["name"], shape, t["distribution"], f"{t['kept_fraction']:.1%}")
    return [head, "", sizes, "", tensors]


def _settings_line(settings: dict[str, Any]) -> str:
    """Of a searched model its sizes, not the hundred other options of its config; `--json` has them all."""
    config = settings.get("config")
    if not isinstance(config, dict):
        return ", ".join(f"{key}={value}" for key, value in settings.items())
    sizes = ", ".join(f"{key}={value}" for key, value in config.items() if type(value) is int)
    factors = {f"{part[-1]:.3g}" for parts in settings["parts"].values() for part in parts}
    scaled = f"; query and key weights × {', '.join(sorted(factors))}" if factors else ""
    return f"{config['model_type']}: {sizes}{scaled}"


def _law(distribution: "Distribution") -> str:
    from strongticket.seeds import Uniform

    if isinstance(distribution, Uniform):
        return f"U[±{distribution.half_width:.4g}]"
    return f"N(0, {distribution.std:.4g}²)"


def certificate_line(certificate: dict[str, Any]) -> str:
    bound, radius = certificate.get("bound"), certificate.get("radius")
    if bound is None:
        return "none that is finite"
    return f"at most {bound:.3g} for every input with ‖x‖ ≤ {radius:.4g}, every length and mask"
