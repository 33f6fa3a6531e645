"""The random weights behind a mask: kept in memory, or drawn again from the seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch

from strongticket.searching.masking.frozen import FrozenTensor, TrainedTensor

_CHUNK = 1 << 20  # weights drawn at a time
Redraw = bool | Literal["on the cpu"]


class WeightStore:
    """The random weights of one tensor: kept in memory, or drawn again each time they are needed.

    redraw: "on the cpu" draws again only there: on an accelerator a draw and its copy would cost more than a step
    """

    def __init__(self, tensor: FrozenTensor | TrainedTensor, *, redraw: Redraw) -> None:
        self.tensor, self.redraw = tensor, redraw
        self._kept: torch.Tensor | None = None

    def draws_again(self, device: torch.device) -> bool:
        """Whether the weights on this device are drawn each time."""
        return self.redraw is True or (bool(self.redraw) and device.type == "cpu")

    def chunks(self, device: torch.device) -> Iterator[tuple[slice, torch.Tensor]]:
        """(rows, their weights), some rows at a time."""
        if not self.draws_again(device):
            if self._kept is None or self._kept.device != device:
                self._kept = torch.from_numpy(self.tensor.weights()).to(device)
            yield slice(None), self._kept
            return
        rows = max(1, _CHUNK // math.prod(self.tensor.shape[1:]))
        for start in range(0, self.tensor.shape[0], rows):
            chunk = slice(start, start + rows)
            weights = self.tensor.weights(chunk, threads=torch.get_num_threads())
            yield chunk, torch.from_numpy(weights).to(device)
