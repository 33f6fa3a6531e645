"""Relaxed Bernoulli gates: a mask that is drawn anew in every training step (Zhou et al., "Deconstructing lottery
tickets", NeurIPS 2019; the relaxation is that of Maddison et al., "The concrete distribution", ICLR 2017).
"""

from __future__ import annotations

import math

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import masked_tensors
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.masked import Masked
from strongticket.searching.methods.edge_popup import attach_scores

_SHARPNESS = 20.0  # log-odds of a score of 1: with AdamW's steps the odds of 600 steps must reach far from 1
_TEMPERATURE = 0.5


def bernoulli(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep each weight with a trained probability, `kept` before training; the ticket keeps those above one half."""
    attachment = attach_scores(model, config, parametrization=_Gate)
    odds = math.log(config.source.kept / (1 - config.source.kept)) if config.source.kept < 1 else 4.0
    with torch.no_grad():
        for masked in masked_tensors(model).values():
            masked.scores.mul_(0.1).add_(odds / _SHARPNESS)
    return attachment


class _Gate(Masked):
    """In training a drawn gate, whose gradient is that of its relaxation; else the likelier value."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        if self._final is not None:
            return self._final
        (_, weights), *more = self.store.chunks(scores.device)
        if more:
            weights = torch.cat([weights, *(chunk for _, chunk in more)])
        if not self.training:
            return weights * self.likely() + 0.0  # -0.0 becomes 0.0, as in a ticket
        uniform = torch.rand_like(scores).clamp_(1e-6, 1 - 1e-6)
        relaxed = torch.sigmoid((_SHARPNESS * scores + torch.logit(uniform)) / _TEMPERATURE)
        hard = (relaxed > 0.5).to(relaxed.dtype)
        return weights * self.decided(hard + relaxed - relaxed.detach())

    def likely(self) -> torch.Tensor:
        """1.0 where a weight is more likely kept than not."""
        return self.decided((self.scores.detach() > 0).to(self.scores.dtype))

    def decided(self, gate: torch.Tensor) -> torch.Tensor:
        """The gate where the source leaves weights free; elsewhere 1 or 0, as the seed says."""
        fates = self.fates()
        return gate if fates is None else torch.where(fates == 0, gate, (fates == 1).to(gate.dtype))

    @property
    def mask(self) -> torch.Tensor:
        return self.likely() != 0
