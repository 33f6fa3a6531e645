"""LayerNorm and RMSNorm without trained parameters (merge gain and shift into the next linear map)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.theory.normalisation import Normalisation, NormKind


class Norm(nn.Module):
    """√d·c/√(‖c‖² + dε), c = x for "rms" and x minus its mean for "layer".

    >>> Norm("rms", epsilon=0.0)(torch.tensor([3.0, 4.0]))
    tensor([0.8485, 1.1314])
    """

    def __init__(self, kind: NormKind, epsilon: float = 1e-5):
        super().__init__()
        self.rule = Normalisation(kind, epsilon)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        centred = self.centred(x)
        return centred / (centred.square().mean(-1, keepdim=True) + self.rule.epsilon).sqrt()

    def centred(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Return c, whose length decides how much the norm enlarges errors."""
        return x - x.mean(-1, keepdim=True) if self.rule.kind == "layer" else x

    def extra_repr(self) -> str:
        return f"{self.rule.kind}, epsilon={self.rule.epsilon}"


def norm_or_identity(rule: Normalisation | None) -> Norm | nn.Identity:
    """Make the norm of that rule; where there is none, what passes its input on."""
    return nn.Identity() if rule is None else Norm(rule.kind, rule.epsilon)


def find_norms(network: nn.Module) -> list[Norm]:
    """All norms of the `network`, in the order in which an input meets them."""
    return [module for module in network.modules() if isinstance(module, Norm)]


@contextmanager
def watch_norms(network: nn.Module, see: Callable[[int, Tensor], None]) -> Iterator[None]:
    """While open, call `see` with the number of each norm that runs and the lengths ‖c‖ of what it reads."""

    def hook(number: int, norm: Norm, given: tuple[Tensor, ...]) -> None:
        see(number, norm.centred(given[0]).detach().norm(dim=-1))

    norms = enumerate(find_norms(network))
    hooks = [norm.register_forward_pre_hook(partial(hook, number)) for number, norm in norms]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


def length_floors(network: nn.Module, dim: int, radius: float) -> tuple[float, ...]:
    """For each norm half of the shortest vector that it reads on random tokens of norm `radius`."""
    shortest: dict[int, float] = {}

    def see(number: int, lengths: Tensor) -> None:
        shortest[number] = float(lengths.min())

    x = torch.randn(64, 8, dim, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad(), watch_norms(network, see):
        network(x / x.norm(dim=-1, keepdim=True) * radius)
    found = tuple(0.5 * shortest[number] for number in sorted(shortest))
    if not np.isfinite(found).all():
        raise StrongTicketError(
            f"a norm reads zeros, or numbers too large or small for float64, from tokens of norm {radius:g}",
            hint="Choose a radius nearer to 1, a norm_epsilon above 0, or pass floors.",
        )
    return found
