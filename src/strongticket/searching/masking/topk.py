"""The k entries of largest rank: exactly k, ties kept by position, and no sort."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from strongticket.errors import StrongTicketError

Rank = Callable[[torch.Tensor], torch.Tensor]  # scores -> what is compared, in new memory


@dataclass(frozen=True)
class Cut:
    """Where one tensor is cut: kept is rank >= threshold, but not the last `dropped` of those equal to it."""

    threshold: float
    dropped: int = 0

    def gate(self, rank: torch.Tensor) -> torch.Tensor:
        """1.0 where kept, else 0.0, written over `rank`."""
        # Comparing floats into floats: torch's comparisons into bool are five times slower on a CPU.
        ties = (rank == self.threshold).nonzero()[-self.dropped :] if self.dropped else None
        gate = rank.ge_(self.threshold)
        if ties is not None:
            gate[tuple(ties.t())] = 0.0
        return gate


def top_k(scores: Sequence[torch.Tensor], keep: int, ranks: Sequence[Rank] | None = None) -> list[Cut]:
    """The `keep` largest ranks over all tensors together, as one cut for each tensor.

    Of equal ranks those that come first stay: earlier tensors, then earlier positions in row-major order. The time is
    linear in the number of scores.

    Args:
        scores: one tensor each
        keep: how many to keep
        ranks: the rank of each tensor's scores; None means their size, |score|

    >>> scores = torch.tensor([[1.0, -3.0], [3.0, 0.0]])
    >>> top_k([scores], 1)[0].gate(scores.abs()).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    size = sum(part.numel() for part in scores)
    if not 0 <= keep <= size:
        raise StrongTicketError(f"keep must be from 0 to the number of scores, {size}, got {keep}")
    if not scores:
        return []
    members = list(zip(scores, ranks or [torch.abs] * len(scores), strict=True))
    # One copy of all ranks, because the selection moves them; one by one, so that there is no second copy.
    flat = torch.empty(size, dtype=scores[0].dtype, device=scores[0].device)
    for index, own in enumerate(flat.split([part.numel() for part in scores])):
        part, rank = members[index]
        own.copy_(rank(part).reshape(-1))
        if own.numel() and not all(map(math.isfinite, own.aminmax())):  # NaN goes through
            raise StrongTicketError(
                f"scores[{index}] is not finite, so it has no top-k: the training has diverged",
                hint="Lower the learning rate.",
            )
    if keep == 0:
        return [Cut(math.inf) for _ in scores]
    threshold, surplus = _select(flat, keep)
    cuts = []
    for part, rank in reversed(members):
        dropped = min(surplus, int((rank(part) == threshold).count_nonzero())) if surplus else 0
        cuts.append(Cut(threshold, dropped))
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
