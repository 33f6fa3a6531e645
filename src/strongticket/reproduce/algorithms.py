"""Can a ticket run an algorithm? An algorithm is given by sequences whose last token is the answer.

Modular addition, balanced parentheses and a needle in a haystack, compared with training only the embeddings of a
random transformer and with dense training (Zhong and Andreas, "Algorithmic capabilities of random transformers",
NeurIPS 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.files import JsonObject
from strongticket.models import new_model
from strongticket.reproduce.plots import COLOURS, Axes, curve, label
from strongticket.reproduce.rows import Row, select, spread_by
from strongticket.reproduce.searches import cpu_seconds, tuned
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.searching import SearchConfig, Task, preset

METHODS: dict[str, dict[str, Any]] = {
    "ticket": {},
    "embeddings only": dict(method="random", kept=1.0, train=("embedding", "head")),
    "dense": dict(method="dense", qk_scale=1.0),
}
_IGNORED = -100  # transformers' label of a token that is not predicted
_HELD_OUT = 10  # a tenth of the examples


@dataclass(frozen=True)
class Algorithms:
    """What is measured."""

    config: SearchConfig  # of the ticket
    rates: tuple[float, ...]  # learning rates that each case tries on the first seed
    seeds: int  # how many
    algorithms: dict[str, tuple[int, ...]]  # name of ALGORITHMS -> its arguments


# An algorithm makes sequences, int64 (examples, length) in random order, whose last token is the answer, and says how
# often the best guess that ignores the question is right.
def modular_addition(generator: np.random.Generator, modulus: int) -> tuple[np.ndarray, float]:
    """Return all a, b, =, (a + b) mod `modulus`."""
    a, b = (each.ravel() for each in np.indices((modulus, modulus)))
    found = np.stack([a, b, np.full_like(a, modulus), (a + b) % modulus], axis=1)
    return generator.permutation(found), 1 / modulus


def parentheses(generator: np.random.Generator, length: int, examples: int) -> tuple[np.ndarray, float]:
    """Return strings of as many ( as ), a question mark, and whether they are balanced; half of them are.

    Of the others half are shuffled, and half are balanced strings with two different characters exchanged.
    """
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
    return generator.permutation(rows), 0.5


def is_balanced(string: np.ndarray) -> bool:
    """Return whether every closing parenthesis (1) closes an open one (0), and none stays open.

    >>> is_balanced(np.array([0, 1])), is_balanced(np.array([1, 0]))
    (True, False)
    """
    depth = np.cumsum(1 - 2 * string)
    return bool(depth.min() >= 0 and depth[-1] == 0)


def _balanced(string: np.ndarray) -> np.ndarray:
    """The rotation of a string of as many 0 as 1 that is balanced: it starts after its lowest depth."""
    lowest = int(np.argmin(np.cumsum(1 - 2 * string)))
    return np.roll(string, -(lowest + 1))


def needle(generator: np.random.Generator, pairs: int, names: int, examples: int) -> tuple[np.ndarray, float]:
    """Return different keys, each followed by a value, then one of the keys again; its value is the answer."""
    rows = np.empty((examples, 2 * pairs + 2), dtype=np.int64)
    for row in rows:
        keys = generator.permutation(names)[:pairs]
        values = generator.integers(names, 2 * names, size=pairs)
        asked = generator.integers(pairs)
        row[:-2:2], row[1:-2:2] = keys, values
        row[-2:] = keys[asked], values[asked]
    return rows, 1 / pairs  # one of the values seen


ALGORITHMS: dict[str, Callable[..., tuple[np.ndarray, float]]] = {
    "modular addition": modular_addition,
    "parentheses": parentheses,
    "needle": needle,
}


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
    """Return the fraction of the sequences whose last token has the largest logit."""
    found = model(input_ids=batch["input_ids"]).logits[:, -2].argmax(-1)
    return {"accuracy": (found == batch["input_ids"][:, -1]).double().mean()}


def make(config: SearchConfig, algorithms: Mapping[str, Sequence[int]]) -> tuple[Task, torch.nn.Module, Row]:
    """Return the task that `config.task.data` names, a GPT-2 for it, and the accuracy of a guess.

    A tenth of the sequences is held out, the same for every seed of a search. `algorithms` has the arguments of each.
    """
    name = config.task.data
    rows, chance = ALGORITHMS[name](np.random.default_rng(0), *algorithms[name])
    held_out, vocabulary = len(rows) // _HELD_OUT, int(rows.max()) + 1
    train, valid = Sequences(rows[held_out:]), Sequences(rows[:held_out])
    model = new_model({
        "model_type": "gpt2", "vocab_size": vocabulary, "n_positions": rows.shape[1],
        "n_embd": config.model.dim, "n_layer": config.model.layers, "n_head": config.model.heads,
        "activation_function": config.model.activation, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "bos_token_id": None, "eos_token_id": None,
        "tie_word_embeddings": False,  # as in Zhong and Andreas, who train both ends
    })  # fmt: skip
    return Task(name, train, valid, measures=answers_right), model, {"chance": chance}


def measure(run: Run, settings: Algorithms) -> Tables:
    """Tune each case's learning rate on the first seed, then search or train with every seed."""
    cases = [
        ({"algorithm": algorithm, "method": method}, settings.config.changed(data=algorithm, **changes))
        for algorithm in settings.algorithms
        for method, changes in METHODS.items()
    ]
    made = partial(make, algorithms=settings.algorithms)
    tuning, rows = tuned(run, cases, settings.rates, settings.seeds, make=made)
    by = ("algorithm", "method", "chance", "rate")
    return {"accuracies": rows, "tuning": tuning, "spreads": spread_by(rows, by, "accuracy")}


def answer(tables: Tables, settings: Algorithms) -> Answer:
    """Return the held-out accuracy of each algorithm and method."""
    numbers: JsonObject = {}
    parts = []
    for name in settings.algorithms:
        rows = select(tables["spreads"], algorithm=name)
        numbers[name] = {"chance": rows[0]["chance"]} | {row["method"]: row for row in rows}
        listed = ", ".join(f"{row['method']} {row['mean']:.0%}" for row in rows)
        parts.append(f"{name}: {listed} (a guess {rows[0]['chance']:.0%})")
    numbers["cpu_seconds"] = cpu_seconds(tables["accuracies"], tables["tuning"])
    return Answer(f"Held-out accuracy of {'; '.join(parts)}.", numbers, tables["spreads"])


def plot(tables: Tables, settings: Algorithms, axes: Sequence[Axes]) -> None:
    """Draw the accuracies of the methods side by side."""
    (axis,) = axes
    names = list(settings.algorithms)
    for place, (method, marker) in enumerate(zip(METHODS, "os^", strict=True)):
        rows = [
            row | {"x": names.index(row["algorithm"]) + 0.25 * (place - 1)}
            for row in select(tables["spreads"], method=method)
        ]
        curve(axis, rows, "x", "mean", marker=marker, linestyle="", label=method)
    guesses = [select(tables["spreads"], algorithm=name)[0]["chance"] for name in names]
    axis.plot(range(len(names)), guesses, "x", color=COLOURS[-1], label="guess")
    label(axis, "algorithms", "", "held-out accuracy", log="", below=4)
    axis.set_xticks(range(len(names)), names)
    axis.set_ylim(-0.05, 1.05)


LAPTOP = preset(
    "laptop", method="edge-popup", law="signed", qk_scale="paper", architecture="gpt2", activation="relu",
    dim=64, heads=2, layers=2, std=0.1, embedding_std=0.3, steps=600, warmup=30, batch=64, micro_batch=64,
)  # fmt: skip
_SMALL = {"modular addition": (29,), "parentheses": (20, 4000), "needle": (4, 8, 4000)}
_LARGE = {"modular addition": (199,), "parentheses": (60, 100_000), "needle": (30, 60, 100_000)}
STUDY = Study(
    "Can a ticket add, balance parentheses, find a needle?",
    {
        "quick": Algorithms(LAPTOP.changed(steps=400), (8e-3,), 1, _SMALL),
        "laptop": Algorithms(LAPTOP, (2e-3, 8e-3), 2, _SMALL),
        "paper": Algorithms(
            LAPTOP.changed(dim=1024, heads=4, steps=20_000, batch=1000, micro_batch=1000, std=0.02),
            (3e-4, 1e-3, 3e-3),
            5,
            _LARGE,
        ),
    },
    measure,
    answer,
    plot,
)
