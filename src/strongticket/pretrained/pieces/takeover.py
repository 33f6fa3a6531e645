"""Errors fed forward, as GPTQ does: what one column misses, later columns make up for where inputs go together.

A linear map W reads inputs x. Of the error e at one column, the part that later columns can cancel on such inputs is
known beforehand: rows of the Cholesky factor of the inverse of E[x xᵀ].
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int32

DAMPING = 0.01  # of the mean square of an input, added to each: few inputs must not look like certainty


@dataclass(frozen=True)
class Takeover:
    """order: columns as they are solved, the largest inputs first, as later columns make up for theirs

    shares: in that order; [i, j] for j > i is what column j takes over of an error at column i
    """

    order: Int32[np.ndarray, " columns"]
    shares: Float32[np.ndarray, "columns columns"]

    @classmethod
    def of(cls, gram: Float64[np.ndarray, "columns columns"]) -> "Takeover | None":
        """gram: the mean of x xᵀ over the inputs; None if all of them are zero."""
        sizes = gram.diagonal()
        if not sizes.any():
            return None
        order = np.argsort(-sizes, kind="stable")
        damped = torch.from_numpy(gram[order][:, order])
        damped.diagonal().add_(DAMPING * float(sizes.mean()))
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
        factor = torch.linalg.cholesky(inverse, upper=True).numpy()
        shares = np.triu(factor / factor.diagonal()[:, None], 1)
        return cls(order.astype(np.int32), shares.astype(np.float32))

    def to_bytes(self) -> bytes:
        return self.order.astype("<i4").tobytes() + self.shares.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, columns: int) -> "Takeover":
        order, shares = data[: 4 * columns], data[4 * columns :]
        return cls(np.frombuffer(order, "<i4"), np.frombuffer(shares, "<f4").reshape(columns, columns))
