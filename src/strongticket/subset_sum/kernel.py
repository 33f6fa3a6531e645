# mypy: disable-error-code="call-arg, var-annotated"
"""The best subset of up to 40 int64 values by meeting in the middle: the inner loops of `meet`.

Two values x and y are set aside; the others are split into two halves, and the sums of each half are sorted
by repeated merging into lists a (less the target) and b. Any subset's error is then a[i] + b[j] for one of
four pairs of lists (a or a + x, b or b + y), and one walk per pair from the smallest a and largest b on
finds the best.

Why it is fast: every loop is branch-free and advances four independent chains, so that the processor
overlaps their memory latencies; merging from both ends needs no bounds checks, sentinels spare the walk
its own; the walk keeps only the best error, and the block where it fell is walked again for the subset.
"""

import numpy as np
from numba import uint64

from strongticket.compiled import njit
from strongticket.subset_sum.machine import load, store

SENTINEL = np.int64(1) << np.int64(61)
NOTHING_YET = np.int64(1) << np.int64(60)
BLOCK = 8  # walk steps between two checks of the best error
SIGN_SHIFT = np.int64(63)
SIGN_BIT = np.uint64(63)
ZERO, ONE, WORD = np.uint64(0), np.uint64(1), np.uint64(8)


@njit(cache=True)
def _merge_pair(a, value_a, a_out, b, value_b, b_out, size):
    """Sorted sums of `size` -> 2*size with one more value, for two lists at once, each from both ends."""
    last = uint64(size) - ONE
    end = last + uint64(size)
    front_a, front_b, back_a, back_b = ZERO, ZERO, last, last
    for step in range(size):
        k = uint64(step)
        x = load(a, front_a)
        y = load(a, k - front_a) + value_a
        store(a_out, k, min(x, y))
        front_a += ONE - (uint64(y - x) >> SIGN_BIT)
        x = load(b, front_b)
        y = load(b, k - front_b) + value_b
        store(b_out, k, min(x, y))
        front_b += ONE - (uint64(y - x) >> SIGN_BIT)
        x = load(a, back_a)
        y = load(a, last + last - back_a - k) + value_a
        store(a_out, end - k, max(x, y))
        back_a -= uint64(y - x) >> SIGN_BIT
        x = load(b, back_b)
        y = load(b, last + last - back_b - k) + value_b
        store(b_out, end - k, max(x, y))
        back_b -= uint64(y - x) >> SIGN_BIT


@njit(cache=True)
def _shifted_copy(sums, value, out, size):
    """out[k] = sums[k] + value."""
    for step in range(size):
        k = uint64(step)
        store(out, k, load(sums, k) + value)


@njit(cache=True)
def _step(a, b, i):
    """|a[i] + b[i]| (one unit small if negative) and the next i: one more if the sum is too small."""
    error = load(a, i) + load(b, i)
    sign = error >> SIGN_SHIFT
    return error ^ sign, i - uint64(sign)


@njit(cache=True)
def _walk(a, ax, size_a, b, by, size_b, best, enough):
    """Smallest |a[i] + b[j]| over all i and j, for a or ax and b or by, if below `best`.

    Lists are sorted; a and ax are followed by a sentinel, b and by preceded by one. Stops at `enough`.
    Returns (error, i, j, which): which is 0 for (a, b), 1 for (ax, b), 2 for (a, by), 3 for (ax, by), else -1.
    """
    steps = size_a + size_b
    block = BLOCK if steps % BLOCK == 0 else steps
    top = WORD * uint64(size_b) - WORD
    b_start = b
    b, by = b + top, by + top
    i0, i1, i2, i3 = ZERO, ZERO, ZERO, ZERO
    best_b, r0, r1, r2, r3 = ZERO, ZERO, ZERO, ZERO, ZERO
    lowest = best
    for _ in range(0, steps, block):
        s0, s1, s2, s3 = i0, i1, i2, i3
        for _ in range(block):
            d0, i0 = _step(a, b, i0)
            d1, i1 = _step(ax, b, i1)
            d2, i2 = _step(a, by, i2)
            d3, i3 = _step(ax, by, i3)
            lowest = min(lowest, min(min(d0, d1), min(d2, d3)))
            b -= WORD
            by -= WORD
        if lowest < best:
            best = lowest
            best_b, r0, r1, r2, r3 = b + WORD * uint64(block), s0, s1, s2, s3
            if best <= enough:
                break
    if best_b == ZERO:
        return best, ZERO, ZERO, -1
    by += best_b - b
    b = best_b
    while True:  # that block again, now to see where
        d0, n0 = _step(a, b, r0)
        d1, n1 = _step(ax, b, r1)
        d2, n2 = _step(a, by, r2)
        d3, n3 = _step(ax, by, r3)
        if min(min(d0, d1), min(d2, d3)) == best:
            which = 0 if d0 == best else 1 if d1 == best else 2 if d2 == best else 3
            i = r0 if d0 == best else r1 if d1 == best else r2 if d2 == best else r3
            return best, i, (b - b_start) // WORD + i, which
        r0, r1, r2, r3 = n0, n1, n2, n3
        b -= WORD
        by -= WORD


@njit(cache=True)
def _subset_of(values, first, used, total, scratch):
    """Bits of a subset of values[first], values[first+2], … below `used` whose sum is exactly `total`."""
    store(scratch, ZERO, np.int64(0))
    size = 1
    for k in range(first, used, 2):
        value = load(values, uint64(k))
        for s in range(size):
            store(scratch, uint64(size + s), load(scratch, uint64(s)) + value)
        size *= 2
    found = 0
    for s in range(size):
        if load(scratch, uint64(s)) == total:
            found = s
    bits = np.int64(0)
    for k in range(first, used, 2):
        bits |= np.int64((found >> (k // 2)) & 1) << np.int64(k)
    return bits


@njit(cache=True)
def search(values, n, first, target, enough, scratch, room):
    """Bits of the best subset of n >= 2 values, or of one with error <= enough met on the way.

    Values at even places go to list a, at odd places to b. As soon as `first` are in, the next two are set
    aside and the lists walked; if that was not good enough they join the lists, which doubles those.
    """
    step = WORD * uint64(room)
    a, a_out = scratch, scratch + step
    b, b_out = a_out + step + WORD, a_out + step + WORD + step
    store(a, ZERO, -target)
    store(b, ZERO, np.int64(0))
    size_a, size_b, used = 1, 1, 0
    best, best_a, best_b, best_rest, best_used = NOTHING_YET, np.int64(0), np.int64(0), np.int64(0), 0
    while True:
        if used == n - 3:  # n is odd: the last value of the lists has no partner
            _merge_pair(a, load(values, uint64(used)), a_out, b, np.int64(0), b_out, size_b)
            a, a_out = a_out, a
            size_a *= 2
            used += 1
        if used >= first or used == n - 2:
            store(a, uint64(size_a), SENTINEL)
            store(b - WORD, ZERO, -SENTINEL)
            _shifted_copy(a, load(values, uint64(used)), a_out, size_a + 1)
            _shifted_copy(b - WORD, load(values, uint64(used + 1)), b_out - WORD, size_b + 1)
            error, i, j, which = _walk(a, a_out, size_a, b, b_out, size_b, best, enough)
            if which >= 0:
                best, best_rest, best_used = error, np.int64(which), used
                best_a, best_b = load(a, i) + target, load(b, j)
            if best <= enough or used == n - 2:
                break
        _merge_pair(a, load(values, uint64(used)), a_out, b, load(values, uint64(used + 1)), b_out, size_b)
        a, a_out = a_out, a
        b, b_out = b_out, b
        size_a, size_b, used = 2 * size_a, 2 * size_b, used + 2
    bits = _subset_of(values, 0, best_used, best_a, a_out)
    bits |= _subset_of(values, 1, best_used, best_b, a_out)
    return bits | (best_rest << best_used)
