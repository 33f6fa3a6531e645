"""Round-to-nearest, the plainest way to make a model small: what a ticket is measured beside."""

import copy
import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

GROUP = 32  # numbers that share a scale


def round_tensor(tensor: Tensor, bits: int) -> Tensor:
    """Symmetric, in groups of 32 whose largest number is the largest level; scales are float16."""
    top = 2 ** (bits - 1) - 1
    padded = nn.functional.pad(tensor.float().reshape(-1), (0, -tensor.numel() % GROUP))
    flat = padded.reshape(-1, GROUP)
    scale = (flat.abs().amax(1, keepdim=True) / top).half().float()
    levels = (flat / scale.where(scale > 0, 1.0)).round().clamp(-top - 1, top)
    made: Tensor = (levels * scale).reshape(-1)[: tensor.numel()].reshape(tensor.shape)
    return made


def rounded_model(
    model: nn.Module, bits: int, only: Collection[str] | None = None
) -> tuple[nn.Module, float]:
    """(a copy with every matrix rounded and every vector in float16, bits that it takes for each number).

    only: names of the parameters that are rounded and counted; None means all
    """
    rounded, total, numbers = copy.deepcopy(model), 0.0, 0
    with torch.no_grad():
        for name, tensor in rounded.named_parameters():
            if only is not None and name not in only:
                continue
            numbers += tensor.numel()
            if tensor.ndim < 2 or not tensor.is_floating_point():
                total += 16 * tensor.numel()
                tensor.copy_(tensor.half().to(tensor))
            else:
                total += bits * tensor.numel() + 16 * math.ceil(tensor.numel() / GROUP)
                tensor.copy_(round_tensor(tensor, bits))
    return rounded, total / max(numbers, 1)
