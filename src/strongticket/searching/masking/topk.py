"""The k entries of largest score, by size or as they are: exactly k, ties kept by position, and no sort."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from strongticket.errors import StrongTicketError


@dataclass(frozen=True)
class Cut:
    """Where one tensor is cut: kept is |score| >= threshold, but not the last `dropped` of those equal to it."""

    threshold: float
    dropped: int = 0
    has_levels: ClassVar[bool] = False  # whether the gate has other values than 0 and 1
    by_size: ClassVar[bool] = True  # whether a score counts by its size, whatever its sign

    @staticmethod
    def ranked(scores: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """What is compared with the threshold, in `out` or in new memory."""
        return torch.abs(scores.detach(), out=out)

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        """1.0 where kept, else 0.0: new memory, contiguous whatever the scores' strides."""
        # Comparing floats into floats: torch's comparisons into bool are five times slower on a CPU.
        ranked = self.ranked(scores).contiguous()
        ties = (ranked == self.threshold).view(-1).nonzero()[:, 0] if self.dropped else None
        gate = ranked.ge_(self.threshold)
        if ties is not None:
            gate.view(-1)[ties[-self.dropped :]] = 0.0
        return gate

    def mask(self, scores: torch.Tensor) -> torch.Tensor:
        """Bool of the scores' shape, True = kept."""
        return self.gate(scores) != 0


class RawCut(Cut):
    """Kept is score >= threshold: a score that falls below 0 falls further, where |score| would rise again."""

    by_size = False

    @staticmethod
    def ranked(scores: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        return scores.detach().clone() if out is None else out.copy_(scores.detach())


def keep_count(kept: float, size: int) -> int:
    """How many of `size` weights the kept fraction keeps: Python's round(kept * size)."""
    return round(kept * size)


def top_k(scores: Sequence[torch.Tensor], keep: int, cut: type[Cut] = Cut) -> list[Cut]:
    """The `keep` largest scores over all tensors together, as one cut for each tensor; by size, unless `cut` is RawCut.

    Of equal scores those that come first stay: earlier tensors, then earlier positions in row-major order. The
    time is linear in the number of scores.

    >>> scores = torch.tensor([[1.0, -3.0], [3.0, 0.0]])
    >>> top_k([scores], 1)[0].mask(scores).tolist()
    [[False, True], [False, False]]
    """
    size = sum(part.numel() for part in scores)
    if not 0 <= keep <= size:
        raise StrongTicketError(f"keep must be from 0 to the number of scores, {size}, got {keep}")
    if not scores:
        return []
    # New memory, as the selection moves values, and no more than one copy: a step's peak is elsewhere then.
    sizes = torch.empty(size, dtype=scores[0].dtype, device=scores[0].device)
    for index, (part, own) in enumerate(
        zip(scores, sizes.split([part.numel() for part in scores]), strict=True)
    ):
        cut.ranked(part.reshape(-1), own)
        if own.numel() and not all(map(math.isfinite, own.aminmax())):  # NaN goes through
            raise StrongTicketError(
                f"scores[{index}] is not finite, so it has no top-k: the training has diverged",
                hint="Lower the learning rate.",
            )
    if keep == 0:
        return [cut(math.inf) for _ in scores]
    threshold, surplus = _select(sizes, keep)
    cuts = []
    for part in reversed(scores):
        dropped = min(surplus, int((cut.ranked(part) == threshold).count_nonzero())) if surplus else 0
        cuts.append(cut(threshold, dropped))
        surplus -= dropped
    return cuts[::-1]


def _select(values: torch.Tensor, keep: int) -> tuple[float, int]:
    """(the keep-th largest value, how many too many are equal to it). Reorders `values`."""
    rank = values.numel() - keep
    if values.device.type == "cpu":
        array = values.numpy()
        array.partition(rank)  # vectorised quickselect: ten times faster than torch.kthvalue here
        return float(array[rank]), int(np.count_nonzero(array[:rank] == array[rank]))
    threshold = torch.kthvalue(values, rank + 1).values
    return float(threshold), int((values >= threshold).count_nonzero()) - keep
