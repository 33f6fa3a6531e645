"""What the theory promises beside what is found: `python -m benchmarks.theory [--json] [--quick]`, ten minutes.

Certificates against attacks and the paper's bound, on attention of one size, on tickets of random shapes and in
float32; and how often sources of the planned widths fail.
"""

import math
from itertools import product

import numpy as np
import torch

from benchmarks.build import attention_target
from benchmarks.harness import Row, figure, main, tell
from benchmarks.random_tickets import KINDS, attacked, largest_float32_error, random_case
from strongticket import nets, theory
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.reproduce.constant import MOST_VALUES, trial_errors
from strongticket.subset_sum import Solution, solve

SIGNS = {"product": 1, "relu": 2}  # subset sums for each entry of a matrix
TICKETS = 53  # of each kind
WORST = ("ones", "signs", "identity")  # every entry that is not 0 is in a corner of what Lemma 7 allows


def attention_tickets(tickets: int, restarts: int) -> list[Row]:
    """Certificate, the paper's bound and the largest error found by attack, d = 16, 4 heads, n' = 12."""
    rows = []
    for seed in range(tickets):
        target = attention_target(16, 4, seed)
        ticket = build_network(target, per_row=12, seed=seed, radius=4.0)
        source = ticket.network(dtype=torch.float64)
        bound = nets.certify(target, source, 4.0)
        found = attacked(target, source, 16, 4.0, seed=seed, tries=16, restarts=restarts, steps=60)
        rows.append(
            {"ticket": seed, "certificate": bound.bound, "attacked": found.error, "attacks": found.attempts}
            | {"paper_over_certificate": bound.paper_bound / bound.bound}
            | {"certificate_over_attacked": bound.bound / found.error}
        )
    return rows


def by_kind(cases: list[Row]) -> list[Row]:
    rows = []
    for kind in KINDS:
        some = [case for case in cases if case["kind"] == kind]
        smallest, median, largest = np.quantile([case["ratio"] for case in some], (0, 0.5, 1)).tolist()
        row = {"kind": kind, "tickets": len(some), "attacked_inputs": sum(case["inputs"] for case in some)}
        rows.append(row | {"median": median, "smallest": smallest, "largest": largest})
    return rows


def float32_rows(seeds: int, rounds: int) -> list[Row]:
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
            case = {"network": name, "seed": seed}
            rows.append(case | {"bound": bound, "attacked": found, "ratio": bound / found})
            tell(f"float32, {name}: seed {seed}")
    return rows


def planned_failures(trials: int) -> list[Row]:
    """How often sources of the planned width fail on the worst targets known; other draws than C's."""
    rows = []
    cases = product(SIGNS.items(), WORST, (1, 2, 4), (0.5, 0.1, 0.05))
    for (construction, signs), targets, dim, epsilon in cases:
        sums, count = signs * dim * dim, trials // dim
        per_row = math.ceil(theory.measured_constant(construction) * math.log(sums / epsilon))
        rng, limit = np.random.default_rng([1, dim, per_row]), epsilon / sums
        errors = trial_errors(rng, construction, targets, dim, per_row, count, solve_largest, limit)
        failed = sum(each.max() > limit for each in errors) / count
        row = {"construction": construction, "targets": targets, "d": dim, "per_row": per_row}
        rows.append(row | {"epsilon": epsilon, "trials": count, "over_epsilon": failed / epsilon})
    return rows


def solve_largest(values: np.ndarray, targets: np.ndarray, *, tolerance: float | None) -> Solution:
    """Subset sums of the largest values alone: fast, and a source that leaves units unused fails no less often."""
    if values.shape[1] > MOST_VALUES:
        largest = np.argpartition(-np.abs(values), MOST_VALUES, axis=1)[:, :MOST_VALUES]
        values = np.take_along_axis(values, largest, 1)
    return solve(values, targets, tolerance=tolerance)


def run(quick: bool = False) -> Row:
    tell("certificates and attacks")
    bounds = attention_tickets(*((2, 4) if quick else (8, 16)))
    ratios = [row["certificate_over_attacked"] for row in bounds]
    tighter = min(row["paper_over_certificate"] for row in bounds)
    single = float32_rows(*((1, 3) if quick else (2, 10)))
    worst = {row["network"]: row["ratio"] for row in sorted(single, key=lambda row: row["ratio"])}
    tell("failures at planned widths")
    planned = planned_failures(100 if quick else 1000)
    failing = max(row["over_epsilon"] for row in planned)
    cases = []
    for kind in KINDS:
        tell(f"random tickets: {kind}")
        cases += [random_case(kind, seed, 5 if quick else 15) for seed in range(2 if quick else TICKETS)]
    kinds = by_kind(cases)
    medians = {row["kind"]: row["median"] for row in kinds}
    exact, rounding = "exact certificate over attack", "float32 bound over attacked float32 error"
    return {
        "attention_tickets": bounds,
        "float32": single,
        "planned_failures": planned,
        "random_tickets": kinds,
        "must_show": [
            figure("certificate against the paper's bound, smallest ratio", tighter, ">=", 20),
            figure("attacks on attention tickets", sum(row["attacks"] for row in bounds), ">=", 1000),
            figure("attacked errors above their certificate", sum(ratio < 1 for ratio in ratios), "==", 0),
            figure("certificate over attacked error, median", float(np.median(ratios)), "<", 10),
            figure(f"{rounding}, attention, worst", worst["attention"], "<=", 20),
            figure(f"{rounding}, two blocks, worst", worst["two blocks"], "<=", 200),
            figure(f"{exact}, attention, median", medians["attention"], "<=", 1.8),
            figure(f"{exact}, block, median", medians["block"], "<=", 4),
            figure(f"{exact}, transformer, median", medians["transformer"], "<=", 20),
            figure(f"{exact}, pre-norm blocks, median (printed)", medians["pre-norm"], ">=", 1),
            figure("random tickets attacked", len(cases), ">=", 200),
            figure("attacked inputs", sum(case["inputs"] for case in cases), ">=", 100_000),
            figure("of them above their certificate", sum(case["ratio"] < 1 for case in cases), "==", 0),
            figure("failures at planned widths over epsilon, worst targets, largest", failing, "<", 1),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
