"""An upper bound on a sum of norms and products of norms, taken over all unit vectors at once.

Every head's error is largest at an input of its own; one input cannot serve them all. Bounding the sum
over heads jointly is what makes the certificate sharp. Proof in docs/theory.md ("The joint bound").
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from strongticket.theory.rounding import INFLATE, gamma, largest_eigenvalue

ITERATIONS = 40


@dataclass(frozen=True)
class Norm:
    """The term ‖M v‖, v the vector of slot `slot`. matrix: (rows, dims[slot])"""

    matrix: Float[np.ndarray, "rows dim"]
    slot: int = 0


@dataclass(frozen=True)
class Pair:
    """The term ‖A v‖‖B w‖, or (‖A v‖‖B w‖ + Av·Bw)/2 when `aligned`.

    left: (rows, sum of dims[left_slots]), on neighbouring slots joined; right: (rows, dims[right_slot])
    """

    left: Float[np.ndarray, "rows dim_left"]
    right: Float[np.ndarray, "rows_right dim_right"]
    left_slots: tuple[int, ...]
    right_slot: int = 0
    aligned: bool = False


def supremum_bound(dims: list[int], terms: list[Norm | Pair]) -> float:
    """At least sup of the sum of `terms` over vectors v_i in R^dims[i] with ‖v_i‖ ≤ 1.

    For any positive s, t, ω:  ‖Mv‖ ≤ (t + ‖Mv‖²/t)/2,  ‖a‖‖b‖ ≤ (s‖a‖² + ‖b‖²/s)/2 and
    (‖a‖‖b‖ + a·b)/2 ≤ ‖√s·a + b/√s‖²/4, so the sum is at most Σt/2 + vᵀGv, and
    vᵀGv ≤ Σω · λmax(ω^-½ G ω^-½). Iteration finds good s, t, ω; the bound holds whichever they are.
    """
    terms = [term for term in terms if all(matrix.any() for matrix in _matrices(term))]
    if not terms:
        return 0.0
    form = _Form(dims, terms)
    weights, balance, vector = form.first_weights, np.ones(len(dims)), np.ones(sum(dims))
    best, best_weights, best_balance = np.inf, weights, balance
    for step in range(ITERATIONS):
        value, vector = form.estimate(weights, balance, vector)
        if value < best:
            best, best_weights, best_balance = value, weights, balance
        damping = 0.5 / (1 + step / 15)
        wanted, masses = form.stationary(vector)
        weights = weights ** (1 - damping) * wanted**damping
        balance = balance ** (1 - damping) * masses**damping
    return form.verified(best_weights, best_balance)


class _Form:
    """The quadratic form G of the terms as a function of their weights (s of a pair, t of a norm)."""

    def __init__(self, dims: list[int], terms: list[Norm | Pair]):
        self.dims, self.terms = dims, terms
        self.ends = np.cumsum([0, *dims])
        self.squares = [[matrix.T @ matrix for matrix in _matrices(term)] for term in terms]
        self.cross = np.zeros((sum(dims), sum(dims)))
        for term in terms:
            if isinstance(term, Pair) and term.aligned:
                left, right = self.place(*term.left_slots), self.place(term.right_slot)
                product = term.left.T @ term.right / 4
                self.cross[left, right] += product
                self.cross[right, left] += product.T
        sizes = [[float(np.sqrt(np.trace(square))) for square in squares] for squares in self.squares]
        self.first_weights = np.array([size[0] if len(size) == 1 else size[1] / size[0] for size in sizes])

    def place(self, *slots: int) -> slice:
        return slice(int(self.ends[slots[0]]), int(self.ends[slots[-1] + 1]))

    def matrix(self, weights: np.ndarray, balance: np.ndarray) -> np.ndarray:
        """ω^-½ G ω^-½"""
        total = self.cross.copy()
        for term, squares, weight in zip(self.terms, self.squares, weights, strict=True):
            if isinstance(term, Norm):
                here = self.place(term.slot)
                total[here, here] += squares[0] / (2 * weight)
            else:
                share = 4 if term.aligned else 2
                left, right = self.place(*term.left_slots), self.place(term.right_slot)
                total[left, left] += squares[0] * (weight / share)
                total[right, right] += squares[1] / (share * weight)
        scale = np.repeat(balance**-0.5, self.dims)
        return total * scale[:, None] * scale

    def offset(self, weights: np.ndarray) -> float:
        return sum(float(w) / 2 for w, t in zip(weights, self.terms, strict=True) if isinstance(t, Norm))

    def estimate(
        self, weights: np.ndarray, balance: np.ndarray, guess: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The bound in plain floating point, and the unit vector that attains λmax."""
        value, vector = _top_eigenpair(self.matrix(weights, balance), guess)
        return self.offset(weights) + float(balance.sum()) * value, vector

    def stationary(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights that turn the inequalities into equalities at this vector; the masses of its slots."""
        masses = np.add.reduceat(vector**2, self.ends[:-1]) + 1e-12
        units = vector / np.repeat(np.sqrt(masses), self.dims)
        wanted = np.empty(len(self.terms))
        for index, term in enumerate(self.terms):
            if isinstance(term, Norm):
                wanted[index] = np.linalg.norm(term.matrix @ units[self.place(term.slot)])
            else:
                left = float(np.linalg.norm(term.left @ units[self.place(*term.left_slots)]))
                right = np.linalg.norm(term.right @ units[self.place(term.right_slot)])
                wanted[index] = right / max(left, 1e-300)
        # A term that vanishes at this vector must not get an endless weight.
        return np.clip(wanted, 1e-6 * self.first_weights, 1e6 * self.first_weights), masses

    def verified(self, weights: np.ndarray, balance: np.ndarray) -> float:
        """The bound with roundings counted: forming G errs by at most 2γ·tr G in spectral norm."""
        matrix = self.matrix(weights, balance)
        longest = max(len(factor) for term in self.terms for factor in _matrices(term))
        forming = 2 * gamma(longest + len(self.terms) + 8) * float(np.trace(matrix))
        top = largest_eigenvalue((matrix + matrix.T) / 2) + forming
        return (self.offset(weights) + float(balance.sum()) * top) * INFLATE


def _matrices(term: Norm | Pair) -> tuple[np.ndarray, ...]:
    return (term.matrix,) if isinstance(term, Norm) else (term.left, term.right)


def _top_eigenpair(matrix: np.ndarray, guess: np.ndarray) -> tuple[float, np.ndarray]:
    """Lanczos from the last vector: many times faster than all eigenvalues, and no proof rests on it."""
    from scipy.sparse.linalg import ArpackError, eigsh

    if len(matrix) > 2:
        try:
            values, vectors = eigsh(matrix, 1, which="LA", v0=guess, tol=1e-7)
            return float(values[0]), vectors[:, 0]
        except ArpackError:
            pass
    values, vectors = np.linalg.eigh(matrix)
    return float(values[-1]), vectors[:, -1]
