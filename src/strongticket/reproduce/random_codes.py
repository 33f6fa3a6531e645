"""Ways to make a matrix from random weights, and the bits of a file that says how: from independent weights to a grid.

Each takes a target of root mean square 1, a seed and settings, and returns a row for each of the settings.
Everything that the file must hold is counted: masks, choices, tables and scales.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.special import ndtr

from strongticket import seeds
from strongticket.builders import build_product
from strongticket.choice import blocks, reading
from strongticket.compiled import kernel
from strongticket.reproduce.rows import Row
from strongticket.seeds import Normal, Uniform
from strongticket.ticket import mask_codec

# Differential entropy at a root mean square of 1, in bits: a step of 2^(entropy − b) takes about b bits.
ENTROPY = {"normal": 2.0471, "t": 1.9263}
SCALE_BITS = 32  # of the one number that sets the size of independent weights
# Tried deviations, in root mean squares of the target: of independent weights, of those whose choices are coded (far
# ones then take no bits), and of the sums of products.
DEVIATIONS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.1)
WIDE_DEVIATIONS = (*DEVIATIONS, 2.5, 3.0, 4.0, 5.0, 6.0)
SUM_DEVIATIONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0)
SEQUENCE = 1 << 14  # numbers of a path in the bit-shift trellis
NO_OFFSET = 1 << 15  # of 2^16: u = 0 but for half a step


def products(
    target: Float32[np.ndarray, "rows columns"], seed: int, per_row: list[int], one_sided: bool
) -> list[Row]:
    """Lemma 4: n′ products for an entry, any subset of them, both masks counted.

    The products of the lemma are of two uniform weights; most of their square error is in entries out of reach.
    One-sided ones reach more: right weights are positive, and a row has nearly as many positive left ones as negative.
    """
    rows, found = len(target), []
    for number in per_row:
        shape = rows, rows * number
        left, right = (seeds.draw(seed, name, shape, Uniform(1.0)) for name in ("left", "right"))
        assignment: Any = "balanced"
        if one_sided:
            right = (right + np.float32(3)) / np.float32(4)
            assignment = alternating(left)
        # A product of the n′ is kept or not: the deviation of their sum is half the root of the sum of their squares.
        spread = 0.5 * math.sqrt(number * np.square(left).mean() * np.square(right).mean())
        tried = []
        for deviation in SUM_DEVIATIONS:
            build = build_product(target, left, right, scale=deviation / spread, assignment=assignment)
            tried.append((error_of(build.product, target), deviation, (build.left_mask, build.right_mask)))
        # The least error: the fewest bits above the limit would be those of a matrix of zeros.
        error, deviation, masks = min(tried, key=lambda each: each[0])
        bits = (8 * sum(len(mask_codec.encode(mask)[1]) for mask in masks) + SCALE_BITS) / target.size
        method = "one-sided" if one_sided else "products"
        found.append(_row(method, number, None, number, bits, error, deviation=deviation))
    return found


def alternating(left: Float32[np.ndarray, "rows units"]) -> Int[np.ndarray, " units"]:
    """The row of each unit: one with the fewest units so far, and the sign that it lacks; of these the strongest."""
    rows, units = left.shape
    count, balance, owner = np.zeros(rows), np.zeros(rows), np.empty(units, np.int64)
    for unit in range(units):
        signs = np.sign(left[:, unit])
        row = np.lexsort((-np.abs(left[:, unit]), np.abs(balance + signs), count))[0]
        owner[unit], count[row], balance[row] = row, count[row] + 1, balance[row] + signs[row]
    return owner


def nearest(target: Float32[np.ndarray, "rows columns"], seed: int, choice_bits: list[int]) -> list[Row]:
    """2^k independent normal weights for each connection, the nearest kept: k bits each, or coded.

    Coded, a choice takes as many bits as it is unlikely for a normal target: the ideal length, given the weights.
    """
    found, numbers = [], target.reshape(-1, 1)
    scale = SCALE_BITS / target.size
    for bits in choice_bits:
        weights = seeds.draw(seed, "weights", (target.size, 1 << bits), Normal(1.0))
        weights.sort(axis=1)
        fixed, coded = [], []
        for deviation in WIDE_DEVIATIONS:
            sized = np.float32(deviation) * weights
            kept = np.abs(sized - numbers).argmin(1)[:, None]
            error = error_of(np.take_along_axis(sized, kept, 1), numbers)
            length = -float(np.log2(_likelihood(sized, kept)).mean())
            fixed.append(_row("nearest", 1 << bits, 1, bits, bits + scale, error, deviation=deviation))
            coded.append(_row("coded", 1 << bits, 1, bits, length + scale, error, deviation=deviation))
        found += [min(rows, key=lambda row: row["bits"] + math.log2(row["error"])) for rows in (fixed, coded)]
    return found


def _likelihood(
    weights: Float32[np.ndarray, "n choices"], kept: Int[np.ndarray, "n 1"]
) -> Float[np.ndarray, "n 1"]:
    """Probability that a normal number is nearest to the kept one of some sorted weights."""
    last = weights.shape[1] - 1
    below, here, above = (
        np.take_along_axis(weights, (kept + side).clip(0, last), 1).astype(np.float64) for side in (-1, 0, 1)
    )
    low = np.where(kept > 0, (below + here) / 2, -np.inf)
    high = np.where(kept < last, (here + above) / 2, np.inf)
    # Above 0 from the other side: the difference of two numbers near 1 would lose its digits.
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    found: np.ndarray = ndtr(high) - ndtr(low)
    return found


def pool(
    target: Float32[np.ndarray, "rows columns"], seed: int, log_size: int, new_bits: list[int]
) -> list[Row]:
    """2^L independent normal weights for the whole matrix, choices tied by the bit-shift trellis of QTIP."""
    found, numbers, size = [], target.reshape(-1), 1 << log_size
    weights = seeds.draw(seed, "pool", (size,), Normal(1.0))
    sequences = np.split(numbers, range(SEQUENCE, target.size, SEQUENCE))
    for bits in new_bits:
        first = (log_size - bits) * len(sequences)  # the first state of a path is known by all its bits
        rate = bits + (first + SCALE_BITS) / target.size
        rows = []
        for deviation in DEVIATIONS:
            sized = np.float32(deviation) * weights
            made = np.concatenate([sized[best_states(each, sized, bits)] for each in sequences])
            rows.append(_row("pool", size, size, bits, rate, error_of(made, numbers), deviation=deviation))
        found.append(min(rows, key=lambda row: row["error"]))
    return found


def best_states(
    numbers: Float32[np.ndarray, " n"], pool: Float32[np.ndarray, " states"], new_bits: int
) -> Int[np.ndarray, " n"]:
    """The states of the path nearest to the numbers, where the weight of a state is pool[state].

    A state is the last bits chosen; a step shifts in `new_bits` of them, and the first state is any.
    """
    path = np.empty(numbers.size, np.int64)
    _best_states(numbers, pool, new_bits, path)
    return path


@kernel
def _best_states(numbers: np.ndarray, pool: np.ndarray, new_bits: int, path: np.ndarray) -> None:
    """Viterbi: the 2^new_bits states that share their last bits lead to the same states."""
    choices, shared = 1 << new_bits, pool.size >> new_bits
    costs, least = np.empty(pool.size, np.float32), np.zeros(shared, np.float32)
    before = np.zeros((numbers.size, shared), np.uint8)  # first bits of the best of those states
    for i in range(numbers.size):
        if i:
            for last in range(shared):
                least[last] = costs[last]
            for first in range(1, choices):
                for last in range(shared):
                    cost = costs[first * shared + last]
                    is_less = cost < least[last]
                    least[last] = cost if is_less else least[last]
                    before[i, last] = np.uint8(first) if is_less else before[i, last]
            lowest = least.min()  # taken away, so that float32 sums stay small
            for last in range(shared):
                least[last] -= lowest
        for last in range(shared):
            for state in range(last * choices, (last + 1) * choices):
                away = numbers[i] - pool[state]
                costs[state] = least[last] + away * away
    at = costs.argmin()
    for i in range(numbers.size - 1, -1, -1):
        path[i] = at
        kept = at >> new_bits
        at = before[i, kept] * shared + kept


def evenly(
    target: Float32[np.ndarray, "rows columns"], seed: int, bits: list[int], states: list[int], entropy: float
) -> list[Row]:
    """The coder of tickets, with random offsets and with none, in bytes."""
    drawn = seeds.offsets(seed, "w", 0, target.size).reshape(target.shape)
    ways = ("offset", None, drawn), ("grid", 0, np.full_like(drawn, NO_OFFSET))
    found = []
    for (method, weights, offsets), count, asked in product(ways, states, bits):
        block = blocks.choose(target, 2.0 ** (entropy - asked), offsets, count, shrink=True)
        data, made = blocks.encode(block), np.empty_like(target)
        reading.decode(data, offsets, made)
        rate, overhead = 8 * len(data) / target.size, blocks.cost(block).overhead / target.size
        found.append(_row(method, weights, count, asked, rate, error_of(made, target), overhead=overhead))
    return found


def path_name(states: int) -> str:
    """What is kept of evenly spread weights, in words."""
    return "the nearest" if states == 1 else f"best path of {states} states"


def error_of(made: Float[np.ndarray, "..."], target: Float[np.ndarray, "..."]) -> float:
    """Root mean square of the difference, over that of the target."""
    wanted = target.astype(np.float64)
    return math.sqrt(np.square(made - wanted).mean() / np.square(wanted).mean())


def _row(
    method: str,
    weights: int | None,
    states: int | None,
    setting: int,
    bits: float,
    error: float,
    *,
    deviation: float | None = None,
    overhead: float | None = None,
) -> Row:
    """One code. weights: random ones of a connection or in the pool, None for no end of them."""
    row: Row = dict(method=method, weights=weights, states=states, setting=setting, bits=bits, error=error)
    return row | dict(deviation=deviation, overhead=overhead)
