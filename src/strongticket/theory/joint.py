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
FAR = 250  # what is 2^-250 of the largest part is bounded alone
Matrices = tuple[Float[np.ndarray, "_ _"], ...]


@dataclass(frozen=True)
class Term:
    """The largest of (1 − m²)·c + m·‖N v₀‖ over 0 ≤ m ≤ 1, with c = (‖A w‖‖B v₀‖ + Aw·Bv₀)/2; w joins all but v₀.

    Attributes:
        norm: (N,), or nothing for zero.
        pair: (A, B), or nothing for c = 0.
        largest: at least c, for all vectors; where it is infinite, the term is c + ‖N v₀‖.
    """

    norm: Matrices = ()
    pair: Matrices = ()
    largest: float = math.inf


def supremum_bound(dims: list[int], terms: list[Term]) -> float:
    """At least sup of the sum of `terms` over vectors v_i in R^dims[i] with ‖v_i‖ ≤ 1.

    For any positive s, τ, ω: c ≤ ‖√s·Aw + Bv₀/√s‖²/4, and a term is at most τ + max(0, 1 − τ/largest)·c + ‖Nv₀‖²/(4τ).
    So the sum is at most Στ + vᵀGv, and vᵀGv ≤ λmax(ω^-½ G ω^-½) where Σω = 1. Minimisation finds good s, τ, ω; the
    bound holds at any of them.
    """
    parts = [part for term in terms for part in (term.norm, term.pair) if _counts(part)]
    if not parts:
        return 0.0
    if not all(np.isfinite(matrix).all() for part in parts for matrix in part):
        return math.inf
    # Squares of very large or small numbers leave the range of floats: powers of two are taken out before.
    top = max(map(_exponent, parts))
    near, far = [], 0.0
    for term in terms:
        (norm, lost), (pair, lost_too) = (_scaled(part, top) for part in (term.norm, term.pair))
        near.append(Term(norm, pair, math.ldexp(term.largest, -top)))
        far += lost + lost_too
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.ldexp(_scaled_bound(dims, near) + far, top), math.inf))


def _counts(part: Matrices) -> bool:
    return bool(part) and all(matrix.any() for matrix in part)


def _exponent(part: Matrices) -> int:
    """The e of the product m·2^e of the matrices' largest entries, ½ ≤ m < 1 for each of them."""
    return sum(math.frexp(float(np.abs(matrix).max()))[1] for matrix in part)


def _scaled(part: Matrices, top: int) -> tuple[Matrices, float]:
    """The part times 2^-top, its matrices of like size; if that is next to nothing, nothing and a bound on it."""
    if not _counts(part):
        return (), 0.0
    left = _exponent(part) - top
    if left <= -FAR:
        return (), math.ldexp(math.prod(matrix.size**0.5 for matrix in part), left)
    scaled = []
    for count in range(len(part), 0, -1):
        matrix, share = part[-count], left // count
        scaled.append(np.ldexp(matrix, share - _exponent((matrix,))))
        left -= share
    return tuple(scaled), 0.0


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
    """The quadratic form G of the terms as a function of their weights: s of each pair, τ of each norm."""

    def __init__(self, dims: list[int], terms: list[Term]):
        self.dims = dims
        first, others = slice(0, dims[0]), slice(dims[0], None)  # places of v₀ and of w
        # G is the sum of these blocks, each times its coefficient: (rows, columns, matrix).
        self.blocks: list[tuple[slice, slice, np.ndarray]] = []
        # Of each term: its first block, the number of its first weight, whether it has a pair and a norm, its largest.
        self.places: list[tuple[int, int, bool, bool, float]] = []
        starts: list[float] = []
        offsets: list[float] = []
        for term in terms:
            place = len(self.blocks), len(starts), bool(term.pair), bool(term.norm), term.largest
            self.places.append(place)
            if term.pair:
                left, right = term.pair
                self.blocks += [(others, others, left.T @ left), (first, first, right.T @ right)]
                self.blocks.append((others, first, left.T @ right))
                starts.append(float(np.linalg.norm(right) / np.linalg.norm(left)))
                offsets.append(0.0)
            if term.norm:
                self.blocks.append((first, first, term.norm[0].T @ term.norm[0]))
                starts.append(float(np.linalg.norm(term.norm[0])) / 2)
                offsets.append(1.0)
        self.first_weights, self.offsets = np.array(starts), np.array(offsets)
        self.rows = max(len(matrix) for term in terms for matrix in (*term.norm, *term.pair))

    def split(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms -> the terms' weights, and ω with Σω = 1."""
        # A line search may look far away; it must not overflow there.
        weights, balance = np.split(np.exp(np.clip(point, -200, 200)), [len(self.offsets)])
        return weights, balance / balance.sum()

    def coefficients(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the blocks; and their derivatives by the logarithm of each weight (blocks, weights)."""
        values, slopes = np.empty(len(self.blocks)), np.zeros((len(self.blocks), len(weights)))
        for block, s, has_pair, has_norm, largest in self.places:
            tau = s + has_pair
            lost = weights[tau] / largest if has_norm and has_pair else 0.0
            if has_norm:
                norm = block + 3 * has_pair
                values[norm] = 1 / (4 * weights[tau])
                slopes[norm, tau] = -values[norm]
            if has_pair:
                shares = np.array([weights[s], 1 / weights[s], 1]) / 4
                pair = slice(block, block + 3)
                values[pair] = max(0.0, 1 - lost) * shares
                slopes[pair, s] = values[pair] * [1, -1, 0]
                if has_norm:
                    slopes[pair, tau] = -lost * shares if lost < 1 else 0.0
        return values, slopes

    def matrix(self, coefficients: np.ndarray, balance: np.ndarray) -> np.ndarray:
        """The matrix ω^-½ G ω^-½."""
        total = np.zeros((sum(self.dims), sum(self.dims)))
        for coefficient, (rows, columns, block) in zip(coefficients, self.blocks, strict=True):
            total[rows, columns] += coefficient * block
            if rows != columns:
                total[columns, rows] += coefficient * block.T
        scale = np.repeat(balance**-0.5, self.dims)
        return total * scale[:, None] * scale

    def value(self, point: np.ndarray) -> float:
        """The bound in plain floating point."""
        weights, balance = self.split(point)
        matrix = self.matrix(self.coefficients(weights)[0], balance)
        return float(self.offsets @ weights + _top_eigenpairs(matrix)[0][0])

    def log_value(self, point: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """Logarithm of the bound with λmax smoothed; and its gradient."""
        weights, balance = self.split(point)
        coefficients, slopes = self.coefficients(weights)
        values, vectors = _top_eigenpairs(self.matrix(coefficients, balance))
        shares = np.exp((values - values[0]) / smoothing)
        bound = self.offsets @ weights + values[0] + smoothing * np.log(shares.sum())
        shares /= shares.sum()
        scaled = vectors * np.repeat(balance**-0.5, self.dims)[:, None]
        inside = [
            (1 + (rows != columns)) * float(((block @ scaled[columns]) * scaled[rows]).sum(0) @ shares)
            for rows, columns, block in self.blocks
        ]
        gradient = np.empty_like(point)
        gradient[: len(weights)] = self.offsets * weights + np.array(inside) @ slopes
        starts = np.cumsum([0, *self.dims[:-1]])
        masses = np.add.reduceat(vectors**2, starts, axis=0) @ (values * shares)
        gradient[len(weights) :] = balance * (values @ shares) - masses
        return float(np.log(bound)), gradient / bound

    def verified(self, point: np.ndarray) -> float:
        """The bound with roundings counted: forming G errs by at most 2γ·tr G in spectral norm."""
        weights, balance = self.split(point)
        matrix = self.matrix(self.coefficients(weights)[0], balance)
        forming = 2 * gamma(self.rows + len(self.places) + 8) * float(np.trace(matrix))
        top = largest_eigenvalue((matrix + matrix.T) / 2) + forming
        return (math.fsum(self.offsets * weights) + float(balance.sum()) * top) * INFLATE


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
