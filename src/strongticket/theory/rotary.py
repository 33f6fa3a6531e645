"""A bound for attention whose queries and keys are turned by their positions (RoPE), at whatever positions.

At one frequency, logits are yᵀ(cos φ·A + sin φ·B)x for key y and query x, where φ depends on how far apart the two
are. Nothing is assumed of the angles: every key, head and frequency may have the worst of its own.
Proof in docs/theory.md ("Rotary positions").
"""

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from strongticket.checks import Real
from strongticket.theory.certificate import largest_output
from strongticket.theory.joint import Term, supremum_bound
from strongticket.theory.rounding import INFLATE, frobenius, gamma, largest_eigenvalue, spectral_norm

Matrix = Float[np.ndarray, "_ _"]
# Up to this, variance and total variation bound softmax alike within a tenth, and only variance depends on the query.
SMALL = 1.0
FAR = 1e100  # beyond this, products overflow: bounded by infinity; what is smaller than its inverse, by that
THIN = 4  # at one frequency, queries and keys have two numbers each: the error of their product has rank 2


def turned(errors: Iterable[tuple[Matrix, Matrix]]) -> Matrix:
    """A matrix N with ‖Σ_f (cos φ_f·A_f + sin φ_f·B_f)x‖ ≤ ‖Nx‖ for all vectors x and all angles φ_f.

    cos φ·A + sin φ·B is the real part of e^(iφ)·C with C = A − iB = UΣVᴴ. So all frequencies together are at most
    Σ|yᵀUΣVᴴx| ≤ √(yᵀPy·xᵀQx) for any y, where P = Σ Re UΣUᴴ and Q = Σ Re VΣVᴴ.
    """
    left, right, size, rows = np.zeros(()), np.zeros(()), 0.0, 0
    for cosine, sine in errors:
        largest = float(np.abs(np.stack([cosine, sine])).max())
        if not largest < FAR:  # NaN, too
            return np.full((cosine.shape[1], cosine.shape[1]), np.inf)
        whole = cosine - 1j * sine if largest > 1 / FAR else np.zeros(cosine.shape)
        u, sigma, v = _singular_values(whole)
        # What the factors leave of C, roundings included: its singular values count for every direction.
        rest = frobenius(np.abs(whole - (u * sigma) @ v)) + gamma(4 * len(sigma) + 8) * float(sigma.sum())
        rest += 2 * cosine.size / FAR if largest > 0 else 0.0  # what underflows
        left = left + ((u * sigma) @ u.conj().T).real + rest * np.eye(len(cosine))
        right = right + ((v.conj().T * sigma) @ v).real + rest * np.eye(len(cosine.T))
        size, rows = size + float(sigma.sum()) + rest, rows + len(sigma)
    if size == 0:
        return right
    # Forming P and Q and taking a root each err by at most γ times the trace: more than all of it is added.
    slack = 8 * gamma(2 * rows + 2 * len(right) + len(left) + 8) * len(right)
    reach = largest_eigenvalue(left / size + slack * np.eye(len(left)))
    root: Matrix = np.linalg.cholesky(right / size + slack * np.eye(len(right))).T
    return root * (size * math.sqrt(reach) * INFLATE)


def _singular_values(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, Σ, Vᴴ; only the first THIN where the rank is small."""
    probe = np.random.default_rng(0).standard_normal((matrix.shape[1], THIN))
    basis = np.linalg.qr(matrix @ probe)[0]
    inside = basis.conj().T @ matrix
    if np.linalg.norm(matrix - basis @ inside) > 1e-12 * np.linalg.norm(matrix):
        u, sigma, v = np.linalg.svd(matrix, full_matrices=False)
        return u, sigma, v
    u, sigma, v = np.linalg.svd(inside, full_matrices=False)
    return basis @ u, sigma, v


def rotary_bound(
    moves: list[Matrix],
    target_vo: Float[np.ndarray, "heads value_dim dim_out"],
    source_vo: Float[np.ndarray, "heads value_dim dim_out"],
    radius: Real,
    longest: Real,
) -> float:
    """Bound what the errors of logits and values do to the output together.

    Args:
        moves: `turned` errors of each head's logits.
        target_vo: W_VO of the target.
        source_vo: and of the source.
        radius: largest norm of a token.
        longest: largest product of the norms of a query's and a key's input, constants of biases included.
    """
    _, rows, columns = target_vo.shape
    dims = [columns, moves[0].shape[1]]
    terms = []
    for move, wanted, made in zip(moves, target_vo, source_vo, strict=True):
        error = made - wanted
        moved = longest * spectral_norm(move)
        if moved <= SMALL:
            # A pair counts (‖Aw‖‖Bv₀‖ + Aw·Bv₀)/2: doubled, and behind each other's rows of zeros, it is ‖Aw‖‖Bv₀‖.
            middle = math.sqrt(2) * np.vstack([wanted + error / 2, error / math.sqrt(12)])
            logits = math.sqrt(2) * radius * longest * move
            pair = (
                np.vstack([logits, np.zeros((2 * rows, logits.shape[1]))]),
                np.vstack([np.zeros((len(logits), columns)), middle]),
            )
            terms.append(Term(pair=pair))
        else:
            terms.append(Term((2 * radius * math.tanh(moved / 2) * wanted,)))
        terms.append(Term((radius * error,)))
    most = sum(largest_output(each, radius) for each in (target_vo, source_vo))
    return min(supremum_bound(dims, terms), most) * INFLATE
