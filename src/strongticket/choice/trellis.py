"""The best path of choices down a column: Viterbi's algorithm on Ungerboeck's one-dimensional codes.

A state s allows the values of parity b = s mod 2, and the chosen value v = 2k + b moves it to
s' = (s >> 1) xor b·H0 xor (k mod 2)·H1. Every path begins at state 0.
"""

import numpy as np

from strongticket.compiled import kernel
from strongticket.errors import StrongTicketError

# Number of states -> (H0, H1), the parity-check polynomials of Ungerboeck (1982) without their lowest bit.
CODES = {4: (0o5 >> 1, 0o2 >> 1), 8: (0o13 >> 1, 0o04 >> 1), 64: (0o103 >> 1, 0o024 >> 1)}
CODES[256] = 0o515 >> 1, 0o362 >> 1  # for studies only
STATES = (1, 4, 8, 64)  # of files
# Root mean square error over that of the nearest of the same number of values, Δ/√12; measured on uniform targets.
GAIN = {1: 1.0, 4: 0.8917, 8: 0.8825, 64: 0.8662}
_SIDE_BY_SIDE = 64  # columns: the loops over them compile to vector instructions


def check_states(states: int) -> None:
    """Raise unless there is such a trellis."""
    if states not in STATES:
        raise StrongTicketError(
            f"states={states!r}: expected one of {', '.join(map(str, STATES))}", hint="8 is a good choice."
        )


def best_values(
    rows: np.ndarray, spacings: np.ndarray, offsets: np.ndarray, states: int, zeros: np.ndarray
) -> np.ndarray:
    """Whole numbers v, int32: D·(v + u) is close to the numbers along a path of each column, with one state nearest.

    Args:
        rows: the numbers, (rows, columns).
        spacings: D of each row, float64.
        offsets: u as uint16, of the rows' shape.
        states: of the trellis.
        zeros: where no number is chosen; the path goes on below.
    """
    values = np.empty(rows.shape, np.int32)
    fill_values(rows, 1 / spacings, offsets, zeros, *steps(states), values)
    return values


def steps(states: int) -> tuple[np.ndarray, np.ndarray]:
    """By state, the two states that lead to it; and v mod 4 on the way from each of them. Empty for one state."""
    if states == 1:
        return np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)
    h0, h1 = CODES[states]
    before, labels = np.zeros((2, states), np.int64), np.zeros((2, states), np.int64)
    seen = np.zeros(states, np.int64)
    for state in range(states):
        for odd in (0, 1):
            b = state & 1
            after = (state >> 1) ^ (b * h0) ^ (odd * h1)
            before[seen[after], after], labels[seen[after], after] = state, 2 * odd + b
            seen[after] += 1
    return before, labels


@kernel
def fill_values(rows, by, offsets, zeros, before, labels, values):
    """`best_values` with 1 / spacings as `by`."""
    columns = rows.shape[1]
    if before.shape[1] == 0:
        for r in range(rows.shape[0]):
            for j in range(columns):
                values[r, j] = (
                    0 if zeros[r, j] else np.int32(np.rint(_wanted(rows[r, j], by[r], offsets[r, j])))
                )
        return
    second = np.empty((rows.shape[0], before.shape[1], min(columns, _SIDE_BY_SIDE)), np.bool_)
    for begin in range(0, columns, _SIDE_BY_SIDE):
        some = slice(begin, min(begin + _SIDE_BY_SIDE, columns))
        _best_paths(
            rows[:, some], by, offsets[:, some], zeros[:, some], before, labels, second, values[:, some]
        )


@kernel
def _wanted(number, by, offset):
    """A number in spacings, without its offset: float64, which holds every digit that matters."""
    return np.float64(number) * by - (2.0 * offset + 1) / 131072 + 0.5


@kernel
def _best_paths(rows, by, offsets, zeros, before, labels, second, values):
    """The paths of least square error of some columns; squares are at most 4, so float32 sums are enough.

    second[r, state, j] is whether the best path to a state comes from the second of the states that lead to it.
    """
    columns, states = rows.shape[1], before.shape[1]
    costs, after = np.full((states, columns), np.float32(1e30)), np.empty((states, columns), np.float32)
    costs[0] = 0
    distances = np.empty((4, columns), np.float32)
    for r in range(rows.shape[0]):
        for j in range(columns):
            wanted = _wanted(rows[r, j], by[r], offsets[r, j])
            place = np.float32(wanted - 4 * np.floor(wanted * 0.25))
            for label in range(4):
                away = abs(place - np.float32(label))
                away = min(away, np.float32(4) - away)
                distances[label, j] = away * away
        for state in range(states):
            cost0, cost1 = costs[before[0, state]], costs[before[1, state]]
            distance0, distance1 = distances[labels[0, state]], distances[labels[1, state]]
            least, is_second = after[state], second[r, state]
            for j in range(columns):
                a, b = cost0[j] + distance0[j], cost1[j] + distance1[j]
                is_second[j] = b < a
                least[j] = min(a, b)
        for j in range(columns):
            if zeros[r, j]:
                after[:, j] = costs[:, j]
            if r & 255 == 255:  # long columns: keep the sums small
                after[:, j] -= after[:, j].min()
        costs, after = after, costs
    path = np.empty(columns, np.int64)
    for j in range(columns):
        path[j] = np.argmin(costs[:, j])
    for r in range(rows.shape[0] - 1, -1, -1):
        for j in range(columns):
            if zeros[r, j]:
                values[r, j] = 0
                continue
            state = path[j]
            way = np.int64(second[r, state, j])
            label = labels[way, state]
            wanted = _wanted(rows[r, j], by[r], offsets[r, j])
            values[r, j] = np.int32(4 * np.floor((wanted - label) * 0.25 + 0.5)) + np.int32(label)
            path[j] = before[way, state]
