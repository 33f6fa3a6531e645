"""The best path of choices down a column: Viterbi's algorithm on Ungerboeck's one-dimensional codes.

A state s allows the values of parity b = s mod 2, and the chosen value v = 2k + b moves it to
s' = (s >> 1) xor b·H0 xor (k mod 2)·H1. Every path begins at state 0.
"""

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.rans import kernel

# Number of states -> (H0, H1), the parity-check polynomials of Ungerboeck (1982) without their lowest bit.
CODES = {4: (0o5 >> 1, 0o2 >> 1), 8: (0o13 >> 1, 0o04 >> 1), 64: (0o103 >> 1, 0o024 >> 1)}
STATES = (1, *CODES)
# Root mean square error over that of the nearest of the same number of values, Δ/√12; measured on uniform targets.
GAIN = {1: 1.0, 4: 0.8917, 8: 0.8825, 64: 0.8662}


def check_states(states: int) -> None:
    """Raise unless there is such a trellis."""
    if states not in STATES:
        raise StrongTicketError(f"states={states!r}: expected one of {', '.join(map(str, STATES))}")


def best_values(wanted: np.ndarray, states: int, zeros: np.ndarray) -> np.ndarray:
    """Whole numbers v, int32, close to the wanted ones and along a path of each column; with one state the nearest.

    Args:
        wanted: float64 (rows, columns), in units of the spacing and with the offset taken away.
        states: of the trellis.
        zeros: where no number is chosen; the path goes on below.
    """
    if states == 1:
        return np.rint(wanted).astype(np.int32)
    found = np.zeros(wanted.shape[::-1], np.int32)
    _best_paths(np.ascontiguousarray(wanted.T), np.ascontiguousarray(zeros.T), found, *tables(states))
    return np.ascontiguousarray(found.T)


@kernel
def _best_paths(columns, zeros, found, before, labels):
    for j in range(len(columns)):
        if zeros[j].any():
            on = np.flatnonzero(~zeros[j])
            values = np.empty(on.size, np.int32)
            best_path(columns[j][on], values, before, labels)
            found[j][on] = values
        else:
            best_path(columns[j], found[j], before, labels)


def tables(states: int) -> tuple[np.ndarray, np.ndarray]:
    """By state, the two states that lead to it; and v mod 4 on the way from each of them."""
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
def best_path(wanted, values, before, labels):
    """Fill `values` with the path of least square error; whole errors stay below 4, so float32 sums are enough."""
    rows, states = wanted.size, before.shape[1]
    costs, after = np.full(states, np.float32(1e30)), np.empty(states, np.float32)
    costs[0] = 0
    distances = np.empty(4, np.float32)
    second = np.empty((rows, states), np.bool_)
    for row in range(rows):
        place = np.float32(wanted[row] - 4 * np.floor(wanted[row] * 0.25))
        for label in range(4):
            away = abs(place - np.float32(label))
            away = min(away, np.float32(4) - away)
            distances[label] = away * away
        for state in range(states):
            a = costs[before[0, state]] + distances[labels[0, state]]
            b = costs[before[1, state]] + distances[labels[1, state]]
            second[row, state] = b < a
            after[state] = min(a, b)
        if row & 255 == 255:  # long columns: keep the sums small
            least = after.min()
            for state in range(states):
                after[state] -= least
        costs, after = after, costs
    state = np.argmin(costs)
    for row in range(rows - 1, -1, -1):
        from_second = np.int64(second[row, state])
        label = labels[from_second, state]
        values[row] = np.int32(4 * np.floor((wanted[row] - label) * 0.25 + 0.5)) + np.int32(label)
        state = before[from_second, state]
