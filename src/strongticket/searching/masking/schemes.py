"""Initialisation schemes by name: which law a frozen tensor is drawn from.

A new scheme is a function of (std, fan-in, fan-out) and a line in SCHEMES.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.source import NONE, Sparsity
from strongticket.seeds import Hadamard, Law, Normal, SignedConstant, Uniform

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

    def for_model(self, *, has_norms: bool) -> Scheme:
        """The scheme that "auto" means for a model with or without norms."""
        return replace(self, name="gpt2" if has_norms else "kaiming-normal") if self.name == AUTO else self

    def embedding(self) -> Law:
        """The law of embedding tables."""
        return LAWS[self.law or "normal"](self.std if self.embedding_std is None else self.embedding_std)

    def linear(self, fan_in: int, fan_out: int, *, residuals: int = 0) -> Law:
        """The law of a linear map.

        Args:
            fan_in: its inputs
            fan_out: its outputs
            residuals: how many projections the network adds to its residual stream, 2b, if this is one
        """
        law = SCHEMES[self.name](self.std, fan_in, fan_out)
        factor = residuals**-0.5 if residuals and self.residual_scaling else 1.0
        if not self.law:
            return type(law)(law.scale * factor)
        std = law.scale / math.sqrt(3) if isinstance(law, Uniform) else law.scale
        return LAWS[self.law](std * factor)
