"""Builds and certificates: `python -m benchmarks.build [--json] [--quick]`, about ten minutes of one core."""

import time

import numpy as np
import torch
from tests.faults.memory import peak_memory

from benchmarks import failing_sources, stories, theorems
from benchmarks.harness import figure, main, tell
from strongticket.builders import build_attention, build_product
from strongticket.nets import MultiHeadAttention, attack, certify, merge, start_directions
from strongticket.seeds import Uniform, draw

TICKETS = dict.fromkeys(theorems.KINDS, 53)
PAPER_DECAY, LIMIT_DECAY = 0.06, np.log(2) / 2


def matrix(rows: int, columns: int, seed: int) -> np.ndarray:
    """A random target of spectral norm 1, as the lemmas assume at most."""
    weights = draw(seed, "target", (rows, columns), Uniform(1.0)).astype(np.float64)
    return weights / np.linalg.norm(weights, 2)


def sources(rows: int, columns: int, units: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return draw(seed, "left", (rows, units), Uniform(1.0)), draw(
        seed, "right", (columns, units), Uniform(1.0)
    )


def attention_target(dim: int, heads: int, seed: int) -> MultiHeadAttention:
    """Random heads whose four matrices have spectral norm 1."""
    target = MultiHeadAttention(dim, dim, heads, dim // heads, dim // heads).double()
    for name, weight in target.named_parameters():
        drawn = torch.from_numpy(draw(seed, f"target {name}", tuple(weight.shape), Uniform(1.0))).double()
        weight.data = drawn / torch.linalg.matrix_norm(drawn, 2)[:, None, None]
    return target


def assignments(seeds: int) -> list[dict]:
    """Maximum entry error of both assignments on the same sources, d = 16."""
    rows = []
    for per_row in (8, 12, 16):
        worst = {"paper": [], "balanced": []}
        for seed in range(seeds):
            target = matrix(16, 16, seed)
            left, right = sources(16, 16, 16 * per_row, seed)
            for name, errors in worst.items():
                errors.append(np.abs(build_product(target, left, right, assignment=name).error).max())
        paper, ours = np.mean(worst["paper"]), np.mean(worst["balanced"])
        rows.append(
            {
                "d": 16,
                "per_row": per_row,
                "seeds": seeds,
                "paper": paper,
                "balanced": ours,
                "ratio": paper / ours,
            }
        )
    return rows


def certificates(tickets: int, restarts: int) -> list[dict]:
    """Certificate, the paper's bound and the largest error found by attack, d = 16, 4 heads, n' = 12."""
    rows = []
    for seed in range(tickets):
        target = attention_target(16, 4, seed)
        source = build_attention(target, per_row=12, seed=seed, radius=4.0).network().double()
        bound = certify(target, source, 4.0)
        goal, made = merge(target, torch.float64), merge(source, torch.float64)
        directions = start_directions(
            (made.query_key - goal.query_key).numpy(),
            goal.value_output.numpy(),
            (made.value_output - goal.value_output).numpy(),
            seed=seed,
        )
        found = attack(
            *(made, goal, 16, 4.0),
            tokens=(1, 2, 3, 5),
            restarts=restarts,
            steps=60,
            seed=seed,
            starts=directions,
            masked=True,
        )
        rows.append(
            {
                "ticket": seed,
                "certificate": bound.bound,
                "paper_bound": bound.paper_bound,
                "attacked": found.error,
                "attacks": found.attempts,
                "times_tighter_than_paper": bound.paper_bound / bound.bound,
                "certificate_over_attacked": bound.bound / found.error,
            }
        )
    return rows


def decay(seeds: int) -> tuple[list[dict], float]:
    """Median over seeds of the maximum entry error against n for d₁ = 2, and the slope of its logarithm."""
    rows = []
    for units in range(8, 41, 4):
        errors = {"paper": [], "balanced": []}
        for seed in range(seeds):
            target, (left, right) = matrix(2, 2, seed), sources(2, 2, units, seed)
            for name, found in errors.items():
                found.append(np.abs(build_product(target, left, right, assignment=name).error).max())
        rows.append(
            {"n": units, **{f"{name}_median": float(np.median(found)) for name, found in errors.items()}}
        )
    n = [row["n"] for row in rows]
    slope = np.polyfit(n, np.log([row["balanced_median"] for row in rows]), 1)[0]
    return rows, float(-slope)


def sizes(largest: int) -> list[dict]:
    """Seconds and memory to build and certify a 4-head attention layer with n' = 16."""
    rows = []
    dim = 16
    while dim <= largest:
        target = attention_target(dim, 4, 0)
        start = time.perf_counter()
        ticket = build_attention(target, per_row=16, seed=0, radius=dim**0.5)
        seconds = time.perf_counter() - start
        weights = sum(mask.size for mask in ticket.masks.values())
        rows.append(
            {
                "d": dim,
                "heads": 4,
                "problems": 8 * dim * dim,
                "random_weights": weights,
                "seconds": seconds,
                "peak_memory_mb": peak_memory() / 1e6,
                "certificate": ticket.certificate["bound"],
            }
        )
        tell(f"d = {dim}: {seconds:.1f} s")
        dim *= 2
    return rows


def worst(rows: list[dict], name: str) -> float:
    return max(row["ratio"] for row in rows if row["network"] == name)


def run(quick: bool = False) -> dict:
    build_product(matrix(2, 2, 0), *sources(2, 2, 8, 0))  # compile before anything is timed
    tell("stories260K")
    story = stories.run(quick)
    failing = failing_sources.run(quick)
    tell("assignments")
    better = assignments(3 if quick else 20)
    tell("time and memory against d")
    layers = sizes(64 if quick else 128)
    tell("certificates and attacks")
    bounds = certificates(2 if quick else 8, 4 if quick else 16)
    tell("decay")
    falling, slope = decay(10 if quick else 60)
    tell("float32 networks")
    single = theorems.float32_rows(1 if quick else 2, 3 if quick else 10)
    tell("the smaller side of a product")
    sides = theorems.smaller_side(1 if quick else 8)
    tell("failures at planned widths")
    planned = theorems.planned_failures(100 if quick else 1000)
    constants = theorems.constant_interval(200 if quick else 10_000)
    tell("random tickets")
    some = dict.fromkeys(theorems.KINDS, 2) if quick else TICKETS
    cases = theorems.attacked(some, 5 if quick else 15)
    kinds = theorems.by_kind(cases)
    medians = {row["kind"]: row["certificate_over_attack_median"] for row in kinds}
    at_12 = next(row for row in better if row["per_row"] == 12)
    at_64 = next(row for row in layers if row["d"] == 64)
    ratios = [row["certificate_over_attacked"] for row in bounds]
    must_show = [
        figure("paper's mean maximum error over ours, d = 16, n' = 12", at_12["ratio"], ">=", 10),
        figure(
            "certificate against the paper's bound, smallest ratio",
            min(r["times_tighter_than_paper"] for r in bounds),
            ">=",
            20,
        ),
        figure("attacks on attention tickets", sum(row["attacks"] for row in bounds), ">=", 1000),
        figure("attacked errors above their certificate", sum(ratio < 1 for ratio in ratios), "==", 0),
        figure("certificate over attacked error, median", float(np.median(ratios)), "<", 10),
        figure(
            "decay of the median error per hidden unit, d = 2",
            slope,
            ">=",
            0.30,
            note=f"limit ln2/2 = {LIMIT_DECAY:.3f}, paper {PAPER_DECAY}",
        ),
        *(
            figure(
                f"float32 bound over attacked float32 error, {name}, worst", worst(single, name), "<=", limit
            )
            for name, limit in (("attention", 20), ("two blocks", 200))
        ),
        *(
            figure(f"exact certificate over attack, {kind}, median", medians[kind], "<=", limit)
            for kind, limit in (("attention", 1.8), ("block", 4), ("transformer", 20))
        ),
        figure(
            "exact certificate over attack, pre-norm blocks, median (printed)",
            medians["pre-norm"],
            ">=",
            1,
        ),
        figure("random tickets attacked", len(cases), ">=", 200),
        figure("attacked inputs", sum(case.inputs for case in cases), ">=", 100_000),
        figure("of them above their certificate", sum(case.ratio < 1 for case in cases), "==", 0),
        *(
            figure(f"gain of the smaller side, {row['matrix']} at n = {row['n']}", row["gain"], ">=", 50)
            for row in sides
        ),
        figure(
            "failures at planned widths over epsilon, worst targets, largest",
            max(row["failures_over_epsilon"] for row in planned),
            "<",
            1,
        ),
        *stories.figures(story),
        *failing_sources.figures(failing),
        figure("seconds for a 4-head d = 64 layer, n' = 16, built and certified", at_64["seconds"], "<", 10),
    ]
    return {
        "assignments": better,
        "layers": layers,
        "certificates": bounds,
        "decay": falling,
        "float32": single,
        "smaller_side": sides,
        "planned_failures": planned,
        "constant": constants,
        "random_tickets": kinds,
        "stories260K": story,
        "failing_sources": failing,
        "must_show": must_show,
    }


if __name__ == "__main__":
    main(__doc__, run, quick="fewer seeds and smaller layers")
