"""What every benchmark shares: timing side by side, the list of figures that must be shown, printing."""

import argparse
import inspect
import json
import operator
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
Job = Callable[[], object]
_WALL = time.perf_counter
_START = time.monotonic()
COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt, "==": operator.eq}


def fastest(jobs: dict[str, Job], repeats: int = 5, clock: Callable[[], float] = _WALL) -> dict[str, float]:
    """Seconds of each job: the best of `repeats`, taken in turns, as other load only ever slows a run down."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            start = clock()
            job()
            best[name] = min(best[name], clock() - start)
    return best


def figure(name: str, value: float, relation: str, limit: float, note: str = "") -> Row:
    """One figure an issue asks for: `figure("speed-up", 93, ">=", 20)`."""
    shown = float(f"{value:.4g}")
    ok = bool(COMPARE[relation](value, limit))
    entry = {"name": name, "value": shown, "required": f"{relation} {limit:g}", "ok": ok}
    return {**entry, "note": note} if note else entry


def main(document: str | None, run: Callable[..., Row]) -> None:
    """Parse --json and the parameters of `run` (False: a flag, "": a file to name), run it and print the result.

    `run` returns a dict: lists of flat dicts are tables, `must_show` is a list of `figure`s.
    """
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for name, parameter in inspect.signature(run).parameters.items():
        kind = {"action": "store_true"} if parameter.default is False else {"metavar": "FILE", "default": ""}
        parser.add_argument(f"--{name}", **kind)
    chosen = vars(parser.parse_args())
    as_json = chosen.pop("json")
    result = run(**chosen)
    if as_json:
        print(json.dumps(result, indent=2))
        return
    for title, value in result.items():
        if isinstance(value, list) and value:
            print_table(title.replace("_", " "), value)
        else:
            print(f"{title}: {value}")


def print_table(title: str, rows: list[Row]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        cells = [row.get(column, "") for column in columns]
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def tell(message: str) -> None:
    """Progress goes to stderr, so that --json stays one object."""
    print(f"{time.monotonic() - _START:6.0f} s  {message}", file=sys.stderr, flush=True)
