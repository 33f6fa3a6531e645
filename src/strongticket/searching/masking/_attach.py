"""Attach edge-popup scores to a model, and remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from strongticket.errors import StrongTicketError
from strongticket.searching.masking._initialise import Attachment, initialise
from strongticket.searching.masking._keep_trained import keep_trained, magnitudes
from strongticket.searching.masking.masked import Masked, RawSelection, Selection
from strongticket.searching.masking.parametrization import Parametrization
from strongticket.searching.masking.schemes import Scheme
from strongticket.searching.masking.store import Redraw
from strongticket.seeds import Uniform, draw

Scope = Literal["tensor", "global"]
Weights = Literal["random", "pretrained"]
SMALL = 1 << 22  # below this many weights the frozen ones stay in memory: 16 MB are not worth a second draw


def attach(
    model: nn.Module,
    kept: float = 0.3,
    *,
    weights: Weights = "random",
    scope: Scope = "tensor",
    seed: int = 0,
    scheme: Scheme | None = None,
    qk_scale: float | str = "paper",
    train: Iterable[str] = (),
    redraw: bool | None = None,
    parametrization: type[Masked] = Masked,
    selection: Callable[[float], Selection] | None = None,
) -> Attachment:
    """Freeze random weights in the model and give each a score; the model then computes with the top k.

    The model's parameters are now its scores: train them with any optimiser. Biases are set to 0, norms to 1,
    and both are frozen. With weights="pretrained" the model's own weights are frozen instead, biases and norms
    as they are, and embedding tables are not masked.

    model: changed in place
    kept: fraction of the weights that is kept
    weights: "random" draws them from the seed, "pretrained" keeps those of a trained model
    scope: keep that fraction of each "tensor", or of the model as a whole ("global")
    seed: of the frozen weights and the first scores
    scheme: how the frozen weights are drawn; None means the paper's B.2, or σ by fan-in for a model without norms
    qk_scale: factor on query and key weights; "paper" is the fourth root of the head size
    train: parts to train as floats instead: "embedding", "head", "norm", "bias" or patterns of tensor names
        such as "h.0.*"
    redraw: draw frozen weights again instead of keeping them (see Masked); None does so for large models on
        the CPU
    parametrization: class of the parametrizations, for methods that compute the weights in another way
    selection: class of what chooses the kept weights, for methods that choose in another way; None keeps the largest
        |score| of random weights, and the largest score of pretrained ones, where it starts as the weight's size

    >>> model = nn.Sequential(nn.Linear(8, 8))
    >>> attachment = attach(model, kept=0.25, qk_scale=1)
    >>> int(model[0].weight.count_nonzero())
    16
    >>> type(detach(model)[0].weight).__name__
    'Parameter'
    """
    if isinstance(kept, bool) or not isinstance(kept, int | float) or not 0 < kept <= 1:
        raise StrongTicketError(f"kept must be a fraction from 0 (excluded) to 1, got {kept!r}")
    if scope not in ("tensor", "global"):
        raise StrongTicketError(f"scope must be 'tensor' or 'global', got {scope!r}")
    if weights not in ("random", "pretrained"):
        raise StrongTicketError(f"weights must be 'random' or 'pretrained', got {weights!r}")
    _check_free(model)
    if weights == "pretrained":
        if scheme is not None or redraw:
            raise StrongTicketError("scheme and redraw are for random weights", hint="Leave them out.")
        attachment = keep_trained(model, seed=seed, train=train)
    else:
        attachment = initialise(model, seed=seed, scheme=scheme, qk_scale=qk_scale, train=train)
    redraws: Redraw = bool(redraw)
    if redraw is None and weights == "random":
        size = sum(matrix.parameter.numel() for matrix in attachment.masked)
        redraws = "on the cpu" if size > SMALL else False
    if selection is None:
        selection = RawSelection if weights == "pretrained" else Selection
    everything, parametrizations = selection(kept), {}
    for matrix in attachment.masked:
        if weights == "pretrained":
            scores = magnitudes(matrix.parameter)
        else:  # Kaiming-uniform scores, as edge-popup's authors draw them
            scores = draw(seed, f"{matrix.name}.score", matrix.shape, Uniform(matrix.fan_in**-0.5))
        matrix.parameter.data = torch.from_numpy(scores).to(matrix.parameter.device)
        shared = everything if scope == "global" else selection(kept)
        frozen = attachment.frozen[matrix.name]
        parametrizations[matrix.name] = parametrization(frozen, matrix.parameter, shared, redraw=redraws)
    return attach_parametrizations(model, attachment, parametrizations)


def attach_parametrizations(
    model: nn.Module, attachment: Attachment, parametrizations: Mapping[str, Parametrization]
) -> Attachment:
    """Let the weight matrices of a model be computed by parametrizations, and train what is not fixed.

    model: changed in place
    attachment: of its parameters
    parametrizations: the parametrization of every matrix in `attachment.masked`, by name
    """
    _check_free(model)
    for matrix in attachment.masked:
        for module, attribute in matrix.owners:
            # unsafe: torch would compute the weights here only to look at their shape
            parametrize.register_parametrization(
                module, attribute, parametrizations[matrix.name], unsafe=True
            )
    model.requires_grad_(False)
    for parameter in (*(matrix.parameter for matrix in attachment.masked), *attachment.trained.values()):
        parameter.requires_grad_(True)
    return attachment


def detach(model: nn.Module) -> nn.Module:
    """Remove the scores: plain parameters stay, with the masked weights as values; tied ones stay tied.

    model: an attached model, changed in place and returned

    >>> model = nn.Linear(8, 8)
    >>> attachment = attach(model, kept=0.5, qk_scale=1)
    >>> int(detach(model).weight.count_nonzero())
    32
    """
    for masked in masked_tensors(model).values():
        masked.settle()
    for module, attribute, _ in list(_attached(model)):
        parametrize.remove_parametrizations(module, attribute)
    return model.requires_grad_(True)


def rescale(model: nn.Module, qk_scale: float) -> None:
    """Change the scale of the query and key weights of an attached model."""
    for masked in masked_tensors(model).values():
        slices = tuple(replace(part, factor=float(qk_scale)) for part in masked.frozen.slices)
        masked.set_frozen(replace(masked.frozen, slices=slices))


def masked_tensors(model: nn.Module) -> dict[str, Any]:
    """The parametrizations attached to the `model`, by tensor name; edge-popup's are Masked."""
    found = {masked.frozen.name: masked for _, _, masked in _attached(model)}
    if not found:
        raise StrongTicketError("the model has no scores", hint="Call attach(model) first.")
    return found


def masks(model: nn.Module) -> dict[str, np.ndarray]:
    """The mask of each masked tensor of the `model`: bool of its shape, True = kept."""
    return {name: masked.stored().mask for name, masked in masked_tensors(model).items()}


def _check_free(model: nn.Module) -> None:
    if any(True for _ in _attached(model)):
        raise StrongTicketError("the model has scores already", hint="Call detach(model) first.")


def _attached(model: nn.Module) -> Iterator[tuple[nn.Module, str, Parametrization]]:
    for module in model.modules():
        if parametrize.is_parametrized(module):
            for attribute, chain in module.parametrizations.items():  # type: ignore[operator, union-attr]
                if isinstance(chain[0], Parametrization):
                    yield module, attribute, chain[0]
