"""Target weights as the theory assumes them, drawn by seed and name."""

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.nets.attention import MultiHeadAttention
from strongticket.seeds import Uniform, draw


def initialise(module: nn.Module, seed: int, *, normalised: bool = False) -> nn.Module:
    """Fill a target in place and return it: U[±key_dim^¼] for query and key, else U[±1] (appendix B.1).

    Args:
        module: any network of this package.
        seed: of the weights.
        normalised: shrink every matrix (bias row included) to spectral norm at most 1, as section 3.1 assumes.
    """
    if not hasattr(module, "kind"):
        raise StrongTicketError(
            f"cannot initialise a {type(module).__name__}: expected one of strongticket.nets' own modules"
        )
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            of_keys = name.rpartition(".")[2].startswith(("query", "key"))
            law = Uniform(parameter.shape[-1] ** 0.25 if of_keys else 1.0)
            # "target/" keeps a target apart from a source of the same seed and shape.
            values = draw(seed, f"target/{name}", tuple(parameter.shape), law)
            parameter.copy_(torch.from_numpy(values))
        for part in module.modules() if normalised else ():
            _normalise(part)
    return module


def _normalise(part: nn.Module) -> None:
    if isinstance(part, nn.Linear):
        _shrink(part.weight, None if part.bias is None else part.bias[:, None], axis=1)
    if isinstance(part, MultiHeadAttention):
        for name in ("query", "key", "value", "output"):
            bias = getattr(part, f"{name}_bias") if name != "output" else None
            for head, weight in enumerate(getattr(part, name)):
                _shrink(weight, None if bias is None else bias[head][None], axis=0)


def _shrink(weight: Tensor, bias: Tensor | None, axis: int) -> None:
    whole = weight if bias is None else torch.cat([weight, bias], axis)
    norm = float(torch.linalg.matrix_norm(whole.double(), 2))
    # A little less than 1, so that rounding does not lead past it.
    scale = min(1.0, (1 - 1e-6) / norm) if norm else 1.0
    weight.mul_(scale)
    if bias is not None:
        bias.mul_(scale)
