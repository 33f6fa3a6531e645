"""What figures 4 to 8 must show: `python -m benchmarks.figures [--json] [--quick] [--searched]`, minutes on two cores.

Figures 7 and 8 only with --searched: half an hour. --quick shows that everything runs; its numbers mean nothing.
"""

import tempfile
from pathlib import Path

from benchmarks.harness import Row, figure, main
from strongticket.cli.frame import step
from strongticket.reproduce.study import Run, reproduce

BUILT = ("figure4", "figure5", "figure6")
SHOWN = 32  # the width whose failing sources are among the figures to show; the table has all


def run(quick: bool = False, searched: bool = False) -> Row:
    names = (*BUILT, *(("figure8", "figure7") if searched else ()))
    with tempfile.TemporaryDirectory() as folder:
        asked = Run(out=Path(folder), scale="quick" if quick else "laptop", step=step)
        found = {name: reproduce(name, asked) for name in names}
        same = all(reproduce(name, asked)["numbers"] == found[name]["numbers"] for name in BUILT)
    seconds = sum(found[name]["seconds"] for name in BUILT)
    numbers = {name: found[name]["numbers"] for name in names}
    failures = [{"figure": name, **row} for name in BUILT for row in numbers[name]["failures"]]
    delta, r2 = numbers["figure4"]["delta"], min(numbers["figure6"]["r2"]["ours"])
    growth = max(numbers["figure5"]["largest_over_shortest"]["balanced"].values())
    return {
        "studies": [{"study": name, "seconds": found[name]["seconds"]} for name in names],
        "failing_sources": failures,
        "must_show": [
            figure("figures 4, 5 and 6 together, seconds", seconds, "<", 600),
            figure("found again from the stored points: the same numbers", same, "==", 1),
            figure("figure 4: delta of ours (log fit, median)", delta, ">=", 0.3),
            figure("figure 5: error at any T over error at T=4, worst n", growth, "<=", 3),
            figure("figure 6: R2 of the log fit with the shared delta, worst B", r2, ">=", 0.9),
            *(_share(name, failures) for name in BUILT if not quick),
            *(_searched(numbers["figure8"], numbers["figure7"]) if searched else ()),
        ],
    }


def _searched(eight: Row, seven: Row) -> list[Row]:
    """Of the numbers of figures 8 and 7."""
    valley = eight["valleys"][0]
    ratio = valley["best_scale"] / valley["paper_scale"]
    one = next(point for point in valley["points"] if point["scale"] == 1)
    best = min(valley["points"], key=lambda point: point["mean"])
    std = max(one["std"], best["std"])  # 0 with the single seed of --quick
    fall = (one["mean"] - best["mean"]) / std if std else 0.0
    gain = min(row["gain"] for row in seven["gains"])
    minutes = (eight["cpu_seconds"] + seven["cpu_seconds"]) / 2 / 60
    note = "processor time of all runs over two; those that both figures show are counted twice"
    return [
        figure("figure 8: best scale and n_K^1/4, factor between them", max(ratio, 1 / ratio), "<=", 1.6),
        figure("figure 8: lowest loss below x1, in stds", fall, ">=", 4),
        figure("figure 7: least gain by scaling", gain, ">", 0),
        figure("figures 7 and 8: minutes on two cores", minutes, "<", 30, note),
    ]


def _share(name: str, failures: list[Row]) -> Row:
    """The largest share of failing sources at one width, over the numbers of blocks; ours and the others'."""
    shares: dict[str, float] = {}
    for row in failures:
        if row["figure"] == name and row["n"] == SHOWN:
            line = row.get("line") or row["assignment"]
            shares[line] = max(row["share"], shares.get(line, 0.0))
    ours = shares.pop("ours" if "ours" in shares else "balanced")
    note = ", ".join(f"{line} {share:.1%}" for line, share in shares.items())
    return figure(f"{name}: share that fails at n = {SHOWN}, ours (printed)", ours, "<=", 1, note)


if __name__ == "__main__":
    main(__doc__, run)
