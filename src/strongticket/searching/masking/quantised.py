"""Weights rounded to few levels: level × step, one step for each tensor, the gradient straight through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.frozen import FrozenTensor, ScaledSlice, TrainedTensor
from strongticket.searching.masking.parametrization import Parametrization
from strongticket.seeds import Constant

_SMALLEST = 1e-30  # a step: the law of a tensor that is 0 needs one too

Rounding = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # weights -> (step, whole levels)


def integers(bits: int) -> Rounding:
    """Levels -(2^(bits-1) - 1) to 2^(bits-1) - 1, the largest weight at the last one."""
    last = 2 ** (bits - 1) - 1

    def rounding(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        step = (weights.abs().max() / last).clamp(min=_SMALLEST)
        return step, (weights / step).round().clamp(-last, last)

    return rounding


def ternary(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """0 below 0.7 times the mean size, else ± the mean of the rest (Li et al., "Ternary weight networks", 2016)."""
    sizes = weights.abs()
    kept = sizes > 0.7 * sizes.mean()
    step = (sizes * kept).sum() / kept.sum().clamp(min=1)
    return step.clamp(min=_SMALLEST), weights.sign() * kept


def binary(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """± the mean size (Rastegari et al., "XNOR-Net", 2016)."""
    return weights.abs().mean().clamp(min=_SMALLEST), torch.where(weights < 0, -1.0, 1.0)


class Quantised(Parametrization):
    """Rounded weights.

    frozen: the draw that training starts from
    parameter: the weights before rounding
    rounding: how they are rounded
    share: of the rounding that training sees, from 0 (plain weights) to 1; what is evaluated and stored is rounded
    """

    def __init__(
        self,
        frozen: FrozenTensor | TrainedTensor,
        parameter: nn.Parameter,
        rounding: Rounding,
        *,
        share: float,
    ) -> None:
        super().__init__(parameter)
        self._frozen, self._rounding, self.share = frozen, rounding, share

    @property
    def frozen(self) -> FrozenTensor | TrainedTensor:
        return self._frozen

    @property
    def slices(self) -> tuple[ScaledSlice, ...]:
        return ()

    def forward(self, weights: torch.Tensor) -> torch.Tensor:
        if self._final is not None:
            return self._final
        share = self.share if self.training else 1.0
        if share == 0:
            return weights
        with torch.no_grad():
            step, levels = self._rounding(weights)
            rounded = (step * levels).add_(0.0)  # -0.0 becomes 0.0, as in a ticket
            if share < 1:
                rounded = torch.lerp(weights, rounded, share)
        straight: torch.Tensor = _StraightThrough.apply(weights, rounded)  # type: ignore[no-untyped-call]
        return straight

    def stored(self) -> StoredTensor:
        with torch.no_grad():
            step, levels = self._rounding(self.parameter)
        whole = levels.cpu().numpy().astype(np.int64)
        return StoredTensor(Constant(float(step)), whole != 0, levels=whole)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, weights: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
        return rounded

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None
