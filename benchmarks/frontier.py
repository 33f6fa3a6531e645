"""Tickets against quantised training at equal bytes: `python -m benchmarks.frontier [--json] [--quick]`.

The points are those of `strongticket reproduce frontier`, kept in $STRONGTICKET_RESULTS/frontier (default:
results/frontier): what is there is not computed again. An hour on two free cores; --quick shows only that it runs.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Row, figure, main
from strongticket.cli.frame import step
from strongticket.reproduce.study import Run, reproduce

LOSSES = {"600 steps": (1.70, 1.65), "2,400 steps": (1.45, 1.40)}  # setting: required, goal
LEAST_BYTES = 45_000  # the goal is for text from this size up; the tables have all


def losses_shown(losses: list[Row]) -> list[Row]:
    shown = []
    for row in losses:
        if row["method"] == "ticket" and row["dim"] == 128 and row["setting"] in LOSSES:
            (limit, goal), name = LOSSES[row["setting"]], f"laptop, {row['setting']}"
            note = f"mean of {row['seeds']} seeds; goal <= {goal}"
            shown.append(figure(f"{name}: loss", row["mean"], "<=", limit, note))
            shown.append(figure(f"{name}: kB", row["file_bytes"] / 1000, "<=", 47.5))
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
    return figure(name, row["ratio"], "<=", 1.0, note)


def run(quick: bool = False) -> Row:
    with TemporaryDirectory() as temporary:
        out = temporary if quick else os.environ.get("STRONGTICKET_RESULTS", "results")
        asked = Run(out=Path(out), scale="quick" if quick else "laptop", step=step)
        found = reproduce("frontier", asked)["numbers"]
    losses, ratios = found["losses"], found["ratios"]
    text = [row for row in ratios if row["setting"] != "images" and row["file_bytes"] >= LEAST_BYTES]
    must_show = [*losses_shown(losses), *map(ratio_shown, text)]
    return {"losses": losses, "ratios": ratios, "must_show": must_show}


if __name__ == "__main__":
    main(__doc__, run)
