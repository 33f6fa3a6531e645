"""Where a vector may lie: sums of ellipsoids around zero, carried through linear maps and ReLUs.

A ball alone forgets in which directions a stream is long; that is what made certificates of several blocks
loose. Everything here only ever grows a region, rounding included. Proofs in docs/theory.md ("Blocks").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from strongticket.theory.rounding import INFLATE, frobenius, gamma, largest_eigenvalue, spectral_norm

ROUNDS = 8  # of moving the shares of an ellipsoid
SMALLEST_SHARE = 1e-100  # of an ellipsoid; anything smaller is a ball, before its share underflows


@dataclass(frozen=True)
class Region:
    """{ Σ_j N_jᵀ v_j + w : ‖v_j‖ ≤ 1, ‖w‖ ≤ ball } in R^dim.

    The shapes are the N_j, each (rows_j, dim); in direction u the region reaches Σ_j ‖N_j u‖ + ball·‖u‖.
    """

    dim: int
    shapes: tuple[Float[np.ndarray, "_ dim"], ...] = ()
    ball: float = 0.0

    def __add__(self, other: Region) -> Region:
        """Every sum of a vector of each."""
        return Region(self.dim, self.shapes + other.shapes, (self.ball + other.ball) * INFLATE)

    def scaled(self, factor: float) -> Region:
        return replace(self, shapes=tuple(factor * shape for shape in self.shapes), ball=factor * self.ball)

    def through(self, matrix: Float[np.ndarray, "dim dim_out"]) -> Region:
        """The vectors x @ matrix, what rounding of the products may hide included."""
        shapes = tuple(shape @ matrix for shape in self.shapes)
        if self.ball:
            shapes += (self.ball * matrix,)
        hidden = gamma(self.dim + 2) * frobenius(matrix) * self.size
        return Region(matrix.shape[1], shapes, hidden * INFLATE)

    def radius(self) -> float:
        """At least the norm of every vector of the region: √λmax of an ellipsoid around it, verified.

        The shares λ_j of the ellipsoid are moved to where the longest axis is short; any of them are valid.
        """
        shapes, shape_sizes, ball = self._parts()
        if not shapes:
            return ball
        sizes = np.array(shape_sizes)
        total = float(sizes.sum())
        if not np.isfinite(total):
            return np.inf
        if len(shapes) == 1:
            return (spectral_norm(shapes[0]) + ball) * INFLATE
        squares = [(shape / total).T @ (shape / total) for shape in shapes]
        shares = sizes / total
        best, longest = np.inf, shares
        for _ in range(ROUNDS):
            values, vectors = np.linalg.eigh(_weighted(squares, shares))
            if values[-1] < best:
                best, longest = values[-1], shares
            along = np.sqrt([max(float(vectors[:, -1] @ square @ vectors[:, -1]), 0.0) for square in squares])
            shares = np.sqrt(shares * np.maximum(along, 1e-4 * along.max()))
            shares = shares / shares.sum()
        gram = _weighted(squares, longest)
        rows = max(len(shape) for shape in shapes)
        forming = 4 * gamma(rows + len(shapes) + 8) * float(np.trace(gram))
        return (float(np.sqrt(largest_eigenvalue(gram) + forming)) * total + ball) * INFLATE

    @cached_property
    def _sizes(self) -> tuple[float, ...]:
        """At least the Frobenius norm of each shape."""
        return tuple(frobenius(shape) for shape in self.shapes)

    def _parts(self) -> tuple[list[Float[np.ndarray, "_ dim"]], list[float], float]:
        """The shapes that are not far smaller than the largest, their sizes, and a ball with the others in it."""
        least = SMALLEST_SHARE * max(self._sizes, default=0.0)
        # Negated, so that a NaN stays among the shapes and is noticed there.
        kept = [i for i, size in enumerate(self._sizes) if not size <= least]
        rest = sum(size for size in self._sizes if size <= least)
        return [self.shapes[i] for i in kept], [self._sizes[i] for i in kept], (self.ball + rest) * INFLATE

    @property
    def extent(self) -> float:
        """Norms added up: a size to compare regions by, not a valid bound."""
        if not np.isfinite(self.size):
            return np.inf
        return sum(float(np.linalg.norm(shape, 2)) for shape in self.shapes) + self.ball

    @property
    def size(self) -> float:
        """A radius that is cheap and not sharp."""
        return (sum(self._sizes) + self.ball) * INFLATE

    def ellipsoid(self) -> Float[np.ndarray, "dim dim"]:
        """One P with ‖P u‖ at least the region's reach in every direction u.

        (Σ ‖N_j u‖)² ≤ Σ ‖N_j u‖²/λ_j for Σ λ_j = 1; λ_j in the ratio of the Frobenius norms makes the sum of
        squared axes smallest. Cholesky's rounding is below the multiple of the unit matrix that is added
        (Higham, Theorem 10.3).
        """
        shapes, sizes, ball = self._parts()
        if ball:
            ball = max(ball, SMALLEST_SHARE * max(sizes, default=0.0))
            shapes.append(ball * np.eye(self.dim))
            sizes.append(frobenius(shapes[-1]))
        if not shapes:
            return np.zeros((self.dim, self.dim))
        if not np.isfinite(sum(sizes)):
            return np.full((self.dim, self.dim), np.inf)
        total = sum(sizes)
        # Unit size keeps squares in range.
        squares = [(shape / total).T @ (shape / total) for shape in shapes]
        gram = _weighted(squares, np.array(sizes) / total)
        longest = max(len(shape) for shape in shapes)
        share = 8 * gamma(longest + self.dim + len(shapes) + 8)
        gram = gram + share * float(np.trace(gram)) * np.eye(self.dim)
        return np.linalg.cholesky(gram).T * (total * INFLATE)


def _weighted(squares: list[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Σ N_jᵀN_j/λ_j, symmetric."""
    gram = sum(square / share for square, share in zip(squares, shares, strict=True))
    symmetric: np.ndarray = (gram + gram.T) / 2
    return symmetric


def ball(dim: int, radius: float) -> Region:
    """All vectors of norm at most `radius`."""
    return Region(dim, (), float(radius))


def point(vector: Float[np.ndarray, " dim"]) -> Region:
    """The segment from −vector to vector."""
    return Region(len(vector), (np.asarray(vector, np.float64)[None],))
