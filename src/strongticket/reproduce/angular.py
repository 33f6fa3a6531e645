"""The paper's small task (appendix B.1): estimate the angular velocity of points that walk round the unit circle.

A sequence is a regression token r, then x_t = (cos(ωt + θ), sin(ωt + θ)) for t = 1 … T; the network's output
at r is its estimate of ω.

About r: B.1 calls it "initialized to zero" and, in section 4.1, shared by source and target. Held at zero it
would make every logit rᵀ W_QK x_t = 0: attention would be a plain mean and W_QK would get no gradient at all.
So r is what a CLS token is: two learned numbers that start at zero, trained with the network, and part of
the *input* afterwards. A ticket replaces the network's weights and is given the same r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from strongticket.nets import MultiHeadAttention, initialise
from strongticket.work.store import Advance, limited_threads

SAMPLES = 10_000  # to train on, and to test on
SHORTEST, LONGEST = 4, 256  # sequence lengths in training
BATCH = 1024
KEY_DIM = 8  # d_K of the target


@dataclass(frozen=True)
class Walks:
    """Walks round the circle, one per row: angular velocity ω in [−π, π] and start θ in [0, π]."""

    velocity: Tensor  # (samples,) float64
    start: Tensor  # (samples,) float64

    def angles(self, length: int) -> Tensor:
        """Return the angles of the first points, (samples, length) float64."""
        return self.start[:, None] + self.velocity[:, None] * torch.arange(1, length + 1)

    def points(self, length: int) -> Tensor:
        """Return the first points, (samples, length, 2) float32; a longer walk begins with the shorter one."""
        angle = self.angles(length)
        return torch.stack([angle.cos(), angle.sin()], dim=-1).float()


def walks(seed: int, split: str, samples: int = SAMPLES) -> Walks:
    """Return the walks of a split."""
    generator = _generator(seed, ("train", "validation", "test").index(split))
    velocity = (2 * torch.rand(samples, generator=generator, dtype=torch.float64) - 1) * math.pi
    start = torch.rand(samples, generator=generator, dtype=torch.float64) * math.pi
    return Walks(velocity, start)


@dataclass(frozen=True)
class Target:
    """A trained network with its token, and its mean squared error."""

    network: MultiHeadAttention
    token: Tensor  # (2,) float32
    test_loss: float  # at length 4, as the paper measures

    def inputs(self, data: Walks, length: int = SHORTEST) -> Tensor:
        """Return what target and ticket are given, (samples, 1 + length, 2)."""
        return _with_token(self.token, data.points(length))


@limited_threads(1)  # tensors this small are not worth sharing, and sums do not depend on the threads
def train_target(
    seed: int = 0,
    *,
    epochs: int = 25,
    learning_rate: float = 0.1,
    samples: int = SAMPLES,
    progress: Advance = lambda done, total: None,
) -> Target:
    """Train the single-head target (2 → 1) with AdamW on the mean squared error; each batch has one length.

    The defaults are those of appendix B.1.

    Args:
        seed: of weights, data and batches.
        epochs: passes over the data.
        learning_rate: of AdamW.
        samples: walks to train on, and to test on.
        progress: called with (done, total) after every epoch.

    >>> train_target(epochs=1, samples=64).network.settings()["key_dim"]
    8
    """
    network = MultiHeadAttention(2, 1, 1, KEY_DIM, KEY_DIM)
    initialise(network, seed)
    token = nn.Parameter(torch.zeros(2))
    optimiser = torch.optim.AdamW([*network.parameters(), token], lr=learning_rate, weight_decay=0.01)
    generator = _generator(seed, 3)
    train, test = walks(seed, "train", samples), walks(seed, "test", samples)
    train_points = train.points(LONGEST)
    for epoch in range(epochs):
        for rows in torch.randperm(samples, generator=generator).split(BATCH):
            length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
            loss = _loss(network, token, train_points[rows, :length], train.velocity[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        progress(epoch + 1, epochs)
    network.requires_grad_(False)
    with torch.no_grad():
        test_loss = _loss(network, token, test.points(SHORTEST), test.velocity).item()
    return Target(network, token.detach(), test_loss)


def _loss(network: MultiHeadAttention, token: Tensor, points: Tensor, velocity: Tensor) -> Tensor:
    return nn.functional.mse_loss(_at_token(network, _with_token(token, points)), velocity.float())


def _at_token(network: MultiHeadAttention, tokens: Tensor) -> Tensor:
    """(samples, 1 + length, 2) -> (samples,): network(tokens)[:, 0, 0], an order of magnitude faster.

    Only the token asks, so its query is merged into the keys' matrix, and values are projected after pooling.
    """
    query = network.key[0] @ network.query[0].T @ tokens[0, 0] / network.key_dim**0.5  # (2,)
    weights = (tokens @ query).softmax(-1)  # (samples, 1 + length)
    pooled = torch.einsum("bt,btd->bd", weights, tokens)
    return (pooled @ network.value[0] @ network.output[0])[:, 0]


def _with_token(token: Tensor, points: Tensor) -> Tensor:
    return torch.cat([token.expand(len(points), 1, 2), points], dim=1)


def _generator(seed: int, stream: int) -> torch.Generator:
    return torch.Generator().manual_seed((seed * 4 + stream) % 2**64)
