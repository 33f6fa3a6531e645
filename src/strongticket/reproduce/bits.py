"""Width against bits: a subset of few random weights, or one of many.

A normal matrix is made from random weights by both ends of Lemma 4. With subset sums a mask keeps any of n′ products;
units that serve r rows at once have one mask for r weights. With choice one of many random weights is kept. What
subset sums need above the rate–distortion limit is beside `theory.subset_sum_excess`, and beside points that really
are thrown at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from strongticket import choice
from strongticket.choice.trellis import fill_values, steps
from strongticket.reproduce.plots import COLOURS, Axes, curve, label
from strongticket.reproduce.random_codes import ENTROPY, error_of, evenly, path_name
from strongticket.reproduce.rows import Row, groups, select
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.seeds import offsets
from strongticket.theory.bits import NEAREST_EXCESS, least_bits, spread_excess, thrown_excess
from strongticket.work.store import Settings, code_version

VERSION = code_version("choice", "rans.py", "reproduce/random_codes.py", "reproduce/bits.py")
# What a mask chooses from: points of so many rows at once.
WAYS = {
    "points": "2^n′ independent points, one kept",
    "spread points": "the same, spread as the sums below",
    "sums": "sums of normal values, signs in balance",
    "products": "sums of products of uniform weights (Lemma 4)",
}
PARTS = {"cubes": "cubes beside balls", "thrown": "points thrown at random", "spread": "spread of the sums"}
# Tried deviations of sums and points, in those of the target.
DEVIATIONS = (0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.4, 3.0, 4.0, 5.0)
AT_ONCE = 1 << 21  # numbers that are compared at a time
FREE_STATES = 256  # of a trellis that files do not have
# From here on, an ideal code of choices Δ apart takes h(W) − log₂Δ bits, whatever the states; files add their tables.
FINE = 4
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4)  # of bits above the limit


@dataclass(frozen=True)
class Bits:
    """What is measured."""

    problems: int  # vectors of one to three weights that are made by each kind of sums
    units: tuple[tuple[int, ...], ...]  # n′ of units that serve one row, two, three
    size: int  # rows and columns of the matrix that is made by choice
    choice_bits: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    matrices: int = 4  # for the choices, and parts of the problems


def measure(run: Run, settings: Bits) -> Tables:
    """Make normal numbers in every way."""
    points = [
        dict(
            seed=seed,
            way=way,
            serves=serves,
            units=list(units),
            problems=settings.problems // settings.matrices,
        )
        for seed in run.seeds(settings.matrices)
        for serves, units in enumerate(settings.units, 1)
        for way in WAYS
    ]
    chosen = [
        dict(seed=seed, size=settings.size, bits=list(settings.choice_bits))
        for seed in run.seeds(settings.matrices)
    ]
    sums = run.rows("subset sums", nearest_sums, points, VERSION, ("way", "serves"))
    choices = run.rows("choices", choices_of, chosen, VERSION, ())
    return {
        "sums": _means(sums, ("way", "serves", "units")),
        "choices": _means(choices, ("states", "setting")),
    }


def _means(rows: Sequence[Row], by: Sequence[str]) -> list[Row]:
    """Return the mean square error of each group, with its mean width and bits, and its bits above the limit."""
    found = []
    for keys, group in groups(rows, by):
        width, bits = (float(np.mean([row[name] for row in group])) for name in ("width", "bits"))
        error = math.sqrt(np.mean([row["error"] ** 2 for row in group]))
        found.append(keys | dict(width=width, bits=bits, error=error, above=bits - least_bits(error)))
    return found


def nearest_sums(point: Settings) -> list[Row]:
    """Return the least error of every number of units, at the best deviation."""
    rows, found = point["serves"], []
    for units in point["units"]:
        rng = np.random.default_rng([point["seed"], list(WAYS).index(point["way"]), rows, units])
        errors = np.zeros(len(DEVIATIONS))
        some = max(1, AT_ONCE // (rows << units))
        for start in range(0, point["problems"], some):
            count = min(some, point["problems"] - start)
            wanted, sums = rng.standard_normal((count, rows)), _sums(rng, point["way"], count, units, rows)
            for number, deviation in enumerate(DEVIATIONS):
                away = np.square(deviation * sums - wanted[:, None]).sum(-1).min(1)
                errors[number] += away.sum() / (point["problems"] * rows)
        # A unit has n′ weights for each row that it serves, and one bit for all of them.
        least = math.sqrt(errors.min())
        found.append(dict(units=units, width=units, bits=units / rows, error=least))
    return found


def _sums(
    rng: np.random.Generator, way: str, count: int, units: int, rows: int
) -> Float[np.ndarray, "count sums rows"]:
    """Return all 2^units sums or points of each problem, of deviation 1."""
    if way == "points":
        return rng.standard_normal((count, 1 << units, rows))
    if way == "spread points":
        spread = np.sqrt(rng.chisquare(units, (count, 1, rows)) / units)
        return spread * rng.standard_normal((count, 1 << units, rows))
    kept = (np.arange(1 << units)[:, None] >> np.arange(units)) & 1
    if way == "sums":
        values = rng.standard_normal((count, units, rows))
        return 2 / math.sqrt(units) * np.einsum("su,cur->csr", kept - 0.5, values)
    u, v = rng.uniform(-1, 1, (count, units, rows)), rng.uniform(-1, 1, (count, units, 1))
    return 6 / math.sqrt(units) * np.einsum("su,cur->csr", kept, u * v)


def choices_of(point: Settings) -> list[Row]:
    """Return the bits and errors of one matrix by choice, with each number of states and at every rate."""
    size, seed = point["size"], point["seed"]
    target = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
    coded = select(
        evenly(target, seed, point["bits"], list(choice.STATES), ENTROPY["normal"]), method="offset"
    )
    found = [{name: row[name] for name in ("states", "setting", "bits", "error")} for row in coded]
    found += [
        dict(states=FREE_STATES, setting=bits, bits=bits, error=free_error(target, seed, bits))
        for bits in point["bits"]
        if bits >= FINE
    ]
    for row in found:
        step = 2.0 ** (ENTROPY["normal"] - row["setting"]) / (1 if row["states"] == 1 else 2)
        # The random weights of a connection: a step apart, over the range of the matrix.
        row["width"] = float(np.ptp(target)) / step
    return found


def free_error(target: Float[np.ndarray, "rows columns"], seed: int, bits: int) -> float:
    """Return the relative error of the best paths through a trellis that files do not have."""
    step = 2.0 ** (ENTROPY["normal"] - bits) / 2
    drawn = offsets(seed, "w", 0, target.size).reshape(target.shape)
    values, everywhere = np.empty(target.shape, np.int32), np.zeros(target.shape, bool)
    fill_values(target, np.full(len(target), 1 / step), drawn, everywhere, *steps(FREE_STATES), values)
    return error_of(step * (values + (2.0 * drawn + 1) / 131072 - 0.5), target)


def answer(tables: Tables, settings: Bits) -> Answer:
    """Say what subset sums need above the limit and why, and what choices need."""
    table = []
    for serves, parts in _formulas(settings).items():
        finest = {way: _finest(select(tables["sums"], way=way, serves=serves)) for way in WAYS}
        row: Row = {"a unit serves": serves, "bits": finest["sums"]["bits"], **parts}
        row["formula"] = sum(parts.values())
        table.append(row | {way: found["above"] for way, found in finest.items()})
    choices = {
        str(keys["states"]): float(np.mean([row["above"] for row in rows if row["setting"] >= FINE]))
        for keys, rows in groups(tables["choices"], ("states",))
    }
    sums = ", ".join(
        f"{row['products']:.2f} ({row['sums']:.2f}) where a unit serves {row['a unit serves']}"
        for row in table
    )
    paths = ", ".join(f"{above:.3f} ({states} states)" for states, above in choices.items())
    sentence = (
        "Randomness costs no bits, subsets do. Bits a weight above the rate–distortion limit: subset sums of Lemma 4's "
        f"products (of normal values whose signs are in balance) {sums}; one of many random "
        f"weights, from {FINE} bits on, {paths}."
    )
    return Answer(sentence, {"sums": table, "choices": choices}, table)


def _formulas(settings: Bits) -> dict[int, dict[str, float]]:
    """Rows that a unit serves -> what theory.subset_sum_excess adds up."""
    return {
        serves: {
            "cubes": NEAREST_EXCESS,
            "thrown": thrown_excess(serves),
            "spread": spread_excess(serves),
        }
        for serves in range(1, len(settings.units) + 1)
    }


def _finest(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: row["bits"])


def plot(tables: Tables, settings: Bits, axes: Sequence[Axes]) -> None:
    """Draw bits above the limit against the random weights of a connection; and the parts of the formula."""
    ends, parts = axes
    by_rows = groups(select(tables["sums"], way="sums"), ("serves",))
    for colour, (keys, rows) in zip(COLOURS, by_rows, strict=False):
        name = f"subsets, {keys['serves']} weights a mask bit" if keys["serves"] > 1 else "subsets"
        curve(ends, rows, "width", "above", color=colour, label=name)
    by_states = groups(tables["choices"], ("states",))
    for marker, (keys, rows) in zip("sD^vo", by_states, strict=True):
        name = f"one: {path_name(keys['states'])}"
        curve(ends, rows, "width", "above", color="black", marker=marker, linewidth=0.6, label=name)
    above: Any = dict(xytext=(0, 4), textcoords="offset points", fontsize=7, ha="center")
    for _, rows in (*by_rows, by_states[0], by_states[-1]):
        for row in (rows[0], rows[-1]):
            ends.annotate(f"{row['bits']:.0f}", (row["width"], row["above"]), **above)
    label(
        ends,
        "subsets of normal values, and choices (at ends of lines: bits)",
        "random weights of a connection",
        "bits a weight above the limit",
        log="xy",
        below=2,
    )
    ends.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ends.minorticks_off()
    formulas = _formulas(settings)
    bottoms = np.zeros(len(formulas))
    for (part, name), shade in zip(PARTS.items(), ("#d1d5db", "#9ca3af", "#6b7280"), strict=True):
        heights = [formula[part] for formula in formulas.values()]
        parts.bar(list(formulas), heights, 0.5, bottoms, color=shade, label=name)
        bottoms += heights
    for (way, name), marker in zip(WAYS.items(), "ovDs", strict=True):
        found = [_finest(select(tables["sums"], way=way, serves=serves)) for serves in formulas]
        style: Any = dict(color=COLOURS[1], marker=marker, markersize=5, linestyle="", fillstyle="none")
        curve(parts, found, "serves", "above", **style, label=f"measured: {name}")
    label(
        parts,
        "subset sums: formula and measured",
        "weights a mask bit serves",
        "bits a weight above the limit",
        log="",
        ticks=list(formulas),
        below=1,
    )


STUDY = Study(
    "How many bits does a ticket take, at which width?",
    {
        "quick": Bits(400, ((2, 4, 6), (4, 6, 8), (6, 9)), 128, matrices=2),
        "laptop": Bits(32768, ((2, 4, 6, 8), (4, 6, 8, 10, 12), (6, 9, 12)), 720),
        "paper": Bits(1 << 16, ((2, 4, 6, 8, 10), (4, 6, 8, 10, 12, 14), (6, 9, 12, 15)), 1440, matrices=16),
    },
    measure,
    answer,
    plot,
    panels=2,
)
