"""Tickets against quantised training at equal bytes: `python -m benchmarks.frontier [--json] [--quick]`.

The points are those of `strongticket reproduce frontier`, kept in $STRONGTICKET_RESULTS/frontier (default:
results/frontier): what is there is not computed again. An hour on two free cores.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import figure, main, progress_of
from strongticket.experiments.driver import Options, reproduce
from strongticket.experiments.spread import Row, select

LOSSES = (("600 steps", 1.70, 1.65), ("2,400 steps", 1.45, 1.40))  # setting, required, goal
LEAST_BYTES = 45_000  # the goal is for text from this size up; the tables have all


def losses_shown(losses: list[Row]) -> list[Row]:
    shown = []
    for setting, limit, goal in LOSSES:
        for row in select(losses, setting=setting, method="ticket", dim=128):
            note = f"mean of {row['seeds']} seeds; goal <= {goal}"
            shown.append(figure(f"laptop, {setting}: loss", row["mean"], "<=", limit, note=note))
            shown.append(figure(f"laptop, {setting}: kB", row["file_bytes"] / 1000, "<=", 47.5))
    return shown


def ratio_shown(row: Row) -> Row:
    """Bytes of a ticket over those of the quantised network that reaches its loss."""
    name = f"{row['setting']}, {row['file_bytes'] / 1000:.0f} kB: bytes over the best quantised network"
    if row["ratio"] is None:
        note = "its loss is far from the measured sizes"
        return dict(name=name, value=None, required="<= 1", ok=False, note=note)
    note = f"{row['best']}{', extrapolated' if row['beyond'] else ''}"
    if row["best"] is None:
        note = "an upper bound: none of the quantised networks reaches its loss"
    return figure(name, row["ratio"], "<=", 1.0, note=note)


def run(quick: bool = False) -> dict:
    if quick:
        with TemporaryDirectory() as folder:
            found = reproduce("frontier", Options(Path(folder), "test"), progress_of)
    else:
        folder = os.environ.get("STRONGTICKET_RESULTS", "results")
        found = reproduce("frontier", Options(Path(folder)), progress_of)
    ratios = [
        row for row in found["ratios"] if row["setting"] != "images" and row["file_bytes"] >= LEAST_BYTES
    ]
    return {
        "losses": found["losses"],
        "ratios": found["ratios"],
        "must_show": [*losses_shown(found["losses"]), *map(ratio_shown, ratios)],
    }


if __name__ == "__main__":
    main(__doc__ or "", run, quick="the tests' scale: only that everything runs")
