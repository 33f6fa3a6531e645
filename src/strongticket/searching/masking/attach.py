"""Attach scores to a model, and remove them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.parameters import (
    REMEMBERED,
    Attachment,
    attachment_of,
    keep_trained,
    prepare_parameters,
)
from strongticket.searching.masking.source import Scheme
from strongticket.searching.masking.weights import Masked, MaskedByScore
from strongticket.seeds import Uniform, draw
from strongticket.settings import Range, check

# of the first scores of trained weights: what a hundred steps at the learning rate 1e-4 can cross
_SPREAD = 0.01


def attach(
    model: nn.Module,
    kept: float = 0.3,
    *,
    weights: Literal["random", "pretrained"] = "random",
    scope: Literal["tensor", "global"] = "tensor",
    seed: int = 0,
    scheme: Scheme | None = None,
    qk_scale: float | str = "paper",
    train: Iterable[str] = (),
    parametrization: type[Masked] | None = None,
) -> Attachment:
    """Freeze random weights in the model and give each a score; the model then computes with the top k.

    The model's parameters are now its scores: train them with any optimiser. Biases are set to 0, norms to 1,
    and both are frozen. With weights="pretrained" the model's own weights are frozen instead, biases and norms
    as they are, and embedding tables are not masked.

    Every call of the model begins with a new top k. A weight that is read without such a call, such as
    `model.head.weight` right after an optimiser's step, is still cut at the threshold of the last call.

    Args:
        model: changed in place
        kept: fraction of the weights that is kept
        weights: "random" draws them from the seed, "pretrained" keeps those of a trained model
        scope: keep that fraction of each "tensor", or of the model as a whole ("global")
        seed: of the frozen weights and the first scores
        scheme: how the frozen weights are drawn; None means the paper's B.2, or σ by fan-in for a model without norms
        qk_scale: factor on query and key weights; "paper" is the fourth root of the head size
        train: parts to train as floats instead: "embedding", "head", "norm", "bias" or patterns of tensor names
            such as "h.0.*"
        parametrization: how weights follow from scores; None keeps the largest |score| of random weights, and the
            largest score of pretrained ones, where it starts as the weight's size

    >>> model = nn.Sequential(nn.Linear(8, 8))
    >>> attachment = attach(model, kept=0.25, qk_scale=1)
    >>> int(model[0].weight.count_nonzero())
    16
    >>> type(detach(model)[0].weight).__name__
    'Parameter'
    """
    check(Annotated[float, Range(above=0, most=1)], kept=kept)
    check(Literal["tensor", "global"], scope=scope)
    check(Literal["random", "pretrained"], weights=weights)
    if weights == "pretrained":
        if scheme is not None:
            raise StrongTicketError("scheme is for random weights", hint="Leave it out.")
        attachment = keep_trained(model, seed=seed, train=train)
    else:
        attachment = prepare_parameters(model, seed=seed, scheme=scheme, qk_scale=qk_scale, train=train)
    for matrix in attachment.masked:
        parameter, source = matrix.parameter, attachment.sources[matrix.name]
        if weights == "pretrained":
            matrix.weights = (parametrization or MaskedByScore)(source, parameter.detach().clone())
            scores = _magnitudes(parameter)
        else:  # Kaiming-uniform scores, as edge-popup's authors draw them
            matrix.weights = (parametrization or Masked)(source).to(parameter.device)
            first = draw(seed, f"{matrix.name}.score", matrix.shape, Uniform(matrix.fan_in**-0.5))
            scores = torch.from_numpy(first)
        parameter.data = scores.to(parameter.device)
    attachment.kept = kept
    alone = [[matrix] for matrix in attachment.masked]
    attachment.groups = [attachment.masked] if scope == "global" and attachment.masked else alone
    return attach_weights(model, attachment)


def attach_weights(model: nn.Module, attachment: Attachment) -> Attachment:
    """Let the masked matrices of a model be computed by their `weights`, and train what is not fixed."""
    for matrix in attachment.masked:
        for module, attribute in matrix.owners:
            # unsafe: torch would compute the weights here only to look at their shape
            parametrize.register_parametrization(module, attribute, matrix.weights, unsafe=True)
    model.requires_grad_(False)
    for parameter in (*(matrix.parameter for matrix in attachment.masked), *attachment.trained.values()):
        parameter.requires_grad_(True)
    attachment.hook = model.register_forward_pre_hook(torch.compiler.disable(_refresh))
    attachment.refresh()
    return attachment


def detach(model: nn.Module) -> nn.Module:
    """Remove the scores: plain parameters stay, with the masked weights as values; tied ones stay tied.

    >>> model = nn.Linear(8, 8)
    >>> attachment = attach(model, kept=0.5, qk_scale=1)
    >>> int(detach(model).weight.count_nonzero())
    32
    """
    attachment = attachment_of(model)
    attachment.refresh()
    for matrix in attachment.masked:
        with torch.no_grad():
            # what a ticket has, and no soft or drawn gate
            value = matrix.weights.eval().value(matrix.parameter)
        for module, attribute in matrix.owners:
            parametrize.remove_parametrizations(module, attribute, leave_parametrized=False)
        matrix.parameter.data = value
    if attachment.hook:
        attachment.hook.remove()
    for module in model.modules():
        module.__dict__.pop(REMEMBERED, None)
    return model.requires_grad_(True)


def masks(model: nn.Module) -> dict[str, np.ndarray]:
    """The mask of each masked tensor of the `model`, for its scores as they are now: bool, True = kept."""
    return {name: stored.mask for name, stored in attachment_of(model).stored().items()}


def _refresh(model: nn.Module, _inputs: object) -> None:
    attachment_of(model).refresh()


def _magnitudes(weights: torch.Tensor) -> torch.Tensor:
    """The first scores of trained weights: the smallest are dropped first, because the model misses them least."""
    sizes = weights.detach().abs().float()
    return _SPREAD / sizes.square().mean().sqrt().clamp_min(1e-30) * sizes
