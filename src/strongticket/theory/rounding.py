"""Upper bounds that stay upper bounds in floating point: eigenvalues, norms, products, float32 networks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError

Arithmetic = Literal["exact", "float64", "float32"]
UNIT = {"exact": 0.0, "float64": 2.0**-53, "float32": 2.0**-24}
UNDERFLOW = {
    "exact": 0.0,
    "float64": 2.0**-1075,
    "float32": 2.0**-150,
}  # the most that one product loses besides
# Covers the few hundred scalar operations, all on positive numbers, between verified norms and a bound.
INFLATE = 1 + 1e-12
MAX_TOKENS = 2**16  # the longest context a certificate holds for in floating point
DEVICES = ("cpu", "cuda")  # whose float64 rounds as IEEE 754 says, subnormal numbers included


def unit_of(arithmetic: str) -> float:
    """Relative size of one rounding; 0 where none is counted."""
    if arithmetic not in UNIT:
        raise StrongTicketError(f"arithmetic={arithmetic!r}: expected one of {', '.join(UNIT)}")
    return UNIT[arithmetic]


def gamma(operations: int, unit: float = UNIT["float64"]) -> float:
    """γ_k = k·u / (1 − k·u): the relative error of a sum or product of k roundings, in whatever order."""
    if operations * unit >= 0.5:
        raise StrongTicketError(
            f"{operations} roundings of relative size {unit:.1e} may lose every digit: no bound can be given",
            hint="Run it in float64, or with fewer units.",
        )
    return operations * unit / (1 - operations * unit)


def largest_eigenvalue(matrix: Float[np.ndarray, "n n"]) -> float:
    """A proven upper bound on λmax of a symmetric positive semidefinite float64 matrix (its lower triangle).

    LAPACK's estimate c is only a guess; what proves it is that Cholesky of cI − S runs to its end. Then
    cI − S ⪰ −γ/(1−γ)·tr(cI − S) with γ = γ_{n+1} (Higham, Accuracy and Stability, Theorem 10.3).
    """
    size = len(matrix)
    trace = float(np.trace(matrix))
    if trace <= 0:
        return 0.0
    # Unit trace keeps underflow out of the argument.
    scaled = matrix / trace
    guess = float(np.linalg.eigvalsh(scaled)[-1])
    slack = 4 * size * UNIT["float64"]
    while True:
        bound = guess + slack
        try:
            np.linalg.cholesky(bound * np.eye(size) - scaled)
        except np.linalg.LinAlgError:
            slack *= 4
            continue
        share = gamma(size + 1)
        return (bound + share / (1 - share) * size * bound + 4 * UNIT["float64"] * bound) * trace * INFLATE


def spectral_norm(matrix: Float[np.ndarray, "rows columns"]) -> float:
    """A proven upper bound on ‖M‖₂, sharp to about 1e-12 relative."""
    wide = matrix.astype(np.float64)
    if wide.shape[0] < wide.shape[1]:
        wide = wide.T
    scale = float(np.abs(wide).max(initial=0.0))
    if not np.isfinite(scale):
        return np.inf
    if scale == 0:
        return 0.0
    wide = wide / scale
    # fl(MᵀM) is off by at most γ|M|ᵀ|M|, whose Frobenius norm is at most ‖M‖_F².
    forming = gamma(len(wide) + 2) * float(np.square(wide).sum())
    return float(np.sqrt(largest_eigenvalue(wide.T @ wide) + forming)) * scale * INFLATE


@dataclass(frozen=True)
class AttentionFactors:
    """The four matrices of every head. With biases each of the first three ends in the constant's row.

    Merging adds the output's bias to the constant's rows, the same share in every head.

    Attributes:
        inner: units between the halves of queries and keys, and of values and outputs, where each is itself a
            product; 0 where it is one matrix.
        sizes: of query, key, value and output, the product of the halves' magnitudes; None where all are one matrix.
    """

    query: Float[np.ndarray, "heads dim_in key_dim"]
    key: Float[np.ndarray, "heads context_dim key_dim"]
    value: Float[np.ndarray, "heads context_dim value_dim"]
    output: Float[np.ndarray, "heads value_dim dim_out"]
    output_bias: Float[np.ndarray, " dim_out"] | None = None
    inner: tuple[int, int] = (0, 0)
    sizes: tuple[Float[np.ndarray, "heads _ _"], ...] | None = None


@dataclass(frozen=True)
class AttentionRounding:
    """How far, in the logits and the output of a head, what runs may be from the merged arrays, in all the ball."""

    logits: Float[np.ndarray, " heads"]
    values: Float[np.ndarray, " heads"]

    def __add__(self, other: "AttentionRounding") -> "AttentionRounding":
        """Both at once, as where target and source were merged alike."""
        return AttentionRounding(self.logits + other.logits, self.values + other.values)

    def head_errors(
        self,
        target: Float[np.ndarray, "heads columns dim"],
        source: Float[np.ndarray, "heads columns dim"],
        radius: Real,
    ) -> list[float]:
        """What rounding adds to the error of each head with these W_VO, tokens of norm at most `radius`."""
        return [
            float(2 * radius * np.tanh(logit / 2) * max(map(spectral_norm, both)) + value)
            for logit, value, *both in zip(self.logits, self.values, target, source, strict=True)
        ]


@np.errstate(over="ignore", invalid="ignore")
def attention_rounding(
    factors: AttentionFactors,
    radius: Real,
    *,
    constant: bool = False,
    arithmetic: Arithmetic = "exact",
) -> AttentionRounding:
    """Rounding of a head's four factors: of merging them in float64, and of running the merged products.

    `nets.Merged` merges its factors in float64 and runs in float64, whatever their type is; what is lost when
    its output becomes float32 is `output_rounding`.

    Args:
        factors: of one network, float64.
        radius: largest norm of a token.
        constant: the factors carry the constant's row; the radius is without it.
        arithmetic: "exact" counts the merging of the certificate's own arrays alone.
    """
    query, key, value, output = factors.query, factors.key, factors.value, factors.output
    checks.finite(query=query, key=key, value=value, output=output)
    checks.positive(radius=radius)
    radius = float(np.hypot(radius, float(constant)))
    heads, dim_in, key_dim = query.shape
    context_dim, value_dim, runs = key.shape[1], value.shape[2], unit_of(arithmetic) > 0
    key_terms, value_terms = key_dim + 2 * factors.inner[0], value_dim + 2 * factors.inner[1]
    logits, values = np.zeros(heads), np.zeros(heads)
    for h in range(heads):
        # Frobenius norms: at float64's unit nothing sharper is worth its time.
        norms = [frobenius(size[h]) for size in factors.sizes or (query, key, value, output)]
        reach, gain = radius * radius * norms[0] * norms[1] / key_dim**0.5, radius * norms[2] * norms[3]
        query_key, value_output = query[h] @ key[h].T, value[h] @ output[h]
        dim_out, outward = value_output.shape[1], (1 + radius) * (1 + frobenius(value_output))
        inward = (1 + radius) * (1 + radius)
        if factors.sizes is not None:  # what underflows in a factor is multiplied by the other
            inward, outward = inward * (1 + norms[0] + norms[1]), outward * (1 + norms[2] + norms[3])
        logits[h] = gamma(key_terms + 4) * reach
        logits[h] += underflow(dim_in * context_dim * (key_terms + 3) * key_dim, inward)
        values[h] = gamma(value_terms + 2) * gain
        values[h] += underflow(context_dim * dim_out * (value_terms + 3) * value_dim, outward)
        if factors.output_bias is not None:
            values[h] += gamma(4) * (gain + frobenius(factors.output_bias) / heads)
        if runs:
            largest = radius * radius * frobenius(query_key) / key_dim**0.5 + logits[h]
            carried = radius * frobenius(value_output) + values[h]
            sizes = dim_in + context_dim + 4, heads * context_dim + 8
            logit, sums = running_rounding(largest, carried, *sizes, MAX_TOKENS, "float64")
            # The network merges for itself; then queries and keys are multiplied in.
            logits[h] += logits[h] + logit
            values[h] += values[h] + sums + underflow(4 * MAX_TOKENS * context_dim * dim_out, outward)
    return AttentionRounding(logits * INFLATE, values * INFLATE)


def running_rounding(
    largest: float, carried: float, logit_terms: int, value_terms: int, tokens: int, arithmetic: Arithmetic
) -> tuple[float, float]:
    """What running a head on merged arrays adds to the error of a logit, and of the head's output.

    Args:
        largest: at least |x|ᵀ|W_QK||y| for all tokens x and y.
        carried: at least the norm of |y|ᵀ|W_VO|.
        logit_terms: roundings on the way to a logit.
        value_terms: roundings on the way from the average of tokens to an output.
        tokens: the longest context.
        arithmetic: that everything runs in.
    """
    unit = unit_of(arithmetic)
    # exp of a rounded difference of two logits, above and below the division; the sum; the division.
    softmax = np.expm1(2 * (2 * largest + 8) * unit + gamma(tokens + 4, unit))
    sums = gamma(tokens + value_terms, unit)
    return gamma(logit_terms, unit) * largest, (softmax + sums + softmax * sums) * carried


def output_rounding(norm: Real, dim: int, arithmetic: Arithmetic) -> float:
    """What the last step may lose: an output of this width and at most this norm, rounded to `arithmetic`."""
    if arithmetic == "float32" and not norm < np.finfo(np.float32).max:
        return np.inf  # it may overflow
    return (unit_of(arithmetic) * float(norm) + underflow(dim, 1.0, arithmetic)) * INFLATE


def underflow(products: int, gain: float, arithmetic: Arithmetic = "float64") -> float:
    """What so many products may lose by being too small, each then multiplied by at most `gain` on its way out."""
    return UNDERFLOW[arithmetic] * products * gain


def frobenius(matrix: np.ndarray) -> float:
    """At least ‖M‖_F, also where the squares of its entries underflow or overflow."""
    scale = float(np.abs(matrix).max(initial=0.0))
    if scale == 0 or not np.isfinite(scale):
        return scale
    return scale * float(np.linalg.norm(matrix / scale)) * INFLATE


def sum_rows(rows: Float[np.ndarray, "rows dim"]) -> tuple[Float[np.ndarray, " dim"], float]:
    """The sum, and the most that rounding may have changed its norm by: rows may cancel."""
    return rows.sum(0), gamma(len(rows)) * float(np.abs(rows).sum()) * INFLATE
