"""Every benchmark one after the other, then one table of what must be shown: `make bench`.

`python -m benchmarks [NAME ...]` runs only those named; --quick passes on to those that have it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness import tell

HERE = Path(__file__).parent
SHARED = ("__init__", "__main__", "harness", "random_tickets")
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in SHARED)


def result_of(name: str, quick: bool) -> dict:
    """The benchmark's JSON object; an empty one with a failed figure if it broke."""
    has_quick = "quick=" in (HERE / f"{name}.py").read_text()
    command = [
        sys.executable,
        "-m",
        f"benchmarks.{name}",
        "--json",
        *(["--quick"] if quick and has_quick else []),
    ]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    tell(f"{name}: {time.perf_counter() - start:.0f} s")
    if done.returncode:
        return {
            "must_show": [
                {"name": "runs at all", "value": done.returncode, "required": "exit 0", "ok": False}
            ]
        }
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="smaller runs")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"unknown benchmark {min(unknown)!r}: expected some of {', '.join(NAMES)}")
    results = {name: result_of(name, chosen.quick) for name in chosen.names or NAMES}
    if chosen.json:
        print(json.dumps(results, indent=2))
        return
    table = Table("benchmark", "figure", "value", "required", "ok")
    for name, result in results.items():
        for entry in result["must_show"]:
            mark = "yes" if entry["ok"] else "NO"
            table.add_row(name, entry["name"], str(entry["value"]), str(entry["required"]), mark)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    main()
