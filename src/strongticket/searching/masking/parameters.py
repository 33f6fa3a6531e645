"""What becomes of each parameter of a model: masked, trained as floats, or fixed at 0 or 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.hooks import RemovableHandle

from strongticket.errors import StrongTicketError
from strongticket.models.tensors import state_checksum
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.matrices import (
    WeightMatrix,
    check_query_key,
    clean_name,
    other_parameters,
    weight_matrices,
)
from strongticket.searching.masking.source import AUTO, ScaledSlice, Scheme, Source
from strongticket.searching.masking.topk import top_k
from strongticket.seeds import Constant
from strongticket.settings import Positive, check

REMEMBERED = "_strongticket_attachment"  # in a model's __dict__
TRAINABLE = ("embedding", "head", "norm", "bias")  # what `train` may name, besides patterns of tensor names


@dataclass
class Attachment:
    """What a search method made of a model's parameters; the ticket follows from it.

    Attributes:
        seed: of the random weights
        sources: the source of every weight matrix, by name
        masked: the weight matrices that the ticket masks; once attached, each has its `weights`
        trained: parameters that the ticket stores as floats: weight matrices and others
        base: checksum of the trained model whose weights are masked; None if they are random
        kept: fraction of the free weights of each group that is kept
        groups: masked matrices that compete for one top k
        before_step: called with (steps done, total) before every step, for schedules
        hook: calls `refresh`; removed with the masks
    """

    seed: int
    sources: dict[str, Source]
    masked: list[WeightMatrix]
    trained: dict[str, nn.Parameter]
    base: str | None = None
    kept: float = 1.0
    groups: list[list[WeightMatrix]] = field(default_factory=list)
    before_step: Callable[[int, int], None] | None = None
    hook: RemovableHandle | None = None

    def refresh(self) -> None:
        """Let the masks follow the scores. Every call of the attached model begins with this."""
        for group in self.groups:
            free, coats = sum(matrix.weights.free for matrix in group), group[0].weights.coats
            scores = [matrix.parameter.detach() for matrix in group]
            ranks = [matrix.weights.rank for matrix in group]
            keep = [round(self.kept * (coats - coat) / coats * free) for coat in range(coats)]
            try:
                cuts = [top_k(scores, count, ranks) for count in keep]
            except StrongTicketError:
                bad = next(matrix for matrix in group if not bool(matrix.parameter.isfinite().all()))
                raise StrongTicketError(
                    f"a score of {bad.name!r} is not finite: the search has diverged",
                    hint="Lower the learning rate.",
                ) from None
            for matrix, own in zip(group, zip(*cuts, strict=True), strict=True):
                matrix.weights.cuts = own

    def stored(self) -> dict[str, StoredTensor]:
        """What a ticket stores of each masked matrix, for the scores as they are now."""
        self.refresh()
        return {matrix.name: matrix.weights.stored(matrix.parameter) for matrix in self.masked}


def attachment_of(model: nn.Module) -> Attachment:
    """What the last method made of the model, or of the model that this one wraps."""
    for module in model.modules():
        if REMEMBERED in module.__dict__:
            attachment: Attachment = module.__dict__[REMEMBERED]
            return attachment
    raise StrongTicketError("the model has no scores", hint="Call attach(model) first.")


def prepare_parameters(
    model: nn.Module,
    *,
    seed: int = 0,
    scheme: Scheme | None = None,
    qk_scale: float | str = "paper",
    train: Iterable[str] = (),
) -> Attachment:
    """Decide what becomes of each parameter, and set those that are not masked to their values before training.

    Weight matrices to train are drawn, biases become 0 and norms 1. Masked matrices are left to the caller. The
    arguments are those of `attach`.
    """
    check(Literal["paper"] | Positive, qk_scale=qk_scale)
    matrices, others, trained = _sort(model, tuple(train))
    for name, (_, value) in others.items():
        if value is None and name not in trained:
            raise StrongTicketError(
                f"parameter {name!r} is neither a weight matrix, a bias nor a norm's gain, so there is no rule "
                "for initialising it",
                hint=f"Train it with train=[{name!r}].",
            )
    scheme = scheme or Scheme(AUTO)
    if scheme.name == AUTO:
        has_norms = any(value == 1 for _, value in others.values())
        scheme = replace(scheme, name="gpt2" if has_norms else "kaiming-normal")
    residuals = sum(matrix.residual for matrix in matrices)
    if qk_scale != 1:
        check_query_key(matrices)
    sources = {}
    for matrix in matrices:
        law = scheme.embedding()
        if matrix.kind == "linear":
            law = scheme.linear(matrix.fan_in, matrix.fan_out, residuals=residuals if matrix.residual else 0)
        slices = _scaled_slices(matrix, qk_scale)
        sources[matrix.name] = Source(seed, matrix.name, matrix.shape, law, slices, scheme.sparsity)
    with torch.no_grad():
        for matrix in matrices:
            if matrix.name in trained:
                matrix.parameter.copy_(torch.from_numpy(sources[matrix.name].weights()))
        for parameter, value in others.values():
            if value is not None:
                parameter.fill_(value)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._NormBase):
            module.reset_running_stats()
    masked = [matrix for matrix in matrices if matrix.name not in trained]
    model.__dict__[REMEMBERED] = attachment = Attachment(seed, sources, masked, trained)
    return attachment


def keep_trained(model: nn.Module, *, seed: int, train: Iterable[str] = ()) -> Attachment:
    """Sort the parameters of a trained model: masked matrices, parameters to train, and the rest, kept as it is.

    Embedding tables are not masked: a task reads few of their rows, so their scores would hardly be trained.
    """
    matrices, _, trained = _sort(model, tuple(train))
    masked = [matrix for matrix in matrices if matrix.kind == "linear" and matrix.name not in trained]
    # A ticket over a trained model stores the mask alone, as a tensor of ones and zeros.
    sources = {matrix.name: Source(seed, matrix.name, matrix.shape, Constant(1.0)) for matrix in masked}
    state = {clean_name(name): tensor for name, tensor in model.state_dict().items()}
    base = state_checksum({name: tensor for name, tensor in state.items() if name not in trained})
    model.__dict__[REMEMBERED] = attachment = Attachment(seed, sources, masked, trained, base)
    return attachment


def _sort(
    model: nn.Module, train: tuple[str, ...]
) -> tuple[list[WeightMatrix], dict[str, tuple[nn.Parameter, float | None]], dict[str, nn.Parameter]]:
    """Weight matrices, other parameters with their untrained values, and those of both that `train` names."""
    if any(map(parametrize.is_parametrized, model.modules())):
        raise StrongTicketError("the model has scores already", hint="Call detach(model) first.")
    matrices = weight_matrices(model)
    others = {name: (parameter, value) for name, parameter, value in other_parameters(model, matrices)}
    names = [*(matrix.name for matrix in matrices), *others]
    for wanted in train:
        if wanted not in TRAINABLE and not any(fnmatchcase(name, wanted) for name in names):
            raise StrongTicketError(
                f"train names {wanted!r}, which is not a tensor of the model",
                hint=f"Expected {', '.join(TRAINABLE)} or a pattern of tensor names such as {names[0]!r}.",
            )
    get_head = getattr(model, "get_output_embeddings", None)
    head = get_head() if get_head else None
    trained: dict[str, nn.Parameter] = {}
    for matrix in matrices:
        is_head = head is not None and any(module is head for module, _ in matrix.owners)
        roles = {"head" if is_head else "", "embedding" if matrix.kind == "embedding" else ""}
        if _is_named(train, roles, matrix.name):
            trained[matrix.name] = matrix.parameter
    for name, (parameter, value) in others.items():
        if _is_named(train, {"bias" if value == 0 else "norm" if value == 1 else ""}, name):
            trained[name] = parameter
    return matrices, others, trained


def _is_named(train: tuple[str, ...], roles: set[str], name: str) -> bool:
    """Whether `train` names a parameter, by one of its roles or by a pattern."""
    return any(wanted in roles if wanted in TRAINABLE else fnmatchcase(name, wanted) for wanted in train)


def _scaled_slices(matrix: WeightMatrix, qk_scale: float | str) -> tuple[ScaledSlice, ...]:
    """The matrix's query and key slices with their factor; "paper" is n_K^(1/4)."""
    if qk_scale == "paper" and matrix.query_key and not matrix.head_dim:
        raise StrongTicketError(
            f"n_K, the size of a head, is not known for {matrix.name!r}: the model's config does not say",
            hint="Pass qk_scale as a number.",
        )
    factor = matrix.head_dim**0.25 if qk_scale == "paper" else float(qk_scale)
    return tuple(replace(part, factor=factor) for part in matrix.query_key)
