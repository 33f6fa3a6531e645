"""Subset sum with more than 40 values: not proven optimal, but to float64 resolution where that is in reach.

The largest values are taken greedily so that what is left lies well within reach of the smallest ones.
Those are split into four lists of subset sums. Pairs from lists 1 and 2 whose sum falls into a narrow
window, and pairs from 3 and 4 that would complete it, are kept and matched: a window that lets through P
pairs per side finds the best of about N²·P subsets for the price of sorting P numbers (N = a list's length).
Near the ends of what can be reached there are few pairs, and windows grow until they hold P or all of them.
Other windows are other subsets, so a few are tried until the error is at float64 resolution.
"""

import math
from collections.abc import Iterator

import numpy as np

from strongticket.compiled import njit

# (values in the lists, pairs per side, windows)
EFFORTS = ((48, 1 << 16, 2), (64, 1 << 18, 4), (72, 1 << 18, 8))
KEY_BITS = 60
RESOLUTION = 2.0**-52  # of the largest value: sums of float64 numbers mean nothing below


def solve_rows(values: np.ndarray, targets: np.ndarray, tolerance: float) -> np.ndarray:
    """(P, n) values, (P,) targets -> (P, n) masks."""
    masks = np.zeros(values.shape, np.bool_)
    for mask, row, target in zip(masks, values, targets, strict=True):
        scale = float(max(np.abs(row).max(), abs(target)))
        if scale > 0:  # a power of two keeps every bit and lets no sum overflow
            mantissa, exponent = math.frexp(scale)
            limit = tolerance / scale * mantissa  # tolerance / 2^exponent, which alone could overflow
            mask[:] = _solve_one(np.ldexp(row, -exponent), math.ldexp(target, -exponent), limit)
    return masks


def _solve_one(row: np.ndarray, target: float, tolerance: float) -> np.ndarray:
    enough = max(tolerance, RESOLUTION)
    order = np.argsort(-np.abs(row), kind="stable")
    order = order[row[order] != 0]
    for everything in (row > 0, row < 0):
        if abs(math.fsum(row[everything])) <= abs(target) and np.sign(target) == np.sign(
            row[everything].sum()
        ):
            return everything  # the target is the end of what can be reached, or beyond
    best_error, best_mask = abs(target), np.zeros(len(row), np.bool_)
    # All values in the lists: more effort is more windows, not longer lists.
    for pool, pairs, windows in [*(e for e in EFFORTS[:-1] if e[0] < len(order)), EFFORTS[-1]]:
        coarse, fine = np.split(order, [max(0, len(order) - pool)])
        taken = _greedy(row[coarse], target - row[fine].sum() / 2)
        rest = target - math.fsum(row[coarse[taken]])
        for kept in _four_lists(row[fine], rest, enough, pairs, windows):
            mask = np.zeros(len(row), np.bool_)
            mask[coarse[taken]] = True
            mask[fine[kept]] = True
            error = abs(math.fsum([*row[mask], -target]))
            if error < best_error:
                best_error, best_mask = error, mask
            if best_error <= enough:
                return best_mask
    return best_mask


@njit(cache=True)
def _greedy(values, target):
    """From the largest on, take what brings the sum closer to the target."""
    taken = np.zeros(values.size, np.bool_)
    left = target
    for k in range(values.size):
        if abs(left - values[k]) < abs(left):
            taken[k] = True
            left -= values[k]
    return taken


def _four_lists(
    values: np.ndarray, target: float, enough: float, pairs: int, windows: int
) -> Iterator[np.ndarray]:
    """Yield masks of `values` whose sums are close to `target`, one per window; an error of `enough` will do."""
    total = float(np.abs(values).sum()) + abs(target)
    scale = math.ldexp(1.0, KEY_BITS - math.frexp(total)[1])
    keys = np.rint(values * scale).astype(np.int64)
    target_key = round(target * scale)
    parts = [np.arange(k, len(values), 4) for k in range(4)]
    sums = [_all_sums(keys[part]) for part in parts]
    lists = [np.unique(s) for s in sums]
    spread = math.sqrt(float((values[parts[0]] ** 2).sum() + (values[parts[1]] ** 2).sum())) / 2 * scale
    width = int(min(2.5 * spread * pairs / (len(lists[0]) * len(lists[1])) + 1, 2.0**KEY_BITS))
    lowest, highest = (
        np.add.reduceat([int(side(keys[part], 0).sum()) for part in parts], [0, 2])
        for side in (np.minimum, np.maximum)
    )
    # What the first two lists must give for the others to complete it; every key is rounded.
    slack = int(min(enough, total) * scale) + len(keys)
    least = max(lowest[0], target_key - highest[1]) - slack
    most = min(highest[0], target_key - lowest[1]) + slack
    # As far up their range as the target is up the range of all.
    share = (target_key - lowest.sum()) / max(highest.sum() - lowest.sum(), 1)
    middle = min(max(int(lowest[0] + share * (highest[0] - lowest[0])), least), most)

    def near(window: int) -> tuple[np.ndarray, np.ndarray]:
        shift = (window + 1) // 2 * width * (-1 if window % 2 else 1)
        low, high = max(middle + shift - width // 2, least), min(middle + shift + width // 2, most)
        return (
            _pairs_near(lists[0], lists[1], low, high, 4 * pairs),
            _pairs_near(lists[2], lists[3], target_key - high, target_key - low, 4 * pairs),
        )

    while width < 2 * (most - least) and min(map(len, near(0))) < pairs // 4:
        width *= 2
    for window in range(windows):
        first, second = map(np.sort, near(window))
        if len(first) == 0 or len(second) == 0:
            continue
        sum_12, sum_34 = _closest(first, second, target_key)
        kept = np.zeros(len(values), np.bool_)
        for k, total_of_two in ((0, sum_12), (2, sum_34)):
            x = _first_of_pair(lists[k], lists[k + 1], total_of_two)
            for part, all_sums, s in ((parts[k], sums[k], x), (parts[k + 1], sums[k + 1], total_of_two - x)):
                bits = int(np.argmax(all_sums == s))
                kept[part] = (bits >> np.arange(len(part))) & 1 == 1
        yield kept


def _all_sums(keys: np.ndarray) -> np.ndarray:
    """The sum of every subset; the subset's bits are the place."""
    sums = np.zeros(1, np.int64)
    for key in keys:
        sums = np.concatenate([sums, sums + key])
    return sums


@njit(cache=True)
def _pairs_near(xs, ys, lowest, highest, capacity):
    """Sums x + y from lowest to highest, unsorted and at most `capacity` of them; xs and ys are sorted."""
    sums = np.empty(capacity, np.int64)
    count = 0
    low, high = ys.size, ys.size  # as x grows, the y that fit move down
    for x in xs:
        while low > 0 and x + ys[low - 1] >= lowest:
            low -= 1
        while high > 0 and x + ys[high - 1] > highest:
            high -= 1
        for j in range(low, min(high, low + capacity - count)):
            sums[count] = x + ys[j]
            count += 1
    return sums[:count]


@njit(cache=True)
def _closest(xs, ys, target_key):
    """The x and y of two sorted arrays whose sum comes closest to target_key."""
    i, j = 0, ys.size - 1
    best_x, best_y = xs[0], ys[0]
    best = abs(xs[0] + ys[0] - target_key)
    while i < xs.size and j >= 0:
        difference = xs[i] + ys[j] - target_key
        if abs(difference) < best:
            best, best_x, best_y = abs(difference), xs[i], ys[j]
        if difference < 0:
            i += 1
        else:
            j -= 1
    return best_x, best_y


def _first_of_pair(xs: np.ndarray, ys: np.ndarray, total: int) -> int:
    """An x with total - x among ys, both sorted."""
    wanted = total - xs
    place = np.minimum(np.searchsorted(ys, wanted), len(ys) - 1)
    return int(xs[np.argmax(ys[place] == wanted)])
