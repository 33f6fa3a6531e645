"""The k entries of largest |score|: exactly k, ties kept by position, and no sort."""

import math
from collections.abc import Sequence

import torch

from strongticket.errors import StrongTicketError


def keep_count(kept: float, size: int) -> int:
    """How many of `size` weights the kept fraction keeps: Python's round(kept * size)."""
    return round(kept * size)


def top_k_masks(scores: Sequence[torch.Tensor], keep: int) -> list[torch.Tensor]:
    """The `keep` largest |score| over all tensors together, as one bool mask for each tensor.

    Of equal scores those that come first stay: earlier tensors, then earlier positions in row-major order,
    whatever the strides. The time is linear in the number of scores.

    >>> top_k_masks([torch.tensor([[1.0, -3.0], [3.0, 0.0]])], 2)[0].tolist()
    [[False, True], [True, False]]
    """
    size = sum(part.numel() for part in scores)
    if not 0 <= keep <= size:
        raise StrongTicketError(f"keep must be from 0 to the number of scores, {size}, got {keep}")
    if keep == 0:
        return [torch.zeros(part.shape, dtype=torch.bool, device=part.device) for part in scores]
    threshold = _kth_largest(scores, keep)
    # contiguous: `view` below must reach the mask itself, not a copy of it
    masks = [(part.detach().abs() >= threshold).contiguous() for part in scores]
    surplus = sum(int(mask.count_nonzero()) for mask in masks) - keep
    if surplus < 0:  # NaN is never >= anything
        bad = next(index for index, part in enumerate(scores) if not bool(part.isfinite().all()))
        raise StrongTicketError(
            f"scores[{bad}] is not finite, so it has no top-k: the training has diverged; lower the learning rate"
        )
    for part, mask in zip(reversed(scores), reversed(masks), strict=True):
        if surplus == 0:
            break
        ties = (part.detach().abs() == threshold).reshape(-1).nonzero()[:, 0]
        dropped = ties[max(len(ties) - surplus, 0) :]
        mask.view(-1)[dropped] = False
        surplus -= len(dropped)
    return masks


def _kth_largest(scores: Sequence[torch.Tensor], k: int) -> float:
    """NaN if any score is NaN or infinite."""
    parts = [part.detach().abs().reshape(-1) for part in scores]  # new memory: the selection moves values
    values = torch.cat(parts) if len(parts) > 1 else parts[0]
    rank = values.numel() - k
    if not bool(values.max().isfinite()):  # NaN goes through max
        return math.nan
    if values.device.type == "cpu":
        array = values.numpy()
        array.partition(rank)  # vectorised quickselect in place: ten times faster than torch.kthvalue here
        return float(array[rank])
    return float(torch.kthvalue(values, rank + 1).values)
