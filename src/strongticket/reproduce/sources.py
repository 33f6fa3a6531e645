"""What figures 4, 5 and 6 share: the trained target, batches of random sources, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from strongticket.builders import assign, build_network
from strongticket.files import JsonObject
from strongticket.nets import MergedAttention, MultiHeadAttention, certify, merge
from strongticket.reproduce.angular import KEY_DIM, Target, train_target
from strongticket.reproduce.study import Run
from strongticket.seeds import draw
from strongticket.ticket import Ticket
from strongticket.work.store import Settings, code_version

# All that the numbers of a point may depend on; a figure adds its own file.
CODE = (
    *("seeds", "ticket", "subset_sum", "nets", "builders", "theory"),
    *(f"reproduce/{name}.py" for name in ("angular", "circle", "sources")),
)
BATCH = 25  # sources per point: small enough to lose little in a kill, large enough to be worth a task
ROWS = 50_000  # of (source, sequence) run at once: fits the cache

TARGET_VERSION = code_version("seeds", "nets", "reproduce/angular.py")


def target_point(settings: Settings) -> JsonObject:
    """Train the target of figures 4 and 5; `load_target` reads it.

    The points that need it have it in their settings: another machine may round its training differently.
    """
    target = train_target(**settings)
    return {
        "state": {name: tensor.tolist() for name, tensor in target.network.state_dict().items()},
        "token": target.token.tolist(),
        "test_loss": target.test_loss,
    }


def trained_target(run: Run, training: dict[str, Any]) -> JsonObject:
    """Train the target, or find it among the finished points."""
    (record,) = run.map(
        "training the target", target_point, [dict(seed=run.seed, **training)], TARGET_VERSION
    )
    return record


def load_target(record: JsonObject) -> Target:
    """Return the target that `target_point` recorded."""
    network = MultiHeadAttention(2, 1, 1, KEY_DIM, KEY_DIM)
    network.load_state_dict({name: torch.tensor(values) for name, values in record["state"].items()})
    return Target(network.requires_grad_(False), torch.tensor(record["token"]), record["test_loss"])


def batches(seed: int, sources: int, settings: Settings, size: int = BATCH) -> list[Settings]:
    """Return a point with these settings for each batch of sources, which are counted from `first`.

    >>> [(point["first"], point["count"]) for point in batches(0, 60, {})]
    [(0, 25), (25, 25), (50, 10)]
    """
    return [
        settings | dict(seed=seed, first=first, count=min(size, sources - first))
        for first in range(0, sources, size)
    ]


def source_seeds(settings: Settings) -> list[int]:
    """Return the seeds of a point's batch: source i of a run's seed is the same in every figure, width and line."""
    first = settings["seed"] * 1_000_000 + settings["first"]
    return [(first + i) % 2**64 for i in range(settings["count"])]


def attention_sources(settings: Settings) -> tuple[Target, list[torch.nn.Module], list[int]]:
    """Build tickets of a point's target from its batch of sources, of width n, with its assignment and init.

    Returns:
        The target, the tickets' networks in float64, and how many entries of each are out of reach.
    """
    target = load_target(settings["target"])
    how = dict(width=settings["n"], assignment=settings["assignment"], init=settings["init"])
    tickets = [
        build_network(target.network, certificate=False, seed=seed, **how) for seed in source_seeds(settings)
    ]
    merged = merge(target.network, torch.float64)
    unreached = [entries_out_of_reach(ticket, merged) for ticket in tickets]
    return target, [ticket.network(dtype=torch.float64) for ticket in tickets], unreached


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
) -> list[dict[str, float]]:
    """Return the largest and the mean ‖source(x) − target(x)‖ of each source, over all inputs and positions."""
    exact, pruned = Stack([target]), Stack(sources)
    parts = x.double().split(max(1, ROWS // len(sources)))
    errors = torch.cat([(pruned(part) - exact(part)).norm(dim=-1).flatten(1) for part in parts], 1)
    return error_columns(errors.amax(1), errors.mean(1))


def error_columns(largest: Tensor, mean: Tensor) -> list[dict[str, float]]:
    """Return the columns of every source in a table of errors."""
    both = zip(largest.tolist(), mean.tolist(), strict=True)
    return [{"error_max": high, "error_mean": middle} for high, middle in both]


def certificates(target: Target, sources: Sequence[torch.nn.Module]) -> list[dict[str, float | None]]:
    """Return our bound and the paper's inequalities on the same weights, None where too large for a float."""
    radius = max(1.0, float(target.token.norm())) * (1 + 1e-6)  # the unit circle, up to float32 rounding
    certified = [certify(target.network, source, radius).to_dict() for source in sources]
    return [{name: entry[name] for name in ("bound", "paper_bound")} for entry in certified]


def entries_out_of_reach(ticket: Ticket, target: MergedAttention) -> int:
    """Return how many entries of W_QK and W_VO lie beyond the sum of all their row's products of one sign.

    No subset of their units reaches them: these are the failures behind the largest errors.

    Args:
        ticket: of a single head without biases.
        target: what it was built for, merged.
    """
    assignment = ticket.metadata["assignment"]
    masks = {name: mask[0] for name, mask in ticket.masks.items()}
    drawn = {
        name: draw(ticket.seed, name, mask.shape, ticket.laws[name])[0].astype(np.float64)
        for name, mask in ticket.masks.items()
    }
    for arrays in (masks, drawn):
        arrays["output"] = arrays["output"].T  # stored as (units, columns)
    total = 0
    for wanted, left, right, scale in (
        (target.query_key[0].numpy(), "query", "key", ticket.settings["key_dim"] ** -0.5),
        (target.value_output[0].numpy(), "value", "output", 1.0),
    ):
        if assignment == "balanced" and wanted.shape[0] > wanted.shape[1]:
            wanted, left, right = wanted.T, right, left  # the smaller side is structured
        serves = _serving(assignment, drawn[left], masks[left])
        products = scale * (drawn[left] * serves)[:, None] * drawn[right][None]  # (rows, columns, units)
        above, below = products.clip(min=0).sum(-1), products.clip(max=0).sum(-1)
        total += int(((wanted > above) | (wanted < below)).sum())
    return total


def _serving(assignment: str, structured: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(rows, units): which units may serve which row.

    The builder's own rows are read off the mask, and a unit that it left unused could have served any: no failure is
    counted that did not happen.
    """
    if assignment == "balanced":
        return mask | ~mask.any(0)
    owner = assign.contiguous(*mask.shape) if assignment == "paper" else assign.one_sign(structured)
    return owner[None] == np.arange(len(mask))[:, None]
