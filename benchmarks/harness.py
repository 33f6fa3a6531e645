"""What every benchmark shares: timing side by side, the list of figures that must be shown, printing."""

import argparse
import json
import operator
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

_START = time.monotonic()
COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt, "==": operator.eq}


def fastest(
    jobs: dict[str, Callable[[], object]],
    *,
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds of each job: the best of `repeats`, taken in turns, as other load only ever slows a run down."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            start = clock()
            job()
            best[name] = min(best[name], clock() - start)
    return best


def figure(name: str, value: float, relation: str, limit: float, *, note: str = "") -> dict:
    """One figure an issue asks for: `figure("speed-up", 93, ">=", 20)`."""
    shown = float(f"{value:.4g}")
    ok = bool(COMPARE[relation](value, limit))
    entry = {"name": name, "value": shown, "required": f"{relation} {limit:g}", "ok": ok}
    return {**entry, "note": note} if note else entry


def main(
    document: str, run: Callable[..., dict], *, files: dict[str, str] | None = None, **flags: str
) -> None:
    """Parse --json, the given on/off flags and options that name a file, run, print tables or one JSON object.

    `run` returns a dict: lists of flat dicts are tables, `must_show` is a list of `figure`s.
    """
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for flag, what in flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=what)
    for option, what in (files or {}).items():
        parser.add_argument(f"--{option}", metavar="FILE", help=what)
    chosen = vars(parser.parse_args())
    as_json = chosen.pop("json")
    result = run(**chosen)
    if as_json:
        print(json.dumps(result, indent=2))
        return
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 140)
    for title, rows in result.items():
        if isinstance(rows, list) and rows:
            _print_table(console, title, rows)
        else:
            console.print(f"{title}: {rows}")


def _print_table(console: Console, title: str, rows: list[dict]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=title.replace("_", " "), title_justify="left")
    for row in rows:
        table.add_row(*(_cell(row.get(column, "")) for column in columns))
    console.print(table)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def tell(message: str) -> None:
    """Progress goes to stderr, so that --json stays one object."""
    print(f"{time.monotonic() - _START:6.0f} s  {message}", file=sys.stderr, flush=True)


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """For `reproduce`: a line when the work begins, and one for each finished tenth of it."""
    tell(what)
    shown = 0

    def advance(done: int, total: int) -> None:
        nonlocal shown
        if (tenth := 10 * done // max(total, 1)) > shown:
            shown = tenth
            tell(f"  {done} of {total}")

    yield advance
