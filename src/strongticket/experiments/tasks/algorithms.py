"""Three small algorithms as sequences whose last token is the answer: modular addition, balanced parentheses, and
finding a needle in a haystack (Zhong and Andreas, "Algorithmic capabilities of random transformers", NeurIPS 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.errors import StrongTicketError
from strongticket.searching import Task

_IGNORED = -100  # transformers' label of a token that is not predicted
_HELD_OUT = 10  # a tenth of the examples


@dataclass(frozen=True)
class Algorithm:
    """Sequences of one algorithm.

    vocabulary: number of different tokens
    chance: accuracy of the best guess that ignores the question
    sequences: generator -> int64 (examples, length) in random order; the last token is the answer
    """

    vocabulary: int
    chance: float
    sequences: Callable[[np.random.Generator], np.ndarray]


def modular_addition(modulus: int) -> Algorithm:
    """All a, b, =, (a + b) mod `modulus`."""

    def sequences(generator: np.random.Generator) -> np.ndarray:
        a, b = (each.ravel() for each in np.indices((modulus, modulus)))
        found = np.stack([a, b, np.full_like(a, modulus), (a + b) % modulus], axis=1)
        return generator.permutation(found)

    return Algorithm(modulus + 1, 1 / modulus, sequences)


def parentheses(length: int, examples: int) -> Algorithm:
    """Strings of as many ( as ), a question mark, and whether they are balanced; half of them are.

    Of the others half are shuffled, and half are balanced strings with two different characters exchanged.
    """
    pairs = length // 2
    if examples / 2 > math.comb(length, pairs) // (pairs + 1):  # Catalan's number
        raise StrongTicketError(
            f"there are fewer than {examples // 2:,} balanced strings of {length} parentheses",
            hint="Ask for longer strings or fewer examples.",
        )

    def sequences(generator: np.random.Generator) -> np.ndarray:
        found: dict[tuple[int, ...], int] = {}
        counts = {0: 0, 1: 0}
        while len(found) < examples:
            string = generator.permutation(np.repeat([0, 1], length // 2))
            if generator.random() < 0.75:
                string = _balanced(string)
                if generator.random() < 1 / 3:
                    opened, closed = (generator.choice(np.flatnonzero(string == each)) for each in (0, 1))
                    string[[opened, closed]] = 1, 0
            right = int(is_balanced(string))
            if counts[right] < examples / 2 and tuple(string) not in found:
                found[tuple(string)] = right
                counts[right] += 1
        rows = np.array([[*string, 2, 3 + right] for string, right in found.items()])
        return generator.permutation(rows)

    return Algorithm(5, 0.5, sequences)


def is_balanced(string: np.ndarray) -> bool:
    """Whether every closing parenthesis (1) closes an open one (0), and none stays open.

    >>> is_balanced(np.array([0, 1])), is_balanced(np.array([1, 0]))
    (True, False)
    """
    depth = np.cumsum(1 - 2 * string)
    return bool(depth.min() >= 0 and depth[-1] == 0)


def _balanced(string: np.ndarray) -> np.ndarray:
    """The rotation of a string of as many 0 as 1 that is balanced: it starts after its lowest depth."""
    lowest = int(np.argmin(np.cumsum(1 - 2 * string)))
    return np.roll(string, -(lowest + 1))


def needle(pairs: int, names: int, examples: int) -> Algorithm:
    """Different keys, each followed by a value, then one of the keys again; its value is the answer."""

    def sequences(generator: np.random.Generator) -> np.ndarray:
        rows = np.empty((examples, 2 * pairs + 2), dtype=np.int64)
        for row in rows:
            keys = generator.permutation(names)[:pairs]
            values = generator.integers(names, 2 * names, size=pairs)
            asked = generator.integers(pairs)
            row[:-2:2], row[1:-2:2] = keys, values
            row[-2:] = keys[asked], values[asked]
        return rows

    return Algorithm(2 * names, 1 / pairs, sequences)  # one of the values seen


class Sequences(Dataset[dict[str, torch.Tensor]]):
    """Sequences as a language model of transformers takes them; only the last token is predicted."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = torch.from_numpy(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.rows[index]
        labels = torch.full_like(row, _IGNORED)
        labels[-1] = row[-1]
        return {"input_ids": row, "labels": labels}


def answers_right(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Share of the sequences whose last token has the largest logit."""
    found = model(input_ids=batch["input_ids"]).logits[:, -2].argmax(-1)
    return {"accuracy": (found == batch["input_ids"][:, -1]).double().mean()}


def algorithm_task(name: str, algorithm: Algorithm) -> Task:
    """The task of one algorithm; a tenth of its sequences is held out, the same for every seed of a search.

    name: of the task
    algorithm: what its sequences are
    """
    rows = algorithm.sequences(np.random.default_rng(0))
    train, valid = rows[len(rows) // _HELD_OUT :], rows[: len(rows) // _HELD_OUT]
    sizes = {"vocabulary": algorithm.vocabulary, "length": rows.shape[1]}
    return Task(name, Sequences(train), Sequences(valid), measures=answers_right, sizes=sizes)
