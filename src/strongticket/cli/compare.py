"""strongticket compare: a ticket beside the model that it stands for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import ADVANCED, JsonFlag, SeedOption, emit, fail, option, step, table

if TYPE_CHECKING:
    from strongticket.ticket import TicketComparison

EXAMPLE = "strongticket compare demo/attention/attention.ticket demo/attention/target.safetensors"


def compare(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="What it stands for: a network saved by strongticket.nets.save, or a Hugging Face folder or "
            "hub name.",
        ),
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="Also fail unless this output error is certified.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="TEXT", help="A text file to run both on. Default: random inputs.")
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Print how both language models continue this; repeatable."),
    ] = None,
    sequences: Annotated[
        int | None,
        option(ADVANCED, "How many inputs to run both on. Default: 64, or 1024 for small networks."),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Run a ticket's network and its model on the same inputs. Exit code 1 when what the file states does not hold.

    Of a network of the theorems: the error of every matrix, certified and measured. Of a Hugging Face model: the
    error of the weights, loss, divergence and agreement, and the error after each layer.
    """
    from strongticket.ticket import Ticket

    ticket = Ticket.load(file)
    with step(f"comparing {file} with {model}") as advance:
        asked = dict(epsilon=epsilon, data=data, sequences=sequences, prompts=tuple(prompt or ()), seed=seed)
        found = ticket.compare(model, progress=advance, **asked)
    problems = list(found.problems)
    result = {"file": str(file), **found.facts, "ok": not problems, "problems": problems}
    emit(result, as_json=as_json, show=lambda: _tables(f"{file} against {model}", found))
    if problems:
        fail(
            "; ".join(problems),
            "Compare it with the model that it was built for, or build with a smaller epsilon or tolerance.",
        )


def _tables(title: str, found: "TicketComparison") -> list[RenderableType]:
    columns, *rows = found.details
    details = table("in detail", *columns, rows=rows, numbers=range(1, len(columns)))
    return [table(title, "", "", rows=found.rows), details]
