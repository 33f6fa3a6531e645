"""How plans for pretrained models look on the terminal."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import RenderableType

from strongticket.cli.frame import duration, size, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.pretrained._plan import ModelPlan

INT8 = 8.5 / 32  # of float32, with a float16 scale for every 32 numbers


def describe_plan(target: str, plan: "ModelPlan") -> JsonObject:
    forms = {"float32": 4.0, "float16": 2.0, "int8": 4 * INT8}
    return {
        "target": target,
        **asdict(plan),
        "bytes": {"file": plan.file_bytes} | {name: int(bits * plan.numbers) for name, bits in forms.items()},
    }


def plan_tables(d: JsonObject) -> list[RenderableType]:
    what = table(d["target"], "", "")
    whole = "whole: no trained number is left" if d["whole"] else "partial: the rest stays the trained model"
    what.add_row("ticket", whole)
    what.add_row("numbers of the model", f"{d['numbers']:,} in {d['tensors']:,} tensors")
    what.add_row("hidden units per row", f"{d['units']:g}")
    what.add_row("relative error", f"{d['error']:.2g} (root mean square)")
    what.add_row("time to build", f"{duration(d['seconds'])} with {d['workers']} workers, measured now")
    what.add_row("memory", size(d["memory_bytes"]))
    what.add_row("pieces", f"{d['pieces']:,}, each finished and kept on its own")
    sizes = table("size", "form", "bits per weight", "bytes", numbers=(1, 2))
    names = {"file": "the ticket", "int8": "int8, groups of 32", "float16": "float16", "float32": "float32"}
    for key, name in names.items():
        sizes.add_row(name, f"{8 * d['bytes'][key] / d['numbers']:.2f}", size(d["bytes"][key]))
    return [what, "", sizes]
