"""Annealed edge-popup: gates are soft at first and harden while the scores train (the idea of Savarese et al., "Winning
the lottery with continuous sparsification", NeurIPS 2020, at the cut of edge-popup's top k).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import masked_tensors
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.masked import Masked
from strongticket.searching.methods.edge_popup import attach_scores

SOFTNESS = 1.0  # before training the gate rises from 0 to 1 between 0 and twice the threshold
HARD_AFTER = 0.95  # share of the steps; the rest of them train the mask that the ticket keeps


def annealed(model: nn.Module, config: SearchConfig) -> Attachment:
    """Edge-popup whose gates in training rise from 0 to 1 around the cut, over a range that shrinks to nothing.

    What is validated and stored is the mask alone.
    """
    attachment = attach_scores(model, config, parametrization=_Soft)
    tensors, schedule = list(masked_tensors(model).values()), attachment.before_step

    def soften(done: int, total: int) -> None:
        if schedule:
            schedule(done, total)
        for tensor in tensors:
            tensor.soften(SOFTNESS * soft_share(done / total))

    return replace(attachment, before_step=soften)


def soft_share(progress: float) -> float:
    """How soft the gates still are: from 1 in a straight line to 0.

    >>> soft_share(0.0), soft_share(0.475), soft_share(0.96)
    (1.0, 0.5, 0.0)
    """
    return max(0.0, 1 - progress / HARD_AFTER)


class _Soft(Masked):
    softness = 0.0  # half the range over which a gate rises, in units of the threshold

    def soften(self, softness: float) -> None:
        if softness or self.softness:
            self._weight = None
        self.softness = softness

    def train(self, mode: bool = True) -> Self:
        self._weight = None  # validation has another gate
        return super().train(mode)

    def training_gate(self) -> torch.Tensor:
        width = 2 * self.softness * self._cut.threshold
        if not 0 < width < float("inf"):
            return self.gate()

        def rising(scores: torch.Tensor) -> torch.Tensor:
            above = self._cut.ranked(scores).sub_(self._cut.threshold)
            return above.div_(width).add_(0.5).clamp_(0.0, 1.0)

        return self._with_fates(rising)
