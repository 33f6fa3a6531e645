"""How plans for pretrained models look on the terminal."""

from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from strongticket.cli.frame import duration, size, table

if TYPE_CHECKING:
    from strongticket.pretrained._plan import Plan


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
    rate = f"{d['problems_per_second_and_core']:,.0f} problems per second and core"
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
        f"The ticket would be {whole}.\nA built ticket is larger than its model: it is a proof that the "
        "network "
        "was there all along, not compression. Small files come from `strongticket search`."
    )
    return [parts, "", costs, "", frank]
