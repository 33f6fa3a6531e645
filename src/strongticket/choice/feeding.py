"""Errors fed forward: each column is chosen for what the columns before it left over (GPTQ, Frantar et al. 2023).

A layer's output changes by E·x for the error matrix E. With the covariance H of inputs x, the error of column j is
made up for, as far as possible, by the later columns: column c takes (error / U_jj)·U_jc away, where U is the upper
triangular factor of H⁻¹ = Uᵀ·U.
"""

import numpy as np

from strongticket.choice.trellis import best_path, tables
from strongticket.rans import kernel


def feeding_factor(covariance: np.ndarray, damping: float = 0.01) -> np.ndarray:
    """U of a covariance (columns, columns), float64; `damping` mean diagonals are added, as inputs may be few."""
    found = covariance.astype(np.float64)
    found[np.diag_indices(len(found))] += damping * np.trace(found) / len(found) or 1.0
    inverse: np.ndarray = np.linalg.cholesky(np.linalg.inv(found)).T
    return np.ascontiguousarray(inverse)


def fed_values(
    rows: np.ndarray,
    spacings: np.ndarray,
    offsets: np.ndarray,
    states: int,
    zeros: np.ndarray,
    factor: np.ndarray,
) -> np.ndarray:
    """`best_values` of each column in turn, int32; zeros stay out."""
    columns = np.ascontiguousarray(rows.T.astype(np.float64))
    u = (2.0 * offsets.T.astype(np.float64) + 1) / 131072 - 0.5
    found = np.zeros(columns.shape, np.int32)
    before, labels = tables(max(states, 4))
    _feed(columns, spacings, np.ascontiguousarray(u), zeros.T.copy(), factor, states, before, labels, found)
    return np.ascontiguousarray(found.T)


@kernel
def _feed(columns, spacings, u, zeros, factor, states, before, labels, found):
    """Plain loops in a fixed order: the same bits on any number of threads."""
    error = np.empty(columns.shape[1])
    for j in range(columns.shape[0]):
        on = np.flatnonzero(~zeros[j])
        wanted = columns[j][on] / spacings[on] - u[j][on]
        values = np.empty(on.size, np.int32)
        if states == 1:
            for i in range(on.size):
                values[i] = np.int32(np.rint(wanted[i]))
        else:
            best_path(wanted, values, before, labels)
        error[:] = columns[j]
        for i in range(on.size):
            r = on[i]
            found[j, r] = values[i]
            error[r] -= spacings[r] * (values[i] + u[j, r])
        for c in range(j + 1, columns.shape[0]):
            by = factor[j, c] / factor[j, j]
            for r in range(error.size):
                columns[c, r] -= by * error[r]
