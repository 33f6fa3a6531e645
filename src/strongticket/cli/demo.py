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
    from strongticket.experiments.demo import run

    result = run(out, seed, f"strongticket demo --seed {seed}", step)
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _tables(r: dict[str, Any]) -> list[RenderableType]:
    facts = table("a random network that does what a trained one does", "", "")
    test = ", ".join(f"{error:.2g} (length {length})" for length, error in r["largest_test_error"].items())
    facts.add_row("largest error on test data", test)
    facts.add_row("attacked by gradient ascent", f"{r['attacked_error']:.2g}")
    facts.add_row("certified for every input", f"{r['certified_error']:.2g}")
    facts.add_row("weights", f"{r['weights']} random, {r['kept']} kept, 0 trained")
    sizes = r["bytes"]
    facts.add_row(
        "ticket file", f"{size(sizes['file'])} (random network as float32 {size(sizes['float32'])})"
    )
    ours, paper = r["fits"]["balanced"]["delta"], r["fits"]["paper"]["delta"]
    facts.add_row(
        "error falls as", f"e^(−{ours:.2f} n); paper's assignment e^(−{paper:.2f} n), its report e^(−0.06 n)"
    )
    facts.add_row("took", duration(r["seconds"]))
    return [facts, "", f"open {r['page']}"]
