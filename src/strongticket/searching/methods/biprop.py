"""Biprop (Diffenderfer and Kailkhura, "Multi-prize lottery ticket hypothesis", ICLR 2021): binary weights, a mask and
one scale for each tensor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.frozen import ScaledSlice
from strongticket.searching.masking.masked import Masked
from strongticket.searching.methods.edge_popup import attach_scores
from strongticket.seeds import Normal, draw


def biprop(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep signs of normal weights, times the mean size of the kept ones; the file stores that scale."""
    return attach_scores(model, config.changed(law="signed"), parametrization=_Binarised)


class _Binarised(Masked):
    sizes: torch.Tensor  # of the weights before they are made binary

    def __init__(self, frozen: Any, *args: Any, **options: Any) -> None:
        super().__init__(frozen, *args, **options)
        # The law `signed` has the signs of `normal`: the same draw, before it is made binary.
        sizes = abs(draw(frozen.seed, frozen.name, frozen.shape, Normal(frozen.law.scale)))
        self.register_buffer("sizes", torch.from_numpy(sizes), persistent=False)

    def finish(self, weight: torch.Tensor) -> None:
        weight.mul_(self._scale(weight != 0))

    def _scale(self, mask: torch.Tensor) -> float:
        """Mean size of the kept weights before they were made binary, over the size they have now; a float32."""
        kept = self.sizes.double()[mask]
        mean = float(kept.mean()) / self.frozen.law.scale if kept.numel() else 1.0
        return float(torch.tensor(mean, dtype=torch.float32))

    def stored(self) -> StoredTensor:
        found = super().stored()
        whole = ScaledSlice(0, 0, self.frozen.shape[0], self._scale(self.mask))
        return replace(found, slices=(*found.slices, whole))
