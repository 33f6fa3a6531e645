"""strongticket demo: a first look, with a page."""

from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import JsonFlag, SeedOption, emit, step, table

EXAMPLE = "strongticket demo --out demo"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the results.")] = Path("demo"),
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Solve a batch of subset-sum problems; write the errors and speeds as a page."""
    from strongticket.experiments.demo import run

    with step("solving subset-sum problems") as advance:
        result = run(out, seed, f"strongticket demo --seed {seed}", advance)

    def show():
        speeds = table("exact subset sums", "n", "median error", "2^-n", "µs each", numbers=(0, 1, 2, 3))
        for r in result["rows"]:
            cells = (r["median_error"], r["two_to_minus_n"], r["microseconds"])
            speeds.add_row(str(r["n"]), *(f"{cell:.3g}" for cell in cells))
        return [speeds, "", f"open {result['page']}"]

    emit(result, as_json=as_json, show=show)
