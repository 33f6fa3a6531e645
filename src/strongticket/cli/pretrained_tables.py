"""How tickets of pretrained models and their plans look on the terminal."""

from math import prod
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from strongticket.cli.frame import duration, size, table

if TYPE_CHECKING:
    from pathlib import Path

    from strongticket.pretrained.planning import Plan


def describe_ticket(file: "Path") -> dict[str, Any]:
    """The ticket as plain data, from its index alone."""
    from strongticket.pretrained.summary import summary

    found = summary(file)
    settings = found.recipe["settings"]
    weights = sum(prod(line["shape"]) for line in found.tensors)
    kept = sum(line.get("kept", prod(line["shape"])) for line in found.tensors)
    base = settings["base"]
    return {
        "file": str(file),
        "kind": found.recipe["kind"],
        "class": settings["class"],
        "whole": base is None,
        "base": base,
        "parts": settings["parts"],
        "layers": settings["layers"],
        "settings": settings,
        "seed": found.recipe["seed"],
        "problems": found.metadata["problems"],
        "tolerance": found.metadata["tolerance"],
        "assignment": found.metadata["assignment"],
        "tensors": len(found.tensors),
        "weights": weights,
        "kept": kept,
        "kept_fraction": kept / weights,
        "trained": sum(prod(line["shape"]) for line in found.tensors if "kept" not in line),
        "bytes": {"file": found.file_bytes, "packed_masks": (weights + 7) // 8, "float32": 4 * weights},
        "errors": found.metadata["errors"],
    }


def ticket_tables(d: dict[str, Any]) -> list[RenderableType]:
    head = table(d["file"], "", "")
    head.add_row("network", f"{d['class']} of pruned random matrices")
    if d["whole"]:
        head.add_row("whole", "every matrix is random and pruned; the ticket has no trained number")
    else:
        head.add_row("partial", f"{', '.join(d['parts'])}; the rest is the trained model {d['base']}")
        if d["layers"] is not None:
            head.add_row("layers", ", ".join(map(str, d["layers"])))
    head.add_row("seed", str(d["seed"]))
    head.add_row("weights", f"{d['weights']:,} random, {d['kept']:,} kept ({d['kept_fraction']:.1%})")
    head.add_row(
        "subset sums", f"{d['problems']:,}, to within {d['tolerance']:g} of each matrix's root mean square"
    )
    head.add_row("file", f"{size(d['bytes']['file'])} ({d['tensors']:,} tensors)")
    worst = table(
        "matrices with the largest errors", "matrix", "largest entry's error", "relative", numbers=(1, 2)
    )
    for name, (largest, relative) in sorted(d["errors"].items(), key=lambda item: -item[1][1])[:5]:
        worst.add_row(name, f"{largest:.2g}", f"{relative:.2g}")
    return [head, "", worst]


def describe_plan(target: str, plan: "Plan") -> dict[str, Any]:
    parts = [
        {"part": p.part, "trained": p.trained, "problems": p.problems, "weights": p.weights}
        for p in plan.parts
    ]
    return {
        "target": target,
        "whole": plan.whole,
        "parts": parts,
        "problems": plan.problems,
        "pieces": plan.pieces,
        "workers": plan.workers,
        "problems_per_second_and_core": plan.rate,
        "seconds": plan.seconds,
        "memory_bytes": plan.memory_bytes,
        "file_bytes": plan.file_bytes,
        "model_bytes": plan.model_bytes,
    }


def plan_tables(d: dict[str, Any]) -> list[RenderableType]:
    parts = table(d["target"], "part", "trained numbers", "subset sums", "random weights", numbers=(1, 2, 3))
    for p in d["parts"]:
        parts.add_row(p["part"], *(f"{p[name]:,}" for name in ("trained", "problems", "weights")))
    parts.add_row("in all", "", f"{d['problems']:,}", "")
    costs = table("what to expect", "", "")
    rate = f"{d['problems_per_second_and_core']:,.0f} problems a second and core"
    costs.add_row(
        "time to build", f"{duration(d['seconds'])} with {d['workers']} workers ({rate}, measured now)"
    )
    costs.add_row("memory", size(d["memory_bytes"]))
    costs.add_row("pieces", f"{d['pieces']:,}, each finished and kept on its own")
    costs.add_row(
        "ticket file", f"{size(d['file_bytes'])}; the model in float32 has {size(d['model_bytes'])}"
    )
    whole = "whole: no trained number is left" if d["whole"] else "partial: the rest stays the trained model"
    frank = (
        f"The ticket would be {whole}.\nA built ticket is larger than its model: it is a proof that the network "
        "was there all along, not compression. Small files come from `strongticket search`."
    )
    return [parts, "", costs, "", frank]
