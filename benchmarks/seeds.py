"""Million weights a second: `python -m benchmarks.seeds [--json]`, a few seconds."""

import os

from benchmarks.harness import fastest, figure, main
from strongticket.seeds import Law, Normal, Uniform, draw

WEIGHTS = 40_000_000


def speed(law: Law, threads: int) -> float:
    """Million weights a second."""
    draw(0, "warm-up", (1000,), law)
    best = fastest({"draw": lambda: draw(0, "weights", (WEIGHTS,), law, threads=threads)})
    return WEIGHTS / best["draw"] / 1e6


def run() -> dict:
    rows = [
        {"law": str(law), "threads": threads, "million_per_second": round(speed(law, threads), 1)}
        for law in (Uniform(1.0), Normal(1.0))
        for threads in (1, 2)
    ]
    best = max(row["million_per_second"] for row in rows if row["law"].startswith("Uniform"))
    must_show = [figure("million uniform weights a second on two cores", best, ">=", 100)]
    return {"weights": WEIGHTS, "cores": os.cpu_count(), "speed": rows, "must_show": must_show}


if __name__ == "__main__":
    main(__doc__, run)
