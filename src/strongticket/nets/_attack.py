"""The largest error that gradient ascent finds in the ball: how much of a certificate is really needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError

# (batch, tokens, dim_in) -> (batch, tokens, dim_out), float64; with mask=(batch, 1, tokens, tokens) when masked
Network = Callable[..., Tensor]
# The same arguments -> (batch,) bool
Accepts = Callable[..., Tensor]


@dataclass(frozen=True)
class Attack:
    """The largest error found.

    error: at the last position
    inputs: (tokens, dim) that show it
    mask: (tokens, tokens), True where a position attends; None if no mask was used
    attempts: how many ascents were made
    """

    error: float
    inputs: Float[np.ndarray, "tokens dim"]
    mask: Bool[np.ndarray, "tokens tokens"] | None
    attempts: int


def attack(
    source: Network,
    target: Network,
    dim: int,
    radius: Real,
    *,
    tokens: Sequence[int] = (1, 2, 3, 8),
    restarts: int = 64,
    steps: int = 200,
    seed: int = 0,
    starts: Float[np.ndarray, "starts pair dim"] | None = None,
    masked: bool = False,
    accepts: Accepts | None = None,
) -> Attack:
    """Maximise ‖source(X) − target(X)‖ at the last position over ‖x_i‖ ≤ radius: projected Adam.

    Args:
        source: (batch, tokens, dim) -> (batch, tokens, dim_out), in float64.
        target: the same.
        dim: width of a token.
        radius: of the ball.
        tokens: lengths to try.
        restarts: random inputs to begin at, for each length and mask.
        steps: of each ascent.
        seed: equal seeds give equal results.
        starts: query and key directions to begin at besides.
        masked: try masks too, all at once: no position sees itself; each sees itself alone, except the last,
            which sees all or all the others; and the causal mask. The networks must then take mask=, True where
            a position attends (the opposite of torch's MultiheadAttention).
        accepts: takes what a network takes and says which inputs of the batch count; rejected inputs revert to
            the last accepted ones.

    >>> twice = attack(lambda x: 2 * x, lambda x: x, dim=4, radius=3.0, restarts=2, steps=20)
    >>> round(twice.error, 3)  # the largest ‖2x − x‖ with ‖x‖ ≤ 3
    3.0
    """
    checks.positive(radius=radius)
    checks.whole(dim=dim, restarts=restarts, steps=steps, **{f"tokens[{i}]": n for i, n in enumerate(tokens)})
    if not tokens:
        raise StrongTicketError("tokens is empty: expected at least one number of tokens to try")
    if starts is not None:
        checks.finite(starts=starts)
        checks.shaped((None, 2, dim), starts=starts)
    rng = np.random.default_rng(seed)
    best, attempts = Attack(-1.0, np.zeros((1, dim)), None, 0), 0
    for first, counts, masks in _batches(rng, tokens, dim, restarts, starts, masked):
        option = {} if masks is None else {"mask": torch.from_numpy(masks)[:, None]}
        begin = torch.from_numpy(first * radius)
        error, where, inputs = _ascend(source, target, begin, float(radius), steps, option, accepts)
        attempts += len(first)
        if error > best.error:
            count = counts[where]
            mask = None if masks is None else masks[where, -count:, -count:]
            best = Attack(error, inputs[-count:], mask, attempts)
    return replace(best, attempts=attempts)


def _batches(
    rng: np.random.Generator,
    tokens: Sequence[int],
    dim: int,
    restarts: int,
    starts: np.ndarray | None,
    masked: bool,
) -> list[tuple[np.ndarray, list[int], np.ndarray | None]]:
    """Inputs to begin at (batch, tokens, dim), how many tokens each really has, and masks (batch, tokens, tokens).

    With masks all lengths are one batch: shorter inputs are padded in front with tokens that only see themselves.
    """
    plain = [_first_inputs(rng, count, dim, restarts, starts) for count in tokens]
    if not masked:
        return [(first, [count] * len(first), None) for first, count in zip(plain, tokens, strict=True)]
    longest, inputs, masks, counts = max(tokens), [], [], []
    for count in tokens:
        for mask in _masks(count):
            first = _first_inputs(rng, longest, dim, restarts, starts)
            whole = np.eye(longest, dtype=bool)
            whole[-count:, -count:] = mask
            inputs.append(first)
            masks += [whole] * len(first)
            counts += [count] * len(first)
    return [(np.concatenate(inputs), counts, np.stack(masks))]


def _masks(count: int) -> list[np.ndarray]:
    """Masks to try: full; all but oneself; oneself alone, except for a last row that sees all or all others; causal."""
    full, own = np.ones((count, count), bool), np.eye(count, dtype=bool)
    if count == 1:
        return [full]
    last = np.arange(count)[:, None] == count - 1
    return [full, ~own, own | last, own ^ last, np.tril(full)]


def _first_inputs(
    rng: np.random.Generator, count: int, dim: int, restarts: int, starts: np.ndarray | None
) -> np.ndarray:
    """Random unit tokens; and for each start the query last, its key and the key's opposite before it."""
    first = rng.standard_normal((restarts, count, dim))
    if starts is not None:
        given = rng.standard_normal((len(starts), count, dim))
        for position in range(count - 1):
            given[:, position] = starts[:, 1] * (-1) ** position
        given[:, -1] = starts[:, 0]
        # A little noise: exactly opposite keys can be a saddle.
        given += 0.02 * rng.standard_normal(given.shape)
        first = np.concatenate([first, given])
    unit: np.ndarray = first / np.linalg.norm(first, axis=-1, keepdims=True)
    return unit


def _drop_outward(inputs: Tensor, radius: float) -> None:
    """On the sphere only the tangent counts: what pushes outwards would drown it in Adam's averages."""
    gradient = inputs.grad
    assert gradient is not None
    with torch.no_grad():
        size = inputs.norm(dim=-1, keepdim=True)
        along = (gradient * inputs).sum(-1, keepdim=True) / size.square().clamp_min(1e-300)
        outward = (size >= radius * (1 - 1e-6)) & (along < 0)
        gradient.sub_(torch.where(outward, along, 0) * inputs)


def _ascend(
    source: Network,
    target: Network,
    first: Tensor,
    radius: float,
    steps: int,
    option: dict[str, Any],
    accepts: Accepts | None,
) -> tuple[float, int, np.ndarray]:
    """The largest error, its place in the batch, its inputs (tokens, dim)."""
    inputs = first.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([inputs], lr=0.05 * radius)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=1e-4 * radius)
    best, place, where, last = -1.0, 0, first[0], first.clone()
    for _ in range(steps):
        if accepts is not None:
            with torch.no_grad():
                fine = accepts(inputs, **option)
                inputs.copy_(torch.where(fine[:, None, None], inputs, last))
                last = inputs.clone()
        difference = source(inputs, **option) - target(inputs, **option)
        errors = difference[:, -1].norm(dim=-1)
        top = int(errors.argmax())
        value = float(errors[top].detach())
        if not np.isfinite(value):
            raise StrongTicketError(
                f"the networks differ by {value} at an input of radius {radius}: not finite"
            )
        if value > best and (accepts is None or bool(accepts(inputs.detach(), **option)[top])):
            best, place, where = value, top, inputs[top].detach().clone()
        optimiser.zero_grad()
        # The logarithm gives every restart the same step, however small its error is.
        (-errors.clamp_min(1e-300).log().sum()).backward()
        _drop_outward(inputs, radius)
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            inputs.mul_((radius / inputs.norm(dim=-1, keepdim=True).clamp_min(1e-300)).clamp_max(1))
    return best, place, where.numpy()
