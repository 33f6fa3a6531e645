"""strongticket reproduce: the paper's figures and further studies, with what is better beside them."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import (
    SAME_COMMAND,
    Command,
    JsonFlag,
    SeedOption,
    duration,
    emit,
    fail,
    folder_option,
    step,
    table,
)
from strongticket.experiments.catalogue import CATALOGUE
from strongticket.files import JsonObject

EXAMPLE = "strongticket reproduce figure4 --out results"


class Help(Command):
    """The help of a command, with a list of what can be reproduced."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Figures and studies"):
            formatter.write_dl([(name, entry.about) for name, entry in CATALOGUE.items()])


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name from the list below, or figures, studies or all.",
        ),
    ],
    scale: Annotated[
        str, typer.Option(metavar="laptop|paper", help="Minutes on two cores, or every point of the paper.")
    ] = "laptop",
    out: Annotated[Path, folder_option("Results go to DIR/NAME, finished points to DIR/points.")] = Path(
        "results"
    ),
    workers: Annotated[int | None, typer.Option(help="Number of processes. Default: one per core.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler whose workers compute instead."),
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate of figures 4 and 5: 0.1, or 0.5 as in the workshop version.")
    ] = 0.1,
    init: Annotated[
        str,
        typer.Option(
            metavar="theory|inverse|xavier",
            help="Queries and keys of the sources of figures 5 and 6: U[±n^¼], U[±n^-¼] or Xavier's. "
            "Figure 4 shows all three.",
        ),
    ] = "theory",
    mip: Annotated[
        str,
        typer.Option(metavar="highs|gurobi|cpsat", help="The integer program that figure 4 compares with."),
    ] = "highs",
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Reproduce a figure of the paper or run a study: data, fits, pictures and a page. After an interruption the
    same command continues where it stopped.
    """
    from strongticket.experiments import catalogue, driver

    options = driver.Options(out, scale, seed, workers, cluster, learning_rate, init, mip)
    chosen = catalogue.names(name)
    for option in options.changed():
        readers = [key for key, entry in CATALOGUE.items() if option in entry.reads]
        if readers and not set(chosen) & set(readers):
            fail(
                f"--{option.replace('_', '-')} does not apply to {name}: only {', '.join(readers)} reads it.",
                "Leave it out.",
            )
    resumable = partial(step, if_interrupted=SAME_COMMAND)
    results = {key: driver.reproduce(key, options, resumable) for key in chosen}
    emit(results, as_json=as_json, show=lambda: [part for r in results.values() for part in _tables(r)])


def _tables(result: JsonObject) -> list[RenderableType]:
    facts = table(result["figure"], "", "")
    for what, value in result["headline"]:
        facts.add_row(what, value)
    facts.add_row("took", duration(result["seconds"]))
    return [facts, f"open {result['page']}", ""]
