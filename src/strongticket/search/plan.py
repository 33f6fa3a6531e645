"""What becomes of each parameter of a model: drawn and masked, drawn and trained, or fixed at 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.search.layout import Slot, check_query_key, others, slots
from strongticket.search.schemes import Scheme
from strongticket.search.source import Part, Source

TRAINABLE = ("embedding", "head", "norm", "bias")  # what `train` may name, besides patterns of tensor names


@dataclass(frozen=True)
class Plan:
    sources: dict[str, Source]  # of every weight matrix
    masked: list[Slot]
    trained: dict[str, nn.Parameter]  # weight matrices and others
    fixed: dict[str, tuple[nn.Parameter, float]]


def initialise(
    model: nn.Module,
    *,
    seed: int = 0,
    scheme: Scheme | None = None,
    qk_scale: float | str = "paper",
    train: Iterable[str] = (),
) -> Plan:
    """Set every parameter to its value before training: weights drawn from the seed, biases 0, norms 1."""
    plan, matrices = _plan(model, seed, scheme or Scheme(), qk_scale, tuple(train))
    with torch.no_grad():
        for slot in matrices:
            slot.parameter.copy_(torch.from_numpy(plan.sources[slot.name].weights()))
        for _, parameter, value in others(model, matrices):
            if value is not None:
                parameter.fill_(value)
    return plan


def _plan(
    model: nn.Module, seed: int, scheme: Scheme, qk_scale: float | str, train: tuple[str, ...]
) -> tuple[Plan, list[Slot]]:
    matrices = slots(model)
    rest = list(others(model, matrices))
    residuals = sum(slot.residual for slot in matrices)
    if qk_scale != 1:
        check_query_key(matrices)
    sources = {}
    for slot in matrices:
        law = scheme.embedding()
        if slot.kind == "linear":
            law = scheme.linear(slot.fan_in, slot.fan_out, residuals=residuals if slot.residual else 0)
        sources[slot.name] = Source(seed, slot.name, slot.shape, law, _scaled_parts(slot, qk_scale))
    _check_parts(train, matrices, [name for name, _, _ in rest])
    trained = {
        slot.name: slot.parameter for slot in matrices if _is_named(train, _parts_of(slot, model), slot.name)
    }
    fixed = {}
    for name, parameter, value in rest:
        if _is_named(train, {"bias"} if value == 0 else {"norm"} if value == 1 else set(), name):
            trained[name] = parameter
        elif value is None:
            raise StrongTicketError(
                f"parameter {name!r} is neither a weight matrix, a bias nor a norm's gain, so it has no recipe",
                hint=f"Train it with train=[{name!r}].",
            )
        else:
            fixed[name] = (parameter, value)
    masked = [slot for slot in matrices if slot.name not in trained]
    return Plan(sources, masked, trained, fixed), matrices


def _scaled_parts(slot: Slot, qk_scale: float | str) -> tuple[Part, ...]:
    """The slot's query and key parts with their factor; "paper" is n_K^(1/4)."""
    if not slot.query_key:
        return ()
    if qk_scale == "paper":
        if not slot.head_dim:
            raise StrongTicketError(
                f"n_K, the size of a head, is not known for {slot.name!r}: the model's config does not say",
                hint="Pass qk_scale as a number.",
            )
        factor = slot.head_dim**0.25
    elif isinstance(qk_scale, int | float) and math.isfinite(qk_scale) and qk_scale > 0:
        factor = float(qk_scale)
    else:
        raise StrongTicketError(f"qk_scale must be 'paper' or a positive number, got {qk_scale!r}")
    return tuple(replace(part, factor=factor) for part in slot.query_key)


def _parts_of(slot: Slot, model: nn.Module) -> set[str]:
    """Which of TRAINABLE a weight matrix is."""
    get_head = getattr(model, "get_output_embeddings", None)
    head = get_head() if get_head else None
    is_head = head is not None and any(module is head for module, _ in slot.owners)
    return ({"embedding"} if slot.kind == "embedding" else set()) | ({"head"} if is_head else set())


def _is_named(train: tuple[str, ...], parts: set[str], name: str) -> bool:
    return any(want in parts if want in TRAINABLE else fnmatchcase(name, want) for want in train)


def _check_parts(train: tuple[str, ...], matrices: list[Slot], rest: list[str]) -> None:
    names = [slot.name for slot in matrices] + rest
    for want in train:
        if want not in TRAINABLE and not any(fnmatchcase(name, want) for name in names):
            raise StrongTicketError(
                f"train names {want!r}, which is no tensor of the model",
                hint=f"Expected {', '.join(TRAINABLE)} or a pattern of tensor names such as {names[0]!r}.",
            )
