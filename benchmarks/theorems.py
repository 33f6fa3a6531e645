"""What the theory promises beside what is found: for `benchmarks.build`."""

import math

import numpy as np

from benchmarks.harness import tell
from benchmarks.random_tickets import KINDS, Case, largest_float32_error, random_case
from strongticket import nets, theory
from strongticket.builders import build_network, build_product
from strongticket.experiments.spread import share
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.reproduce.constant import MOST_VALUES, trial_errors
from strongticket.seeds import Uniform, draw
from strongticket.subset_sum import Solution, solve

WORST = ("ones", "signs", "identity")  # every entry that is not 0 is in a corner of what Lemma 7 allows


def attacked(tickets: dict[str, int], steps: int) -> list[Case]:
    """Random tickets of every kind, certified and attacked."""
    cases = []
    for kind in KINDS:
        for seed in range(tickets[kind]):
            cases.append(random_case(kind, seed, steps))
            if (seed + 1) % 10 == 0 or seed + 1 == tickets[kind]:
                tell(f"{kind}: {seed + 1} of {tickets[kind]} tickets attacked")
    return cases


def by_kind(cases: list[Case]) -> list[dict]:
    rows = []
    for kind in KINDS:
        ratios = [case.ratio for case in cases if case.kind == kind]
        low, median, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        rows.append(
            {
                "kind": kind,
                "tickets": len(ratios),
                "attacked_inputs": sum(case.inputs for case in cases if case.kind == kind),
                "violations": sum(ratio < 1 for ratio in ratios),
                "certificate_over_attack_median": float(median),
                "smallest": min(ratios),
                "lowest_tenth": float(low),
                "highest_tenth": float(high),
                "largest": max(ratios),
            }
        )
    return rows


def float32_rows(seeds: int, rounds: int) -> list[dict]:
    """The stored float32 bound against the largest error of the network that `Ticket.network()` returns."""
    rows = []
    for name, blocks in (("attention", 0), ("two blocks", 2)):
        for seed in range(seeds):
            attention = [MultiHeadAttention(8, 8, 2, 4, 4) for _ in range(max(blocks, 1))]
            network = (
                Transformer([Block(a, ReluNetwork([8, 8])) for a in attention]) if blocks else attention[0]
            )
            target = nets.initialise(network, seed, normalised=True).requires_grad_(False)
            asked = dict(per_row=32) if blocks else dict(epsilon=1e-6)
            ticket = build_network(target, seed=seed, radius=8**0.5, **asked)
            found = largest_float32_error(target, ticket.network(), 8, 8**0.5, seed, rounds)
            bound = ticket.certificate["bound"]
            rows.append(
                {"network": name, "seed": seed, "bound": bound, "attacked": found, "ratio": bound / found}
            )
            tell(f"float32, {name}: seed {seed}")
    return rows


def smaller_side(seeds: int) -> list[dict]:
    """Largest entry error with Lemma 7's side structured, and with the smaller one, on the same sources."""
    rows = []
    for d1, d2, units, count in ((2, 1, 16, 4 * seeds), (8, 2, 64, seeds)):  # wide ones take a second each
        errors: dict[str, list[float]] = {"larger_side": [], "smaller_side": []}
        for seed in range(count):
            wanted = draw(seed, "target", (d1, d2), Uniform(1.0)).astype(np.float64)
            wanted /= np.linalg.norm(wanted, 2)
            left, right = (
                draw(seed, name, (d, units), Uniform(1.0)) for name, d in (("left", d1), ("right", d2))
            )
            errors["larger_side"].append(np.abs(build_product(wanted, left, right).error).max())
            errors["smaller_side"].append(np.abs(build_product(wanted.T, right, left).error).max())
        medians = {name: float(np.median(found)) for name, found in errors.items()}
        gain = medians["larger_side"] / medians["smaller_side"]
        rows.append({"matrix": f"{d1}x{d2}", "n": units, "seeds": count, **medians, "gain": gain})
    return rows


def planned_failures(trials: int) -> list[dict]:
    """How often sources of the planned width fail on the worst targets known; other draws than C's."""
    rows = []
    for construction, signs in (("product", 1), ("relu", 2)):
        constant = theory.measured_constant(construction)
        for targets in WORST:
            for dim in (1, 2, 4):
                for epsilon in (0.5, 0.1, 0.05):
                    sums = signs * dim * dim
                    n_prime = math.ceil(constant * math.log(sums / epsilon))
                    rng = np.random.default_rng([1, dim, n_prime])
                    errors = trial_errors(
                        *(rng, construction, targets, dim, n_prime, trials // dim),
                        solve_largest,
                        epsilon / sums,
                    )
                    failed = sum(each.max() > epsilon / sums for each in errors)
                    rows.append(
                        {
                            "construction": construction,
                            "targets": targets,
                            "d": dim,
                            "epsilon": epsilon,
                            "n_prime": n_prime,
                            "trials": trials // dim,
                            "failures": failed / (trials // dim),
                            "failures_over_epsilon": failed / (trials // dim) / epsilon,
                        }
                    )
            tell(f"{construction}, {targets}: at most {rows[-1]['n_prime']} units per row")
    return rows


def constant_interval(trials: int) -> list[dict]:
    """The cell of d = 1 that decides C, at its n′ and at the next smaller one, in trials of their own.

    C lies above the second row's if that one shows more failures than epsilon: n′ is whole, so C comes in steps.
    """
    rows = []
    for construction, signs in (("product", 1), ("relu", 2)):
        cells = next(
            section["cells"]
            for section in theory.constants.measurements()["sections"]
            if (section["construction"], section["targets"]) == (construction, "ones")
        )
        cell = max((c for c in cells if c["dim"] == 1), key=lambda c: c["n_prime"] / c["log_argument"])
        for n_prime in (cell["n_prime"], cell["n_prime"] - signs):
            limit = cell["epsilon"] / signs
            errors = trial_errors(
                *(np.random.default_rng([2, n_prime]), construction, "ones", 1, n_prime, trials),
                solve_largest,
                limit,
            )
            failed = sum(each.max() > limit for each in errors)
            rows.append(
                {
                    "construction": construction,
                    "epsilon": cell["epsilon"],
                    "n_prime": n_prime,
                    "constant": n_prime / cell["log_argument"],
                    **share(int(failed), trials),
                }
            )
    return rows


def solve_largest(values: np.ndarray, targets: np.ndarray, *, tolerance: float | None) -> Solution:
    """Subset sums of the largest values alone: fast, and a source that leaves units unused fails no less often."""
    if values.shape[1] > MOST_VALUES:
        largest = np.argpartition(-np.abs(values), MOST_VALUES, axis=1)[:, :MOST_VALUES]
        values = np.take_along_axis(values, largest, 1)
    return solve(values, targets, tolerance=tolerance)
