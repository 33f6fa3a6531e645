"""Every benchmark in turn, then one table of what must be shown, which docs/benchmarks.md gets too: `make bench`.

`python -m benchmarks [NAME ...]` runs only those named. Finished results are kept in results/bench, so a stopped run
continues where it was; --again computes everything again. --quick is a smaller run, which the page does not get.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness import Row, print_table, tell
from strongticket.files import dump_json, write_file

HERE = Path(__file__).parent
STORED = Path("results/bench")
PAGE = HERE.parent / "docs" / "benchmarks.md"
MARK = "<!-- the table below is written by `python -m benchmarks` -->\n"
HEADINGS = ("benchmark", "name", "value", "required", "ok")
# The other files are shared by several benchmarks and cannot be run.
NAMES = sorted(path.stem for path in HERE.glob("[a-z]*.py") if "__main__" in path.read_text())


def result_of(name: str, *, quick: bool, again: bool) -> Row:
    """The benchmark's JSON object, stored or computed; one failed figure if it broke."""
    stored = STORED / ("quick" if quick else "") / f"{name}.json"
    if stored.exists() and not again:
        tell(f"{name}: {stored} of {time.strftime('%Y-%m-%d', time.gmtime(stored.stat().st_mtime))}")
        return json.loads(stored.read_text())
    has_quick = "quick: bool" in (HERE / f"{name}.py").read_text()
    options = ["--json", *(["--quick"] if quick and has_quick else [])]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], stdout=subprocess.PIPE)
    tell(f"{name}: {time.perf_counter() - start:.0f} s")
    if done.returncode:
        failed = {"name": "runs at all", "value": done.returncode, "required": "exit 0", "ok": False}
        return {"must_show": [failed]}
    result = json.loads(done.stdout)
    stored.parent.mkdir(parents=True, exist_ok=True)
    write_file(stored, dump_json(result))
    return result


def write_page(rows: list[Row]) -> None:
    """The table at the end of docs/benchmarks.md: new rows of these benchmarks, the rows of others as they were."""
    text, _, old = PAGE.read_text().partition(MARK)
    measured = {row["benchmark"] for row in rows}
    kept = [tuple(line.strip("| ").split(" | ")) for line in old.strip().splitlines()[2:]]
    found = [row for row in kept if row[0] not in measured]
    found += [tuple(str(row[heading]).replace("|", "\\|") for heading in HEADINGS) for row in rows]
    lines = [HEADINGS, ("---",) * len(HEADINGS), *sorted(found, key=lambda row: row[0])]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    write_file(PAGE, f"{text}{MARK}\n{table}\n".encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="smaller runs")
    parser.add_argument("--again", action="store_true", help="compute finished benchmarks once more")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"unknown benchmark {min(unknown)!r}: expected some of {', '.join(NAMES)}")
    names = chosen.names or NAMES
    results = {name: result_of(name, quick=chosen.quick, again=chosen.again) for name in names}
    rows = [
        {"benchmark": name, **entry, "ok": "yes" if entry["ok"] else "NO"}
        for name, result in results.items()
        for entry in result["must_show"]
    ]
    if not chosen.quick:
        write_page(rows)
    print_table("", rows)


if __name__ == "__main__":
    main()
