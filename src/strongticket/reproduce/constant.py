"""The "universal constant" C of the theorems, measured.

A trial draws a d×d target and the random source of Lemma 7 (or of Lemma 2, with its ReLU) and solves every
subset sum. The smallest n′ at which all of them succeed in a fraction 1−ε of the trials, over log(d₁d₂/ε)
(Lemma 2: log(2d₁d₂/ε)), is C. A line a·log(…) + b describes these n′ better than C·log(…) and is what plans use.

theory/measured_constant.json is the summary.json of this study: `strongticket.theory` reads C, the lines and the
errors to expect from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from jaxtyping import Float
from scipy import stats

from strongticket import subset_sum
from strongticket.errors import StrongTicketError
from strongticket.reproduce.plots import BOUND, FIT, Axes, curve, label
from strongticket.reproduce.rows import Row, groups, select
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.theory.constants import EXPECTED, Construction, Targets
from strongticket.work.store import Settings, code_version

Solve = Callable[..., Any]  # (values (P, n), targets (P,), tolerance=) -> has .errors (P,)
VERSION = code_version("subset_sum", "reproduce/constant.py")
NAMES = {"product": "products", "relu": "ReLU pairs"}
LARGEST = 30  # values that are tried first where there are more: they nearly always suffice
AT_ONCE = 1 << 22  # values drawn at a time
MOST_UNITS = 300  # n′ up to which a width is looked for


@dataclass(frozen=True)
class Constant:
    """What is measured."""

    dims: tuple[int, ...] = (1, 2, 4, 8, 16)  # sizes d of the d×d targets
    epsilons: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # the theorems' ε
    trials: int = 40  # matrices of the largest size (more of the smaller ones) for each n′, times 1/ε
    confidence: float = 0.95  # with which the failure rate of a cell must be shown to be below ε
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
    cells: list[Row] = []
    for epsilon in point["epsilons"]:
        least = cells[-1]["per_row"] if cells else _signs(point["construction"])
        cells.append(smallest_per_row(point, epsilon, least, subset_sum.solve))
    return {"cells": cells, "errors": expected_errors(point)}


def smallest_per_row(point: Settings, epsilon: float, least: int, solve: Solve) -> Row:
    """Return the first n′ from `least` on at which trials show that a matrix fails with probability below ε.

    A first look says where to begin. Then every n′ is tested on new draws, and the k-th test must be 2^k times as sure
    as asked, so that the chance of stopping too early is as stated however many tests there are.
    """
    signs, per_row = _signs(point["construction"]), least
    trials, doubt = math.ceil(point["trials"] / epsilon), 1 - point["confidence"]
    most = _most_failures(trials, epsilon, doubt)
    while failures(point, epsilon, per_row, 0, trials, most, solve) > most:
        per_row += signs
    for test in itertools.count(1):
        most = _most_failures(trials, epsilon, doubt / 2**test)
        failed = failures(point, epsilon, per_row, test, trials, most, solve)
        if failed <= most:
            break
        per_row += signs
    log_argument = math.log(point["dim"] ** 2 * signs / epsilon)
    counted = dict(failures=failed, trials=trials, tests=test)
    return dict(epsilon=epsilon, per_row=per_row, log_argument=log_argument, **counted)


def _most_failures(trials: int, epsilon: float, doubt: float) -> int:
    """So few failures are less likely than `doubt` if a matrix fails with probability ε (Clopper and Pearson)."""
    return int(stats.binom.ppf(doubt, trials, epsilon)) - 1


def failures(
    point: Settings, epsilon: float, per_row: int, test: int, trials: int, most: int, solve: Solve
) -> int:
    """Count the matrices of which a subset sum fails; up to the first that are more than `most`."""
    dim, construction, targets = point["dim"], point["construction"], point["targets"]
    if per_row > MOST_UNITS:
        raise StrongTicketError(
            f"no n' up to {MOST_UNITS} succeeds for dim={dim}, epsilon={epsilon}", hint="Check `solve`."
        )
    limit = epsilon / (dim * dim * _signs(construction))
    rng = np.random.default_rng([point["seed"], per_row, dim, test])
    failed, some = 0, max(1, AT_ONCE // (dim * dim * per_row))
    for start in range(0, trials, some):
        drawn = rng, construction, targets, dim, per_row, min(some, trials - start)
        failed += int((trial_errors(*drawn, solve, limit).max(1) > limit).sum())
        if failed > most:
            break
    return failed


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
        values = (u * v).reshape(-1, per_row)
        return _errors(values, wanted.reshape(-1), solve, tolerance).reshape(trials, -1)
    both = np.zeros((trials, dim, dim, 2))
    for side, sign in enumerate((1, -1)):
        counts = (sign * u[:, :, 0] > 0).sum(-1)
        # Units of the other sign are zero here and go last; groups of equal count are solved together.
        values = np.maximum(sign * u, 0) * v
        values = np.take_along_axis(values, np.argsort(-np.abs(values), axis=-1, kind="stable"), -1)
        for count in np.unique(counts):
            chosen = counts == count
            wanted_sums = sign * wanted[chosen].reshape(-1)
            group = values[chosen][..., :count].reshape(len(wanted_sums), count)
            both[chosen, :, side] = _errors(group, wanted_sums, solve, tolerance).reshape(-1, dim)
    return both.reshape(trials, -1)


def _errors(
    values: Float[np.ndarray, "sums values"], wanted: np.ndarray, solve: Solve, tolerance: float | None
) -> Float[np.ndarray, " sums"]:
    """Return the errors of subset sums: of the largest values, and of all where those miss the tolerance."""
    count = values.shape[1]
    if tolerance is None or count <= LARGEST:
        return np.asarray(solve(values, wanted, tolerance=tolerance).errors)
    largest = np.argpartition(-np.abs(values), LARGEST, axis=1)[:, :LARGEST]
    errors = _errors(np.take_along_axis(values, largest, 1), wanted, solve, tolerance)
    left = errors > tolerance
    if left.any():
        errors[left] = solve(values[left], wanted[left], tolerance=tolerance).errors
    return errors


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
    """Return the smallest C that covers every cell, and the lines."""
    keys = ["construction", "targets"]
    sections, table = [], []
    for key, cells in groups(tables["cells"], keys):
        worst = max(cells, key=_ratio)
        constant = _ratio(worst)
        table.append({**key, "C": constant, "at d": worst["dim"], "and ε": worst["epsilon"]})
        measured = {
            name: [{k: v for k, v in row.items() if k not in keys} for row in select(tables[name], **key)]
            for name in ("cells", "errors")
        }
        sections.append({**key, "constant": constant, **measured})
    lines = {name: line_of(select(tables["cells"], construction=name)) for name in NAMES}
    parts = [
        f"{max(row['C'] for row in rows):.2f} for {name} "
        f"({select(rows, targets='entries')[0]['C']:.2f} if entries are uniform)"
        for construction, name in NAMES.items()
        for rows in [select(table, construction=construction)]
    ]
    formulas = [f"{_formula(line)} for {NAMES[name]}" for name, line in lines.items()]
    sentence = (
        f"The smallest C that covers every target measured is {' and '.join(parts)}; "
        f"the lines that do are {' and '.join(formulas)}."
    )
    return Answer(sentence, {"lines": lines, "sections": sections}, table)


def line_of(cells: Sequence[Row]) -> dict[str, Any]:
    """Fit n′ = a·log(…) + b to the worst targets of every size and ε, then raise b until the line covers all cells.

    With the 95 % intervals of both coefficients as fitted.
    """
    hardest = [max(rows, key=_ratio) for _, rows in groups(cells, ["dim", "epsilon"])]
    logs = np.array([cell["log_argument"] for cell in hardest])
    units = np.array([cell["per_row"] for cell in hardest])
    fit = stats.linregress(logs, units)
    reach = float(stats.t.ppf(0.975, len(logs) - 2))
    slope, fitted = float(fit.slope), float(fit.intercept)

    def interval(middle: float, error: float) -> list[float]:
        return [middle - reach * error, middle + reach * error]

    return {
        "slope": slope,
        "slope_interval": interval(slope, float(fit.stderr)),
        "offset": float((units - slope * logs).max()),
        "fitted_offset": fitted,
        "fitted_offset_interval": interval(fitted, float(fit.intercept_stderr)),
    }


def _formula(line: Row) -> str:
    return f"{line['slope']:.2f}·log + {line['offset']:.1f}"


def _ratio(cell: Row) -> float:
    return float(cell["per_row"] / cell["log_argument"])


def plot(tables: Tables, settings: Constant, axes: Sequence[Axes]) -> None:
    """Draw n′ against the logarithm, a panel per construction, below C's line and below the fitted one."""
    for axis, (construction, name) in zip(axes, NAMES.items(), strict=True):
        cells = select(tables["cells"], construction=construction)
        for marker, (key, rows) in zip("os^Dv", groups(cells, ["targets"]), strict=False):
            curve(axis, rows, "log_argument", "per_row", linestyle="", marker=marker, label=key["targets"])
        constant, line = max(map(_ratio, cells)), line_of(cells)
        ends = np.array([0, max(cell["log_argument"] for cell in cells)])
        axis.plot(ends, constant * ends, BOUND, color="black", label=f"{constant:.2f}·log")
        axis.plot(ends, line["slope"] * ends + line["offset"], FIT, color="black", label=_formula(line))
        sums, lemma = ("d_1d_2", 7) if construction == "product" else ("2d_1d_2", 2)
        label(axis, f"{name} (Lemma {lemma})", f"log(${sums}$/ε)", "smallest $n$′", log="", below=3)


STUDY = Study(
    'What is the theorems\' "universal constant"?',
    {
        "quick": Constant(dims=(1, 2, 4), epsilons=(0.5, 0.2), trials=30, error_trials=5),
        "laptop": Constant(),
        "paper": Constant(dims=(1, 2, 4, 8, 16, 32), trials=160, error_trials=80),
    },
    measure,
    answer,
    plot,
    panels=2,
)
