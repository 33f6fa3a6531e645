"""strongticket reproduce: the paper's figures and further studies."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from strongticket.cli.frame import (
    SAME_COMMAND,
    Command,
    JsonFlag,
    SeedOption,
    duration,
    emit,
    folder_option,
    step,
)
from strongticket.files import JsonObject
from strongticket.reproduce.catalogue import CATALOGUE

EXAMPLE = "strongticket reproduce figure4 --out results"


class Help(Command):
    """The help of a command, with a list of what can be reproduced."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Figures and studies"):
            formatter.write_dl([(name, about) for name, (about, _) in CATALOGUE.items()])


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names from the list below, or all.")],
    scale: Annotated[
        str,
        typer.Option(
            metavar="quick|laptop|paper",
            help="A look within a minute, minutes to hours on two cores, or every point of the paper.",
        ),
    ] = "laptop",
    out: Annotated[Path, folder_option("Results go to DIR/NAME, finished points to DIR/points.")] = Path(
        "results"
    ),
    workers: Annotated[int | None, typer.Option(help="Number of processes. Default: one per core.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler whose workers compute instead."),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Reproduce figures of the paper or run further studies: tables, pictures and a short answer to each question.

    After an interruption the same command continues where it stopped.
    """
    from strongticket.reproduce import catalogue, study

    chosen = list(CATALOGUE) if names == ["all"] else names
    for name in chosen:
        catalogue.load(name)  # an unknown name or a missing extra is said before any work
    results = {}
    for name in chosen:
        announce = partial(_announce, name)
        results[name] = study.reproduce(name, study.Run(out, scale, seed, workers, cluster, announce))
    emit(results, as_json=as_json, show=lambda: [_text(found, out) for found in results.values()])


def _announce(name: str, what: str) -> Any:
    return step(f"{name}: {what}", if_interrupted=SAME_COMMAND)


def _text(found: JsonObject, out: Path) -> str:
    name, folder = found["study"], out / found["study"]
    took = f"took {duration(found['seconds'])}; see {folder}/README.md and {folder}/{name}.png"
    return f"{name}: {found['sentence']}\n{took}"
