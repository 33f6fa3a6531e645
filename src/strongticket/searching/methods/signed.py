"""Signed supermasks (Koster et al., "Signing the supermask: keep, hide, invert", ICLR 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.masked import Selection
from strongticket.searching.masking.topk import Cut
from strongticket.searching.methods.edge_popup import attach_scores


def signed(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights of the largest |score|, inverted where the score is negative. The file stores the signs."""
    return attach_scores(model, config, selection=_Signed)


class _SignedCut(Cut):
    has_levels, by_size = True, False

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        """1.0 or -1.0 where kept, by the sign of the score."""
        return super().gate(scores).mul_(torch.where(scores.detach() < 0, -1.0, 1.0))


class _Signed(Selection):
    def choose(self, scores: Sequence[torch.Tensor]) -> Sequence[Cut]:
        return [_SignedCut(cut.threshold, cut.dropped) for cut in super().choose(scores)]
