"""LayerNorm and RMSNorm without trained parameters: where their outputs lie, and how they carry errors.

A norm maps x to √d·c/√(‖c‖² + dε), with c = x (RMSNorm) or x minus its mean (LayerNorm). Its output has
length at most √d whatever x is, so radii stop growing from block to block. Where ‖c‖ ≥ ρ it is Lipschitz with
constant 1/√(ρ²/d + ε). Proof in docs/theory.md ("Blocks with normalisation").
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.theory.region import Region, ball
from strongticket.theory.rounding import INFLATE, gamma

# Of what a norm may read: squares, added up, must stay in float64's range.
LARGEST, SMALLEST_SQUARE = 1e150, 1e-280
NormKind = Literal["layer", "rms"]
NORM_KINDS: tuple[NormKind, ...] = ("layer", "rms")


@dataclass(frozen=True)
class Normalisation:
    """LayerNorm ("layer") or RMSNorm ("rms"); `epsilon` is added to the mean square."""

    kind: NormKind
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        if self.kind not in NORM_KINDS:
            raise StrongTicketError(f"norm={self.kind!r} is unknown: expected one of {', '.join(NORM_KINDS)}")
        checks.not_negative(norm_epsilon=self.epsilon)

    def centring(self, dim: int) -> Float[np.ndarray, "dim dim"]:
        """(dim, dim), with c = x @ centring."""
        return np.eye(dim) - (1 / dim if self.kind == "layer" else 0.0)

    def output(self, dim: int) -> Region:
        """Where the norm's output lies, for any input of width dim."""
        if self.kind == "rms":
            return ball(dim, dim**0.5 * INFLATE)
        return Region(dim, (dim**0.5 * self.centring(dim),), gamma(8) * dim)

    def lipschitz(self, dim: int, floor: float) -> float:
        """At least the Lipschitz constant among inputs of width dim with ‖c‖ ≥ floor (0: among all inputs)."""
        square = max(floor, 0.0) ** 2 / dim + self.epsilon
        return INFLATE / square**0.5 if square > 0 else np.inf

    def error(self, error: Region, floor: float, stream: float) -> Region:
        """Where norm(source) − norm(target) lies, for source − target in `error`.

        Args:
            error: of the vectors that the two norms read.
            floor: the least length ‖c‖ that the source's norm reads; the target's is shorter by the error at
                most.
            stream: the largest norm of the vectors read, for rounding.
        """
        dim = error.dim
        if not stream < LARGEST or floor * floor + self.epsilon < SMALLEST_SQUARE:
            return ball(dim, np.inf)  # a norm squares what it reads; and a vector of zeros has no direction
        centred = error.through(self.centring(dim)) if self.kind == "layer" else error
        moved = centred.radius()
        slope = self.lipschitz(dim, floor * (1 - 1e-9) - moved)
        rounding = ball(dim, gamma(dim + 16) * (dim**0.5 + self.lipschitz(dim, floor) * stream))
        # Two vectors of length √d at most are never further apart than this.
        apart = 2 * dim**0.5 * INFLATE
        if not slope * moved < apart:
            return ball(dim, apart) + rounding
        # The mean Jacobian is symmetric with eigenvalues from 0 to the slope: half of it is slope/2.
        return centred.scaled(slope / 2) + ball(dim, slope * moved / 2) + rounding
