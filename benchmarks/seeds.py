"""Million weights a second: `python -m benchmarks.seeds [--json]`, a few seconds."""

import argparse
import json
import os
import time

from strongticket.seeds import Distribution, Normal, Uniform, draw

WEIGHTS = 40_000_000
REQUIRED = 100.0  # million uniform weights a second on two cores


def speed(distribution: Distribution, threads: int) -> float:
    """Best of five: a shared machine only ever slows a run down."""
    draw(0, "warm-up", (1000,), distribution)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        draw(0, "weights", (WEIGHTS,), distribution, threads=threads)
        best = min(best, time.perf_counter() - start)
    return WEIGHTS / best / 1e6


def run() -> dict:
    rows = [
        {"distribution": str(law), "threads": threads, "million_per_second": round(speed(law, threads), 1)}
        for law in (Uniform(1.0), Normal(1.0))
        for threads in (1, 2)
    ]
    best = max(row["million_per_second"] for row in rows if row["distribution"].startswith("Uniform"))
    must_show = [
        {
            "name": "million uniform weights a second on two cores",
            "value": best,
            "required": f">= {REQUIRED}",
            "ok": best >= REQUIRED,
        }
    ]
    return {"weights": WEIGHTS, "cores": os.cpu_count(), "speed": rows, "must_show": must_show}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    result = run()
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for row in result["speed"]:
        print(
            f"{row['distribution']:24} {row['threads']} thread(s) {row['million_per_second']:8.1f} million/s"
        )
    for item in result["must_show"]:
        mark = "ok  " if item["ok"] else "MISS"
        print(f"{mark} {item['name']}: {item['value']} (required {item['required']})")


if __name__ == "__main__":
    main()
