"""Target weights as the theory assumes them, drawn by seed and name."""

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.relu import ReluNetwork
from strongticket.seeds import Uniform, draw


def initialise(module: nn.Module, seed: int, *, normalised: bool = False) -> nn.Module:
    """Fill a target in place and return it: U[±key_dim^¼] for query and key, else U[±1] (appendix B.1).

    module: any network of this room
    seed: of the weights
    normalised: shrink every matrix (bias row included) to spectral norm at most 1, as section 3.1 assumes.
    """
    layers = {
        name: part
        for name, part in module.named_modules()
        if isinstance(part, MultiHeadAttention | ReluNetwork)
    }
    if not layers:
        raise StrongTicketError(
            f"cannot initialise a {type(module).__name__}: expected one of strongticket.nets' own modules"
        )
    with torch.no_grad():
        for prefix, layer in layers.items():
            for name, parameter in layer.named_parameters():
                full_name = f"{prefix}.{name}" if prefix else name
                half_width = 1.0
                if isinstance(layer, MultiHeadAttention) and name.startswith(("query", "key")):
                    half_width = layer.key_dim**0.25
                # "target/" keeps a target apart from a source of the same seed and shape.
                values = draw(seed, f"target/{full_name}", tuple(parameter.shape), Uniform(half_width))
                parameter.copy_(torch.from_numpy(values))
            if normalised:
                _normalise(layer)
    return module


def _normalise(layer: MultiHeadAttention | ReluNetwork) -> None:
    if isinstance(layer, ReluNetwork):
        for linear in layer.layers:
            bias = None if linear.bias is None else linear.bias[:, None]
            _shrink(linear.weight, bias, axis=1)
        return
    for name in ("query", "key", "value", "output"):
        bias = getattr(layer, f"{name}_bias", None) if name != "output" else None
        for head, weight in enumerate(getattr(layer, name)):
            _shrink(weight, None if bias is None else bias[head][None], axis=0)


def _shrink(weight: torch.Tensor, bias: torch.Tensor | None, axis: int) -> None:
    whole = weight if bias is None else torch.cat([weight, bias], axis)
    norm = float(torch.linalg.matrix_norm(whole.double(), 2))
    # A little less than 1, so that rounding does not lead past it.
    scale = min(1.0, (1 - 1e-6) / norm) if norm else 1.0
    weight.mul_(scale)
    if bias is not None:
        bias.mul_(scale)
