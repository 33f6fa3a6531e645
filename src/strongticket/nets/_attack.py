"""The largest error that gradient ascent finds in the ball: how much of a certificate is really needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.nets._layouts import Layout, changed, own_masks, shared_masks

# (batch, tokens, dim_in) -> (batch, tokens, dim_out), float64; with heads also mask=(batch, heads, tokens, tokens)
Network = Callable[..., Tensor]
# The same arguments -> (batch,) bool
Accepts = Callable[..., Tensor]
ROUNDS = 3  # how often the best sequences whose heads have masks of their own are changed and tried again
BEST = 8  # of so many sequences, one
JITTER = 0.02  # of the radius: how far its tokens are moved


@dataclass(frozen=True)
class Attack:
    """The largest error found.

    error: at the last position
    inputs: (tokens, dim) that show it
    mask: (heads, tokens, tokens), True where a position attends; None if no mask was used
    attempts: how many ascents were made
    """

    error: float
    inputs: Float[np.ndarray, "tokens dim"]
    mask: Bool[np.ndarray, "heads tokens tokens"] | None
    attempts: int


def attack(
    source: Network,
    target: Network,
    dim: int,
    radius: Real,
    *,
    heads: int | None = None,
    tokens: Sequence[int] = (1, 2, 3, 8),
    restarts: int = 64,
    steps: int = 200,
    seed: int = 0,
    accepts: Accepts | None = None,
) -> Attack:
    """Maximise ‖source(X) − target(X)‖ at the last position over ‖x_i‖ ≤ radius: projected Adam.

    Args:
        source: (batch, tokens, dim) -> (batch, tokens, dim_out), in float64.
        target: the same.
        dim: width of a token.
        radius: of the ball.
        heads: try masks too, the same for all heads and then others for each. The networks must then take
            mask=(batch, heads, tokens, tokens), True where a position attends (the opposite of torch's
            MultiheadAttention).
        tokens: lengths to try with the same mask, or none, for all heads.
        restarts: random inputs to begin at, for each length and mask; four times as many if masks differ.
        steps: of each ascent.
        seed: equal seeds give equal results.
        accepts: takes what a network takes and says which inputs of the batch count; rejected inputs revert to
            the last accepted ones.

    >>> twice = attack(lambda x: 2 * x, lambda x: x, dim=4, radius=3.0, restarts=2, steps=20)
    >>> round(twice.error, 3)  # the largest ‖2x − x‖ with ‖x‖ ≤ 3
    3.0
    """
    checks.positive(radius=radius)
    checks.whole(dim=dim, restarts=restarts, steps=steps, **{f"tokens[{i}]": n for i, n in enumerate(tokens)})
    if heads is not None:
        checks.whole(heads=heads)
    elif not tokens:
        raise StrongTicketError("tokens is empty: expected at least one number of tokens to try")
    rng = np.random.default_rng(seed)
    ascent = _Ascent(source, target, float(radius), steps, heads is not None, accepts)
    for count in tokens:
        masks = shared_masks(count, heads or 1)[: None if heads else 1]
        layouts = [layout for layout in masks for _ in range(restarts)]
        ascent.climb(layouts, _first_tokens(rng, len(layouts), count, dim) * radius)
    if heads is not None:
        layouts = [own_masks(rng, heads) for _ in range(4 * restarts)]
        count = max(int(layout.places.max()) for layout in layouts) + 1
        found, errors = ascent.climb(layouts, _first_tokens(rng, len(layouts), count, dim) * radius)
        for _ in range(ROUNDS):
            best = np.argsort(-errors)[: -(-len(layouts) // BEST)]
            chosen = np.resize(best, len(layouts))
            layouts = [changed(rng, layouts[i]) for i in chosen]
            moved = found[chosen] + JITTER * float(radius) * rng.standard_normal(found.shape)
            found, errors = ascent.climb(layouts, moved)
    if ascent.best.error < 0:
        raise StrongTicketError("accepts rejected every input that was tried")
    return ascent.best


def _first_tokens(rng: np.random.Generator, batch: int, count: int, dim: int) -> np.ndarray:
    """Random unit vectors; in every other sequence neighbours are nearly opposite.

    With equal shares of softmax, opposite tokens do most harm to first order.
    """
    first = rng.standard_normal((batch, count, dim))
    first[::2, 1::2] = 0.1 * first[::2, 1::2] - first[::2, : count // 2 * 2 : 2]
    unit: np.ndarray = first / np.linalg.norm(first, axis=-1, keepdims=True)
    return unit


class _Ascent:
    """Batches of ascents, and the largest error of all."""

    def __init__(
        self,
        source: Network,
        target: Network,
        radius: float,
        steps: int,
        masked: bool,
        accepts: Accepts | None,
    ):
        self.source, self.target, self.accepts = source, target, accepts
        self.radius, self.steps, self.masked = radius, steps, masked
        self.best = Attack(-1.0, np.empty((0, 0)), None, 0)

    def climb(self, layouts: list[Layout], first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the tokens `first` (batch, tokens, dim) to better ones (the same) and their errors (batch,)."""
        longest = max(len(layout.places) for layout in layouts)
        padded = [layout.padded(longest) for layout in layouts]
        places = torch.from_numpy(np.stack([layout.places for layout in padded]))
        option = {"mask": torch.from_numpy(np.stack([each.mask for each in padded]))} if self.masked else {}
        errors, found = self._ascend(places[..., None], torch.from_numpy(first), option)
        top = int(errors.argmax())
        if errors[top] > self.best.error:
            mask = layouts[top].mask if self.masked else None
            self.best = replace(
                self.best, error=float(errors[top]), inputs=found[top][layouts[top].places], mask=mask
            )
        self.best = replace(self.best, attempts=self.best.attempts + len(layouts))
        return found, errors

    def _ascend(
        self, places: Tensor, first: Tensor, option: dict[str, Tensor]
    ) -> tuple[np.ndarray, np.ndarray]:
        tokens = first.clone().requires_grad_(True)
        self._project(tokens)
        optimiser = torch.optim.Adam([tokens], lr=0.05 * self.radius)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimiser, self.steps, eta_min=1e-4 * self.radius
        )
        best, found = torch.full((len(first),), -1.0, dtype=torch.float64), tokens.detach().clone()
        last, counts = found.clone(), torch.full((len(first),), self.accepts is None)
        places = places.expand(-1, -1, tokens.shape[-1])
        for _ in range(self.steps):
            if self.accepts is not None:
                with torch.no_grad():
                    fine = self.accepts(tokens.gather(1, places), **option)
                    counts = counts | fine
                    last = torch.where(fine[:, None, None], tokens, last)
                    tokens.copy_(last)
            sequences = tokens.gather(1, places)
            difference = self.source(sequences, **option) - self.target(sequences, **option)
            errors = difference[:, -1].norm(dim=-1)
            self._check(errors.detach())
            better = counts & (errors.detach() > best)
            best = torch.where(better, errors.detach(), best)
            found = torch.where(better[:, None, None], tokens.detach(), found)
            optimiser.zero_grad()
            # The logarithm gives every sequence the same step, however small its error is.
            (-errors.clamp_min(1e-300).log().sum()).backward()
            self._drop_outward(tokens)
            optimiser.step()
            schedule.step()
            self._project(tokens)
        return best.numpy(), found.numpy()

    def _check(self, errors: Tensor) -> None:
        wrong = errors[~errors.isfinite()]
        if len(wrong):
            raise StrongTicketError(
                f"the networks differ by {float(wrong[0])} at an input of radius {self.radius}: not finite"
            )

    @torch.no_grad()
    def _project(self, tokens: Tensor) -> None:
        tokens.mul_((self.radius / tokens.norm(dim=-1, keepdim=True).clamp_min(1e-300)).clamp_max(1))

    @torch.no_grad()
    def _drop_outward(self, tokens: Tensor) -> None:
        """On the sphere only the tangent counts: what pushes outwards would drown it in Adam's averages."""
        gradient = tokens.grad
        assert gradient is not None
        size = tokens.norm(dim=-1, keepdim=True)
        along = (gradient * tokens).sum(-1, keepdim=True) / size.square().clamp_min(1e-300)
        outward = (size >= self.radius * (1 - 1e-6)) & (along < 0)
        gradient.sub_(torch.where(outward, along, 0) * tokens)
