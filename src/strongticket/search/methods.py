"""Search methods by name. A new one: a function (model, config) -> Plan and a line in METHODS.

The function sets the model's parameters, leaves `requires_grad` on what is to be trained, and says by its
Plan which tensors the ticket masks and which it stores as floats. docs/add-a-search-method.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from strongticket.search.config import SearchConfig
from strongticket.search.plan import Plan, initialise
from strongticket.search.schemes import Scheme
from strongticket.search.scores import attach, masked_tensors


def edge_popup(model: nn.Module, config: SearchConfig) -> Plan:
    """Train a score per weight; keep the top k."""
    return attach(
        model,
        config.kept,
        scope=config.scope,  # type: ignore[arg-type]
        seed=config.seed,
        scheme=scheme_of(config),
        qk_scale=_known_scale(config),
        train=config.trained_parts,
        redraw=config.redraw,
    )


def dense(model: nn.Module, config: SearchConfig) -> Plan:
    """Train the weights themselves, from the same draw without the query and key scale."""
    plan = initialise(model, seed=config.seed, scheme=scheme_of(config), qk_scale=1.0, train=("*",))
    model.requires_grad_(True)
    return plan


def random_mask(model: nn.Module, config: SearchConfig) -> Plan:
    """Keep weights by chance: edge-popup with the scores it starts from."""
    plan = edge_popup(model, config)
    for masked in masked_tensors(model).values():
        masked.scores.requires_grad_(False)
    return plan


METHODS: dict[str, Callable[[nn.Module, SearchConfig], Plan]] = {
    "edge-popup": edge_popup,
    "dense": dense,
    "random": random_mask,
}


def scheme_of(config: SearchConfig) -> Scheme:
    return Scheme(config.init, config.std, config.embedding_std, config.residual_scaling)


def _known_scale(config: SearchConfig) -> float | str:
    """What can be set before anything is measured."""
    if config.qk_scale == "calibrated":
        return 1.0
    return config.qk_scale if config.qk_scale == "paper" else float(config.qk_scale)
