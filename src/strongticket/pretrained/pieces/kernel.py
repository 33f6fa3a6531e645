"""Subset sums of vectors: one subset of a tuple's units for the entries of all its rows at once.

The units are halved. The sums of one half are sorted by their first coordinate; for each sum of the other half, the
few that lie next to what is missing are tried. In one or two dimensions this is as good as trying every pair; in
three a wider neighbourhood is needed.
"""

import numpy as np

from strongticket.compiled import njit

WINDOW = {1: 8, 2: 8, 3: 24}  # by rows in a tuple: sums of the sorted half tried for each sum of the other
_SORTED, _TRIED = 10, 11  # units in the halves at most
_ROUNDS = 64  # how often further units are flipped at most, to come within the tolerance
MAX_TRIED = _SORTED + _TRIED + _ROUNDS.bit_length() - 1  # units; later ones stay pruned


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"}, error_model="numpy")
def best_subsets(
    left: np.ndarray,
    right: np.ndarray,
    target: np.ndarray,
    tolerance: float,
    window: int,
    mask: np.ndarray,
    error: np.ndarray,
    takeover: np.ndarray,
) -> None:
    """Fill mask and error of a tuple; the flags of fastmath let minima be taken several at a time, exactly.

    left: float32 (rows, units), 1 to 3 rows; right: float32 (columns, units); target: float64 (rows, columns)
    tolerance: root mean square error of a tuple's entries that is good enough
    mask: bool (columns, units), written; error: float64 (rows, columns), written
    takeover: float32 (columns, columns), what later columns take over of a column's error, which changes the target in
        place; without columns, nothing
    """
    rows, units = left.shape
    sorted_units = min(units // 2, _SORTED)
    tried_units = min(units - sorted_units, _TRIED)
    halves = sorted_units + tried_units
    rounds = min(1 << (units - halves), _ROUNDS)
    size, tries = 1 << sorted_units, 1 << tried_units
    window = min(window, size)
    buckets = 2 * size
    good_enough = np.float32(tolerance * tolerance * rows)

    values = np.zeros((3, units), np.float32)
    base = np.zeros(3, np.float32)
    # Coordinates that a tuple lacks stay zero.
    tried = np.zeros((3, tries), np.float32)
    plain = np.zeros((3, size), np.float32)
    ordered = np.zeros((3, size), np.float32)
    bucket = np.empty(size, np.int32)
    end = np.empty(buckets + 1, np.int32)
    subset = np.empty(size, np.int32)

    for column in range(right.shape[0]):
        if not np.any(target[:, column]):  # exactly: nothing is kept
            mask[column] = False
            error[:, column] = 0
            continue
        for i in range(rows):
            for u in range(units):
                values[i, u] = left[i, u] * right[column, u]
            for j in range(sorted_units):
                step, half = values[i, j], 1 << j
                for s in range(half):
                    plain[i, half + s] = plain[i, s] + step
        low, high = np.float32(0), np.float32(0)
        for j in range(sorted_units):
            low += min(values[0, j], np.float32(0))
            high += max(values[0, j], np.float32(0))
        to_bucket = np.float32(buckets - 1) / (high - low)

        end[:] = 0
        for s in range(size):
            b = min(max(np.int32((plain[0, s] - low) * to_bucket), 0), buckets - 1)
            bucket[s] = b
            end[b + 1] += 1
        for b in range(buckets):
            end[b + 1] += end[b]
        for s in range(size):
            place = end[bucket[s]]  # where the bucket begins; moved on, it ends where the next one begins
            end[bucket[s]] = place + 1
            subset[place] = s
            for i in range(rows):
                ordered[i, place] = plain[i, s]

        best, best_tried, best_first, best_further = np.float32(np.inf), 0, np.uint64(0), 0
        for i in range(rows):
            base[i] = -target[i, column]
        further = 0
        for turn in range(rounds):
            if turn:  # Gray code: one of the further units changes
                flipped = 0
                while not (turn >> flipped) & 1:
                    flipped += 1
                further ^= 1 << flipped
                sign = np.float32(1) if (further >> flipped) & 1 else np.float32(-1)
                for i in range(rows):
                    base[i] += sign * values[i, halves + flipped]
            for i in range(rows):
                tried[i, 0] = base[i]
                for j in range(tried_units):
                    step, half = values[i, sorted_units + j], 1 << j
                    for s in range(half):
                        tried[i, half + s] = tried[i, s] + step
            for t in range(tries):
                x, y, z = tried[0, t], tried[1, t], tried[2, t]
                b = min(max(np.int32((-x - low) * to_bucket), 0), buckets - 1)
                first = np.uint64(min(max(end[b] - window // 2, 0), size - window))
                nearest = np.float32(np.inf)
                if rows == 1:
                    for p in range(first, first + np.uint64(window)):
                        dx = ordered[0, p] + x
                        nearest = min(nearest, dx * dx)
                elif rows == 2:
                    for p in range(first, first + np.uint64(window)):
                        dx, dy = ordered[0, p] + x, ordered[1, p] + y
                        nearest = min(nearest, dx * dx + dy * dy)
                else:
                    for p in range(first, first + np.uint64(window)):
                        dx, dy, dz = ordered[0, p] + x, ordered[1, p] + y, ordered[2, p] + z
                        nearest = min(nearest, dx * dx + dy * dy + dz * dz)
                if nearest < best:
                    best, best_tried, best_first, best_further = nearest, t, first, further
                    if best <= good_enough:
                        break
            if best <= good_enough:
                break

        # The sum that was nearest: in the round that found it, `tried` may have been of other further units.
        for i in range(rows):
            base[i] = -target[i, column]
            for u in range(sorted_units, units):
                j = u - sorted_units
                kept = (best_tried >> j) & 1 if u < halves else (best_further >> (u - halves)) & 1
                mask[column, u] = kept != 0
                if kept:
                    base[i] += values[i, u]
        chosen, nearest = best_first, np.float32(np.inf)
        for p in range(best_first, best_first + np.uint64(window)):
            distance = np.float32(0)
            for i in range(rows):
                d = ordered[i, p] + base[i]
                distance += d * d
            if distance < nearest:
                chosen, nearest = np.uint64(p), distance
        for u in range(sorted_units):
            mask[column, u] = (subset[chosen] >> u) & 1 != 0
        for i in range(rows):
            total = -target[i, column]
            for u in range(units):
                if mask[column, u]:
                    total += np.float64(left[i, u]) * np.float64(right[column, u])
            error[i, column] = total
            if takeover.size:
                for later in range(column + 1, right.shape[0]):
                    target[i, later] += total * takeover[column, later]
