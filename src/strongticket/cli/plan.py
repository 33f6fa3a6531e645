"""strongticket plan: width, accuracy and size, before anything is built."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.build import (
    BitsOption,
    OnlyOption,
    StatesOption,
    ToleranceOption,
    given_options,
    refuse_options,
)
from strongticket.cli.frame import JsonFlag, emit, fail, size, step, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.builders.planned import PlannedSource

EXAMPLE = "strongticket plan --epsilon 1e-3 --dim 64 --heads 4"
# Bytes of a number in other forms; int8 with a float16 scale for every 32 numbers.
_FORMS = {"int8": 8.5 / 8, "float16": 2.0, "float32": 4.0}


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
    heads: Annotated[int | None, typer.Option(help="Attention heads H. Default: 1.")] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Transformer blocks B. Default: 0, one attention alone.")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Feed-forward layers L of each block. Default: 1.")
    ] = None,
    radius: Annotated[float | None, typer.Option(help="Largest input norm α. Default: √d.")] = None,
    rank: Annotated[
        int | None, typer.Option(help="Rank of W_QK and W_VO of each head, d_K and d_V. Default: full.")
    ] = None,
    tolerance: ToleranceOption = None,
    bits: BitsOption = None,
    only: OnlyOption = None,
    states: StatesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Estimate what a build needs before it is run.

    For an architecture: the widths that the theorems ask for with the measured units for a row, the error to expect,
    and the size of the ticket. For a Hugging Face model: the size and the error of its ticket, from some of its rows.
    """
    for_models = dict(tolerance=tolerance, bits=bits, only=only, states=states)
    for_networks = dict(heads=heads, blocks=blocks, layers=layers or None, radius=radius, rank=rank)
    if target is not None:
        refuse_options(f"{target} is a model", epsilon=epsilon, dim=dim, **for_networks)
        from strongticket.builders import plan_model
        from strongticket.theory import least_bits

        with step("counting on some rows of the model"):
            planned = plan_model(target, **given_options(for_models))
        forms = {name: int(count * planned.numbers) for name, count in _FORMS.items()}
        shown = {"target": target, **asdict(planned), "bytes": {"file": planned.file_bytes} | forms}
        shown["least_bits"] = least_bits(planned.error)
        emit(shown, as_json=as_json, show=lambda: _model_tables(shown))
        return
    refuse_options("no TARGET is given", **for_models)
    if layers is not None and not blocks:
        fail("--layers sets the depth of the blocks, but there are no blocks.", "Add --blocks.")
    if epsilon is None or dim is None:
        fail("give a TARGET, or both --epsilon and --dim.", f"For example: {EXAMPLE}")
    from strongticket.builders import plan_network

    found = plan_network(epsilon, dim, **given_options(for_networks))
    result = {
        "epsilon": epsilon,
        **asdict(found.architecture),
        "theorem": found.theorem,
        "lines": found.lines,
        "by_theorem": _size(found.by_theorem),
        "in_practice": _size(found.in_practice),
        "failure": found.failure,
        "lower_bound": found.lower_bound,
    }
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _size(found: "PlannedSource") -> JsonObject:
    layers = [
        asdict(layer) | {"width": layer.width, "problems": layer.problems, "error_norm": layer.error_norm}
        for layer in found.layers
    ]
    totals = {
        name: getattr(found, name) for name in ("problems", "weights", "file_bytes", "bits", "least_bits")
    }
    return asdict(found) | totals | {"layers": layers}


def _tables(d: JsonObject) -> list[RenderableType]:
    theorem, practice = d["by_theorem"], d["in_practice"]
    widths = table("hidden units", "product", d["theorem"], "in practice", numbers=(1, 2))
    for wide, narrow in zip(theorem["layers"], practice["layers"], strict=True):
        cells = (f"{layer['width']:,} ({layer['per_row']} per row)" for layer in (wide, narrow))
        widths.add_row(wide["name"], *cells)
    costs = table("what to expect", "", d["theorem"], "in practice", numbers=(1, 2))
    lines = {
        "output error": ("error", "{:.2g}".format),
        "subset-sum problems": ("problems", "{:,}".format),
        "random weights": ("weights", "{:,}".format),
        "ticket file": ("file_bytes", size),
        "mask bits for each entry": ("bits", "{:.1f}".format),
        "limit at the entries' error": ("least_bits", "{:.1f}".format),
    }
    for name, (key, text) in lines.items():
        costs.add_row(name, text(theorem[key]), text(practice[key]))
    return [widths, costs, "\n".join(_notes(d))]


def _notes(d: JsonObject) -> Iterator[str]:
    """What the columns mean, and on what they rest."""
    epsilon, theorem, radius = d["epsilon"], d["theorem"], f"‖x‖ ≤ {d['radius']:.4g}"
    if d["failure"] is None:
        yield (
            f"{theorem} promises nothing at {radius}: its proof needs a radius of "
            f"√d = {math.sqrt(max(d['dim'], d['dim_out'])):.4g} or more."
        )
    else:
        yield (
            f"{theorem} promises an error of at most {epsilon:g} for every input with {radius}, with probability "
            f"1 − {d['failure']:.3g}."
        )
    yield (
        "Its widths count the smaller side of each product, as `build` does. The units for a row were measured on the "
        "worst targets known, for d up to 16 and ε down to 0.01; beyond that they are extrapolated."
    )
    if d["in_practice"]["error"] <= epsilon:
        yield (
            "'In practice' is the narrowest source expected to reach it, judging by measured errors; "
            f"`strongticket build --epsilon {epsilon:g}` certifies what it builds."
        )
    else:
        yield (
            "In practice no source with up to 40 units per row is expected to reach that, so "
            f"`strongticket build --epsilon {epsilon:g}` is likely to fail."
        )
    if d["lower_bound"] is not None:
        heads = "of full rank" if d["rank"] is None else f"of rank {d['rank']}"
        yield (
            f"No source with fewer than {math.ceil(d['lower_bound']):,} units of values and outputs in each head can "
            f"serve all targets with heads {heads} and a mask for each head."
        )


def _model_tables(d: JsonObject) -> list[RenderableType]:
    what = table(d["target"], "", "")
    whole, partial = "whole: every number a random weight", "partial: the rest stays the trained model"
    what.add_row("ticket", whole if d["whole"] else partial)
    what.add_row("numbers of the model", f"{d['numbers']:,} in {d['tensors']:,} tensors")
    what.add_row("random weights", f"{d['step']:.3g} root mean squares apart, {d['states']} states")
    what.add_row("relative error", f"{d['error']:.2g} (root mean square)")
    what.add_row("limit for normal numbers", f"{d['least_bits']:.2f} bits per weight at that error")
    if d["tokenizer_bytes"]:
        what.add_row("tokenizer", f"{size(d['tokenizer_bytes'])} of the ticket")
    sizes = table("size", "form", "bits per weight", "bytes", numbers=(1, 2))
    for form, count in d["bytes"].items():
        name = {"file": "the ticket", "int8": "int8, groups of 32"}.get(form, form)
        bits = d["bits"] if form == "file" else 8 * count / d["numbers"]
        sizes.add_row(name, f"{bits:.2f}", size(count))
    return [what, sizes]
