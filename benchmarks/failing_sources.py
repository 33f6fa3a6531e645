"""Figures 4 to 6 with the share of random sources that fail: a light rerun, for `benchmarks.build`.

Fewer widths, sources and test sequences than `strongticket reproduce figure4` has; the sources are the same.
Whether an entry is out of reach does not depend on the sequences, so these shares are the figures' own.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import figure, tell
from strongticket.experiments.figures.figure4 import _measure as figure4
from strongticket.experiments.figures.figure5 import _measure as figure5
from strongticket.experiments.figures.figure6 import _measure as figure6
from strongticket.experiments.spread import share, spread
from strongticket.experiments.tasks.sources import TargetRecord, target_point

WIDTHS = (24, 32)
LENGTHS = (4, 64, 1024)
SEQUENCES = 100


def run(quick: bool) -> list[dict]:
    """One row per figure, line and width; in quick runs of a few sources and a target that is hardly trained."""
    tell("figures 4 to 6: training the target")
    record = target_point(dict(seed=0, learning_rate=0.1, **(dict(epochs=1, samples=256) if quick else {})))
    return [
        *_figure4(record, 5 if quick else 200),
        *_figure5(record, 5 if quick else 50),
        *_figure6(3 if quick else 50),
    ]


def figures(rows: list[dict]) -> list[dict]:
    """Figure 4's three lines, and ours of the others."""
    found = []
    for row in rows:
        if row["figure"] == "4" or row["line"] == "ours":
            interval = f"{row['share_low']:.1%} to {row['share_high']:.1%} of {row['sources']} sources fail"
            median = f"median error {row['median_error']:.2g}, mean {row['mean_error']:.2g}"
            name = f"figure {row['figure']}, {row['line']}, n = {row['n']}: share that fails (printed)"
            found.append(figure(name, row["share"], "<=", 1, note=f"{interval}; {median}"))
    return found


def _figure4(record: TargetRecord, sources: int) -> Iterator[dict]:
    for line in (figure4.OURS, figure4.PAPER, figure4.ONE_SIGN):
        for n in WIDTHS:
            found = figure4.compute(
                _point(sources, n=n, line=vars(line), samples=SEQUENCES, certify=False), record
            )
            failed = sum(count > 0 for count in found["out_of_reach"])
            yield _row("4", line.name, n, failed, found["error_max"])
        tell(f"figure 4, {line.name}: {sources} sources at n = {WIDTHS}")


def _figure5(record: TargetRecord, sources: int) -> Iterator[dict]:
    for assignment, line in (("balanced", "ours"), ("paper", "paper")):
        n = WIDTHS[0]
        settings = dict(assignment=assignment, init="theory", lengths=LENGTHS, sequences=SEQUENCES)
        found = figure5.compute(_point(sources, n=n, **settings), record)
        failed = sum(count > 0 for count in found["out_of_reach"])
        for length, errors in zip(LENGTHS, found["error_max"], strict=True):
            yield _row(f"5, T = {length}", line, n, failed, errors)
        tell(f"figure 5, {line}: {sources} sources")


def _figure6(sources: int) -> Iterator[dict]:
    for line in (figure6.OURS, figure6.PAPER):
        settings = dict(init="theory", sequences=SEQUENCES, certified=0)
        found = figure6.compute(_point(sources, n=56, line=vars(line), **settings))
        for blocks in (1, figure6.BLOCKS):
            errors = found["error_max"][blocks - 1]
            failed = sum(error > figure6.OUTLIER * np.median(errors) for error in errors)
            yield _row(f"6, B = {blocks}", line.name, 56, failed, errors)
        tell(f"figure 6, {line.name}: {sources} sources")


def _point(sources: int, **settings: Any) -> dict[str, Any]:
    return dict(seed=0, first=0, count=sources, **settings)


def _row(figure: str, line: str, n: int, failed: int, errors: list[float]) -> dict:
    found = spread(errors)
    return dict(figure=figure, line=line, n=n, sources=len(errors), **share(failed, len(errors))) | {
        "median_error": found["median"],
        "mean_error": found["mean"],
    }
