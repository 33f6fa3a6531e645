# mypy: disable-error-code=call-arg
"""Exact subset sum for n <= 40, a batch at a time, compiled by numba; `kernel` explains how.

Why it is exact: sums are int64 multiples of 2^-60 of the problem's own range, finer than the float64
rounding of the sums themselves, and no bits are spent on remembering subsets.
"""

import numpy as np
from numba import prange, uint64

from strongticket.compiled import njit
from strongticket.subset_sum.kernel import WORD, search
from strongticket.subset_sum.machine import exponent, store
from strongticket.subset_sum.problems import MAX_EXACT

RANGE_BITS = 60
POWERS = 2.0 ** np.arange(-1024.0, 1024.0)
KEYS = MAX_EXACT  # words at the start of the scratch for a problem's values
SPREAD_BITS = 3  # log2 of how much wider the sum of all |values| is than the bulk of the subset sums
WIDE = 2.0**-40  # a value this far below the range loses bits to it


@njit(cache=True)
def _solve_one(values, target, n, tolerance, at, room):
    """Bits of the best subset of values[:n], or of any with error <= tolerance if >= 0; is it wide?"""
    largest = abs(target)
    for k in range(n):
        largest = max(largest, abs(values[k]))
    if largest == 0.0:
        return np.int64(0), False
    # The sum of n + 1 such numbers stays below 2^RANGE_BITS. Two factors, as one could overflow.
    shift = RANGE_BITS - exponent(largest) - exponent(n + 1.0)
    scale_1, scale_2 = POWERS[shift // 2 + 1024], POWERS[shift - shift // 2 + 1024]
    wide = False
    total = 0.0
    for k in range(n):
        scaled = np.rint(values[k] * scale_1 * scale_2)
        store(at, uint64(k), np.int64(scaled))
        wide |= (values[k] != 0.0) & (abs(values[k]) < WIDE * largest)
        total += abs(scaled)
    for k in range(n, 2):
        store(at, uint64(k), np.int64(0))
    key = np.int64(np.rint(target * scale_1 * scale_2))
    enough, first = np.int64(-1), n
    if tolerance >= 0.0:
        # Rounding of the keys must not let an error just above the tolerance pass.
        enough = np.int64(min(tolerance, 2.0 * largest) * scale_1 * scale_2) - n - 2
        # Lists just long enough to probably hold a solution: shorter ones would be walked in vain.
        first = exponent(total / (max(enough, 0) + 1.0)) - SPREAD_BITS
    return search(at, max(n, 2), first, key, enough, at + WORD * uint64(KEYS), room), wide


@njit(cache=True)
def _without_giants(values, target, n, order, kept_values):
    """Drop values so large that a subset with one is worse than the empty one -> how many are left.

    |v| > 2|t| + (sum of the smaller |v|) cannot help; dropping it leaves the others more bits.
    """
    total = 2.0 * abs(target)
    for k in range(n):
        order[k] = k
    for k in range(1, n):  # insertion sort by magnitude
        current = order[k]
        j = k - 1
        while j >= 0 and abs(values[order[j]]) > abs(values[current]):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = current
    usable = 0
    for k in range(n):
        total += abs(values[order[k]])
        if total - abs(values[order[k]]) >= abs(values[order[k]]):
            usable = k + 1
    for k in range(usable):
        kept_values[k] = values[order[k]]
    return usable


@njit(cache=True)
def _solve_wide(values, target, n, tolerance, at, room):
    """Values of very different sizes: the best over all ways to leave out the largest few."""
    order, small = np.empty(n, np.int64), np.empty(n, np.float64)
    usable = _without_giants(values, target, n, order, small)
    best, best_bits = abs(target), np.int64(0)
    for count in range(usable, 0, -1):
        if count < usable and abs(small[count]) <= abs(small[count - 1]):
            continue
        bits, wide = _solve_one(small, target, count, tolerance, at, room)
        total = 0.0
        for k in range(count):
            if (bits >> k) & 1:
                total += small[k]
        if abs(total - target) < best:
            best, best_bits = abs(total - target), bits
        if not wide:
            break
    bits = np.int64(0)
    for k in range(usable):
        if (best_bits >> k) & 1:
            bits |= np.int64(1) << order[k]
    return bits


@njit(cache=True)
def _solve_size(values, target, n, tolerance, at, room, size):
    """Bits of the best subset of `size` values: with much the same added to each, no other size comes close."""
    largest = max(abs(target), np.abs(values).max())
    if largest == 0.0:
        return (np.int64(1) << size) - 1
    shift = -exponent(largest)  # a power of two keeps every bit and lets no sum overflow
    scale_1, scale_2 = POWERS[shift // 2 + 1024], POWERS[shift - shift // 2 + 1024]
    scaled, goal = values * scale_1 * scale_2, target * scale_1 * scale_2
    lift = 4.0 * (abs(goal) + np.abs(scaled).sum())
    close = tolerance if tolerance < 0.0 else min(tolerance, 4.0 * largest) * scale_1 * scale_2
    bits, _ = _solve_one(scaled + lift, goal + size * lift, n, close, at, room)
    return bits


@njit(cache=True)
def _room(n):
    """Words for a list of half-sums of n values with its sentinels."""
    return (1 << ((max(n, 2) - 1) // 2)) + 2


@njit(cache=True)
def _piece_length(n):
    """Problems a thread takes at once: enough to hide the scratch's cost, few enough to share the work."""
    return max(1, min(256, (1 << 16) >> (n // 2)))


@njit(cache=True)
def _solve_piece(source, first, last, targets, tolerance, scratch, values, masks, sums, size):
    """Solve problems first … last-1, whose values `source` describes (see `solve_products`)."""
    left, right, units = source
    n, columns, room = left.shape[1], right.shape[0], _room(left.shape[1])
    at = uint64(scratch.ctypes.data)
    r, c = first // columns, first % columns
    for p in range(first, last):
        for k in range(n):
            values[k] = np.float64(left[r, k])
        if units.size:
            for k in range(n):
                values[k] *= np.float64(right[c, uint64(units[r, k])])
        c += 1
        if c == columns:
            r, c = r + 1, 0
        if size < 0:
            bits, wide = _solve_one(values, targets[p], n, tolerance, at, room)
            if wide:
                bits = _solve_wide(values, targets[p], n, tolerance, at, room)
        else:
            bits = _solve_size(values, targets[p], n, tolerance, at, room, size)
        total = 0.0
        for k in range(n):
            kept = ((bits >> np.int64(k)) & 1) & np.int64((values[k] != 0.0) | (size >= 0))
            masks[p, k] = kept == 1
            total += values[k] * kept  # no branch: it would be mispredicted half the time
        sums[p] = total
    scratch[0] = 0  # the array must outlive its address


@njit(parallel=True, cache=True)
def _solve_in_parallel(source, targets, tolerance, masks, sums, size):
    n, problems = masks.shape[1], targets.size
    piece = _piece_length(n)
    for part in prange((problems + piece - 1) // piece):
        scratch, values = np.empty(KEYS + 4 * _room(n), np.int64), np.empty(n, np.float64)
        last = min(problems, (part + 1) * piece)
        _solve_piece(source, part * piece, last, targets, tolerance, scratch, values, masks, sums, size)


def solve_products(
    left: np.ndarray,
    right: np.ndarray,
    units: np.ndarray,
    targets: np.ndarray,
    tolerance: float,
    masks: np.ndarray,
    sums: np.ndarray,
    size: int = -1,
) -> None:
    """Problem r*columns + c has values left[r, k] * right[c, units[r, k]]; fills masks and sums.

    Without units the values are left[r, k] themselves. tolerance < 0 asks for the optimum, size < 0 for any subset.
    """
    problems, n = masks.shape
    source = (left, right, units)
    if problems <= _piece_length(n):  # waking the other threads would take longer
        scratch, values = np.empty(KEYS + 4 * _room(n), np.int64), np.empty(n, np.float64)
        _solve_piece(source, 0, problems, targets, tolerance, scratch, values, masks, sums, size)
    else:
        _solve_in_parallel(source, targets, tolerance, masks, sums, size)
