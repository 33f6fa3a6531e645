"""strongticket demo: from a trained network to a random one that does the same, with a page to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, SeedOption, duration, emit, size, step, table

EXAMPLE = "strongticket demo --out demo"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the results.")] = Path("demo"),
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Train the paper's small target, build its ticket, certify, save, reload, verify and measure it, and
    write a page about it that opens offline. Takes a minute.
    """
    from strongticket.experiments import demo as experiment
    from strongticket.experiments.driver import Options, Run, run_experiment

    run = Run(Options(out, seed=seed), out, step)
    outcome = run_experiment(experiment, run, f"strongticket demo --seed {seed}")
    numbers = outcome.result.numbers()
    result = {
        "page": str(outcome.page),
        "ticket": str(out / "demo.ticket"),
        "seconds": round(outcome.seconds, 1),
        **numbers,
    }
    emit(result, as_json=as_json, show=lambda: _tables(result, outcome.result.headline()))


def _tables(result: dict[str, Any], headline: list[tuple[str, str]]) -> list[RenderableType]:
    facts = table("a random network that does what a trained one does", "", "")
    for what, value in headline:
        facts.add_row(what, value)
    sizes = result["bytes"]
    facts.add_row(
        "ticket file", f"{size(sizes['file'])} (random network as float32 {size(sizes['float32'])})"
    )
    facts.add_row("took", duration(result["seconds"]))
    return [facts, "", f"open {result['page']}"]
