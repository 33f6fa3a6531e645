"""Frozen networks run on their merged products, in float64, whatever their weights' type is.

A source's hidden layers are wide and its products cancel: run factor by factor in float32, it errs by more than
its certificate. x(W_Q W_Kᵀ)yᵀ is the same number as (xW_Q)(yW_K)ᵀ, with far fewer roundings and operations.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject

ROUNDED = 1 + 1e-6  # tokens scaled to a radius in float32 may be this much longer: certificates cover them


class FreezableNetwork(nn.Module):
    """A network of this room. Once no parameter takes a gradient, `forward` merges it and runs the result.

    direct: always run factor by factor, in the weights' own type
    radius: where set, `forward` refuses inputs with a longer token
    """

    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.direct = False
        self.radius: float | None = None
        self._merged: tuple[object, nn.Module] | None = None

    def settings(self) -> JsonObject:
        """What `nets.make` needs to make a network of this shape."""
        raise NotImplementedError

    def run(self, x: Tensor, *others: Any, **options: Any) -> Tensor:
        """Factor by factor, as the network is written."""
        raise NotImplementedError

    def forward(self, x: Tensor, *others: Any, **options: Any) -> Tensor:
        if self.radius is not None:
            for tensor in (x, *others, *options.values()):
                if isinstance(tensor, Tensor) and tensor.is_floating_point():
                    check_radius(tensor, self.radius)
        merged = self.merged()
        if merged is None:
            return self.run(x, *others, **options)
        kind = torch.promote_types(x.dtype, next(self.parameters()).dtype)
        y: Tensor = merged(_double(x), *map(_double, others), **{k: _double(v) for k, v in options.items()})
        return y.to(kind)

    def merged(self) -> nn.Module | None:
        """The merged network in float64, kept until a weight changes; None while it may be trained."""
        parameters = list(self.parameters())
        if self.direct or any(p.requires_grad or p.device.type == "mps" for p in parameters):
            return None
        state = [
            (id(p), 0 if p.is_inference() else p._version, p.data_ptr(), p.dtype, p.device)
            for p in parameters
        ]
        if self._merged is None or self._merged[0] != state:
            from strongticket.nets._merge import merge

            self._merged = (state, merge(self, torch.float64))
        return self._merged[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the merged network out: a copy merges again by itself."""
        return self.__dict__ | {"_merged": None}


def check_radius(x: Tensor, radius: float) -> None:
    """Raise unless every token (…, dim) is within the radius of the certificate."""
    longest = float(x.detach().double().norm(dim=-1).max())
    if not longest <= radius * ROUNDED:  # NaN is refused too
        raise StrongTicketError(
            f"an input token has norm {longest:.4g}: the certificate holds up to {radius:.4g}",
            hint="Scale the input, build with a larger radius, or run network(check=False).",
        )


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
