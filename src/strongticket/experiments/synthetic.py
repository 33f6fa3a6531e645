"""What figures 4, 5 and 6 share: the trained target, batches of random sources, and their errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from strongticket.experiments.angular import Target, train_target
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.runner import Settings, code_version, run_points
from strongticket.files import dump_json
from strongticket.nets import MultiHeadAttention, certify, merge

# All that the numbers of a point may depend on; a figure adds its own file.
CODE = (
    *("seeds.py", "ticket", "subset_sum", "nets", "build", "theory"),
    *(f"experiments/{name}.py" for name in ("angular", "circle", "synthetic")),
)
BATCH = 25  # sources a point: small enough to lose little in a kill, large enough to be worth a task
_ROWS = 50_000  # of (source, sequence) evaluated at once: fits the cache

TARGET_VERSION = code_version("seeds.py", "nets", "experiments/angular.py")


def target_point(settings: Settings) -> dict[str, Any]:
    """Train the target of figures 4 and 5: settings are those of train_target. What load_target reads."""
    target = train_target(**settings)
    return {
        "state": {name: tensor.tolist() for name, tensor in target.network.state_dict().items()},
        "token": target.token.tolist(),
        "train_loss": list(target.train_loss),
        "validation_loss": list(target.validation_loss),
        "test_loss": target.test_loss,
    }


def trained_target(options: Options, training: dict[str, int], step: Step, figure: str) -> dict[str, Any]:
    """The record of `target_point`, trained now or found in the store; training: what differs from B.1."""
    with step(f"{figure}: training the target") as advance:
        settings = dict(seed=options.seed, learning_rate=options.learning_rate, **training)
        (record,) = run_points(
            target_point, [settings], options.store, version=TARGET_VERSION, workers=1, progress=advance
        )
    return record


def load_target(record: dict[str, Any]) -> Target:
    state = {name: torch.tensor(values) for name, values in record["state"].items()}
    key_dim = state["query"].shape[2]
    network = MultiHeadAttention(2, 1, 1, key_dim, key_dim)
    network.load_state_dict(state)
    return Target(
        network.requires_grad_(False),
        torch.tensor(record["token"]),
        tuple(record["train_loss"]),
        tuple(record["validation_loss"]),
        record["test_loss"],
    )


def digest(record: dict[str, Any]) -> str:
    """A name for the target in the settings of points: another machine may round its training otherwise."""
    return hashlib.sha256(dump_json([record["state"], record["token"]])).hexdigest()[:16]


def input_radius(target: Target) -> float:
    """The certificates' radius: points lie on the unit circle, up to float32 rounding."""
    return max(1.0, float(target.token.norm())) * (1 + 1e-6)


def batches(sources: int, size: int = BATCH) -> Iterator[tuple[int, int]]:
    """(first, count) of each batch of sources."""
    for first in range(0, sources, size):
        yield first, min(size, sources - first)


def source_seeds(settings: Settings) -> list[int]:
    """Source i of experiment seed s is the same one in every figure, width and line."""
    first = settings["seed"] * 1_000_000 + settings["first"]
    return list(range(first, first + settings["count"]))


class Stack:
    """Networks of one shape, merged to float64 and evaluated together.

    __call__: x (batch, tokens, dim) for all, or (networks, batch, tokens, dim) -> (networks, batch, tokens, out)
    """

    def __init__(self, networks: Sequence[torch.nn.Module]):
        merged = [merge(network, torch.float64) for network in networks]
        self.parameters, _ = stack_module_state(merged)
        self._one = merged[0]

    def __call__(self, x: Tensor) -> Tensor:
        in_dims = (0, 0 if x.ndim == 4 else None)
        run = vmap(lambda weights, inputs: functional_call(self._one, weights, (inputs,)), in_dims)
        with torch.no_grad():
            return run(self.parameters, x)


def output_errors(target: torch.nn.Module, networks: Sequence[torch.nn.Module], x: Tensor) -> dict[str, Any]:
    """‖source(x) − target(x)‖ over all inputs and positions: the largest and the mean of each source."""
    goal, made = Stack([target]), Stack(networks)
    parts = x.double().split(max(1, _ROWS // len(networks)))
    errors = torch.cat([(made(part) - goal(part)).norm(dim=-1).flatten(1) for part in parts], 1)
    return largest_and_mean(errors)


def largest_and_mean(errors: Tensor) -> dict[str, list[float]]:
    """errors: (sources, anything)."""
    return {"error_max": errors.amax(1).tolist(), "error_mean": errors.mean(1).tolist()}


def certificates(
    target: torch.nn.Module, networks: Sequence[torch.nn.Module], radius: float
) -> dict[str, list[float | None]]:
    """Our bound and the paper's inequalities on the same weights, None where too large for a number."""
    found = [certify(target, network, radius).to_dict() for network in networks]
    return {name: [entry[name] for entry in found] for name in ("bound", "paper_bound")}


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Over the sources: mean and standard deviation as in the paper, median and the middle 80 %."""
    x = np.asarray(values, dtype=np.float64)
    low, median, high = np.quantile(x, (0.1, 0.5, 0.9))
    return {
        "mean": float(x.mean()),
        "std": float(x.std(ddof=1)) if len(x) > 1 else 0.0,
        "median": float(median),
        "low": float(low),
        "high": float(high),
    }
