"""The "universal constant" C of the theorems, measured: `python -m strongticket.builders.measure_constant` remakes it.

A trial draws a d×d target and the random source of Lemma 7 (or of Lemma 2, with its ReLU) and solves every
subset sum. The smallest n′ with which all of them succeed in a share 1−ε of the trials, over log(d₁d₂/ε)
(Lemma 2: log(2d₁d₂/ε)), is C.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from strongticket.errors import StrongTicketError
from strongticket.files import write_file
from strongticket.theory.constants import EXPECTED, TABLE, Construction, Targets

Solve = Callable[..., Any]
MOST_VALUES = 30  # of a ReLU group's half: beyond them the smallest are left unused


@dataclass(frozen=True)
class Settings:
    """What is measured.

    seed: of targets and sources
    dims: sizes d of the d×d targets
    epsilons: the theorems' ε
    trials: matrices of the largest size (more of the smaller ones) for each n′
    confidence: with which the share of failures must be shown to be below ε
    error_trials, error_n_primes: those solved to the optimum, for predicted_error
    """

    seed: int = 0
    dims: tuple[int, ...] = (1, 2, 4, 8, 16)
    epsilons: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05)
    trials: int = 150
    confidence: float = 0.95
    error_trials: int = 20
    error_n_primes: tuple[int, ...] = (4, 8, 12, 16, 20, 24)


def measure_constant(settings: Settings, *, solve: Solve | None = None) -> dict[str, Any]:
    """Measure everything again. solve: (values (P, n), targets (P,), tolerance=) -> has .errors (P,)."""
    from strongticket import __version__

    solve = solve or _default_solve()
    return {
        "made_by": "python -m strongticket.builders.measure_constant",
        "version": __version__,
        "settings": asdict(settings),
        "sections": [
            _measure_section(settings, construction, targets, solve)
            for construction in get_args(Construction)
            for targets in get_args(Targets)
        ],
    }


def smallest_n_primes(
    settings: Settings, construction: Construction, targets: Targets, dim: int, solve: Solve
) -> dict[float, tuple[int, float, float]]:
    """For each ε the first n′ at which trials show that a dim×dim matrix fails with probability below ε.

    Returns:
        ε -> n′, the share of failures at n′ and its upper confidence limit (Clopper and Pearson)
    """
    sums = dim * dim * (2 if construction == "relu" else 1)
    left, found, n_prime = list(settings.epsilons), {}, 0
    trials = settings.trials * max(settings.dims) // dim
    while left:
        n_prime += 1 if construction == "product" else 2
        if n_prime > 200:
            raise StrongTicketError(
                f"no n' up to 200 succeeds for dim={dim}, epsilon={left[0]}", hint="Check `solve`."
            )
        rng = np.random.default_rng([settings.seed, n_prime, dim])
        # A few trials first: widths at which most of them fail need no further ones.
        for count in (max(20, trials // 20), trials):
            errors = trial_errors(rng, construction, targets, dim, n_prime, count, solve, min(left) / sums)
            largest = np.array([trial.max() for trial in errors])
            failures = {epsilon: int((largest > epsilon / sums).sum()) for epsilon in left}
            if all(failures[epsilon] > 3 * epsilon * count + 3 for epsilon in left):
                break
        else:
            for epsilon in list(left):
                limit = upper_limit(failures[epsilon], trials, settings.confidence)
                if limit < epsilon:
                    found[epsilon] = n_prime, failures[epsilon] / trials, limit
                    left.remove(epsilon)
    return found


def upper_limit(failures: int, trials: int, confidence: float) -> float:
    """The largest failure probability that this many failures do not contradict (Clopper and Pearson).

    >>> round(upper_limit(0, 100, 0.95), 4)
    0.0295
    """
    from scipy.stats import beta

    return 1.0 if failures >= trials else float(beta.ppf(confidence, failures + 1, trials - failures))


def _measure_section(
    settings: Settings, construction: Construction, targets: Targets, solve: Solve
) -> dict[str, Any]:
    cells = [
        dict(
            dim=dim,
            epsilon=epsilon,
            n_prime=n_prime,
            log_argument=_log_argument(construction, dim, epsilon),
            failures=share,
            failures_upper=limit,
        )
        for dim in settings.dims
        for epsilon, (n_prime, share, limit) in smallest_n_primes(
            settings, construction, targets, dim, solve
        ).items()
    ]
    logs = np.array([cell["log_argument"] for cell in cells])
    widths = np.array([cell["n_prime"] for cell in cells])
    return dict(
        construction=construction,
        targets=targets,
        constant=float((widths / logs).max()),
        least_squares_constant=float(logs @ widths / (logs @ logs)),
        cells=cells,
        errors=list(_error_rows(settings, construction, targets, solve)) if targets in EXPECTED else [],
    )


def _error_rows(
    settings: Settings, construction: Construction, targets: Targets, solve: Solve
) -> Iterator[dict[str, Any]]:
    for dim in settings.dims:
        for half in settings.error_n_primes:
            n_prime = half * (2 if construction == "relu" else 1)
            rng = np.random.default_rng([settings.seed, n_prime, dim, 1])
            trials = settings.error_trials * max(settings.dims) ** 2 // dim**2
            errors = np.stack(
                list(trial_errors(rng, construction, targets, dim, n_prime, trials, solve, None))
            )
            median, maximum = float(np.median(errors)), float(np.median(errors.max(1)))
            yield dict(dim=dim, n_prime=n_prime, median=median, maximum=maximum)


def trial_errors(
    rng: np.random.Generator,
    construction: Construction,
    targets: Targets,
    dim: int,
    n_prime: int,
    trials: int,
    solve: Solve,
    tolerance: float | None,
) -> Iterator[Float[np.ndarray, " sums"]]:
    """The error of every subset sum of one random matrix after another."""
    wanted = _targets(rng, targets, trials, dim)
    # u belongs to a unit of input i and serves all outputs j; v is its weight to output j.
    u = rng.uniform(-1, 1, (trials, dim, 1, n_prime))
    v = rng.uniform(-1, 1, (trials, dim, dim, n_prime))
    if construction == "product":
        errors = solve((u * v).reshape(-1, n_prime), wanted.reshape(-1), tolerance=tolerance).errors
        yield from errors.reshape(trials, -1)
        return
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
    yield from both.reshape(trials, -1)


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


def _log_argument(construction: Construction, dim: int, epsilon: float) -> float:
    return math.log((2 if construction == "relu" else 1) * dim * dim / epsilon)


def _default_solve() -> Solve:
    from strongticket.subset_sum import solve

    return solve


def main(arguments: list[str] | None = None) -> None:
    usual = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m strongticket.builders.measure_constant", description=__doc__
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name(TABLE))
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--trials", type=int, default=usual.trials)
    parser.add_argument("--dims", type=int, nargs="+", default=usual.dims)
    parser.add_argument("--epsilons", type=float, nargs="+", default=usual.epsilons)
    chosen = parser.parse_args(arguments)
    settings = Settings(chosen.seed, tuple(chosen.dims), tuple(chosen.epsilons), chosen.trials)
    result = measure_constant(settings)
    write_file(chosen.output, (json.dumps(result, indent=1) + "\n").encode())
    for section in result["sections"]:
        print(f"{section['construction']:8} {section['targets']:8} C = {section['constant']:.2f}")


if __name__ == "__main__":
    main()
