"""Multi-coated supermasks (Okoshi et al., "Multicoated supermasks enhance hidden networks", ICML 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.masked import Selection
from strongticket.searching.masking.topk import Cut, keep_count, top_k
from strongticket.searching.methods.edge_popup import attach_scores

COATS = 3


def multicoat(model: nn.Module, config: SearchConfig) -> Attachment:
    """Lay several masks over each other: the larger |score|, the more of them keep the weight, which is multiplied
    by their number. The coats keep 1, 2/3 and 1/3 of the kept fraction; the file stores the number of each weight.
    """
    return attach_scores(model, config, selection=_Coated)


@dataclass(frozen=True)
class _Coats(Cut):
    inner: tuple[Cut, ...] = ()
    has_levels = True

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        """How many coats keep each weight."""
        gate = super().gate(scores)
        for cut in self.inner:
            gate += cut.gate(scores)
        return gate


class _Coated(Selection):
    def choose(self, scores: Sequence[torch.Tensor]) -> Sequence[Cut]:
        size = sum(part.numel() for part in scores)
        coats = [top_k(scores, keep_count(self.kept * (COATS - i) / COATS, size)) for i in range(COATS)]
        return [_Coats(cuts[0].threshold, cuts[0].dropped, cuts[1:]) for cuts in zip(*coats, strict=True)]
