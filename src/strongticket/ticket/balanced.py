"""A mask that follows from the random weights themselves, so that it costs nothing in the file.

A matrix (rows, units): consecutive rows form tuples, and every unit serves the rows of one tuple. Which one is
decided by swaps until the units of each tuple are balanced: their weights add up to nearly 0 in each row, so that
sums of subsets spread around 0, and rows are nearly orthogonal with nearly the same norm, so that they spread equally
in all directions. No target is looked at. docs/ticket-format.md describes it for other languages.
"""

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float32

from strongticket.compiled import njit
from strongticket.errors import TicketError

SHARES = (1, 2, 3)  # rows in a tuple at most
MAX_UNITS = 64  # of a tuple: bounds the work that a file can ask for
_GROUP = 16  # tuples among which units are swapped
_PASSES = 4
_SHAPE = 0.3  # what orthogonality and norm count beside the sum


def tuples(rows: int, units: int, share: int) -> np.ndarray:
    """(tuples + 1, 2): first row and first unit of each tuple, then the ends.

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
    """The mask of these weights: each unit keeps the rows of its tuple. share: rows in a tuple, see `tuples`."""
    rows, units = weights.shape
    edges = tuples(rows, units, share)
    if np.diff(edges[:, 1]).max() > MAX_UNITS:
        raise TicketError(f"{units} units for {rows} rows: more than {MAX_UNITS} for each tuple of {share}")
    owner = np.repeat(np.arange(len(edges) - 1), np.diff(edges[:, 1]))
    for first in range(0, len(edges) - 1, _GROUP):
        _swap(weights, edges[first : first + _GROUP + 1], first, owner)
    tuple_of_row = np.repeat(np.arange(len(edges) - 1), np.diff(edges[:, 0]))
    mask: np.ndarray = tuple_of_row[:, None] == owner
    return mask


def plausible_share(mask: np.ndarray) -> int | None:
    """The share that a mask would have if it were balanced; None if it cannot be."""
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


@njit(nogil=True, cache=True, error_model="numpy")
def _cost(total: np.ndarray, square: np.ndarray, rows: int, units: int) -> float:
    """How far a tuple is from balance: sums of its rows, and its Gram matrix against units/3 times the identity."""
    cost = 0.0
    for i in range(rows):
        cost += total[i] * total[i]
        off = square[i, i] - units / 3.0
        cost += _SHAPE * (off * off)
        for j in range(i):
            cost += 2.0 * _SHAPE * (square[i, j] * square[i, j])
    return cost


@njit(nogil=True, cache=True, error_model="numpy")
def _swap(weights: np.ndarray, edges: np.ndarray, first_tuple: int, owner: np.ndarray) -> None:
    """Exchange units between tuples of a group while that lowers their cost; owner is changed in place."""
    count, largest = len(edges) - 1, 0
    for t in range(count):
        largest = max(largest, edges[t + 1, 0] - edges[t, 0])
    totals, squares = np.zeros((count, largest)), np.zeros((count, largest, largest))
    costs = np.zeros(count)
    for t in range(count):
        row, rows = edges[t, 0], edges[t + 1, 0] - edges[t, 0]
        for u in range(edges[t, 1], edges[t + 1, 1]):
            for i in range(rows):
                totals[t, i] += np.float64(weights[row + i, u])
                for j in range(i + 1):
                    squares[t, i, j] += np.float64(weights[row + i, u]) * np.float64(weights[row + j, u])
        costs[t] = _cost(totals[t], squares[t], rows, edges[t + 1, 1] - edges[t, 1])
    new_total, new_square = np.zeros((2, largest)), np.zeros((2, largest, largest))
    new_cost = np.zeros(2)
    for _ in range(_PASSES):
        swapped = False
        for u in range(edges[0, 1], edges[count, 1]):
            for v in range(u + 1, edges[count, 1]):
                s, t = owner[u] - first_tuple, owner[v] - first_tuple
                if s == t:
                    continue
                for side in range(2):
                    which, leaves, comes = (s, u, v) if side == 0 else (t, v, u)
                    row, rows = edges[which, 0], edges[which + 1, 0] - edges[which, 0]
                    for i in range(rows):
                        old, new = np.float64(weights[row + i, leaves]), np.float64(weights[row + i, comes])
                        new_total[side, i] = totals[which, i] - old + new
                        for j in range(i + 1):
                            new_square[side, i, j] = (
                                squares[which, i, j]
                                - old * np.float64(weights[row + j, leaves])
                                + new * np.float64(weights[row + j, comes])
                            )
                    units = edges[which + 1, 1] - edges[which, 1]
                    new_cost[side] = _cost(new_total[side], new_square[side], rows, units)
                if new_cost[0] + new_cost[1] < costs[s] + costs[t]:
                    totals[s], totals[t] = new_total[0], new_total[1]
                    squares[s], squares[t] = new_square[0], new_square[1]
                    costs[s], costs[t] = new_cost[0], new_cost[1]
                    owner[u], owner[v] = owner[v], owner[u]
                    swapped = True
        if not swapped:
            break
