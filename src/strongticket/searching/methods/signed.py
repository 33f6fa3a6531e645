"""Signed supermasks (Koster et al., "Signing the supermask: keep, hide, invert", ICLR 2022)."""

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores


def signed(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights of the largest |score|, inverted where the score is negative. The file stores the signs."""
    return attach_scores(model, config, Signed)


class Signed(Masked):
    """A gate of 1 or -1 where a weight is kept, by the sign of its score."""

    has_levels = True

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        return self.with_locked(super().gate(scores).mul_(torch.where(scores < 0, -1.0, 1.0)))

    def gradient(self, gradient: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return gradient * self.frozen
