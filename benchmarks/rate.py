"""Bits a weight against what they buy: choices beside the theoretical limit, a fixed grid and another coder.

`python -m benchmarks.rate [--json] [--quick]`: three minutes on one core.

Normal and Student t matrices are coded by choice and read again. Bits are those of the tensor in the file: header,
scales, tables, coder states and choices; "whole file" adds the container, the index and its checksums, 0.6 kB that a
model pays once. The limit is that of normal numbers, log2(1 / relative error). The fixed grid has the same coder,
trellis and scales, and no random offset. Times are the best of several on one core, after compilation.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product

import constriction
import numpy as np
import torch
from torch import nn

import strongticket
from benchmarks.harness import Row, fastest, figure, main, tell
from strongticket import choice
from strongticket.builders import plan_model
from strongticket.choice import blocks, reading

ASKED = (2, 3, 4, 5, 6, 8)  # bits
SEED = 7


def normal(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)


def student(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).standard_t(4, size=(rows, columns)).astype(np.float32)


def relative_error(made: np.ndarray, target: np.ndarray) -> float:
    wanted = target.astype(np.float64)
    return math.sqrt(np.square(made - wanted).sum() / np.square(wanted).sum())


def coded(target: np.ndarray, bits: float, states: int) -> Row:
    """A ticket of one matrix that is asked for these bits."""
    layer = nn.Linear(*target.shape[::-1], bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(target))
    ticket = strongticket.build(layer, bits=bits, states=states, workers=1, seed=SEED)
    planned = plan_model(layer, bits=bits, states=states, seed=SEED)
    size = 8 / target.size
    tensor = size * sum(map(len, ticket.choices["weight"].blocks))
    whole = size * len(ticket.to_bytes())
    error = relative_error(ticket.weights("weight"), target)
    limit = -math.log2(error)
    return {
        "states": states, "asked": bits, "bits": tensor, "error": error, "above limit": tensor - limit,
        "whole file": whole, "whole above limit": whole - limit, "asked off %": 100 * abs(whole / bits - 1),
        "planned off %": 100 * abs(planned.bits / whole - 1),
    }  # fmt: skip


def table(name: str, target: np.ndarray, states: Sequence[int]) -> list[Row]:
    rows = [coded(target, bits, count) for count in states for bits in ASKED]
    tell(f"{name}: {max(row['above limit'] for row in rows):.3f} bits above the limit at most")
    return rows


def above_limit(target: np.ndarray, step: float, states: int, offsets: np.ndarray) -> float:
    """Bits above the limit."""
    data = blocks.encode(blocks.choose(target, step, offsets, states, step > 0.5))
    made = np.empty_like(target)
    reading.decode(data, offsets, made)
    return 8 * len(data) / target.size + math.log2(relative_error(made, target))


def randomness(seeds: int) -> list[Row]:
    """What a random offset costs beside a fixed grid, the mean of several matrices."""
    rows = []
    for law, states, step in product((normal, student), (1, 8, 64), (1.0, 0.25, 0.06)):
        more = []
        for seed in range(seeds):
            target = law(576 + seed, 576)
            offsets = choice.seeds.offsets(seed, "w", 0, target.size).reshape(target.shape)
            grid = np.full(target.shape, 1 << 15, np.uint16)  # every offset 0
            ours, fixed = (above_limit(target, step, states, each) for each in (offsets, grid))
            more.append(ours - fixed)
        rows.append({"law": law.__name__, "states": states, "step": step, "bits more": float(np.mean(more))})
    tell(f"a random offset costs at most {max(row['bits more'] for row in rows):.4f} bits")
    return rows


def tables_cost() -> list[Row]:
    """Bits a weight of the tables alone, in matrices of 64² and 576²."""
    rows = []
    for side in (64, 576):
        for step in (1.0, 0.25, 0.06, 0.015):
            offsets = choice.seeds.offsets(SEED, "w", 0, side * side).reshape(side, side)
            found = blocks.choose(normal(side, side), step, offsets, 8, False)
            rows.append({"side": side, "step": step, "bits": found.tables.table_bits / side**2})
    return rows


def times() -> list[Row]:
    """Nanoseconds a weight to write and to read, and what constriction takes for the same tokens."""
    rows = []
    for shape in ((4096, 1024), (64, 64)):
        target = normal(*shape)
        for states in choice.STATES:
            found = choice.encode(target, SEED, "w", 0.2, states)
            jobs = {
                "write ns": lambda n=states, w=target: choice.encode(w, SEED, "w", 0.2, n),
                "read ns": lambda f=found: choice.decode(f, SEED, "w"),
            }
            best = fastest(jobs, 5 if target.size > 1e6 else 200)
            spent = {job: 1e9 * seconds / target.size for job, seconds in best.items()}
            rows.append({"shape": f"{shape[0]}×{shape[1]}", "states": states, "coder": "ours", **spent})
    target = normal(4096, 1024)
    offsets = choice.seeds.offsets(SEED, "w", 0, target.size).reshape(target.shape)
    symbols = blocks.choose(target, 0.2, offsets, 1, False).symbols.reshape(-1).astype(np.int32)
    counts = np.bincount(symbols).astype(np.float64)
    model = constriction.stream.model.Categorical(counts / counts.sum(), perfect=False, lazy=False)
    coder = constriction.stream.stack.AnsCoder()
    coder.encode_reverse(symbols, model)
    words = coder.get_compressed()
    jobs = {"read": lambda: constriction.stream.stack.AnsCoder(words).decode(model, symbols.size)}
    spent = {"read ns": 1e9 * fastest(jobs, 3)["read"] / target.size}
    rows.append({"shape": "4096×1024", "states": 1, "coder": "constriction, one table, tokens only", **spent})
    return rows


def within_bounds(count: int) -> int:
    """How many numbers of odd random matrices are further from their target than the bound."""
    outside = 0
    for number in range(count):
        rng = np.random.default_rng(number)
        shape = (*rng.integers(1, 40, 2).tolist(),)
        target = odd_numbers(rng, number % 8, shape).astype(np.float32)
        states, step = (1, 4, 8, 64)[number % 4], float(2.0 ** rng.uniform(-10, 1))
        found = choice.encode(target, number, "w", step, states)
        made = choice.decode(found, number, "w").astype(np.float64)
        bound = choice.bounds(found)
        outside += int((np.abs(made - target) > bound + 2.0**-23 * np.abs(made) + 2.0**-149).sum())
    return outside


def odd_numbers(rng: np.random.Generator, kind: int, shape: tuple[int, ...]) -> np.ndarray:
    """Heavy tails, zeros, constants, denormals, one row, one column, huge and mixed scales."""
    usual = rng.normal(size=shape)
    made: list[Callable[[], np.ndarray]] = [
        lambda: rng.standard_cauchy(size=shape),
        lambda: usual * (rng.random(shape) < 0.3),
        lambda: np.full(shape, rng.normal()),
        lambda: usual * 1e-41,
        lambda: usual[:1],
        lambda: usual[:, :1],
        lambda: usual * 1e37,
        lambda: usual * 10.0 ** rng.uniform(-20, 20, (shape[0], 1)),
    ]
    return made[kind]()


def figures(result: dict[str, list[Row]], outside: int) -> list[Row]:
    def most(name: str, column: str = "above limit", states: int = 8, least: float = 0.0) -> float:
        return max(r[column] for r in result[name] if r["states"] == states and r["asked"] >= least)

    times = {(r["shape"], r["states"]): r for r in result["times"] if r["coder"] == "ours"}

    def more(*states: int) -> float:
        return max(r["bits more"] for r in result["randomness"] if r["states"] in states)

    large, small, tails = "normal 576×576", "normal 256×256", "Student t 576×576"
    frame = "container, index and checksums are 0.6 kB, 0.07 bits of so small a file; see the row above"
    cost = {side: max(r["bits"] for r in result["tables"] if r["side"] == side) for side in (64, 576)}
    asked = max(r["asked off %"] for name in (large, small) for r in result[name])
    planned = max(r["planned off %"] for name in (large, small) for r in result[name])
    return [
        figure(f"{large}, 8 states: bits above the limit, 2 to 8 bits", most(large), "<=", 0.11),
        figure(f"{large}, 8 states: the same, whole file", most(large, "whole above limit"), "<=", 0.11),
        figure(f"{small}, 8 states: bits above the limit, 2 to 8 bits", most(small), "<=", 0.14),
        figure(f"{small}, 8 states: the same, whole file", most(small, "whole above limit"), "<=", 0.14, frame),
        figure(f"{large}, 64 states: bits above the limit, 2 to 8 bits", most(large, states=64), "<=", 0.08),
        figure(f"{tails}, 8 states: bits above the normal limit, from 4 bits", most(tails, least=4), "<=", 0),
        figure("8 and 64 states: bits more than a fixed grid", more(8, 64), "<=", 0.01),
        figure("one state: bits more than a fixed grid", more(1), "<=", 0.01, "most for Student t at 2 bits"),
        figure("tables of 64×64, bits a weight", cost[64], "<=", 0.1),
        figure("tables of 576×576, bits a weight", cost[576], "<=", 0.01),
        figure("bits= of matrices from 256²: off by %", asked, "<=", 1),
        figure("planned against built: off by %", planned, "<=", 1),
        figure("1,000 odd matrices: numbers outside of their bound", outside, "<=", 0),
        figure("reading 4096×1024, 8 states, ns a weight", times["4096×1024", 8]["read ns"], "<=", 7),
        figure("reading 4096×1024, one state, ns a weight", times["4096×1024", 1]["read ns"], "<=", 5),
        figure("reading 64×64, 8 states, ns a weight", times["64×64", 8]["read ns"], "<=", 14),
        figure("writing 4096×1024, 8 states, ns a weight", times["4096×1024", 8]["write ns"], "<=", 60),
        figure("writing 4096×1024, one state, ns a weight", times["4096×1024", 1]["write ns"], "<=", 15),
    ]  # fmt: skip


def run(quick: bool = False) -> Row:
    result = {
        "normal 256×256": table("normal 256×256", normal(256, 256), (1, 8)),
        "normal 576×576": table("normal 576×576", normal(576, 576), (1, 4, 8, 64)),
        "Student t 576×576": table("Student t 576×576", student(576, 576), (1, 8)),
        "randomness": randomness(1 if quick else 4),
        "tables": tables_cost(),
        "times": times(),
    }
    return {**result, "must_show": figures(result, within_bounds(100 if quick else 1000))}


if __name__ == "__main__":
    main(__doc__, run)
