"""Exact tickets: if all weights are whole numbers of a step, a subset sum can hit its target exactly.

Kumar and Natale (Quantization vs Pruning: Insights from the Strong Lottery Ticket Hypothesis, 2025) prove how many
units that takes. Weights of b bits are the whole numbers up to 2^(b−1) − 1 times the step δ = 2^−(b−1). A target of
the same kind must be the sum of some products of two random ones, or of random ones with random signs. Every subset
sum is solved to the optimum, so what misses has no exact ticket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from strongticket import nets
from strongticket.builders import build_product
from strongticket.nets import MultiHeadAttention
from strongticket.reproduce.plots import PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Row, groups
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.subset_sum import MAX_EXACT, solve
from strongticket.theory import AttentionWeights, certify_attention
from strongticket.work.store import Settings, code_version

VERSION = code_version("subset_sum", "builders/product.py", "theory", "nets", "reproduce/quantised.py")
SOURCES = {
    "products": "products of two quantised weights",
    "signs": "quantised weights with random signs",
    "continuous": "products of two continuous weights, to half a step",
}
# Of the attention layers: queries and keys are 4 times as large, n_K^¼, which 1/√n_K takes away without any rounding.
DIM, HEADS, UNITS, QUERY, KEY = 8, 2, 256, 4.0, 4.0
RADIUS = math.sqrt(DIM)
AT_ONCE = 50  # sources that are solved together


@dataclass(frozen=True)
class Quantised:
    """What is measured."""

    sources: int  # for each number of units
    bits: tuple[int, ...] = tuple(range(2, 13))
    dim: int = 4  # of the matrices that a source must make
    success: float = 0.99  # of the sources
    layers: tuple[int, ...] = (2, 4, 6, 8, 10, 12)  # bits of attention layers


def measure(run: Run, settings: Quantised) -> Tables:
    """Find the fewest units for every number of bits, and build attention layers."""
    points = [
        dict(
            seed=run.seed,
            source=source,
            bits=bits,
            sources=settings.sources,
            dim=settings.dim,
            success=settings.success,
        )
        for bits in reversed(settings.bits)  # the longest first
        for source in SOURCES
    ]
    widths = run.rows("fewest units", fewest_units, points, VERSION, ("source", "bits"))
    layers = run.rows(
        "attention layers",
        exact_layer,
        [dict(seed=run.seed, bits=bits) for bits in settings.layers],
        VERSION,
        ("bits",),
    )
    widths.sort(key=lambda row: (list(SOURCES).index(row["source"]), row["bits"]))
    return {"widths": widths, "layers": layers}


def fewest_units(point: Settings) -> list[Row]:
    """Return the fewest units of a row with which enough sources make a matrix; nothing if MAX_EXACT are too few."""
    allowed = math.floor(point["sources"] * (1 - point["success"]) + 1e-9)
    for units in range(point["bits"], MAX_EXACT + 1):
        rng, failed = np.random.default_rng([point["seed"], point["bits"], units]), 0
        for start in range(0, point["sources"], AT_ONCE):
            count = min(AT_ONCE, point["sources"] - start)
            failed += int(fails(rng, point["source"], point["bits"], point["dim"], units, count).sum())
            if failed > allowed:
                break
        else:
            return [dict(units=units, failed=failed)]
    return []


def fails(
    rng: np.random.Generator, source: str, bits: int, dim: int, units: int, count: int
) -> Bool[np.ndarray, " count"]:
    """Draw so many sources with a target each, of dim × dim; does any entry miss?"""
    wanted = whole_numbers(rng, bits, (count, dim, dim)).reshape(-1)
    u = whole_numbers(rng, bits, (count, dim, 1, units))
    v = whole_numbers(rng, bits, (count, dim, dim, units))
    levels, close = 2 ** (bits - 1), 0.0
    if source == "products":
        wanted *= levels  # a product counts in steps of δ², the target in steps of δ
    elif source == "signs":
        u = np.where(u < 0, -1.0, 1.0)
    else:
        u, v = rng.uniform(-1, 1, u.shape), rng.uniform(-1, 1, v.shape) * levels
        close = 0.5
    errors = solve((u * v).reshape(-1, units), wanted, tolerance=close).errors
    missed: np.ndarray = (errors > close).reshape(count, dim * dim)
    return missed.max(axis=1)


def exact_layer(point: Settings) -> list[Row]:
    """Build attention whose W_QK and W_VO are of so many bits from a source whose four matrices are; certify it."""
    bits = point["bits"]
    rng = np.random.default_rng([point["seed"], bits])
    layer = MultiHeadAttention(DIM, DIM, HEADS, UNITS, UNITS).double()
    wanted = [quantised(rng, bits, (HEADS, DIM, DIM)) for _ in range(2)]
    pairs = (layer.query, layer.key, QUERY, KEY, UNITS**-0.5), (layer.value, layer.output.mT, 1.0, 1.0, 1.0)
    kept = 0
    with torch.no_grad():
        for targets, (first, second, first_scale, second_scale, scale) in zip(wanted, pairs, strict=True):
            for head, target in enumerate(targets):
                left, right = (
                    size * quantised(rng, bits, (DIM, UNITS)) for size in (first_scale, second_scale)
                )
                # Not balanced: the strongest units are all multiples of the largest number, and so would be sums.
                built = build_product(target, left, right, scale=scale, assignment="paper")
                first[head] = torch.from_numpy(left * built.left_mask)
                second[head] = torch.from_numpy(right * built.right_mask)
                kept += int(built.left_mask.sum() + built.right_mask.sum())
    merged = nets.merge(layer, torch.float64)
    source = AttentionWeights(merged.query_key.numpy(), merged.value_output.numpy())
    target = AttentionWeights(wanted[0], wanted[1])
    bound = certify_attention(target, source, RADIUS).bound
    weights = sum(parameter.numel() for parameter in layer.parameters())
    return [dict(bound=bound, same=merged_alike(source, target), kept=kept / weights)]


def merged_alike(source: AttentionWeights, target: AttentionWeights) -> bool:
    """Is every number of the merged matrices the same?"""
    return all(
        np.array_equal(getattr(source, name), getattr(target, name)) for name in ("query_key", "value_output")
    )


def quantised(rng: np.random.Generator, bits: int, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Random weights of so many bits: whole numbers of 2^(1 − bits), within 1."""
    return whole_numbers(rng, bits, shape) * 2.0 ** (1 - bits)


def whole_numbers(rng: np.random.Generator, bits: int, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The same, counted in steps."""
    most = 2 ** (bits - 1) - 1
    return rng.integers(-most, most, shape, endpoint=True).astype(np.float64)


def answer(tables: Tables, settings: Quantised) -> Answer:
    """Say how many units exact tickets take, beside counting and the continuous case."""
    table: list[Row] = []
    for keys, rows in groups(sorted(tables["widths"], key=lambda row: int(row["bits"])), ("bits",)):
        found = {row["source"]: row["units"] for row in rows}
        table.append({"bits": keys["bits"]} | {name: found.get(source) for source, name in SOURCES.items()})
    exact = [row["bits"] for row in tables["layers"] if row["bound"] == 0 and row["same"]]
    most = table[-1]
    units = ", ".join(f"{most[name]} for {name}" for name in SOURCES.values())
    sentence = (
        f"At {most['bits']} bits, units of a row with which {settings.success:.0%} of sources make a matrix of "
        f"{settings.dim} × {settings.dim}: {units}; counting the levels asks for {most['bits']}. Few bits take hardly "
        "fewer units: there what the sums reach decides, not how many there are. Attention layers of "
        f"{', '.join(map(str, exact))} bits were built from {UNITS} units with error 0, and their certificate is 0."
    )
    return Answer(sentence, {"widest": most, "exact_layers": exact}, table)


def plot(tables: Tables, settings: Quantised, axes: Sequence[Axes]) -> None:
    """Draw units against bits."""
    (axis,) = axes
    for source, rows in ((keys["source"], rows) for keys, rows in groups(tables["widths"], ("source",))):
        curve(axis, rows, "bits", "units", label=SOURCES[source])
    axis.plot(settings.bits, settings.bits, PRINTED, color="black", label="counting: $\\log_2$ of the levels")
    share = f"{settings.success:.0%} of sources make a {settings.dim} × {settings.dim} matrix"
    label(axis, share, "bits of the weights", "units of a row", log="", ticks=settings.bits, below=1)


STUDY = Study(
    "How wide is a ticket that is exact?",
    {
        "quick": Quantised(100, (2, 3, 4, 5, 6), layers=(2, 4)),
        "laptop": Quantised(1000),
        "paper": Quantised(10_000),
    },
    measure,
    answer,
    plot,
)
