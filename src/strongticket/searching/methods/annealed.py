"""Annealed edge-popup: gates are soft at first and harden while the scores train.

The idea of Savarese et al., "Winning the lottery with continuous sparsification", NeurIPS 2020, at the cut of
edge-popup's top k.
"""

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores

HARD_AFTER = 0.95  # fraction of the steps; the rest of them train what the ticket keeps


def annealed(model: nn.Module, config: SearchConfig) -> Attachment:
    """Edge-popup whose gates in training rise from 0 to 1 around the cut, over a range that shrinks to nothing.

    What is validated and stored is the mask alone.
    """
    return anneal(attach_scores(model, config, Soft))


class Soft(Masked):
    """A gate that before training rises from 0 to 1 between 0 and twice the threshold."""

    def value(self, scores: torch.Tensor) -> torch.Tensor:
        (cut,) = self.cuts
        width = 2 * self.softness * cut.threshold
        if not self.training or not 0 < width < float("inf"):
            return super().value(scores)
        rising = self.rank(scores).sub_(cut.threshold).div_(width).add_(0.5).clamp_(0.0, 1.0)
        return self.masked(self.with_locked(rising))


def anneal(attachment: Attachment) -> Attachment:
    """Let weights be soft at first and harden while they train."""

    def harden(done: int, total: int) -> None:
        for matrix in attachment.masked:
            matrix.weights.softness = softness(done / total)

    attachment.before_step = harden
    return attachment


def softness(progress: float) -> float:
    """How soft the weights still are: from 1 in a straight line to 0.

    >>> softness(0.0), softness(0.475), softness(0.96)
    (1.0, 0.5, 0.0)
    """
    return max(0.0, 1 - progress / HARD_AFTER)
