"""Sparse tickets: how many units an entry needs if only a given fraction of its products may be kept.

Natale, Ferré, Giambartolomei, Giroire and Mallmann-Trenn (On the Sparsity of the Strong Lottery Ticket Hypothesis,
2024) ask for subset sums of a fixed size. Their bound on the units is a constant times log²(1/ε)/H₂(γ), where γ is
the kept fraction and H₂ the binary entropy; counting subsets gives log₂(1/ε)/H₂(γ) at least. Here every problem is
solved exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strongticket import subset_sum
from strongticket.reproduce.plots import BOUND, PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Row, groups, select
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.work.store import Settings, code_version

VERSION = code_version("subset_sum", "reproduce/sparsity.py")
FEWEST, MOST = 2, subset_sum.MAX_EXACT
HALF = 0.5


@dataclass(frozen=True)
class Sparsity:
    """What is measured."""

    trials: int  # entries, uniform on [−1, 1], for each number of units
    fractions: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    epsilons: tuple[float, ...] = (0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8)
    success: float = 0.9  # of the entries, within epsilon


def measure(run: Run, settings: Sparsity) -> Tables:
    """Find, for every kept fraction and ε, the fewest units with which enough entries succeed."""
    points = [
        dict(
            seed=run.seed,
            fraction=fraction,
            epsilons=list(settings.epsilons),
            trials=settings.trials,
            success=settings.success,
        )
        for fraction in settings.fractions
    ]
    rows = run.rows("kept fractions", fewest_units, points, VERSION, ("fraction",))
    return {"units": rows}


def fewest_units(point: Settings) -> list[Row]:
    """Return one row for every ε that MOST units reach."""
    found: list[Row] = []
    left = list(point["epsilons"])
    for units in range(FEWEST, MOST + 1):
        kept = round(point["fraction"] * units)
        if kept == 0:
            continue
        rng = np.random.default_rng([point["seed"], units])
        # Values of Lemma 4: products of two uniform weights.
        values = math.prod(rng.uniform(-1, 1, (2, point["trials"], units)))
        targets = rng.uniform(-1, 1, point["trials"])
        errors = subset_sum.solve(values, targets, size=kept).errors
        while left and (errors <= left[0]).mean() >= point["success"]:
            epsilon = left.pop(0)
            bits = math.log2(1 / epsilon)
            found.append(
                dict(epsilon=epsilon, units=units, kept=kept, counting=bits / entropy(point["fraction"]))
                | dict(above=math.log2(math.comb(units, kept)) - bits)
            )
        if not left:
            break
    return found


def entropy(share: float) -> float:
    """Bits of a coin that falls on one side with this probability: H₂."""
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


@dataclass(frozen=True)
class Law:
    """Units are (slope·log₂(1/ε)^power + offset)/H₂(kept/units); misfit: root mean square, in units."""

    slope: float
    offset: float
    misfit: float


def law(rows: Sequence[Row], power: int) -> Law:
    """Fit the cells in which half is kept or less, among those that MOST units reach."""
    some = [row for row in rows if row["fraction"] <= HALF]
    bits = np.array([math.log2(1 / row["epsilon"]) ** power for row in some])
    shares = np.array([entropy(row["kept"] / row["units"]) for row in some])
    columns, units = np.stack([bits, np.ones_like(bits)], 1) / shares[:, None], [row["units"] for row in some]
    (slope, offset), *_ = np.linalg.lstsq(columns, units, rcond=None)
    misfit = math.sqrt(np.square(columns @ (slope, offset) - units).mean())
    return Law(float(slope), float(offset), misfit)


def answer(tables: Tables, settings: Sparsity) -> Answer:
    """Say how the width grows as less is kept, and as ε falls."""
    table: list[Row] = []
    for keys, rows in groups(tables["units"], ("fraction",)):
        reached = {row["epsilon"]: row["units"] for row in rows}
        table.append({"kept": keys["fraction"]} | {f"ε = {e:g}": reached.get(e) for e in settings.epsilons})
    line, square = (law(tables["units"], power) for power in (1, 2))
    above = [row["above"] for row in tables["units"] if row["fraction"] <= HALF]
    sentence = (
        f"Up to half kept, {settings.success:.0%} of the entries take {min(above):.1f} to {max(above):.1f} bits of "
        f"subsets (the logarithm of their number) more than log2(1/ε), {np.mean(above):.1f} on average. Their units "
        f"are ({line.slope:.2f}·log2(1/ε) + {line.offset:.1f})/H(γ), to within {line.misfit:.1f} (root mean square); "
        f"the square of the logarithm, as in Natale et al.'s bound, comes to within {square.misfit:.1f} with the best "
        "constants. Keeping more than half takes more than keeping as much less: "
        "there are as many subsets, but their sums lie further from 0."
    )
    return Answer(sentence, {"above": above, "log": asdict(line), "log²": asdict(square)}, table)


def plot(tables: Tables, settings: Sparsity, axes: Sequence[Axes]) -> None:
    """Draw units against the kept fraction, and against ε."""
    by_fraction, by_epsilon = axes
    for number, (keys, rows) in enumerate(groups(tables["units"], ("epsilon",))):
        curve(by_fraction, rows, "fraction", "units", color=f"C{number}", label=f"ε = {keys['epsilon']:g}")
        curve(by_fraction, rows, "fraction", "counting", color=f"C{number}", linestyle=PRINTED, marker="")
    label(by_fraction, "dotted: counting subsets", "kept fraction γ", "units of an entry", log="", below=3)
    square = law(tables["units"], 2)
    shown = [fraction for fraction in (0.1, 0.2, HALF) if fraction in settings.fractions]
    for number, fraction in enumerate(shown):
        rows = [row | _bits(row, square) for row in select(tables["units"], fraction=fraction)]
        curve(by_epsilon, rows, "bits", "units", color=f"C{number}", label=f"γ = {fraction:g}")
        for column, style, name in (
            ("counting", PRINTED, "counting subsets"),
            ("square", BOUND, "log²(1/ε)/H(γ), Natale et al., best constants"),
        ):
            kind: Any = dict(color=f"C{number}", linestyle=style, marker="")
            curve(by_epsilon, rows, "bits", column, **kind, label=name if fraction == HALF else None)
    label(by_epsilon, "as the error falls", "bits, $\\log_2(1/ε)$", "units of an entry", log="", below=1)


def _bits(row: Row, square: Law) -> Row:
    bits = math.log2(1 / row["epsilon"])
    return dict(bits=bits, square=(square.slope * bits**2 + square.offset) / entropy(row["fraction"]))


STUDY = Study(
    "How wide is a ticket that keeps few of its weights?",
    {
        "quick": Sparsity(100, (0.2, 0.5, 0.8), (0.1, 0.01, 1e-3)),
        "laptop": Sparsity(1000),
        "paper": Sparsity(10_000),
    },
    measure,
    answer,
    plot,
    panels=2,
)
