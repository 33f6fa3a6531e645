"""The source of one weight matrix: random weights from the seed, by a scheme, with scaled query and key slices.

In a sparse source the seed alone drops or locks some weights, so that no bit of a mask is spent on them: partially
frozen networks (Otsuka et al., "Partially frozen random networks contain compact strong lottery tickets", TMLR 2025)
and sparse random sources (Gadhikar et al., "Why random pruning is all we need to start sparse", ICML 2023). Scores
compete only among the weights that are left free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.seeds import Hadamard, Law, Normal, SignedConstant, Uniform, draw
from strongticket.settings import Fraction, Settings

DECISION_LAW = Uniform(1.0)  # of the numbers that decide, one per weight


def decision_name(name: str) -> str:
    """Name of the tensor whose numbers decide about the matrix `name`."""
    return f"{name}:source"


@dataclass(frozen=True)
class ScaledSlice:
    """Rows (axis 0) or columns (axis 1) start to stop of a tensor, multiplied by `factor`."""

    axis: int
    start: int
    stop: int
    factor: float = 1.0


def scale_slices(array: np.ndarray, slices: tuple[ScaledSlice, ...]) -> np.ndarray:
    """Multiply the slices of a tensor by their factors, in place and in float32."""
    for part in slices:
        rows = slice(part.start, part.stop)
        view = array[rows] if part.axis == 0 else array[:, rows]
        view *= np.float32(part.factor)
    return array


@dataclass(frozen=True)
class Sparsity(Settings):
    """Fractions of the weights that the seed alone decides.

    Attributes:
        dropped: these are always 0
        locked: these are always kept
    """

    dropped: Fraction = 0.0
    locked: Fraction = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dropped + self.locked >= 1:
            raise StrongTicketError(
                f"dropped={self.dropped} and locked={self.locked} leave no weight to choose",
                hint="Their sum must be below 1.",
            )

    def __bool__(self) -> bool:
        return self.dropped + self.locked > 0

    def decide(self, numbers: np.ndarray) -> np.ndarray:
        """What the seed decides about each weight, from numbers of DECISION_LAW: int8, -1 dropped, 0 free, 1 locked.

        >>> Sparsity(dropped=0.25, locked=0.25).decide(np.array([-0.8, -0.2, 0.3, 0.9])).tolist()
        [-1, 0, 0, 1]
        """
        numbers = numbers.astype(np.float64)
        dropped, locked = numbers < 2 * self.dropped - 1, numbers >= 1 - 2 * self.locked
        return locked.astype(np.int8) - dropped.astype(np.int8)


NONE = Sparsity()  # every weight is free


@dataclass(frozen=True)
class Source:
    """What makes one random tensor. The slices are scaled after the draw, in float32.

    Attributes:
        sparsity: which of its weights the seed drops or locks; `weights` draws them all
    """

    seed: int
    name: str
    shape: tuple[int, ...]
    law: Law
    slices: tuple[ScaledSlice, ...] = ()
    sparsity: Sparsity = NONE

    def weights(self) -> np.ndarray:
        """All weights: float32 of `shape`."""
        return scale_slices(draw(self.seed, self.name, self.shape, self.law), self.slices)

    def scaled(self, factor: float) -> Source:
        """The same source with another factor on its slices."""
        return replace(self, slices=tuple(replace(part, factor=float(factor)) for part in self.slices))

    def seed_decision(self) -> np.ndarray:
        """What the seed decides about each weight: int8 of `shape`, -1 dropped, 0 free, 1 locked."""
        return self.sparsity.decide(draw(self.seed, decision_name(self.name), self.shape, DECISION_LAW))


# (std, fan_in, fan_out) -> law of a linear map's weights
SCHEMES: dict[str, Callable[[float, int, int], Law]] = {
    "gpt2": lambda std, fan_in, fan_out: Normal(std),
    "kaiming-normal": lambda std, fan_in, fan_out: Normal(math.sqrt(2 / fan_in)),
    "kaiming-uniform": lambda std, fan_in, fan_out: Uniform(math.sqrt(6 / fan_in)),
    "xavier-normal": lambda std, fan_in, fan_out: Normal(math.sqrt(2 / (fan_in + fan_out))),
    "xavier-uniform": lambda std, fan_in, fan_out: Uniform(math.sqrt(6 / (fan_in + fan_out))),
}
AUTO = "auto"  # gpt2; without norms kaiming-normal, as weights alone must then keep the signal's size
# name -> law with a given standard deviation
LAWS: dict[str, Callable[[float], Law]] = {
    "normal": Normal,
    "uniform": lambda std: Uniform(std * math.sqrt(3)),
    "signed": SignedConstant,
    "hadamard": Hadamard,
}


@dataclass(frozen=True)
class Scheme:
    """How the frozen weights are drawn. The defaults are the paper's B.2.

    Attributes:
        name: one of SCHEMES, or "auto": "gpt2" for a model with norms, "kaiming-normal" for one without
        std: of "gpt2"'s linear maps, and of the embeddings unless `embedding_std` is given
        residual_scaling: projections that write to the residual stream are scaled by (2b)^-1/2, b blocks
        law: one of LAWS, with the scheme's standard deviations; "" keeps the scheme's own law
        sparsity: fractions of the masked weights that the seed drops or locks
    """

    name: str = "gpt2"
    std: float = 0.02
    embedding_std: float | None = None
    residual_scaling: bool = True
    law: str = ""
    sparsity: Sparsity = NONE

    def __post_init__(self) -> None:
        if self.name not in (*SCHEMES, AUTO):
            raise StrongTicketError(f"init must be one of {', '.join([*SCHEMES, AUTO])}, got {self.name!r}")
        if self.law and self.law not in LAWS:
            raise StrongTicketError(f"law must be one of {', '.join(LAWS)}, got {self.law!r}")

    def embedding(self) -> Law:
        """The law of embedding tables."""
        return LAWS[self.law or "normal"](self.std if self.embedding_std is None else self.embedding_std)

    def linear(self, fan_in: int, fan_out: int, *, residuals: int = 0) -> Law:
        """The law of a linear map; `residuals` is the number of projections into the residual stream, if it is one."""
        law = SCHEMES[self.name](self.std, fan_in, fan_out)
        factor = residuals**-0.5 if residuals and self.residual_scaling else 1.0
        if not self.law:
            return type(law)(law.scale * factor)
        std = law.scale / math.sqrt(3) if isinstance(law, Uniform) else law.scale
        return LAWS[self.law](std * factor)
