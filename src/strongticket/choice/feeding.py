"""Errors fed forward: each column is chosen for what the columns before it left over (GPTQ, Frantar et al. 2023).

A layer's output changes by E·x for the error matrix E. With the covariance H of inputs x, the error of column j is
made up for, as far as possible, by the later columns: column c takes (error / U_jj)·U_jc away, where U is the upper
triangular factor of H⁻¹ = Uᵀ·U. Columns with the largest inputs come first, so that most others can make up for them.
"""

from dataclasses import dataclass

import numpy as np

from strongticket.choice.trellis import best_path, tables
from strongticket.rans import kernel

DAMPING = 0.01  # mean squares of an input that are added to each: few inputs must not look like certainty


@dataclass(frozen=True)
class Feedback:
    """What each column of a matrix takes over of the errors of others.

    Attributes:
        order: of the columns, int64.
        shares: float64, in that order; [i, j] for j > i is what column j takes over of an error at column i.
    """

    order: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, covariance: np.ndarray) -> "Feedback | None":
        """For inputs of this covariance, (columns, columns); None if all of them are zero."""
        sizes = covariance.diagonal()
        if not sizes.any():
            return None
        order = np.argsort(-sizes, kind="stable")
        damped = covariance[order][:, order].astype(np.float64)
        damped[np.diag_indices(len(damped))] += DAMPING * sizes.mean()
        factor = np.linalg.cholesky(np.linalg.inv(damped)).T
        return cls(order, np.ascontiguousarray(factor / factor.diagonal()[:, None]))


def fed_values(
    rows: np.ndarray,
    spacings: np.ndarray,
    offsets: np.ndarray,
    states: int,
    zeros: np.ndarray,
    feedback: Feedback,
) -> np.ndarray:
    """`best_values` of each column in turn, int32; zeros stay out."""
    order = feedback.order
    columns = np.ascontiguousarray(rows.T[order].astype(np.float64))
    u = (2.0 * offsets.T[order].astype(np.float64) + 1) / 131072 - 0.5
    before, labels = tables(max(states, 4))
    chosen = np.zeros(columns.shape, np.int32)
    _feed(columns, spacings, u, zeros.T[order], feedback.shares, states, before, labels, chosen)
    found = np.empty(rows.shape, np.int32)
    found[:, order] = chosen.T
    return found


@kernel
def _feed(columns, spacings, u, zeros, shares, states, before, labels, chosen):
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
            chosen[j, r] = values[i]
            error[r] -= spacings[r] * (values[i] + u[j, r])
        for c in range(j + 1, columns.shape[0]):
            by = shares[j, c]
            for r in range(error.size):
                columns[c, r] -= by * error[r]
