"""LayerNorm and RMSNorm without trained parameters (fold gain and shift into the next linear map)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.theory.normalisation import Normalisation, NormKind


class Norm(nn.Module):
    """√d·c/√(‖c‖² + dε), c = x for "rms" and x minus its mean for "layer".

    floor: where set, `forward` refuses a token with ‖c‖ below it: the certificate does not hold there

    >>> Norm("rms", epsilon=0.0)(torch.tensor([3.0, 4.0]))
    tensor([0.8485, 1.1314])
    """

    def __init__(self, kind: NormKind, epsilon: float = 1e-5):
        super().__init__()
        self.rule = Normalisation(kind, epsilon)
        self.floor: float | None = None

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        centred = self.centred(x)
        if self.floor is not None:
            self._check(centred)
        return centred / (centred.square().mean(-1, keepdim=True) + self.rule.epsilon).sqrt()

    def centred(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return x - x.mean(-1, keepdim=True) if self.rule.kind == "layer" else x

    def _check(self, centred: Tensor) -> None:
        lengths = centred.detach().norm(dim=-1)
        if (lengths < self.floor).any():
            shortest = float(lengths.min())
            raise StrongTicketError(
                f"a norm reads a token of length {shortest:.4g}: the certificate holds from {self.floor:.4g} on",
                hint="Certify with lower floors, or run network(check=False).",
            )

    def extra_repr(self) -> str:
        return f"{self.rule.kind}, epsilon={self.rule.epsilon}"


def identity_or_norm(kind: NormKind | None, epsilon: float) -> Norm | nn.Identity:
    return nn.Identity() if kind is None else Norm(kind, epsilon)


def find_norms(network: nn.Module) -> list[Norm]:
    """All norms of the `network`, in the order in which an input meets them."""
    return [module for module in network.modules() if isinstance(module, Norm)]


def keeps_to(network: nn.Module, floors: Sequence[float]) -> Callable[..., Bool[Tensor, " batch"]]:
    """A function of what the `network` takes: whether all that its norms read is at least as long as `floors`.

    It runs the network. Made for the argument `accepts` of nets.attack.
    """
    norms = find_norms(network)

    def accepts(x: Float[Tensor, "batch tokens dim"], **options: Any) -> Bool[Tensor, " batch"]:
        fine = torch.ones(len(x), dtype=torch.bool)

        def watch(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
            assert isinstance(norm, Norm)
            shortest = norm.centred(given[0]).norm(dim=-1).amin(-1)
            fine.logical_and_(shortest >= floors[norms.index(norm)])

        hooks = [norm.register_forward_pre_hook(watch) for norm in norms]
        with torch.no_grad():
            network(x, **options)
        for hook in hooks:
            hook.remove()
        return fine

    return accepts


def length_floors(
    network: nn.Module,
    dim: int,
    radius: float,
    *,
    share: float = 0.5,
    inputs: int = 64,
    tokens: int = 8,
    seed: int = 0,
) -> tuple[float, ...]:
    """For each norm the shortest vector that it reads on random tokens of norm `radius`, times `share`.

    network: runs on (`inputs`, `tokens`, `dim`), drawn from `seed`
    """
    norms, shortest = find_norms(network), {}

    def watch(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
        assert isinstance(norm, Norm)
        shortest[norm] = float(norm.centred(given[0]).norm(dim=-1).min())

    hooks = [norm.register_forward_pre_hook(watch) for norm in norms]
    x = torch.randn(inputs, tokens, dim, generator=torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        network(x / x.norm(dim=-1, keepdim=True) * radius)
    for hook in hooks:
        hook.remove()
    found = tuple(share * shortest[norm] for norm in norms)
    if not np.isfinite(found).all():
        raise StrongTicketError(
            f"a norm reads zeros, or numbers too large or small for float64, from tokens of norm {radius:g}",
            hint="Choose a radius nearer to 1, a norm_epsilon above 0, or pass floors.",
        )
    return found
