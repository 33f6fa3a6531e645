"""Builds: `python -m benchmarks.build [--json] [--quick]`, a few minutes of one core.

Our assignment of units beside the paper's on the same sources, both sides of a product, and time and memory against d.
"""

import time

import numpy as np
import torch
from tests.faults.memory import peak_memory

from benchmarks.harness import Row, figure, main, tell
from strongticket.builders import build_network, build_product
from strongticket.nets import MultiHeadAttention
from strongticket.seeds import Uniform, draw


def product_case(rows: int, columns: int, units: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A target of spectral norm 1, as the lemmas assume at most, and the two random matrices."""
    shapes = {"target": (rows, columns), "left": (rows, units), "right": (columns, units)}
    weights, left, right = (draw(seed, name, shape, Uniform(1.0)) for name, shape in shapes.items())
    target = weights.astype(np.float64)
    return target / np.linalg.norm(target, 2), left, right


def attention_target(dim: int, heads: int, seed: int) -> MultiHeadAttention:
    """Random heads whose four matrices have spectral norm 1."""
    target = MultiHeadAttention(dim, dim, heads, dim // heads, dim // heads).double()
    for name, weight in target.named_parameters():
        drawn = torch.from_numpy(draw(seed, f"target {name}", tuple(weight.shape), Uniform(1.0))).double()
        weight.data = drawn / torch.linalg.matrix_norm(drawn, 2)[:, None, None]
    return target


def assignments(seeds: int) -> list[Row]:
    """Mean of the maximum entry error of both assignments on the same sources, d = 16."""
    rows = []
    for per_row in (8, 12, 16):
        cases = [product_case(16, 16, 16 * per_row, seed) for seed in range(seeds)]
        names = ("paper", "balanced")
        paper, ours = (np.mean([largest_error(*case, assignment=name) for case in cases]) for name in names)
        rows.append({"per_row": per_row, "seeds": seeds, "paper": paper, "ours": ours, "ratio": paper / ours})
    return rows


def smaller_side(seeds: int) -> list[Row]:
    """Largest entry error with Lemma 7's side structured, and with the smaller one, on the same sources."""
    rows = []
    for d1, d2, units, count in ((2, 1, 16, 4 * seeds), (8, 2, 64, seeds)):  # wide ones take a second each
        cases = [product_case(d1, d2, units, seed) for seed in range(count)]
        larger = np.median([largest_error(*case) for case in cases])
        smaller = np.median([largest_error(target.T, right, left) for target, left, right in cases])
        case = {"matrix": f"{d1}x{d2}", "n": units, "seeds": count}
        rows.append(case | {"larger_side": larger, "smaller_side": smaller, "gain": larger / smaller})
    return rows


def largest_error(target: np.ndarray, left: np.ndarray, right: np.ndarray, **options: str) -> float:
    return float(np.abs(build_product(target, left, right, **options).error).max())


def layers(dims: tuple[int, ...]) -> list[Row]:
    """Seconds and memory to build and certify a 4-head attention layer with n' = 16."""
    rows = []
    for dim in dims:
        target = attention_target(dim, 4, 0)
        start = time.perf_counter()
        ticket = build_network(target, per_row=16, seed=0, radius=dim**0.5)
        row = {"d": dim, "problems": 8 * dim * dim, "seconds": time.perf_counter() - start}
        rows.append(row | {"peak_memory_mb": peak_memory() / 1e6, "certificate": ticket.certificate["bound"]})
        tell(f"d = {dim}: {row['seconds']:.1f} s")
    return rows


def run(quick: bool = False) -> Row:
    build_product(*product_case(2, 2, 8, 0))  # compile before anything is timed
    tell("time and memory against d")
    sizes = layers((16, 32, 64) if quick else (16, 32, 64, 128))
    tell("assignments")
    better = assignments(3 if quick else 20)
    tell("the smaller side of a product")
    sides = smaller_side(1 if quick else 8)
    at_12 = next(row["ratio"] for row in better if row["per_row"] == 12)
    at_64 = next(row["seconds"] for row in sizes if row["d"] == 64)
    gains = {f"{row['matrix']} at n = {row['n']}": row["gain"] for row in sides}
    shown = [
        figure("paper's mean maximum error over ours, d = 16, n' = 12", at_12, ">=", 10),
        *(figure(f"gain of the smaller side, {case}", gain, ">=", 50) for case, gain in gains.items()),
        figure("seconds for a 4-head d = 64 layer, n' = 16, built and certified", at_64, "<", 10),
    ]
    return {"assignments": better, "smaller_side": sides, "layers": sizes, "must_show": shown}


if __name__ == "__main__":
    main(__doc__, run)
