"""The "universal constant" C of the theorems, measured.

A trial draws a d×d target and the random source of Lemma 7 (or of Lemma 2, with its ReLU) and solves every
subset sum. The smallest n′ with which all of them succeed in a fraction 1−ε of the trials, over log(d₁d₂/ε)
(Lemma 2: log(2d₁d₂/ε)), is C.

theory/measured_constant.json is the summary.json of this study: `strongticket.theory` reads C and the errors to
expect from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from strongticket import subset_sum
from strongticket.errors import StrongTicketError
from strongticket.reproduce.plots import FIT, Axes, curve, label
from strongticket.reproduce.rows import Row, groups, select, upper_limit
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.theory.constants import EXPECTED, Construction, Targets
from strongticket.work.store import Settings, code_version

Solve = Callable[..., Any]  # (values (P, n), targets (P,), tolerance=) -> has .errors (P,)
VERSION = code_version("subset_sum", "reproduce/constant.py")
NAMES = {"product": "products", "relu": "ReLU pairs"}
MOST_VALUES = 30  # of a ReLU group's half: beyond them the smallest are left unused


@dataclass(frozen=True)
class Constant:
    """What is measured."""

    dims: tuple[int, ...] = (1, 2, 4, 8, 16)  # sizes d of the d×d targets
    epsilons: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05)  # the theorems' ε
    trials: int = 150  # matrices of the largest size (more of the smaller ones) for each n′
    confidence: float = 0.95  # with which the failure rate must be shown to be below ε
    # Of the matrices that are solved to the optimum, for predicted_error.
    error_trials: int = 20
    error_per_row: tuple[int, ...] = (4, 8, 12, 16, 20, 24)


def measure(run: Run, settings: Constant) -> Tables:
    """Find the smallest n′ for every kind of target, size and ε, and the errors at given n′."""
    points = points_of(settings, run.seed)
    # The largest matrices and the ReLU take longest, so they come first.
    results = run.map("smallest numbers of units", compute, points[::-1], VERSION)[::-1]
    return {
        table: [
            {name: point[name] for name in ("construction", "targets", "dim")} | row
            for point, result in zip(points, results, strict=True)
            for row in result[table]
        ]
        for table in ("cells", "errors")
    }


def points_of(settings: Constant, seed: int) -> list[Settings]:
    """Return a point for every construction, kind of target and size."""
    largest = max(settings.dims)
    return [
        dict(
            seed=seed,
            construction=construction,
            targets=targets,
            dim=dim,
            epsilons=list(settings.epsilons),
            trials=settings.trials * largest // dim,
            confidence=settings.confidence,
            error_trials=settings.error_trials * largest**2 // dim**2,
            error_per_row=[_signs(construction) * n for n in settings.error_per_row]
            if targets in EXPECTED
            else [],
        )
        for construction in get_args(Construction)
        for targets in get_args(Targets)
        for dim in settings.dims
    ]


def compute(point: Settings) -> dict[str, list[Row]]:
    """Return the cells and errors of one construction, kind of target and size."""
    return {"cells": smallest_per_row(point, subset_sum.solve), "errors": expected_errors(point)}


def smallest_per_row(point: Settings, solve: Solve) -> list[Row]:
    """Return for each ε the first n′ at which trials show that a matrix fails with probability below ε.

    With it come the failure rate there and its upper confidence limit (Clopper and Pearson).
    """
    dim, trials, signs = point["dim"], point["trials"], _signs(point["construction"])
    sums = dim * dim * signs
    left, found, per_row = list(point["epsilons"]), [], 0
    while left:
        per_row += signs
        if per_row > 200:
            raise StrongTicketError(
                f"no n' up to 200 succeeds for dim={dim}, epsilon={left[0]}", hint="Check `solve`."
            )
        rng = np.random.default_rng([point["seed"], per_row, dim])
        # A few trials first: widths at which most of them fail need no further ones.
        for count in (max(20, trials // 20), trials):
            drawn = rng, point["construction"], point["targets"], dim, per_row, count
            largest = trial_errors(*drawn, solve, min(left) / sums).max(1)
            failures = {epsilon: int((largest > epsilon / sums).sum()) for epsilon in left}
            if all(failures[epsilon] > 3 * epsilon * count + 3 for epsilon in left):
                break
        else:
            for epsilon in list(left):
                limit = upper_limit(failures[epsilon], trials, point["confidence"])
                if limit < epsilon:
                    cell = dict(epsilon=epsilon, per_row=per_row, log_argument=math.log(sums / epsilon))
                    found.append(cell | dict(failures=failures[epsilon] / trials, failures_upper=limit))
                    left.remove(epsilon)
    return found


def expected_errors(point: Settings) -> list[Row]:
    """Return the median error of an entry, and of a matrix's largest, at given n′."""
    rows = []
    for per_row in point["error_per_row"]:
        rng = np.random.default_rng([point["seed"], per_row, point["dim"], 1])
        drawn = rng, point["construction"], point["targets"], point["dim"], per_row, point["error_trials"]
        errors = trial_errors(*drawn, subset_sum.solve, None)
        median, maximum = float(np.median(errors)), float(np.median(errors.max(1)))
        rows.append(dict(per_row=per_row, median=median, maximum=maximum))
    return rows


def trial_errors(
    rng: np.random.Generator,
    construction: Construction,
    targets: Targets,
    dim: int,
    per_row: int,
    trials: int,
    solve: Solve,
    tolerance: float | None,
) -> Float[np.ndarray, "trials sums"]:
    """Return the error of every subset sum of many random matrices."""
    wanted = _targets(rng, targets, trials, dim)
    # u belongs to a unit of input i and serves all outputs j; v is its weight to output j.
    u = rng.uniform(-1, 1, (trials, dim, 1, per_row))
    v = rng.uniform(-1, 1, (trials, dim, dim, per_row))
    if construction == "product":
        solved = solve((u * v).reshape(-1, per_row), wanted.reshape(-1), tolerance=tolerance)
        return np.asarray(solved.errors).reshape(trials, -1)
    both = np.zeros((trials, dim, dim, 2))
    for side, sign in enumerate((1, -1)):
        counts = np.minimum((sign * u[:, :, 0] > 0).sum(-1), MOST_VALUES)
        # Units of the other sign are zero here and go last; groups of equal count are solved together.
        values = np.maximum(sign * u, 0) * v
        values = np.take_along_axis(values, np.argsort(-np.abs(values), axis=-1, kind="stable"), -1)
        for count in np.unique(counts):
            chosen = counts == count
            wanted_sums = sign * wanted[chosen].reshape(-1)
            group = values[chosen][..., :count].reshape(len(wanted_sums), count)
            solved = solve(group, wanted_sums, tolerance=tolerance)
            both[chosen, :, side] = solved.errors.reshape(-1, dim)
    return both.reshape(trials, -1)


def _targets(
    rng: np.random.Generator, targets: Targets, trials: int, dim: int
) -> Float[np.ndarray, "trials dim dim"]:
    shape = (trials, dim, dim)
    if targets == "norm":
        drawn = rng.standard_normal(shape)
        scaled: np.ndarray = drawn / np.linalg.norm(drawn, 2, axis=(1, 2))[:, None, None]
        return scaled
    if targets == "ones":
        return np.ones(shape)
    if targets == "signs":
        return rng.choice([-1.0, 1.0], shape)
    if targets == "identity":
        return np.broadcast_to(np.eye(dim), shape)
    return rng.uniform(-1, 1, shape)


def _signs(construction: str) -> int:
    """A ReLU needs units, and a subset sum, for each sign."""
    return 2 if construction == "relu" else 1


def answer(tables: Tables, settings: Constant) -> Answer:
    """Return the smallest C that covers every cell."""
    keys = ["construction", "targets"]
    sections, table = [], []
    for key, cells in groups(tables["cells"], keys):
        logs = np.array([cell["log_argument"] for cell in cells])
        widths = np.array([cell["per_row"] for cell in cells])
        constant, least_squares = float((widths / logs).max()), float(logs @ widths / (logs @ logs))
        worst = cells[int((widths / logs).argmax())]
        table.append({**key, "C": constant, "at d": worst["dim"], "and ε": worst["epsilon"]})
        measured = {
            name: [{k: v for k, v in row.items() if k not in keys} for row in select(tables[name], **key)]
            for name in ("cells", "errors")
        }
        sections.append({**key, "constant": constant, "least_squares_constant": least_squares, **measured})
    parts = [
        f"{max(row['C'] for row in rows):.2f} for {name} "
        f"({select(rows, targets='entries')[0]['C']:.2f} if entries are uniform)"
        for construction, name in NAMES.items()
        for rows in [select(table, construction=construction)]
    ]
    sentence = f"The smallest C that covers every target measured is {' and '.join(parts)}."
    return Answer(sentence, {"sections": sections}, table)


def plot(tables: Tables, settings: Constant, axes: Sequence[Axes]) -> None:
    """Draw n′ against the logarithm, a panel per construction, below the line of C."""
    for axis, (construction, name) in zip(axes, NAMES.items(), strict=True):
        cells = select(tables["cells"], construction=construction)
        for marker, (key, rows) in zip("os^Dv", groups(cells, ["targets"]), strict=False):
            curve(axis, rows, "log_argument", "per_row", linestyle="", marker=marker, label=key["targets"])
        constant = max(cell["per_row"] / cell["log_argument"] for cell in cells)
        ends = [0, max(cell["log_argument"] for cell in cells)]
        axis.plot(ends, [constant * end for end in ends], FIT, color="black", label=f"$C$ = {constant:.2f}")
        sums, lemma = ("d_1d_2", 7) if construction == "product" else ("2d_1d_2", 2)
        label(axis, f"{name} (Lemma {lemma})", f"log(${sums}$/ε)", "smallest $n$′", log="", below=3)


STUDY = Study(
    'What is the theorems\' "universal constant"?',
    {
        "quick": Constant(dims=(1, 2, 4), epsilons=(0.5, 0.2), trials=100, error_trials=5),
        "laptop": Constant(),
        "paper": Constant(trials=600, error_trials=80),
    },
    measure,
    answer,
    plot,
    panels=2,
)
