"""An upper bound on a sum of norms and products of norms, taken over all unit vectors at once.

Every head's error is largest at an input of its own; one input cannot serve them all. Bounding the sum
over heads jointly is what makes the certificate sharp. Proof in docs/theory.md ("The joint bound").
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from strongticket.theory.rounding import INFLATE, gamma, largest_eigenvalue

# λmax has corners where eigenvalues meet: it is smoothed over the first few, less and less.
SMOOTHING = (0.05, 0.01, 0.002)
EIGENVALUES = 6
FAR = 250  # a term 2^-250 of the largest one is bounded alone


@dataclass(frozen=True)
class NormTerm:
    """The term ‖M v₀‖."""

    matrix: Float[np.ndarray, "rows dim"]


@dataclass(frozen=True)
class PairTerm:
    """The term (‖A w‖‖B v₀‖ + Aw·Bv₀)/2, where w joins all vectors but v₀."""

    left: Float[np.ndarray, "rows dim_left"]
    right: Float[np.ndarray, "rows dim_right"]


Term = NormTerm | PairTerm


def supremum_bound(dims: list[int], terms: list[Term]) -> float:
    """At least sup of the sum of `terms` over vectors v_i in R^dims[i] with ‖v_i‖ ≤ 1.

    For any positive s, t, ω:  ‖Mv‖ ≤ (t + ‖Mv‖²/t)/2 and (‖a‖‖b‖ + a·b)/2 ≤ ‖√s·a + b/√s‖²/4, so the sum is at
    most Σt/2 + vᵀGv, and vᵀGv ≤ λmax(ω^-½ G ω^-½) where Σω = 1. Minimisation finds good s, t, ω; the bound holds at
    any of them.
    """
    terms = [term for term in terms if all(matrix.any() for matrix in _matrices(term))]
    if not terms:
        return 0.0
    if not all(np.isfinite(matrix).all() for term in terms for matrix in _matrices(term)):
        return math.inf
    # Squares of very large or small numbers leave the range of floats: powers of two are taken out before.
    exponents = [sum(_exponent(matrix) for matrix in _matrices(term)) for term in terms]
    top = max(exponents)
    near, far = [], 0.0
    for term, exponent in zip(terms, exponents, strict=True):
        if exponent > top - FAR:
            near.append(_scaled(term, exponent - top))
        else:
            far += math.ldexp(math.prod(matrix.size**0.5 for matrix in _matrices(term)), exponent - top)
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.ldexp(_scaled_bound(dims, near) + far, top), math.inf))


def _exponent(matrix: np.ndarray) -> int:
    """The e of the largest entry's m·2^e with ½ ≤ m < 1."""
    return math.frexp(float(np.abs(matrix).max()))[1]


def _scaled(term: Term, exponent: int) -> Term:
    """The term times a power of two, so that its matrices' largest entries multiply to about 2^exponent."""
    if isinstance(term, NormTerm):
        return NormTerm(np.ldexp(term.matrix, exponent - _exponent(term.matrix)))
    half = exponent // 2
    left = np.ldexp(term.left, half - _exponent(term.left))
    return PairTerm(left, np.ldexp(term.right, exponent - half - _exponent(term.right)))


def _scaled_bound(dims: list[int], terms: list[Term]) -> float:
    from scipy.optimize import minimize

    form = _Form(dims, terms)
    point = np.log(np.concatenate([form.first_weights, np.ones(len(dims))]))
    steps = int(np.clip(4000 // sum(dims), 6, 25))
    for smoothing in SMOOTHING:
        scale = smoothing * form.value(point)
        point = minimize(form.log_value, point, (scale,), "BFGS", True, options={"maxiter": steps}).x
    return form.verified(point)


class _Form:
    """The quadratic form G of the terms as a function of their weights (s of a pair, t of a norm)."""

    def __init__(self, dims: list[int], terms: list[Term]):
        self.dims, self.terms = dims, terms
        self.first, self.others = slice(0, dims[0]), slice(dims[0], None)  # places of v₀ and of w
        self.squares = [[matrix.T @ matrix for matrix in _matrices(term)] for term in terms]
        self.cross = np.zeros((sum(dims), sum(dims)))
        for term in terms:
            if isinstance(term, PairTerm):
                product = term.left.T @ term.right / 4
                self.cross[self.others, self.first] += product
                self.cross[self.first, self.others] += product.T
        sizes = [[float(np.sqrt(np.trace(square))) for square in squares] for squares in self.squares]
        self.first_weights = np.array([size[0] if len(size) == 1 else size[1] / size[0] for size in sizes])

    def split(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms -> the terms' weights, and ω with Σω = 1."""
        # A line search may look far away; it must not overflow there.
        weights, balance = np.split(np.exp(np.clip(point, -200, 200)), [len(self.terms)])
        return weights, balance / balance.sum()

    def matrix(self, weights: np.ndarray, balance: np.ndarray) -> np.ndarray:
        """The matrix ω^-½ G ω^-½."""
        total = self.cross.copy()
        for term, squares, weight in zip(self.terms, self.squares, weights, strict=True):
            if isinstance(term, NormTerm):
                total[self.first, self.first] += squares[0] / (2 * weight)
            else:
                total[self.others, self.others] += squares[0] * (weight / 4)
                total[self.first, self.first] += squares[1] / (4 * weight)
        scale = np.repeat(balance**-0.5, self.dims)
        return total * scale[:, None] * scale

    def offset(self, weights: np.ndarray) -> float:
        return math.fsum(
            w / 2 for w, term in zip(weights, self.terms, strict=True) if isinstance(term, NormTerm)
        )

    def value(self, point: np.ndarray) -> float:
        """The bound in plain floating point."""
        weights, balance = self.split(point)
        return self.offset(weights) + float(_top_eigenpairs(self.matrix(weights, balance))[0][0])

    def log_value(self, point: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """Logarithm of the bound with λmax smoothed; and its gradient."""
        weights, balance = self.split(point)
        values, vectors = _top_eigenpairs(self.matrix(weights, balance))
        shares = np.exp((values - values[0]) / smoothing)
        bound = self.offset(weights) + values[0] + smoothing * np.log(shares.sum())
        shares /= shares.sum()
        scaled = vectors * np.repeat(balance**-0.5, self.dims)[:, None]
        gradient = np.empty_like(point)
        for index, (term, squares, weight) in enumerate(zip(self.terms, self.squares, weights, strict=True)):
            if isinstance(term, NormTerm):
                inside = _mean_square(squares[0], scaled[self.first], shares)
                gradient[index] = weight / 2 - inside / (2 * weight)
            else:
                left = _mean_square(squares[0], scaled[self.others], shares)
                right = _mean_square(squares[1], scaled[self.first], shares)
                gradient[index] = (left * weight - right / weight) / 4
        starts = np.cumsum([0, *self.dims[:-1]])
        masses = np.add.reduceat(vectors**2, starts, axis=0) @ (values * shares)
        gradient[len(self.terms) :] = balance * (values @ shares) - masses
        return float(np.log(bound)), gradient / bound

    def verified(self, point: np.ndarray) -> float:
        """The bound with roundings counted: forming G errs by at most 2γ·tr G in spectral norm."""
        weights, balance = self.split(point)
        matrix = self.matrix(weights, balance)
        longest = max(len(factor) for term in self.terms for factor in _matrices(term))
        forming = 2 * gamma(longest + len(self.terms) + 8) * float(np.trace(matrix))
        top = largest_eigenvalue((matrix + matrix.T) / 2) + forming
        return (self.offset(weights) + float(balance.sum()) * top) * INFLATE


def _mean_square(square: np.ndarray, vectors: np.ndarray, shares: np.ndarray) -> float:
    return float(((square @ vectors) * vectors).sum(0) @ shares)


def _top_eigenpairs(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest few, largest first. By Lanczos: fast, and no proof rests on it."""
    from scipy.sparse.linalg import ArpackError, eigsh

    if len(matrix) > 4 * EIGENVALUES:
        try:
            values, vectors = eigsh(matrix, EIGENVALUES, which="LA", v0=np.ones(len(matrix)), tol=1e-6)
            return values[::-1], vectors[:, ::-1]
        except ArpackError:
            pass
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:EIGENVALUES], vectors[:, ::-1][:, :EIGENVALUES]


def _matrices(term: Term) -> tuple[np.ndarray, ...]:
    return (term.matrix,) if isinstance(term, NormTerm) else (term.left, term.right)
