"""Errors fed forward: each column is chosen for what the columns before it left over (GPTQ, Frantar et al. 2023).

A layer's output changes by E·x for the error matrix E. With the covariance H of inputs x, the error of column j is
made up for, as far as possible, by the later columns: (error / U_jj)·U_jc is subtracted from column c, where U is the
upper triangular factor of H⁻¹ = Uᵀ·U. Columns with the largest inputs come first, so that most others can make up for
them.
"""

from dataclasses import dataclass

import numpy as np

from strongticket.choice.tokens import LARGEST
from strongticket.choice.trellis import fill_values, steps
from strongticket.compiled import kernel
from strongticket.errors import StrongTicketError

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
    order, shares = feedback.order, feedback.shares
    if shares.shape != (rows.shape[1], rows.shape[1]) or not np.array_equal(
        np.sort(order), np.arange(len(shares))
    ):
        raise StrongTicketError(
            f"the feedback is of {len(shares)} columns, the numbers have {rows.shape[1]}",
            hint="Measure the inputs of this layer; `transposed` says which axis they are fed along.",
        )
    columns = rows.T[order].astype(np.float64)
    chosen = np.empty(columns.shape, np.int32)
    if not _feed(columns, spacings, offsets.T[order], zeros.T[order], shares, *steps(states), chosen):
        raise StrongTicketError(
            "errors that are fed forward grow too large",
            hint="Measure more inputs, or leave the feedback out.",
        )
    found = np.empty(rows.shape, np.int32)
    found[:, order] = chosen.T
    return found


@kernel
def _feed(columns, spacings, offsets, zeros, shares, before, labels, chosen):
    """Plain loops in a fixed order: the same bits on any number of threads. False if numbers grow too large."""
    count, rows = columns.shape
    one, by = (rows, 1), 1 / spacings
    error = np.empty(rows)
    for j in range(count):
        for r in range(rows):
            if not abs(columns[j, r] * by[r]) < LARGEST:
                return False
        fill_values(
            columns[j].reshape(one), by, offsets[j].reshape(one), zeros[j].reshape(one), before, labels,
            chosen[j].reshape(one),
        )  # fmt: skip
        for r in range(rows):
            made = 0.0 if zeros[j, r] else chosen[j, r] + (2.0 * offsets[j, r] + 1) / 131072 - 0.5
            error[r] = columns[j, r] - spacings[r] * made
        for c in range(j + 1, count):
            share = shares[j, c]
            for r in range(rows):
                columns[c, r] -= share * error[r]
    return True
