"""What the theory promises beside what is found: `python -m benchmarks.theory [--json] [--quick]`, 15 minutes.

Certificates against attacks and the paper's bound, on attention of one size, on tickets of random shapes and in
float32; what `network(check=True)` refuses; how often sources of the planned widths fail, and those widths.
"""

import math
from itertools import product

import numpy as np
import torch

from benchmarks.build import attention_target
from benchmarks.harness import Row, figure, main, tell
from benchmarks.random_tickets import KINDS, attacked, largest_float32_error, random_case
from benchmarks.refusals import refusals
from benchmarks.rotary import rotary_case
from strongticket import nets, theory
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.reproduce.constant import trial_errors
from strongticket.subset_sum import solve

SIGNS = {"product": 1, "relu": 2}  # subset sums for each entry of a matrix
TICKETS = 70  # of each kind
ROTARY = 40
WORST = ("ones", "signs", "identity")  # every entry that is not 0 is in a corner of what Lemma 7 allows
OLD_CONSTANT = {"product": 7.46, "relu": 14.51}  # widths were planned as C·log(…) before they were a line


def attention_tickets(tickets: int, restarts: int) -> list[Row]:
    """Certificate, the paper's bound and the largest error found by attack, d = 16, 4 heads, n' = 12."""
    rows = []
    for seed in range(tickets):
        target = attention_target(16, 4, seed)
        ticket = build_network(target, per_row=12, seed=seed, radius=4.0)
        source = ticket.network(dtype=torch.float64)
        bound = nets.certify(target, source, 4.0)
        found = attacked(target, source, 16, 4.0, seed=seed, restarts=restarts, steps=60)
        rows.append(
            {"ticket": seed, "certificate": bound.bound, "attacked": found.error, "attacks": found.attempts}
            | {"paper_over_certificate": bound.paper_bound / bound.bound}
            | {"certificate_over_attacked": bound.bound / found.error}
        )
    return rows


def by_kind(cases: list[Row]) -> list[Row]:
    rows = []
    for kind in dict.fromkeys(case["kind"] for case in cases):
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


def planned_failures(quick: bool) -> list[Row]:
    """How often sources of the planned width fail on the worst targets known; other draws than the line's."""
    rows = []
    dims, epsilons = ((1, 4), (0.5, 0.1)) if quick else ((1, 2, 4, 8), (0.5, 0.1, 0.02, 0.01))
    cases = product(SIGNS.items(), WORST, dims, epsilons)
    for (construction, signs), targets, dim, epsilon in cases:
        sums, trials = signs * dim * dim, math.ceil((30 if quick else 200) / epsilon)
        per_row = math.ceil(theory.measured_units(math.log(sums / epsilon), construction))
        rng, limit = np.random.default_rng([1, dim, per_row]), epsilon / sums
        errors = trial_errors(rng, construction, targets, dim, per_row, trials, solve, limit)
        failed = int((errors.max(1) > limit).sum())
        row = {"construction": construction, "targets": targets, "d": dim, "epsilon": epsilon}
        row |= {"per_row": per_row, "trials": trials, "failed": failed}
        rows.append(row | {"over_epsilon": failed / trials / epsilon})
        tell(f"planned widths: {construction}, {targets}, d={dim}, epsilon={epsilon}")
    return rows


def planned_widths() -> list[Row]:
    """Units for a row: the line, and C·log(…) as they were planned before."""
    rows = []
    for (construction, old), log_argument in product(OLD_CONSTANT.items(), (5, 10, 20, 30)):
        line, before = theory.measured_units(log_argument, construction), old * log_argument
        row = {"construction": construction, "log": log_argument, "line": math.ceil(line)}
        rows.append(row | {"C_log": math.ceil(before), "ratio": before / line})
    return rows


def run(quick: bool = False) -> Row:
    tell("refusals")
    refused = refusals()
    tell("certificates and attacks")
    bounds = attention_tickets(*((2, 4) if quick else (8, 16)))
    ratios = [row["certificate_over_attacked"] for row in bounds]
    tighter = min(row["paper_over_certificate"] for row in bounds)
    single = float32_rows(*((1, 3) if quick else (2, 10)))
    worst = {row["network"]: row["ratio"] for row in sorted(single, key=lambda row: row["ratio"])}
    planned, widths = planned_failures(quick), planned_widths()
    failing = max(row["over_epsilon"] for row in planned)
    at_twenty = next(row for row in widths if row["construction"] == "product" and row["log"] == 20)
    cases = []
    for kind in KINDS:
        tell(f"random tickets: {kind}")
        cases += [random_case(kind, seed, 5 if quick else 60) for seed in range(2 if quick else TICKETS)]
    tell("random tickets: rotary")
    cases += [rotary_case(seed, 5 if quick else 60) for seed in range(2 if quick else ROTARY)]
    kinds = by_kind(cases)
    medians = {row["kind"]: row["median"] for row in kinds}
    exact, rounding = "exact certificate over attack", "float32 bound over attacked float32 error"
    return {
        "refusals": refused,
        "attention_tickets": bounds,
        "float32": single,
        "planned_failures": planned,
        "planned_widths": widths,
        "random_tickets": kinds,
        "must_show": [
            figure("ways to run a ticket that were tried", sum(row["tried"] for row in refused), ">=", 1000),
            figure("of them accepted", sum(row["accepted"] for row in refused), ">", 0),
            figure("of them accepted wrongly", sum(row["accepted_wrongly"] for row in refused), "==", 0),
            figure("certificate against the paper's bound, smallest ratio", tighter, ">=", 20),
            figure("attacks on attention tickets", sum(row["attacks"] for row in bounds), ">=", 1000),
            figure("attacked errors above their certificate", sum(ratio < 1 for ratio in ratios), "==", 0),
            figure("certificate over attacked error, median", float(np.median(ratios)), "<=", 1.1),
            figure(f"{rounding}, attention, worst", worst["attention"], "<=", 20),
            figure(f"{rounding}, two blocks, worst", worst["two blocks"], "<=", 200),
            figure(f"{exact}, attention, median", medians["attention"], "<=", 1.1),
            figure(f"{exact}, two blocks, median", medians["two blocks"], "<=", 10),
            figure(f"{exact}, three blocks, median", medians["three blocks"], "<=", 10),
            figure("float32 certificate over attack, rotary positions, median", medians["rotary"], "<=", 6),
            figure("random tickets attacked", len(cases), ">=", 400),
            figure("attacked inputs", sum(case["inputs"] for case in cases), ">=", 1_000_000),
            figure("of them above their certificate", sum(case["ratio"] < 1 for case in cases), "==", 0),
            figure("failures at planned widths over epsilon, worst targets, largest", failing, "<", 1),
            figure("planned widths tried", len(planned), ">=", 90),
            figure("their trials", sum(row["trials"] for row in planned), ">=", 100_000),
            figure("units for a row at log = 20, before and now", at_twenty["ratio"], ">=", 1.7),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
