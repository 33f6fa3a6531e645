"""Relaxed Bernoulli gates: a mask that is drawn anew in every training step.

Zhou et al., "Deconstructing lottery tickets", NeurIPS 2019; the relaxation is that of Maddison et al., "The concrete
distribution", ICLR 2017.
"""

import math

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores

_SHARPNESS = 20.0  # log-odds of a score of 1: with AdamW's steps the odds of 600 steps must reach far from 1
_TEMPERATURE = 0.5


def bernoulli(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep each weight with a trained probability, `kept` before training; the ticket keeps those above one half."""
    attachment = attach_scores(model, config, Likely)
    attachment.groups = []  # nothing competes for a top k
    kept = config.source.kept
    odds = math.log(kept / (1 - kept)) if kept < 1 else 4.0
    with torch.no_grad():
        for matrix in attachment.masked:
            matrix.parameter.mul_(0.1).add_(odds / _SHARPNESS)
    return attachment


class Likely(Masked):
    """In training a drawn gate, whose gradient is that of its relaxation; else the likelier value."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return super().forward(scores)
        uniform = torch.rand_like(scores).clamp_(1e-6, 1 - 1e-6)
        relaxed = torch.sigmoid((_SHARPNESS * scores + torch.logit(uniform)) / _TEMPERATURE)
        hard = (relaxed > 0.5).to(relaxed.dtype)
        return self.frozen * self.with_locked(hard + (relaxed - relaxed.detach()))  # exactly 0 or 1

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        return self.with_locked((scores > 0).to(scores.dtype))
