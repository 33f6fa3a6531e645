"""What figures 4, 5 and 6 share: the trained target, batches of random sources, and their errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from strongticket.files import dump_json
from strongticket.nets import MultiHeadAttention, certify, merge
from strongticket.reproduce.angular import KEY_DIM, Target, train_target
from strongticket.reproduce.study import Run, nth_seed
from strongticket.work.store import Settings, code_version

# All that the numbers of a point may depend on; a figure adds its own file.
CODE = (
    *("seeds", "ticket", "subset_sum", "nets", "builders", "theory"),
    *(f"reproduce/{name}.py" for name in ("angular", "circle", "reach", "sources")),
)
BATCH = 25  # sources per point: small enough to lose little in a kill, large enough to be worth a task
ROWS = 50_000  # of (source, sequence) run at once: fits the cache

TARGET_VERSION = code_version("seeds", "nets", "reproduce/angular.py")

TargetRecord = dict[str, Any]  # a trained target as JSON; see target_point


def target_point(settings: Settings) -> TargetRecord:
    """Train the target of figures 4 and 5, as a point whose result `load_target` reads."""
    target = train_target(**settings)
    return {
        "state": {name: tensor.tolist() for name, tensor in target.network.state_dict().items()},
        "token": target.token.tolist(),
        "test_loss": target.test_loss,
    }


def trained_target(run: Run, training: dict[str, Any]) -> TargetRecord:
    """Train the target, or find it among the finished points."""
    (record,) = run.map(
        "training the target", target_point, [dict(seed=run.seed, **training)], TARGET_VERSION
    )
    return record


def load_target(record: TargetRecord) -> Target:
    """Return the target that `target_point` recorded."""
    network = MultiHeadAttention(2, 1, 1, KEY_DIM, KEY_DIM)
    network.load_state_dict({name: torch.tensor(values) for name, values in record["state"].items()})
    return Target(network.requires_grad_(False), torch.tensor(record["token"]), record["test_loss"])


def digest(record: TargetRecord) -> str:
    """Name the target in the settings of points: another machine may round its training differently."""
    return hashlib.sha256(dump_json([record["state"], record["token"]])).hexdigest()[:16]


def input_radius(target: Target) -> float:
    """Return the certificates' radius: points lie on the unit circle, up to float32 rounding."""
    return max(1.0, float(target.token.norm())) * (1 + 1e-6)


def batches(sources: int, size: int = BATCH) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of each batch of sources.

    >>> list(batches(60))
    [(0, 25), (25, 25), (50, 10)]
    """
    for first in range(0, sources, size):
        yield first, min(size, sources - first)


def source_seeds(settings: Settings) -> list[int]:
    """Return the seeds of a point's batch: source i of a run's seed is the same in every figure, width and line."""
    first = settings["seed"] * 1_000_000 + settings["first"]
    return [nth_seed(first, i) for i in range(settings["count"])]


class Stack:
    """Networks of one shape, merged to float64 and run together."""

    def __init__(self, networks: Sequence[torch.nn.Module]):
        merged = [merge(network, torch.float64) for network in networks]
        self.parameters, _ = stack_module_state(merged)
        self._one = merged[0]

    def __call__(self, x: Tensor) -> Tensor:
        """Run on x (batch, tokens, dim) for all, or (networks, batch, tokens, dim); return one output each."""
        in_dims = (0, 0 if x.ndim == 4 else None)
        run = vmap(lambda weights, inputs: functional_call(self._one, weights, (inputs,)), in_dims)
        with torch.no_grad():
            return run(self.parameters, x)


def output_errors(
    target: torch.nn.Module, sources: Sequence[torch.nn.Module], x: Tensor
) -> dict[str, list[float]]:
    """Return the largest and the mean ‖source(x) − target(x)‖ of each source, over all inputs and positions."""
    exact, pruned = Stack([target]), Stack(sources)
    parts = x.double().split(max(1, ROWS // len(sources)))
    errors = torch.cat([(pruned(part) - exact(part)).norm(dim=-1).flatten(1) for part in parts], 1)
    return {"error_max": errors.amax(1).tolist(), "error_mean": errors.mean(1).tolist()}


def certificates(
    target: torch.nn.Module, sources: Sequence[torch.nn.Module], radius: float
) -> dict[str, list[float | None]]:
    """Return our bound and the paper's inequalities on the same weights, None where too large for a float."""
    certified = [certify(target, source, radius).to_dict() for source in sources]
    return {name: [entry[name] for entry in certified] for name in ("bound", "paper_bound")}
