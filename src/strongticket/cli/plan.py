"""strongticket plan: width, accuracy, time and memory, before anything is built."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, duration, emit, fail, size, step, table
from strongticket.cli.model_options import (
    AttentionOption,
    BitsOption,
    OnlyOption,
    ToleranceOption,
    UnitsOption,
    model_options,
    refuse_options,
)
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.builders import Plan
    from strongticket.builders.architecture import Size

EXAMPLE = "strongticket plan --epsilon 1e-3 --dim 64 --heads 4"


def plan(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A Hugging Face model: its folder or hub name. Without it: by the theorems.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Largest output error wanted, between 0 and 1.")
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Input width d₁.")] = None,
    dim_out: Annotated[
        int | None, typer.Option(help="Output width d₂ of one attention. Default: d₁.")
    ] = None,
    heads: Annotated[int | None, typer.Option(help="Attention heads H. Default: 1.")] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Transformer blocks B. Default: 0, one attention alone.")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Feed-forward layers L of each block. Default: 1.")
    ] = None,
    radius: Annotated[float | None, typer.Option(help="Largest input norm α. Default: √d.")] = None,
    norm_floor: Annotated[
        float | None,
        typer.Option(help="For pre-norm blocks: the least length of what a norm reads."),
    ] = None,
    tolerance: ToleranceOption = None,
    bits: BitsOption = None,
    only: OnlyOption = None,
    attention: AttentionOption = None,
    units: UnitsOption = None,
    workers: Annotated[
        int | None, typer.Option(help="For models: number of processes. Default: one per core.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Widths by the theorems with the measured constant, the error to expect, and what a build costs; for a
    Hugging Face model, what building its ticket takes.
    """
    of_model = dict(tolerance=tolerance, bits=bits, only=only, attention=attention, units=units)
    if target is not None:
        of_theorems = dict(
            epsilon=epsilon,
            dim=dim,
            dim_out=dim_out,
            heads=heads,
            blocks=blocks,
            layers=layers,
            radius=radius,
            norm_floor=norm_floor,
        )
        refuse_options(f"{target} is a model", **of_theorems)
        _plan_model(target, of_model, workers, as_json)
        return
    refuse_options("no TARGET is given", **of_model, workers=workers)
    if layers is not None and not blocks:
        fail("--layers sets the depth of the blocks, but there are no blocks.", "Add --blocks.")
    if epsilon is None or dim is None:
        fail("give a TARGET, or both --epsilon and --dim.", f"For example: {EXAMPLE}")
        return
    from strongticket.builders import plan as plan_network

    found = plan_network(
        epsilon,
        dim,
        dim_out=dim_out,
        heads=1 if heads is None else heads,
        blocks=blocks or 0,
        layers=layers or 1,
        radius=radius,
        norm_floor=norm_floor,
    )
    result = describe(found, epsilon)
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _plan_model(target: str, options: dict[str, Any], workers: int | None, as_json: bool) -> None:
    from strongticket.cli.pretrained_tables import describe_plan, plan_tables
    from strongticket.pretrained import plan as plan_model

    with step("solving a few blocks of the model"):
        described = describe_plan(target, plan_model(target, model_options(options), workers=workers))
    emit(described, as_json=as_json, show=lambda: plan_tables(described))


def describe(plan: "Plan", epsilon: float) -> JsonObject:
    a = plan.architecture
    return {
        "epsilon": epsilon,
        "dim": a.dim,
        "dim_out": a.dim_out,
        "heads": a.heads,
        "blocks": a.blocks,
        "layers": a.layers,
        "radius": a.radius,
        "theorem": plan.theorem,
        "constants": plan.constants,
        "by_theorem": _size(plan.by_theorem),
        "in_practice": _size(plan.in_practice),
        "norm_floor": a.norm_floor,
        "lower_bound": plan.lower_bound,
    }


def _size(s: "Size") -> JsonObject:
    return {
        "layers": [
            {
                "name": layer.name,
                "width": layer.width,
                "n_prime": layer.n_prime,
                "problems": layer.problems,
                "expected_error_norm": layer.error_norm,
            }
            for layer in s.layers
        ],
        "expected_error": s.error,
        "problems": s.problems,
        "weights": s.weights,
        "seconds": s.seconds,
        "memory_bytes": s.memory_bytes,
        "file_bytes": s.file_bytes,
    }


def _tables(d: JsonObject) -> list[RenderableType]:
    theorem, practice = d["by_theorem"], d["in_practice"]
    bounded = d["lower_bound"] is not None
    last = ("no source below",) if bounded else ()
    widths = table("hidden units", "product", d["theorem"], "in practice", *last, numbers=(1, 2, 3))
    for wide, narrow in zip(theorem["layers"], practice["layers"], strict=True):
        cells = (f"{layer['width']:,} ({layer['n_prime']} per row)" for layer in (wide, narrow))
        counted = bounded and wide["name"] == "value_output"
        least = [f"{math.ceil(d['lower_bound']):,}" if counted else ""] if bounded else []
        widths.add_row(wide["name"], *cells, *least)
    costs = table("what to expect", "", d["theorem"], "in practice", numbers=(1, 2))
    lines: dict[str, tuple[str, Callable[[Any], str]]] = {
        "output error": ("expected_error", lambda v: f"{v:.2g}"),
        "subset-sum problems": ("problems", lambda v: f"{v:,}"),
        "random weights": ("weights", lambda v: f"{v:,}"),
        "time to build": ("seconds", duration),
        "memory": ("memory_bytes", size),
        "ticket file": ("file_bytes", size),
    }
    for name, (key, text) in lines.items():
        costs.add_row(name, text(theorem[key]), text(practice[key]))
    smallest = d["dim"] ** 0.5
    assumed = (
        "" if d["radius"] >= smallest else f" The theorem assumes a radius of at least √d = {smallest:.4g}."
    )
    feed_forward = f", feed-forward {d['constants']['relu']:.2f}" if d["blocks"] else ""
    reached = practice["expected_error"] <= d["epsilon"]
    promise = (
        f"{d['theorem']} promises an error of at most {d['epsilon']:g} with probability 1 − "
        f"{d['epsilon']:g} for every input {_inputs(d)}"
        f" (C = {d['constants']['product']:.2f}{feed_forward}: measured on the worst targets known).{assumed}\n"
        + (
            "'In practice' is the narrowest source expected to reach it, judging by measured errors; "
            f"`strongticket build --epsilon {d['epsilon']:g}` certifies what it builds."
            if reached
            else "In practice no source with up to 40 units per row is expected to reach that, so "
            f"`strongticket build --epsilon {d['epsilon']:g}` is likely to fail."
        )
    )
    return [widths, "", costs, "", promise]


def _inputs(d: JsonObject) -> str:
    if d["norm_floor"] is None:
        return f"with ‖x‖ ≤ {d['radius']:.4g}"
    return f"whose norms read vectors of length {d['norm_floor']:.4g} or more"
