"""Sequences worth attacking: which token stands at each position, and what each head sees from there."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

REPEATS = 4  # times that a token may stand in a sequence: shares of softmax, whatever the logits


@dataclass(frozen=True)
class Layout:
    """A sequence to be filled with tokens.

    places: the token at each position
    mask: True where a position attends
    """

    places: Int[np.ndarray, " positions"]
    mask: Bool[np.ndarray, "heads positions positions"]

    def padded(self, count: int) -> "Layout":
        """The same behind copies of the first position, to which no position attends."""
        more = count - len(self.places)
        mask = np.zeros((len(self.mask), count, count), bool)
        mask[:, more:, more:] = self.mask
        mask[:, :more, more:] = self.mask[:, :1]
        return Layout(np.append(np.full(more, self.places[0]), self.places), mask)


def shared_masks(count: int, heads: int) -> list[Layout]:
    """All heads see the same: full; all but oneself; oneself, and from the last all or all others; causal."""
    full, own = np.ones((count, count), bool), np.eye(count, dtype=bool)
    last = np.arange(count)[:, None] == count - 1
    masks = [full, ~own, own | last, own ^ last, np.tril(full)] if count > 1 else [full]
    return [Layout(np.arange(count), np.broadcast_to(mask, (heads, count, count))) for mask in masks]


def own_masks(rng: np.random.Generator, heads: int) -> Layout:
    """From the last position each head sees two tokens of its own, which no other head sees from there.

    From every other position a head sees that position alone, or its two tokens, or one to three others.
    """
    others = int(rng.integers(0, 4 * heads + 1))  # tokens that the last position does not see
    pairs = others + np.arange(2 * heads)
    repeats = rng.integers(1, REPEATS + 1, len(pairs)) if rng.random() < 0.5 else 1
    places = np.concatenate([np.arange(others), np.repeat(pairs, repeats), [others + len(pairs)]])
    count = len(places)
    seen = (places - others) // 2 == np.arange(heads)[:, None]
    alone = np.eye(count, dtype=bool)
    some = np.zeros((heads, count, count), bool)
    np.put_along_axis(some, rng.integers(0, count, (heads, count, 3)), True, 2)
    # Mostly one of the three ways for all rows, at times a mixture.
    way = rng.choice(3, (heads, count, 1), p=rng.dirichlet((0.3, 0.3, 0.3)))
    mask = np.select([way == 0, way == 1], [alone, seen[:, None]], some)
    mask = mask[
        :, [np.flatnonzero(places == token)[0] for token in places]
    ]  # a token sees the same everywhere
    mask[:, -1] = seen
    return Layout(places, mask)


def changed(rng: np.random.Generator, layout: Layout) -> Layout:
    """Up to two rows see one to three positions more or less."""
    mask = layout.mask.copy()
    heads, count, _ = mask.shape
    for _ in range(rng.integers(0, 3)):
        head = rng.integers(heads)
        row = count - 1 if rng.random() < 0.3 else rng.integers(count)
        seen = mask[head, row].copy()
        seen[rng.integers(0, count - 1, rng.integers(1, 4))] ^= True
        if seen.any():
            mask[head, layout.places == layout.places[row]] = seen
    return Layout(layout.places, mask)
