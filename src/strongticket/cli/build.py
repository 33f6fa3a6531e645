"""strongticket build: a ticket for a target network."""

import itertools
from pathlib import Path
from typing import Annotated, Literal

import typer

from strongticket.cli.frame import SAME_COMMAND, JsonFlag, SeedOption, TicketOut, emit, fail, step
from strongticket.cli.model_options import (
    AttentionOption,
    BitsOption,
    CalibrateOption,
    DataOption,
    LossOption,
    OnlyOption,
    ToleranceOption,
    UnitsOption,
    model_options,
    refuse_options,
)
from strongticket.cli.show import describe, tables
from strongticket.files import JsonObject, held

EXAMPLE = "strongticket build demo/attention/target.safetensors --out my.ticket --epsilon 1e-6"


def build(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A network saved by strongticket.nets.save, or a Hugging Face model: its folder or hub name.",
        ),
    ],
    out: TicketOut,
    width: Annotated[
        int | None, typer.Option(help="Instead of --epsilon: hidden units of every product.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Output error to certify; finds the width.")] = None,
    radius: Annotated[
        float | None, typer.Option(help="Certify inputs with ‖x‖ up to this. Default: √d.")
    ] = None,
    arithmetic: Annotated[
        Literal["float32", "float64"],
        typer.Option(help="What the certificate holds for: the ticket's network as it is, or in float64."),
    ] = "float32",
    assignment: Annotated[
        Literal["balanced", "paper"],
        typer.Option(help="How units are assigned to rows; paper follows Lemma 7."),
    ] = "balanced",
    tolerance: ToleranceOption = None,
    bits: BitsOption = None,
    loss: LossOption = None,
    data: DataOption = None,
    calibrate: CalibrateOption = None,
    only: OnlyOption = None,
    attention: AttentionOption = None,
    units: UnitsOption = None,
    pieces: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="For models: keep finished pieces here, for later builds that share them."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="For models: number of processes. Default: one per core.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="For models: address of a Dask scheduler whose workers compute instead."
        ),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Find, in a random network, the ticket that computes what TARGET does; certify it and save it.

    The tensors of a Hugging Face model are made piece by piece. Finished pieces are kept beside the ticket until
    it is written; after an interruption the same command continues from them.
    """
    asked = dict(
        tolerance=tolerance,
        bits=bits,
        loss=loss,
        data=data,
        calibrate=calibrate,
        only=only,
        attention=attention,
        units=units,
    )
    how = dict(workers=workers, cluster=cluster, folder=pieces)
    if not Path(target).exists() and Path(target).suffix in (".safetensors", ".net"):
        fail(
            f"{target}: no such file.", "Give a saved network, or a Hugging Face model's folder or hub name."
        )
    if not Path(target).is_file():
        refuse_options(
            f"{target} is not a file, so it names a model", width=width, epsilon=epsilon, radius=radius
        )
        _build_model(target, out, asked | dict(assignment=assignment, seed=seed), how, as_json)
        return
    given = asked | dict(workers=workers, cluster=cluster, pieces=pieces)
    refuse_options(f"{target} is a network of strongticket.nets", **given)
    if (width is None) == (epsilon is None):
        fail("give either --epsilon or --width.", f"For example: {EXAMPLE}")
    from strongticket import nets
    from strongticket.builders import build_network, products_of

    network = nets.load(target)
    with step(f"building {out}") as advance, held(out):
        finished = itertools.count(1)
        # Looking for a width builds several times: then the number of products is not known in advance.
        total = products_of(network) if epsilon is None else None
        ticket = build_network(
            network,
            width=width,
            epsilon=epsilon,
            radius=radius,
            evaluation=arithmetic,
            assignment=assignment,
            seed=seed,
            progress=lambda _: advance(next(finished), total),
        )
        ticket.save(out)
    description = describe(out)
    emit(description.facts, as_json=as_json, show=lambda: tables(description))


def _build_model(target: str, out: Path, asked: JsonObject, how: JsonObject, as_json: bool) -> None:
    from strongticket.data.models import tokenizer_files
    from strongticket.pretrained import build_file, load_target

    options = model_options(asked)
    with step(f"loading {target}"):
        model = load_target(target)
    with step(f"building {out}", if_interrupted=SAME_COMMAND) as advance:
        build_file(model, out, options, tokenizer=tokenizer_files(target), progress=advance, **how)
    description = describe(out)
    emit(description.facts, as_json=as_json, show=lambda: tables(description))
