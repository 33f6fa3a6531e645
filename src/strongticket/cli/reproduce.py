"""strongticket reproduce: the paper's figures, with what is better beside them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, SeedOption, duration, emit, fail, step, table

EXAMPLE = "strongticket reproduce figure4 --out results"
READ_BY = {
    "learning_rate": {"figure4", "figure5"},
    "init": {"figure5", "figure6"},
    "mip": {"figure4"},
}


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="figure4, figure5, figure6 … or all.")],
    scale: Annotated[
        str, typer.Option(metavar="laptop|paper", help="Minutes on two cores, or every point of the paper.")
    ] = "laptop",
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results go to DIR/FIGURE, finished points to DIR/points.")
    ] = Path("results"),
    workers: Annotated[int | None, typer.Option(help="Processes at once; by default one a core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers do it instead.")
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Of the target of figures 4 and 5: 0.1, or 0.5 as in the workshop version.")
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
    """Make a figure of the paper: data, fits, pictures and a page. Killed or stopped, the same command goes
    on where it was.
    """
    from strongticket.experiments.reproduce import FIGURES, Options
    from strongticket.experiments.reproduce import reproduce as run

    options = Options(out, scale, seed, workers, cluster, learning_rate, init, mip)
    names = FIGURES if figure == "all" else (figure,)
    for name, figures in READ_BY.items():
        if getattr(options, name) != getattr(Options, name) and not set(names) & figures:
            option = f"--{name.replace('_', '-')}"
            fail(
                f"{option} does not apply to {figure}: only {', '.join(sorted(figures))} reads it.",
                "Leave it out.",
            )
    results = {name: run(name, options, step) for name in names}
    emit(results, as_json=as_json, show=lambda: [part for r in results.values() for part in _told(r)])


def _told(result: dict) -> list[RenderableType]:
    facts = table(result["figure"], "", "")
    for what, value in result["headline"]:
        facts.add_row(what, value)
    facts.add_row("took", duration(result["seconds"]))
    return [facts, f"open {result['page']}", ""]
