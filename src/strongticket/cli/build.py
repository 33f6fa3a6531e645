"""strongticket build: a ticket for a target network."""

import itertools
from pathlib import Path
from typing import Annotated, Literal

import typer

from strongticket.cli.frame import JsonFlag, SeedOption, emit, step
from strongticket.cli.show import describe, tables

EXAMPLE = "strongticket build demo/target.safetensors --out my.ticket --epsilon 1e-6"


def build(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A network saved by strongticket.nets.save.")
    ],
    out: Annotated[Path, typer.Option(metavar="F.ticket", help="Where to write the ticket.")],
    width: Annotated[int | None, typer.Option(help="Hidden units of the source's every product.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Or: the output error to certify.")] = None,
    radius: Annotated[
        float | None, typer.Option(help="Certify inputs with ‖x‖ up to this. Default: √d.")
    ] = None,
    assignment: Annotated[
        Literal["balanced", "paper"],
        typer.Option(help="How units are given to rows: paper is Lemma 7's way."),
    ] = "balanced",
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Find, in a random network, the ticket that computes what TARGET does; certify it and save it."""
    from strongticket import nets
    from strongticket.build import build_network, products_of
    from strongticket.ticket import Ticket

    network = nets.load(target)
    with step(f"building {out}") as advance:
        made = itertools.count(1)
        # Looking for a width builds several times: then nobody knows how many products there will be.
        total = products_of(network) if epsilon is None else None
        ticket = build_network(
            network,
            width=width,
            epsilon=epsilon,
            radius=radius,
            assignment=assignment,
            seed=seed,
            progress=lambda _: advance(next(made), total),
        )
        ticket.save(out)
    described = describe(Ticket.load(out), out)
    emit(described, as_json=as_json, show=lambda: tables(described))
