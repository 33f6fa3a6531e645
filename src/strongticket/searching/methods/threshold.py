"""Score thresholds (Mallya et al., "Piggyback: adapting a single network to multiple tasks by learning to mask
weights", ECCV 2018): a fixed threshold instead of a top k.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import masked_tensors
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.masked import Selection
from strongticket.searching.masking.topk import Cut, keep_count, top_k
from strongticket.searching.methods.edge_popup import attach_scores


def threshold(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights whose |score| is above a threshold, the one that keeps `kept` of each tensor before training.

    Training decides how many are kept in the end.
    """
    attachment = attach_scores(model, config, selection=_Fixed)
    for masked in masked_tensors(model).values():
        masked.selection.cuts = [
            _first_cut(member.competing(), config.source.kept) for member in masked.selection.members
        ]
    return attachment


def _first_cut(scores: torch.Tensor, kept: float) -> Cut:
    (cut,) = top_k([scores], keep_count(kept, scores.numel()))
    return Cut(cut.threshold)


class _Fixed(Selection):
    def __init__(self, kept: float) -> None:
        super().__init__(kept)
        self.cuts: list[Cut] = []  # of the members, in their order

    def choose(self, scores: Sequence[torch.Tensor]) -> Sequence[Cut]:
        return self.cuts
