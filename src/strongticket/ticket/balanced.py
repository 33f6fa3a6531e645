"""A mask that follows from the random weights themselves, so that it costs nothing in the file.

A matrix (rows, units): consecutive rows form tuples, and every unit serves the rows of one tuple. Which one is
decided by swaps until the units of each tuple are balanced: their weights add up to nearly 0 in each row, so that
sums of subsets spread around 0, and rows are nearly orthogonal with nearly the same norm, so that they spread equally
in all directions. No target is involved. docs/ticket-format.md describes it for other languages.
"""

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float32

from strongticket.compiled import njit
from strongticket.errors import TicketError

SHARES = (1, 2, 3)  # rows in a tuple at most
MAX_UNITS = 64  # of a tuple: bounds the work that a file can ask for
_GROUP = 16  # tuples at most among which units are swapped
_PASSES = 4
_SHAPE = 0.3  # what orthogonality and norm count beside the sum


def tuples(rows: int, units: int, share: int) -> np.ndarray:
    """Return (tuples + 1, 2): the first row and the first unit of each tuple, then the ends.

    Tuples have `share` rows, or one less where they do not divide; such a tuple has half a row's units more, as it has
    fewer subsets for each entry.

    >>> tuples(5, 33, 3).tolist()
    [[0, 0], [2, 15], [5, 33]]
    """
    count = -(-rows // share)
    edges = [rows * i // count for i in range(count + 1)]
    largest = -(-rows // count)
    parts = [0]
    for first, end in pairwise(edges):
        parts.append(parts[-1] + 2 * (end - first) + (end - first < largest))
    return np.array([edges, [units * part // parts[-1] for part in parts]]).T


def balance(weights: Float32[np.ndarray, "rows units"], share: int) -> Bool[np.ndarray, "rows units"]:
    """Return the mask of these weights: each unit keeps the rows of its tuple, which has `share` rows."""
    rows, units = weights.shape
    edges = tuples(rows, units, share)
    if np.diff(edges[:, 1]).max() > MAX_UNITS:
        raise TicketError(f"{units} units for {rows} rows: more than {MAX_UNITS} for each tuple of {share}")
    count = len(edges) - 1
    owner = np.repeat(np.arange(count), np.diff(edges[:, 1]))
    groups = -(-count // _GROUP)  # of equal size: a tuple alone would have nothing to exchange
    for first, end in pairwise(count * i // groups for i in range(groups + 1)):
        group = edges[first : end + 1]
        (row, unit), (last_row, last_unit) = group[0], group[-1]
        own = owner[unit:last_unit]
        own -= first
        _swap(
            np.ascontiguousarray(weights[row:last_row, unit:last_unit]),
            *np.ascontiguousarray((group - group[0]).T),
            own,
        )
        own += first
    tuple_of_row = np.repeat(np.arange(count), np.diff(edges[:, 0]))
    mask: np.ndarray = tuple_of_row[:, None] == owner
    return mask


def plausible_share(mask: np.ndarray) -> int | None:
    """Return the share that a mask would have if it were balanced; None if it cannot be."""
    if mask.ndim != 2 or not mask.size or mask.shape[0] < 2 or mask.all():
        return None
    rows, units = mask.shape
    kept = np.count_nonzero(mask, axis=0)
    share = int(kept.max())
    if share not in SHARES or kept.min() < max(share - 1, 1):
        return None
    edges = tuples(rows, units, share)
    if np.diff(edges[:, 1]).max() > MAX_UNITS or (np.diff(edges[:, 0]) @ np.diff(edges[:, 1])) != kept.sum():
        return None
    return share


# A tuple's state is a sum over its units of 2, 5 or 9 numbers for 1, 2 or 3 rows: for each row its weight w_i, then its
# products w_i·w_j with the rows j up to itself.
_NUMBERS = (0, 2, 5, 9)


@njit(nogil=True, cache=True, error_model="numpy")
def _costs(
    many: np.ndarray, start: int, end: int, one: np.ndarray, rows: int, third: float, out: np.ndarray
) -> None:
    """How far each state many[:, i] + one is from balance, for i from start to end.

    That is the sums of its rows, and its Gram matrix minus third times the identity. Unsigned indices let the
    processor take several states at a time.
    """
    first, last = np.uint64(start), np.uint64(end)
    a, b = one[0], one[1]
    if rows == 1:
        for i in range(first, last):
            total, off = many[0, i] + a, many[1, i] + b - third
            out[i] = total * total + _SHAPE * (off * off)
        return
    c, d, e = one[2], one[3], one[4]
    for i in range(first, last):
        total, off = many[0, i] + a, many[1, i] + b - third
        cost = total * total + _SHAPE * (off * off)
        total, cross, off = many[2, i] + c, many[3, i] + d, many[4, i] + e - third
        out[i] = cost + total * total + _SHAPE * (off * off) + 2.0 * _SHAPE * (cross * cross)
    if rows == 3:
        a, b, c, d = one[5], one[6], one[7], one[8]
        for i in range(first, last):
            total, off = many[5, i] + a, many[8, i] + d - third
            cross, other = many[6, i] + b, many[7, i] + c
            cost = out[i] + total * total + _SHAPE * (off * off)
            out[i] = cost + 2.0 * _SHAPE * (cross * cross) + 2.0 * _SHAPE * (other * other)


@njit(nogil=True, cache=True, error_model="numpy")
def _swap(weights: np.ndarray, rows: np.ndarray, starts: np.ndarray, own: np.ndarray) -> None:
    """Exchange units between the tuples of a group while that lowers their cost.

    weights: float32 (rows, units) of the group; rows, starts: first row and first unit of each tuple, then the ends
    own: tuple of each unit, changed in place

    A tuple's units stand side by side: unit u is at place[u], and at[place[u]] is u. Adding whole arrays instead of
    their numbers would triple the time to compile this.
    """
    count, units = len(starts) - 1, len(own)
    numbers, thirds = 0, np.empty(count)
    for t in range(count):
        numbers = max(numbers, _NUMBERS[rows[t + 1] - rows[t]])
        thirds[t] = (starts[t + 1] - starts[t]) / 3.0

    added = np.zeros((count, numbers, units))  # what each unit adds to the state of each tuple
    for t in range(count):
        k = 0
        for i in range(rows[t], rows[t + 1]):
            for u in range(units):
                added[t, k, u] = weights[i, u]
            for j in range(rows[t], i + 1):
                k += 1
                for u in range(units):
                    added[t, k, u] = np.float64(weights[i, u]) * np.float64(weights[j, u])
            k += 1

    place, at = np.arange(units), np.arange(units)
    state, costs, one = np.zeros((numbers, count)), np.empty(count), np.zeros(numbers)
    without = np.empty((numbers, units))  # by place: the state of a unit's tuple if the unit leaves it
    for t in range(count):
        for u in range(starts[t], starts[t + 1]):
            for k in range(numbers):
                state[k, t] += added[t, k, u]
        _costs(state, t, t + 1, one, rows[t + 1] - rows[t], thirds[t], costs)
        _leave(without, state, added, at, t, starts)

    joined, replaced = np.empty(units), np.empty(units)
    for _ in range(_PASSES):
        swapped = False
        for u in range(units):
            v = u + 1
            while v < units:
                # The tuple of u with another unit in its place, and the tuples of the others with u in theirs.
                s = own[u]
                for k in range(numbers):
                    one[k] = without[k, place[u]]
                _costs(added[s], v, units, one, rows[s + 1] - rows[s], thirds[s], joined)
                for t in range(count):
                    for k in range(numbers):
                        one[k] = added[t, k, u]
                    _costs(without, starts[t], starts[t + 1], one, rows[t + 1] - rows[t], thirds[t], replaced)
                while v < units:
                    t = own[v]
                    if t != s and joined[v] + replaced[place[v]] < costs[s] + costs[t]:
                        break
                    v += 1
                if v == units:
                    break
                for k in range(numbers):
                    state[k, s] = without[k, place[u]] + added[s, k, v]
                    state[k, t] = without[k, place[v]] + added[t, k, u]
                costs[s], costs[t] = joined[v], replaced[place[v]]
                own[u], own[v] = t, s
                place[u], place[v] = place[v], place[u]
                at[place[u]], at[place[v]] = u, v
                _leave(without, state, added, at, s, starts)
                _leave(without, state, added, at, t, starts)
                swapped = True
                v += 1
        if not swapped:
            break


@njit(nogil=True, cache=True, error_model="numpy")
def _leave(
    without: np.ndarray, state: np.ndarray, added: np.ndarray, at: np.ndarray, t: int, starts: np.ndarray
) -> None:
    """Fill `without` for the units of tuple t."""
    for k in range(len(without)):
        for p in range(starts[t], starts[t + 1]):
            without[k, p] = state[k, t] - added[t, k, at[p]]
