"""The price of randomness: bits above the rate–distortion limit, from independent random weights to a fixed grid.

A matrix of normal numbers (or of Student's t with 4 degrees of freedom) is made from random weights in several ways,
and everything that a file must hold is counted: masks, choices, tables and scales. The limit is that of normal
numbers, log2(1 / relative error); numbers of heavier tails can take fewer bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from strongticket import choice
from strongticket.reproduce import random_codes
from strongticket.reproduce.plots import BOUND, COLOURS, FIT, PRINTED, Axes, curve, label
from strongticket.reproduce.random_codes import path_name
from strongticket.reproduce.rows import Row, groups, select
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.work.store import Settings, code_version

VERSION = code_version(
    *("seeds", "subset_sum", "choice", "rans.py", "builders/assign.py", "builders/product.py"),
    *("ticket/mask_codec.py", "reproduce/random_codes.py", "reproduce/randomness.py"),
)
TARGETS = {"normal": "normal numbers", "t": "Student's t"}
# Method -> the random weights of a connection, and what is kept of them.
METHODS = {
    "products": ("products of two uniform ones", "any subset (Lemma 4)"),
    "one-sided": ("products, a row's signs in balance", "any subset (Lemma 4)"),
    "nearest": ("2^k independent", "the nearest"),
    "coded": ("2^k independent", "the nearest, entropy-coded"),
    "pool": ("{:,} in one pool", "best path of a bit-shift trellis"),
    "offset": ("evenly spread, random offset", "{}, entropy-coded"),
    "grid": ("none: a fixed grid", "{}, entropy-coded"),
}
WAYS: dict[str, Callable[..., list[Row]]] = {
    way.__name__: way
    for way in (random_codes.products, random_codes.nearest, random_codes.pool, random_codes.evenly)
}
LINE = ("size", "target", "method", "states")  # columns that tell lines of the plot apart
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 4)  # of bits above the limit
QUOTED = 4  # bits at which methods are compared
NEAR = 0.25  # bits by which a measured rate may miss the one it is shown for
LITTLE = 0.05  # bits a weight, for a price that hardly counts
IDEAS = (
    "Keeping one of many random weights comes from slot machines (Aladago & Torresani 2021), evenly spread weights "
    "with a random offset from dither (Roberts 1962; Ziv 1985; Zamir & Feder 1992), best paths from trellis codes "
    "(Ungerboeck 1982; Fischer & Wang 1992), and those through a pool of independent weights from QTIP (Tseng et al. "
    "2024; Mao & Gray 2010). EntQuant (Putzky et al. 2026) entropy-codes a fixed grid."
)


@dataclass(frozen=True)
class Randomness:
    """What is measured."""

    size: int  # rows and columns of a matrix
    large_size: int  # of more matrices, for the offset and the grid only: their tables cost less a weight
    matrices: int  # of each target and size, for the offset and the grid
    independent_matrices: int  # the first of them, for independent weights
    pools: tuple[int, ...]  # log2 of the weights in a pool
    bits: tuple[int, ...] = (2, 3, 4, 6)  # asked of the offset and the grid
    states: tuple[int, ...] = choice.STATES
    per_row: tuple[int, ...] = (2, 3, 4, 5, 6)  # products of an entry, n′
    choice_bits: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)  # log2 of the independent weights of a connection
    new_bits: tuple[int, ...] = (2, 3, 4)  # of a choice from a pool


def measure(run: Run, settings: Randomness) -> Tables:
    """Code every matrix in every way."""
    independent: list[tuple[str, Settings]] = [
        ("products", dict(per_row=list(settings.per_row), one_sided=False)),
        ("products", dict(per_row=list(settings.per_row), one_sided=True)),
        ("nearest", dict(choice_bits=list(settings.choice_bits))),
        *(("pool", dict(log_size=size, new_bits=list(settings.new_bits))) for size in settings.pools),
    ]
    # (way, its options, target, size, of how many matrices)
    wanted = [(*way, "normal", settings.size, settings.independent_matrices) for way in independent]
    for size, target in product((settings.size, settings.large_size), TARGETS):
        coder = dict(
            bits=list(settings.bits), states=list(settings.states), entropy=random_codes.ENTROPY[target]
        )
        wanted.append(("evenly", coder, target, size, settings.matrices))
    points = [
        dict(seed=seed, target=target, size=size, way=way, options=options)
        for number, seed in enumerate(run.seeds(settings.matrices))
        for way, options, target, size, count in wanted
        if number < count
    ]
    rows = run.rows("codes of random matrices", compute, points, VERSION, ("size", "target", "seed"))
    rows.sort(
        key=lambda row: (row["size"], list(TARGETS).index(row["target"]), list(METHODS).index(row["method"]))
    )
    return {"codes": rows, "means": means(rows), "prices": prices(rows)}


def compute(point: Settings) -> list[Row]:
    """Code one matrix in one way, with each of its settings."""
    shape, seed = (point["size"], point["size"]), point["seed"]
    rng = np.random.default_rng([seed, list(TARGETS).index(point["target"])])
    numbers = rng.standard_normal(shape) if point["target"] == "normal" else rng.standard_t(4, shape)
    target = (numbers / math.sqrt(np.square(numbers).mean())).astype(np.float32)
    rows = WAYS[point["way"]](target, seed, **point["options"])
    return [row | dict(above=row["bits"] + math.log2(row["error"])) for row in rows]


def means(rows: Sequence[Row]) -> list[Row]:
    """Return the mean over matrices of each line and setting."""
    return [
        keys
        | {name: float(np.mean([row[name] for row in group])) for name in ("bits", "error", "above")}
        | dict(standard_error=standard_error([row["above"] for row in group]), matrices=len(group))
        for keys, group in groups(rows, (*LINE, "weights", "setting"))
    ]


def prices(rows: Sequence[Row]) -> list[Row]:
    """Return the bits above the limit that random offsets take more than none, matrix by matrix."""
    found = []
    of_coder = [row for row in rows if row["method"] in ("offset", "grid")]
    for keys, group in groups(of_coder, ("size", "target", "states", "setting")):
        pairs = list(zip(select(group, method="offset"), select(group, method="grid"), strict=True))
        price = [random["above"] - fixed["above"] for random, fixed in pairs]
        tables = [random["overhead"] - fixed["overhead"] for random, fixed in pairs]
        found.append(
            keys
            | dict(price=float(np.mean(price)), standard_error=standard_error(price), matrices=len(price))
            | dict(of_tables=float(np.mean(tables)))  # and of scales and headers
        )
    return found


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean; None if there is only one."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None


def above_at(line: Sequence[Row], bits: float) -> float | None:
    """Bits above the limit at a rate, between the measured ones; None beyond them."""
    rates = [row["bits"] for row in line]
    if not min(rates) - NEAR <= bits <= max(rates) + NEAR:
        return None
    return float(np.interp(bits, rates, [row["above"] for row in line]))


def answer(tables: Tables, settings: Randomness) -> Answer:
    """Say what randomness costs, and how far each method is from the limit."""
    table, quoted = [], []
    for line, rows in groups(select(tables["means"], size=settings.size), LINE):
        weights, kept = METHODS[line["method"]]
        table.append(
            {
                "target": TARGETS[line["target"]],
                "random weights": weights.format(line["states"]),
                "kept": kept.format(path_name(line["states"])),
                **{f"{bits} bits": above_at(rows, bits) for bits in settings.bits},
            }
        )
        quoted.append(line | dict(above=above_at(rows, QUOTED)))

    def distance(*methods: str) -> str:
        """From the furthest to the nearest."""
        found = [row["above"] for row in select(quoted, target="normal") if row["method"] in methods]
        return f"{max(found):.2f} to {min(found):.2f}"

    largest = [
        max(rows, key=lambda row: row["price"]) | dict(average=float(np.mean([row["price"] for row in rows])))
        for _, rows in groups(tables["prices"], ("size", "target"))
    ]
    costs = [
        " and ".join(f"{_plus_minus(row)} for {TARGETS[row['target']]}" for row in rows)
        + f" in matrices of {keys['size']} × {keys['size']}"
        for keys, rows in groups(largest, ("size",))
    ]
    is_little = max(row["price"] for row in largest) < LITTLE
    sentence = (
        f"{'Hardly anything' if is_little else 'Something'}, if the weights are evenly spread. The largest price of a "
        f"random offset, in bits a weight above a fixed grid with the same coder: {'; '.join(costs)}. At {QUOTED} "
        f"bits, these weights are {distance('offset')} above the limit of normal numbers, from the nearest to the best "
        f"path of {settings.states[-1]} states. Independent weights are further from it: "
        f"{distance('products', 'one-sided')} (a subset of products), {distance('nearest', 'coded')} (the nearest) and "
        f"{distance('pool')} (a path through a pool).\n\n{IDEAS}"
    )
    return Answer(sentence, {"largest_prices": largest, "above_at_4_bits": quoted}, table)


def _plus_minus(row: Row) -> str:
    error = row["standard_error"]
    return f"{row['price']:.4f}" + ("" if error is None else f" ± {error:.4f}")


def plot(tables: Tables, settings: Randomness, axes: Sequence[Axes]) -> None:
    """Draw bits above the limit against bits, and the price of randomness for both sizes."""
    distances, *costs = axes
    for line, rows in groups(select(tables["means"], size=settings.size, target="normal"), LINE):
        curve(distances, rows, "bits", "above", **_style(line["method"], line["states"], settings))
    label(distances, TARGETS["normal"], "bits a weight", "bits above the limit", below=2)
    distances.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    distances.minorticks_off()
    ends = [
        row["price"] + side * (row["standard_error"] or 0) for row in tables["prices"] for side in (-1, 1)
    ]
    margin = 0.05 * (max(ends) - min(ends))
    for axis, size in zip(costs, (settings.size, settings.large_size), strict=True):
        for target, linestyle in zip(TARGETS, ("-", PRINTED), strict=True):
            for states, colour in zip(settings.states, COLOURS, strict=False):
                rows = select(tables["prices"], size=size, target=target, states=states)
                axis.errorbar(
                    [row["setting"] for row in rows],
                    [row["price"] for row in rows],
                    [row["standard_error"] or 0 for row in rows],
                    color=colour,
                    linestyle=linestyle,
                    marker="o",
                    capsize=2,
                    label=f"{TARGETS[target]}, {path_name(states)}",
                )
        axis.axhline(0, color="black", linewidth=0.7)
        axis.set_ylim(min(ends) - margin, max(ends) + margin)
        name = f"random offset less fixed grid, {size} × {size}"
        label(axis, name, "bits asked for", "bits a weight", log="", ticks=settings.bits, below=2)


def _style(method: str, states: int, settings: Randomness) -> Any:
    if method == "pool":
        linestyle = (FIT, "-", BOUND, PRINTED)[settings.pools.index(states.bit_length() - 1)]
        return dict(color="black", linestyle=linestyle, label=f"pool of {states:,}, best path")
    if method == "offset":
        colour = COLOURS[settings.states.index(states)]
        return dict(color=colour, label=f"evenly spread, {path_name(states)}")
    if method == "grid":
        name = "a fixed grid" if states == settings.states[-1] else None
        return dict(color="black", linestyle="", marker="x", markersize=5, label=name)
    return {
        "products": dict(color=COLOURS[5], linestyle=FIT, label="subsets of products"),
        "one-sided": dict(color=COLOURS[5], label="the same, signs in balance"),
        "nearest": dict(color=COLOURS[4], linestyle=FIT, label="the nearest of $2^k$"),
        "coded": dict(color=COLOURS[4], label="the same, entropy-coded"),
    }[method]


STUDY = Study(
    "What does randomness cost?",
    {
        "quick": Randomness(
            128, 256, matrices=4, independent_matrices=1, pools=(8, 10), choice_bits=(2, 3, 4, 5, 6)
        ),
        "laptop": Randomness(256, 720, matrices=16, independent_matrices=3, pools=(10, 12)),
        "paper": Randomness(512, 720, matrices=64, independent_matrices=3, pools=(10, 12, 14, 16)),
    },
    measure,
    answer,
    plot,
    panels=3,
)
