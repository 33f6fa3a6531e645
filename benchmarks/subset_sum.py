"""Microseconds per subset-sum problem, ours beside others: `python -m benchmarks.subset_sum [--json] [--quick]`.

Values are products of two U[-1, 1] numbers, as in a build; targets are U[-1/2, 1/2]. Every solver gets the
first problems of the same batch, the slow ones as many as fit in 20 s each.
Seven minutes; --quick leaves out most of the waiting.
"""

import contextlib
import math
import multiprocessing
import os
import queue
import time

import numba
import numpy as np

from benchmarks.harness import fastest, figure, main, tell
from strongticket.subset_sum import solve

SIZES = (8, 12, 16, 20, 24, 28)
SPEED_SIZES = (12, 16, 20)
PUBLISHED_HOURS, PUBLISHED_CORES = 21.5, 36  # optimal-lottery-tickets' own report
SECONDS_A_SLOW_SOLVER = 20.0  # it gets as many problems as fit


def problems(count: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n])
    values = rng.uniform(-1, 1, (count, n)) * rng.uniform(-1, 1, (count, n))
    return values, rng.uniform(-0.5, 0.5, count)


def numpy_meet_in_the_middle(values: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As a user would write it: both halves' sums from a table of subsets, one sorted, the other looked up.

    Vectorised over each problem's subsets. Returns masks (P, n) and errors (P,), as `solve` does.
    """
    n = values.shape[1]
    count_a, count_b = n // 2, n - n // 2
    table_a = (np.arange(2**count_a)[:, None] >> np.arange(count_a)) & 1
    table_b = (np.arange(2**count_b)[:, None] >> np.arange(count_b)) & 1
    masks, errors = np.empty(values.shape, bool), np.empty(len(targets))
    for p, (row, target) in enumerate(zip(values, targets, strict=True)):
        sums_a, sums_b = table_a @ row[:count_a], table_b @ row[count_a:]
        order = np.argsort(sums_b)
        sorted_b = sums_b[order]
        place = np.searchsorted(sorted_b, target - sums_a)
        near = np.stack([np.maximum(place - 1, 0), np.minimum(place, len(sorted_b) - 1)])
        off = np.abs(sums_a + sorted_b[near] - target)
        side, best = np.unravel_index(np.argmin(off), off.shape)
        masks[p] = np.concatenate([table_a[best], table_b[order[near[side, best]]]])
        errors[p] = off[side, best]
    return masks, errors


def fast_rows(n: int, quick: bool) -> list[dict]:
    """Ours on one thread and on all, torch, NumPy: timed in turns on the same batch."""
    count = max(16, (1 << 20) >> (n // 2))  # some milliseconds: short runs dodge other load
    values, targets = problems(count, n)
    few = slice(0, max(4, count // 64))
    cores = os.cpu_count() or 1

    def ours(threads, tolerance=None):
        numba.set_num_threads(threads)
        return solve(values, targets, tolerance=tolerance)

    errors = ours(1).errors
    seconds = fastest(
        {
            "numba, 1 thread": lambda: ours(1),
            "numba, 1 thread, tolerance 1e-3": lambda: ours(1, 1e-3),
            f"numba, {cores} threads": lambda: ours(cores),
            "torch": lambda: solve(values[few], targets[few], backend="torch"),
            "NumPy": lambda: numpy_meet_in_the_middle(values[few], targets[few]),
        },
        repeats=3 if quick else 25,
    )
    _, numpy_errors = numpy_meet_in_the_middle(values[few], targets[few])
    assert np.allclose(numpy_errors, errors[few], atol=1e-14), "the NumPy code must find the same optimum"
    rows = []
    for name, taken in seconds.items():
        solved = few.stop if name in ("torch", "NumPy") else count
        shown = ours(1, 1e-3).errors if "tolerance" in name else errors[:solved]
        rows.append(_row(n, name, solved, taken, shown))
    return rows


def _solve_one_by_one(backend: str, values: np.ndarray, targets: np.ndarray, answers) -> None:
    """In a process of its own: (seconds, error) of each problem as it is done. The first is only to warm up."""
    solve(values[:1, :4], targets[:1], backend=backend)  # licences and imports are not part of a solve
    for row, target in zip(values, targets, strict=True):
        start = time.process_time()  # not the clock's: other load would count against these long runs
        found = solve(row[None], target[None], backend=backend)
        answers.put((time.process_time() - start, float(found.errors[0])))


def slow_rows(n: int, quick: bool) -> list[dict]:
    """The integer programs, one thread, one problem at a time, as many as the time allows."""
    values, targets = problems(3 if quick else 40, n)
    rows = []
    for backend in ("highs", "cpsat", "gurobi"):
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        worker = context.Process(target=_solve_one_by_one, args=(backend, values, targets, answers))
        worker.start()
        deadline = time.monotonic() + SECONDS_A_SLOW_SOLVER + 10  # it has to start up first
        done: list[tuple[float, float]] = []
        while len(done) < len(targets) and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                done.append(answers.get(timeout=0.5))
        worker.kill()
        worker.join()
        if not done:
            rows.append({"n": n, "solver": backend, "note": f"none done in {SECONDS_A_SLOW_SOLVER:.0f} s"})
            continue
        seconds, errors = map(np.array, zip(*done, strict=True))
        rows.append(_row(n, backend, len(done), seconds.sum(), errors))
        ours = solve(values[: len(done)], targets[: len(done)]).errors
        rows[-1]["ours_is_no_worse"] = bool((ours <= errors + 1e-15).all())
    return rows


def _row(n, name, count, seconds, errors) -> dict:
    return {
        "n": n,
        "solver": name,
        "problems": count,
        "microseconds": seconds / count * 1e6,
        "median_error": float(np.median(errors)),
        "max_error": float(np.max(errors)),
    }


def big_job(quick: bool) -> dict:
    """The 397,000 weights of optimal-lottery-tickets, 21 values each, exactly."""
    count = 3_970 if quick else 397_000
    values, targets = problems(count, 21)
    numba.set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    errors = solve(values, targets).errors
    seconds = time.perf_counter() - start
    published = PUBLISHED_HOURS * 3600
    return {
        "weights": count,
        "n": 21,
        "seconds": seconds,
        "published_seconds": published,
        "published_cores": PUBLISHED_CORES,
        "ratio": published / 397_000 * count / seconds,
        "max_error": float(errors.max()),
    }


def run(quick: bool = False) -> dict:
    rows = []
    for n in SIZES:
        tell(f"n = {n}: ours, torch, NumPy")
        rows += fast_rows(n, quick)
    for n in SIZES[:3] if quick else SIZES:
        tell(f"n = {n}: HiGHS, CP-SAT, Gurobi")
        rows += slow_rows(n, quick)
    at = {(row["n"], row["solver"]): row for row in rows}
    for row in rows:
        if "microseconds" in row and "microseconds" in at.get((row["n"], "gurobi"), {}):
            row["times_faster_than_gurobi"] = at[row["n"], "gurobi"]["microseconds"] / row["microseconds"]
    tell("397,000 weights")
    job = big_job(quick)
    compared = [n for n in SPEED_SIZES if "microseconds" in at.get((n, "gurobi"), {})]
    against_gurobi = []
    if not compared:
        tell("skipped: Gurobi solved nothing; install gurobipy to compare with it")
    else:
        ratios = [at[n, "numba, 1 thread"]["times_faster_than_gurobi"] for n in compared]
        worse = sum(not at[n, "gurobi"]["ours_is_no_worse"] for n in compared)
        against_gurobi = [
            figure(
                f"one thread against Gurobi, geometric mean over n = {compared}",
                math.exp(np.mean(np.log(ratios))),
                ">=",
                20_000,
            ),
            figure("sizes at which ours is worse than Gurobi's", worse, "==", 0),
        ]
    exact, tolerant = (at[16, f"numba, 1 thread{end}"]["microseconds"] for end in ("", ", tolerance 1e-3"))
    must_show = [
        *against_gurobi,
        figure("one thread against NumPy at n = 16", at[16, "NumPy"]["microseconds"] / exact, ">=", 40),
        figure("tolerance 1e-3 against exact at n = 16", exact / tolerant, ">=", 4),
        figure("seconds for 397,000 weights of 21 values", job["seconds"], "<", 30),
    ]
    return {"solvers": rows, "optimal_lottery_tickets": [job], "must_show": must_show}


if __name__ == "__main__":
    main(__doc__, run, quick="fewer problems, and the integer programs only up to n = 16")
