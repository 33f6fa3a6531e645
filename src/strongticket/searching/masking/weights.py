"""How a weight matrix follows from what is trained, one class for each way, for torch.nn.utils.parametrize.

Edge-popup (Ramanujan et al. 2020) is `Masked`: the forward pass uses w · [|s| in the top k], the backward pass goes
straight through the selection, so ds = dw · w · sign(s).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.source import Source, scale_slices
from strongticket.searching.masking.topk import Cut
from strongticket.seeds import Constant

# (latent weights, offsets) -> (step, whole numbers c in new memory): the nearest step · (c + offset) of each weight
Nearest = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class _StraightThrough(torch.autograd.Function):
    """Forward: the weights. Backward: the method's own formula."""

    @staticmethod
    def forward(ctx: Any, parameter: torch.Tensor, weights: Weights) -> torch.Tensor:
        ctx.save_for_backward(parameter)
        ctx.weights = weights
        return weights.value(parameter)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.weights.gradient(gradient, *ctx.saved_tensors), None


# A cut is another number at every step, so a compiled one would be compiled again.
_straight_through = torch.compiler.disable(_StraightThrough.apply)


class Weights(nn.Module):
    """A weight matrix that is computed from a trained parameter. Tied modules share one.

    Attributes:
        softness: from 1 to 0, how far the weights of a training step may be from those that are stored; what is
            validated and stored is always hard
    """

    softness = 0.0

    def forward(self, parameter: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = _straight_through(parameter, self)
        return weights

    def value(self, parameter: torch.Tensor) -> torch.Tensor:
        """The weights, in new memory."""
        raise NotImplementedError

    def gradient(self, gradient: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
        """The parameter's gradient, from the weights'."""
        return gradient

    def stored(self, parameter: torch.Tensor) -> StoredTensor:
        """What a ticket stores."""
        raise NotImplementedError


class Masked(Weights):
    """The frozen weight where its |score| is in the top k, else 0.

    Attributes:
        cuts: where the scores are cut, which `Attachment.refresh` keeps up to date
        coats: how many masks are laid over each other, with their sum as the gate
        has_levels: whether a gate has other values than 0 and 1
    """

    coats = 1
    has_levels = False
    frozen: torch.Tensor
    decision: torch.Tensor | None

    def __init__(self, source: Source, frozen: torch.Tensor | None = None) -> None:
        """Freeze the weights of the source, or the trained ones given as `frozen`."""
        super().__init__()
        self.source = source
        self.cuts: tuple[Cut, ...] = (Cut(0.0),)
        frozen = torch.from_numpy(source.weights()) if frozen is None else frozen
        self.register_buffer("frozen", frozen, persistent=False)
        decision = torch.from_numpy(source.seed_decision()) if source.sparsity else None
        self.register_buffer("decision", decision, persistent=False)
        self.free = self.frozen.numel() if decision is None else int((decision == 0).sum())

    def rank(self, scores: torch.Tensor) -> torch.Tensor:
        """What competes for the top k, in new memory; -1 where the seed has decided."""
        rank = scores.detach().abs()
        return rank if self.decision is None else rank.masked_fill_(self.decision != 0, -1.0)

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        """What each frozen weight is multiplied by: 1 where it is kept, else 0."""
        gate = self.cuts[0].gate(self.rank(scores))
        for cut in self.cuts[1:]:
            gate += cut.gate(self.rank(scores))
        return self.with_locked(gate)

    def value(self, scores: torch.Tensor) -> torch.Tensor:
        return self.masked(self.gate(scores))

    def gradient(self, gradient: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.sign().mul_(gradient).mul_(self.frozen)

    def stored(self, scores: torch.Tensor) -> StoredTensor:
        gate = self.gate(scores.detach()).cpu().numpy()
        levels = gate.astype(np.int64) if self.has_levels else None
        decision = None if self.decision is None else self.decision.cpu().numpy()
        source = self.source
        return StoredTensor(
            source.law, gate != 0, source.slices, levels, sparsity=source.sparsity, decision=decision
        )

    def masked(self, gate: torch.Tensor) -> torch.Tensor:
        """The frozen weights behind a gate, written over it."""
        return gate.mul_(self.frozen).add_(0.0)  # -0.0 becomes 0.0, as in a ticket

    def with_locked(self, gate: torch.Tensor) -> torch.Tensor:
        """The gate where the seed leaves weights free; elsewhere 1 or 0, as the seed decided."""
        if self.decision is None:
            return gate
        return torch.where(self.decision == 0, gate, (self.decision == 1).to(gate.dtype))

    def rescale(self, factor: float, unscaled: np.ndarray) -> None:
        """Put another factor on the query and key slices of the unscaled weights."""
        self.source = self.source.scaled(factor)
        self.frozen.copy_(torch.from_numpy(scale_slices(unscaled.copy(), self.source.slices)))


class MaskedByScore(Masked):
    """The frozen weight where its score itself is in the top k: a score that falls below 0 falls further."""

    def rank(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.detach().clone()

    def gradient(self, gradient: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return gradient * self.frozen


class Rounded(Weights):
    """The nearest of a latent weight's own numbers step · (c + offset), c whole; without offsets, plain rounding."""

    offset: torch.Tensor

    def __init__(self, nearest: Nearest, offset: torch.Tensor | float = 0.0) -> None:
        super().__init__()
        self.nearest = nearest
        self.register_buffer("offset", torch.as_tensor(offset), persistent=False)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        return latent if self.training and self.softness == 1 else super().forward(latent)

    def value(self, latent: torch.Tensor) -> torch.Tensor:
        step, whole = self.nearest(latent, self.offset)
        rounded = whole.add_(self.offset).mul_(step)  # the sum turns -0.0 into 0.0, as in a ticket
        soft = self.training and self.softness > 0
        return torch.lerp(latent, rounded, 1 - self.softness) if soft else rounded

    def stored(self, latent: torch.Tensor) -> StoredTensor:
        step, whole = self.nearest(latent.detach(), self.offset)
        levels = whole.cpu().numpy().astype(np.int64)
        return StoredTensor(Constant(float(step)), levels != 0, levels=levels)
