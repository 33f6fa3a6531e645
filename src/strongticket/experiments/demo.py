"""The demo: how near subsets of n random numbers come to a target, and how fast they are found."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from strongticket.report import Page, Plot, Section, Summary, Table, Text, write_results
from strongticket.subset_sum import solve

SIZES = (4, 8, 12, 16, 20, 24, 28)
PROBLEMS = 2_000


def run(out: Path, seed: int, command: str, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Solve batches for every n, write the results folder, return its numbers."""
    start = time.perf_counter()
    rng = np.random.default_rng(seed)
    solve(np.ones((2, 2)), np.ones(2))  # compile before timing
    rows = []
    for done, n in enumerate(SIZES):
        values, targets = rng.uniform(-1, 1, (PROBLEMS, n)), rng.uniform(-1, 1, PROBLEMS)
        errors, exact = _timed(values, targets)
        rows.append(
            {
                "n": n,
                "median_error": float(np.median(errors)),
                "largest_error": float(errors.max()),
                "two_to_minus_n": 2.0**-n,
                "microseconds": exact,
            }
        )
        progress(done + 1, len(SIZES))
    summary = Summary(command, seed, {"problems": PROBLEMS}, {"rows": rows}, time.perf_counter() - start)
    page = write_results(out, _page(rows), summary, {"errors.csv": rows})
    return {"page": str(page), "rows": rows, "seconds": summary.seconds}


def _timed(values: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    errors = solve(values, targets).errors
    return errors, (time.perf_counter() - start) / len(targets) * 1e6


def _page(rows: list[dict[str, Any]]) -> Page:
    lines = {"median_error": "median", "largest_error": "largest of 2,000", "two_to_minus_n": "2⁻ⁿ"}
    data = tuple(
        {
            "type": "scatter",
            "mode": "lines" if key == "two_to_minus_n" else "lines+markers",
            "name": name,
            "x": [row["n"] for row in rows],
            "y": [row[key] for row in rows],
            "line": {"color": f"var(--series-{i})", "dash": "dot" if key == "two_to_minus_n" else "solid"},
        }
        for i, (key, name) in enumerate(lines.items(), 1)
    )
    layout = {
        "xaxis": {"title": {"text": "random numbers n"}},
        "yaxis": {"type": "log", "title": {"text": "distance to the target"}},
    }
    plot = Plot(data, layout, "The error halves with every further number.", source="errors.csv")
    table = Table(
        ("n", "subsets", "µs a problem"),
        tuple((row["n"], 2 ** row["n"], row["microseconds"]) for row in rows),
    )
    return Page(
        "Any number from a few random ones",
        "Take n random numbers and keep some of them: their sum comes within about 2⁻ⁿ of any number.",
        (Section("How near", (plot,)), Section("How fast", (Text("All of them exact."), table))),
    )
