"""Microseconds per subset-sum problem, ours beside others: `python -m benchmarks.subset_sum [--json] [--quick]`.

Values are products of two U[-1, 1] numbers, as in a build; targets are U[-1/2, 1/2]. Every solver gets the
first problems of the same batch, the slow ones as many as fit in 20 s each. The integer programs then solve Figure 4's
own problems too, which must give the same optimum. Seven minutes; --quick leaves out most of the waiting.
"""

import contextlib
import multiprocessing
import os
import queue
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import numba
import numpy as np
import torch

from benchmarks.harness import Row, fastest, figure, main, tell
from benchmarks.solvers import PROGRAMS, installed, program, with_numpy, with_torch
from strongticket.nets import merge
from strongticket.reproduce.angular import train_target
from strongticket.seeds import Uniform, draw
from strongticket.subset_sum import solve

SIZES = (8, 12, 16, 20, 24, 28)
SPEED_SIZES = (12, 16, 20)
FIGURE4_WIDTHS = (4, 8, 12, 16, 20, 24)
SAME_OPTIMUM = 1e-6  # the programs' own feasibility tolerances
PUBLISHED_SECONDS = 21.5 * 3600  # on 36 cores: optimal-lottery-tickets' own report
SECONDS_A_PROGRAM = 20.0  # it gets as many problems as fit

Problem = tuple[np.ndarray, float]  # values, target


def problems(count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([0, n])
    values = rng.uniform(-1, 1, (count, n)) * rng.uniform(-1, 1, (count, n))
    return values, rng.uniform(-0.5, 0.5, count)


def fast_rows(n: int, quick: bool) -> list[Row]:
    """Ours on one thread and on all, torch, NumPy: timed in turns on the same batch."""
    count = max(16, (1 << 20) >> (n // 2))  # some milliseconds: short runs dodge other load
    values, targets = problems(count, n)
    few = slice(0, max(4, count // 64))
    cores = os.cpu_count() or 1

    def ours(threads: int, tolerance: float | None = None) -> np.ndarray:
        numba.set_num_threads(threads)
        return solve(values, targets, tolerance=tolerance).masks

    jobs = {
        "numba, 1 thread": lambda: ours(1),
        "numba, 1 thread, tolerance 1e-3": lambda: ours(1, 1e-3),
        f"numba, {cores} threads": lambda: ours(cores),
        "torch": lambda: with_torch(values[few], targets[few]),
        "NumPy": lambda: with_numpy(values[few], targets[few]),
    }
    errors = {}
    for name, job in jobs.items():
        masks = job()
        errors[name] = np.abs((values[: len(masks)] * masks).sum(axis=1) - targets[: len(masks)])
    for name in ("torch", "NumPy"):
        assert np.allclose(errors[name], errors["numba, 1 thread"][few], atol=1e-14), f"{name}: other optimum"
    seconds = fastest(jobs, repeats=3 if quick else 25)
    return [_row(n, name, taken, errors[name]) for name, taken in seconds.items()]


def _row(n: int, name: str, seconds: float, errors: np.ndarray) -> Row:
    row = {"n": n, "solver": name, "problems": len(errors), "microseconds": 1e6 * seconds / len(errors)}
    return row | {"median_error": float(np.median(errors)), "max_error": float(errors.max())}


def _solve_one_by_one(name: str, given: Sequence[Problem], answers: Any) -> None:
    """In a process of its own: (seconds, error) of each problem as it is done."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # HiGHS prints debugging lines, whatever its options say
    one = program(name)
    one(given[0][0][:4], given[0][1])  # licences and imports are not part of a solve
    for values, target in given:
        start = time.process_time()  # not the clock's: other load would count against these long runs
        error = one(values, target)
        answers.put((time.process_time() - start, error))


def solved_in_time(name: str, given: Sequence[Problem]) -> tuple[float, np.ndarray]:
    """Seconds of processor time together and the errors of as many problems as the time allows, on one thread."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    worker = context.Process(target=_solve_one_by_one, args=(name, given, answers))
    worker.start()
    deadline = time.monotonic() + SECONDS_A_PROGRAM + 10  # it has to start up first
    done: list[tuple[float, float]] = []
    while len(done) < len(given) and time.monotonic() < deadline:
        with contextlib.suppress(queue.Empty):
            done.append(answers.get(timeout=0.5))
    worker.kill()
    worker.join()
    return sum(seconds for seconds, _ in done), np.array([error for _, error in done])


def program_rows(n: int, quick: bool) -> list[Row]:
    values, targets = problems(3 if quick else 40, n)
    rows = []
    for name in installed():
        seconds, errors = solved_in_time(name, list(zip(values, targets, strict=True)))
        if len(errors):  # otherwise none was done in time
            ours = solve(values[: len(errors)], targets[: len(errors)]).errors
            no_worse = bool((ours <= errors + 1e-15).all())
            rows.append(_row(n, name, seconds, errors) | {"ours_is_no_worse": no_worse})
    return rows


def figure4_problems(n: int, sources: int, network: torch.nn.Module) -> list[Problem]:
    """One per entry of W_QK and W_VO: the paper's assignment gives a row's half of the n units to each entry."""
    target, found = merge(network, torch.float64), []
    laws = {"query": Uniform(n**0.25), "key": Uniform(n**0.25), "value": Uniform(1.0), "output": Uniform(1.0)}
    for seed in range(sources):
        weights = {
            name: draw(seed, name, (1, n, 1) if name == "output" else (1, 2, n), law)[0].astype(float)
            for name, law in laws.items()
        }
        for wanted, left, right in (
            (target.query_key[0], n**-0.5 * weights["query"], weights["key"]),
            (target.value_output[0], weights["value"], weights["output"].T),
        ):
            for row, column in product(range(wanted.shape[0]), range(wanted.shape[1])):
                group = slice(row * n // 2, (row + 1) * n // 2)
                found.append((left[row, group] * right[column, group], float(wanted[row, column])))
    return found


def on_figure4(quick: bool) -> list[Row]:
    """The programs' optimum on the problems of Figure 4's trained target, and ours."""
    network = train_target(seed=0, learning_rate=0.1).network
    given = [problem for n in FIGURE4_WIDTHS for problem in figure4_problems(n, 1 if quick else 5, network)]
    ours = np.array([solve([values], [target]).errors[0] for values, target in given])
    rows = []
    for name in installed():
        _, errors = solved_in_time(name, given)
        solved = np.flatnonzero(~np.isnan(errors))
        difference = np.abs(errors - ours[: len(errors)])[solved].max(initial=0.0)
        row = {"solver": name, "problems": len(given), "solved": len(solved)}
        rows.append(row | {"largest_difference": float(difference)})
    return rows


def big_job(quick: bool) -> Row:
    """The 397,000 weights of optimal-lottery-tickets, 21 values each, exactly."""
    count = 3_970 if quick else 397_000
    values, targets = problems(count, 21)
    numba.set_num_threads(os.cpu_count() or 1)
    seconds = fastest({"ours": lambda: solve(values, targets)}, repeats=1)["ours"]
    ratio = PUBLISHED_SECONDS / 397_000 * count / seconds
    return {"weights": count, "n": 21, "seconds": seconds, "times_faster_than_published": ratio}


def against_gurobi(at: dict[tuple[int, str], Row]) -> list[Row]:
    if not (compared := [n for n in SPEED_SIZES if (n, "Gurobi") in at]):
        return []
    ratios = [at[n, "Gurobi"]["microseconds"] / at[n, "numba, 1 thread"]["microseconds"] for n in compared]
    worse = sum(not at[n, "Gurobi"]["ours_is_no_worse"] for n in compared)
    name = f"one thread against Gurobi, geometric mean over n = {compared}"
    return [
        figure(name, float(np.exp(np.mean(np.log(ratios)))), ">=", 20_000),
        figure("sizes at which ours is worse than Gurobi's", worse, "==", 0),
    ]


def run(quick: bool = False) -> Row:
    for name in PROGRAMS.keys() - set(installed()):
        tell(f"left out: {name}, for which {PROGRAMS[name][0]} is not installed")
    rows = []
    for n in SIZES:
        tell(f"n = {n}: ours, torch, NumPy")
        rows += fast_rows(n, quick)
    for n in SIZES[:3] if quick else SIZES:
        tell(f"n = {n}: {', '.join(installed())}")
        rows += program_rows(n, quick)
    tell("Figure 4's problems")
    figure4 = on_figure4(quick)
    tell("397,000 weights")
    job = big_job(quick)
    at = {(row["n"], row["solver"]): row for row in rows}
    exact, tolerant = (at[16, f"numba, 1 thread{end}"]["microseconds"] for end in ("", ", tolerance 1e-3"))
    same = "Figure 4's problems: the integer programs' optimum and ours, largest difference"
    difference = max(row["largest_difference"] for row in figure4)
    note = ", ".join(f"{row['solver']} solved {row['solved']} of {row['problems']}" for row in figure4)
    return {
        "solvers": rows,
        "figure_4": figure4,
        "optimal_lottery_tickets": [job],
        "must_show": [
            *against_gurobi(at),
            figure(same, difference, "<=", SAME_OPTIMUM, note),
            figure("one thread against NumPy at n = 16", at[16, "NumPy"]["microseconds"] / exact, ">=", 40),
            figure("tolerance 1e-3 against exact at n = 16", exact / tolerant, ">=", 4),
            figure("seconds for 397,000 weights of 21 values", job["seconds"], "<", 30),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
