"""What becomes of each parameter of a model: drawn and masked, drawn and trained, or fixed at 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.frozen import FrozenTensor, ScaledSlice, TrainedTensor
from strongticket.searching.masking.matrices import (
    WeightMatrix,
    check_query_key,
    other_parameters,
    weight_matrices,
)
from strongticket.searching.masking.schemes import AUTO, Scheme

_REMEMBERED = "_strongticket_attachment"  # in a model's __dict__
TRAINABLE = ("embedding", "head", "norm", "bias")  # what `train` may name, besides patterns of tensor names


@dataclass(frozen=True)
class Attachment:
    """What a search method made of a model's parameters; the ticket follows from it.

    frozen: the random (or trained) tensor of every weight matrix, by name
    masked: the weight matrices that the ticket masks
    trained: parameters that the ticket stores as floats: weight matrices and others
    fixed: parameters that stay at one value, 0 or 1
    base: checksum of the trained model whose weights are masked; None if they are random
    before_step: called with (steps done, total) before every step, for schedules
    """

    frozen: dict[str, FrozenTensor | TrainedTensor]
    masked: list[WeightMatrix]
    trained: dict[str, nn.Parameter]
    fixed: dict[str, tuple[nn.Parameter, float]]
    base: str | None = None
    before_step: Callable[[int, int], None] | None = None


def initialise(
    model: nn.Module,
    *,
    seed: int = 0,
    scheme: Scheme | None = None,
    qk_scale: float | str = "paper",
    train: Iterable[str] = (),
) -> Attachment:
    """Set every parameter to its value before training: weights drawn from the seed, biases 0, norms 1.

    model: changed in place
    seed: of the weights
    scheme: how they are drawn; None means the paper's B.2, or σ by fan-in for a model without norms
    qk_scale: factor on query and key weights; "paper" is the fourth root of the head size
    train: parts that the ticket stores as floats: "embedding", "head", "norm", "bias" or patterns of names
    """
    attachment, matrices = _sort_parameters(model, seed, scheme or Scheme(AUTO), qk_scale, tuple(train))
    with torch.no_grad():
        for matrix in matrices:
            matrix.parameter.copy_(torch.from_numpy(attachment.frozen[matrix.name].weights()))
        for _, parameter, value in other_parameters(model, matrices):
            if value is not None:
                parameter.fill_(value)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._NormBase):
            module.reset_running_stats()
    return remember(model, attachment)


def remember(model: nn.Module, attachment: Attachment) -> Attachment:
    """Store the attachment of the model for `attachment_of`, and return it."""
    model.__dict__[_REMEMBERED] = attachment
    return attachment


def attachment_of(model: nn.Module) -> Attachment:
    """What the last `attach` or `initialise` made of the model."""
    if _REMEMBERED not in model.__dict__:
        raise StrongTicketError("the model has no scores", hint="Call attach(model) first.")
    attachment: Attachment = model.__dict__[_REMEMBERED]
    return attachment


def _sort_parameters(
    model: nn.Module, seed: int, scheme: Scheme, qk_scale: float | str, train: tuple[str, ...]
) -> tuple[Attachment, list[WeightMatrix]]:
    matrices = weight_matrices(model)
    rest = list(other_parameters(model, matrices))
    scheme = scheme.for_model(has_norms=any(value == 1 for _, _, value in rest))
    residuals = sum(matrix.residual for matrix in matrices)
    if qk_scale != 1:
        check_query_key(matrices)
    frozen: dict[str, FrozenTensor | TrainedTensor] = {}
    for matrix in matrices:
        law = scheme.embedding()
        if matrix.kind == "linear":
            law = scheme.linear(matrix.fan_in, matrix.fan_out, residuals=residuals if matrix.residual else 0)
        slices = _scaled_slices(matrix, qk_scale)
        frozen[matrix.name] = FrozenTensor(seed, matrix.name, matrix.shape, law, slices, scheme.sparsity)
    trained = trained_matrices(model, matrices, [name for name, _, _ in rest], train)
    fixed = {}
    for name, parameter, value in rest:
        if is_named(train, {"bias"} if value == 0 else {"norm"} if value == 1 else set(), name):
            trained[name] = parameter
        elif value is None:
            raise StrongTicketError(
                f"parameter {name!r} is neither a weight matrix, a bias nor a norm's gain, so there is no rule "
                "for initialising it",
                hint=f"Train it with train=[{name!r}].",
            )
        else:
            fixed[name] = (parameter, value)
    masked = [matrix for matrix in matrices if matrix.name not in trained]
    return Attachment(frozen, masked, trained, fixed), matrices


def trained_matrices(
    model: nn.Module, matrices: list[WeightMatrix], rest: list[str], train: tuple[str, ...]
) -> dict[str, nn.Parameter]:
    """The weight matrices that `train` names; an error if it names nothing in the model. rest: other names."""
    _check_trained(train, matrices, rest)
    return {
        matrix.name: matrix.parameter
        for matrix in matrices
        if is_named(train, _roles(matrix, model), matrix.name)
    }


def _scaled_slices(matrix: WeightMatrix, qk_scale: float | str) -> tuple[ScaledSlice, ...]:
    """The matrix's query and key slices with their factor; "paper" is n_K^(1/4)."""
    if not matrix.query_key:
        return ()
    if qk_scale == "paper":
        if not matrix.head_dim:
            raise StrongTicketError(
                f"n_K, the size of a head, is not known for {matrix.name!r}: the model's config does not say",
                hint="Pass qk_scale as a number.",
            )
        factor = matrix.head_dim**0.25
    elif isinstance(qk_scale, int | float) and math.isfinite(qk_scale) and qk_scale > 0:
        factor = float(qk_scale)
    else:
        raise StrongTicketError(f"qk_scale must be 'paper' or a positive number, got {qk_scale!r}")
    return tuple(replace(part, factor=factor) for part in matrix.query_key)


def _roles(matrix: WeightMatrix, model: nn.Module) -> set[str]:
    """Which of TRAINABLE a weight matrix is."""
    get_head = getattr(model, "get_output_embeddings", None)
    head = get_head() if get_head else None
    is_head = head is not None and any(module is head for module, _ in matrix.owners)
    return ({"embedding"} if matrix.kind == "embedding" else set()) | ({"head"} if is_head else set())


def is_named(train: tuple[str, ...], roles: set[str], name: str) -> bool:
    """Whether `train` names a parameter, by one of its roles or by a pattern."""
    return any(wanted in roles if wanted in TRAINABLE else fnmatchcase(name, wanted) for wanted in train)


def _check_trained(train: tuple[str, ...], matrices: list[WeightMatrix], rest: list[str]) -> None:
    names = [matrix.name for matrix in matrices] + rest
    for wanted in train:
        if wanted not in TRAINABLE and not any(fnmatchcase(name, wanted) for name in names):
            raise StrongTicketError(
                f"train names {wanted!r}, which is not a tensor of the model",
                hint=f"Expected {', '.join(TRAINABLE)} or a pattern of tensor names such as {names[0]!r}.",
            )
