"""The loss that an error costs, before anything is built: the model with noise of that size added to its tensors."""

import copy
import math

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.comparing import compare_models
from strongticket.models.inputs import Batch
from strongticket.models.tensors import matrix_shape, tensor_named
from strongticket.pretrained.pieces import FEW

STEPS = 7  # of the search, each a factor in the tolerance
RANGE = (1e-4, 0.3)  # tolerances that are tried
MARGIN = 0.9  # of the loss asked for is used up, because errors of subset sums have longer tails than noise


def tolerance_for(loss: float, model: nn.Module, names: list[str], batches: list[Batch]) -> float:
    """The largest relative error with which the loss on the batches grows by no more than the fraction `loss`."""
    low, high = RANGE
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        grown = growth(model, with_noise(model, names, middle), batches)
        low, high = (middle, high) if grown <= MARGIN * loss else (low, middle)
    return low


def growth(target: nn.Module, source: nn.Module, batches: list[Batch]) -> float:
    """How much larger the source's loss is, as a fraction of the target's."""
    found = compare_models(target, source, batches)
    if found.target_loss is None or found.source_loss is None:
        raise StrongTicketError(
            f"a {type(target).__name__} predicts no tokens, so it has no loss on a text",
            hint="Give tolerance or bits instead, and look at `strongticket compare`.",
        )
    return found.source_loss / found.target_loss - 1


def with_noise(model: nn.Module, names: list[str], tolerance: float) -> nn.Module:
    """A copy with normal noise of this size on every matrix."""
    noisy = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name in names:
            tensor = tensor_named(noisy, name)
            if min(matrix_shape(tuple(tensor.shape))) <= FEW:
                continue  # made far nearer than any tolerance that matters
            size = tolerance * float(tensor.double().square().mean().sqrt())
            tensor.add_(size * torch.randn(tensor.shape, generator=generator).to(tensor))
    return noisy
