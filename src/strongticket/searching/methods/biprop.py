"""Biprop (Diffenderfer and Kailkhura, "Multi-prize lottery ticket hypothesis", ICLR 2021): binary weights."""

from dataclasses import replace

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.source import ScaledSlice, Source
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores
from strongticket.seeds import Normal, draw


def biprop(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep signs of normal weights, times the mean size of the kept ones; the file stores that scale."""
    return attach_scores(model, config.changed(law="signed"), Binarised)


class Binarised(Masked):
    """Masked signs, times the mean size that the kept weights had before they were made binary."""

    sizes: torch.Tensor

    def __init__(self, source: Source, frozen: torch.Tensor | None = None) -> None:
        super().__init__(source, frozen)
        # The law `signed` has the signs of `normal`: the same draw, before it is made binary.
        sizes = abs(draw(source.seed, source.name, source.shape, Normal(source.law.scale)))
        self.register_buffer("sizes", torch.from_numpy(sizes), persistent=False)

    def value(self, scores: torch.Tensor) -> torch.Tensor:
        weights = super().value(scores)
        return weights.mul_(self._scale(weights != 0))

    def stored(self, scores: torch.Tensor) -> StoredTensor:
        found = super().stored(scores)
        mask = torch.from_numpy(found.mask).to(self.sizes.device)
        whole = ScaledSlice(0, 0, self.source.shape[0], self._scale(mask))
        return replace(found, slices=(*found.slices, whole))

    def _scale(self, mask: torch.Tensor) -> float:
        """Mean size of the kept weights before they were made binary, over the size they have now; a float32."""
        kept = self.sizes[mask].double()
        mean = float(kept.mean()) / self.source.law.scale if kept.numel() else 1.0
        return float(torch.tensor(mean, dtype=torch.float32))
