"""IteRand (Chijiwa et al., "Pruning randomly initialized neural networks with iterative randomization", NeurIPS 2021):
weights that are dropped are drawn again now and then. The file stores which draw a kept weight is of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import masked_tensors
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.masked import Masked
from strongticket.searching.masking.store import WeightStore
from strongticket.searching.methods.edge_popup import attach_scores
from strongticket.seeds import Uniform, draw

ROUNDS = 3  # redraws in a search, at equal distances
SHARE = 0.1  # of the dropped weights that are drawn again in a round


def iterand(model: nn.Module, config: SearchConfig) -> Attachment:
    """Edge-popup, with a tenth of the dropped weights drawn again three times in the search."""
    attachment = attach_scores(model, config, parametrization=_Redrawn)
    tensors, schedule = masked_tensors(model), attachment.before_step

    def redraw(done: int, total: int) -> None:
        if schedule:
            schedule(done, total)
        number = done * (ROUNDS + 1) // total
        if done and number != (done - 1) * (ROUNDS + 1) // total:
            for tensor in tensors.values():
                tensor.redraw_dropped(number)

    return replace(attachment, before_step=redraw)


class _Draws(WeightStore):
    """Weights of several draws: `draw_of` says which draw each is of."""

    def __init__(self, tensor: Any, draw_of: torch.Tensor) -> None:
        super().__init__(tensor, redraw=False)
        self._draw_of, self._seen = draw_of, -1

    def chunks(self, device: torch.device) -> Iterator[tuple[slice, torch.Tensor]]:
        if self._kept is None or self._kept.device != device or self._seen != self._draw_of._version:
            of = self._draw_of.cpu().numpy()
            weights = self.tensor.weights()
            for number in range(1, int(of.max()) + 1):
                later = replace(self.tensor, name=_name(self.tensor.name, number)).weights()
                weights = np.where(of == number, later, weights)
            self._kept, self._seen = torch.from_numpy(weights).to(device), self._draw_of._version
        yield slice(None), self._kept


class _Redrawn(Masked):
    draw_of: torch.Tensor  # which draw each weight is of; 0 is the first

    def __init__(self, frozen: Any, *args: Any, **options: Any) -> None:
        super().__init__(frozen, *args, **options)
        self.register_buffer("draw_of", torch.zeros(frozen.shape, dtype=torch.uint8))
        self.store = _Draws(frozen, self.draw_of)

    def set_frozen(self, frozen: Any) -> None:
        self.store = _Draws(frozen, self.draw_of)
        self._weight = self._meeting = None

    def _apply(self, *args: Any, **options: Any) -> Any:
        """Moving to a device makes a new buffer."""
        super()._apply(*args, **options)  # type: ignore[no-untyped-call]
        self.set_frozen(self.frozen)
        return self

    def redraw_dropped(self, number: int) -> None:
        """Draw some of the dropped weights again; which ones follows from the seed."""
        shape, name = self.frozen.shape, f"{self.frozen.name}.redraw{number}"
        chosen = draw(self.frozen.seed, name, shape, Uniform(1.0)) < 2 * SHARE - 1
        again = ~self.mask & torch.from_numpy(chosen).to(self.mask.device)
        self.draw_of[again] = number
        self._weight = None

    def stored(self) -> StoredTensor:
        found, of = super().stored(), self.draw_of.cpu().numpy()
        numbers = [int(number) for number in np.unique(of[found.mask]) if number]
        draws = {_name(self.frozen.name, number): found.mask & (of == number) for number in numbers}
        return replace(found, mask=found.mask & (of == 0), draws=draws)


def _name(name: str, number: int) -> str:
    """Tensor name of a later draw."""
    return f"{name}:draw{number}"
