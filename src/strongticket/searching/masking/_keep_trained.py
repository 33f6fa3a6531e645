"""Trained weights as what a mask chooses from: nothing is drawn and nothing is reset."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from strongticket.models.tensors import state_checksum
from strongticket.searching.masking._initialise import Attachment, is_named, remember, trained_matrices
from strongticket.searching.masking.frozen import FrozenTensor, TrainedTensor
from strongticket.searching.masking.matrices import clean_name, other_parameters, weight_matrices

_SPREAD = 0.01  # of the first scores: what a hundred steps at the learning rate 1e-4 can cross


def keep_trained(model: nn.Module, *, seed: int, train: Iterable[str] = ()) -> Attachment:
    """Sort the parameters of a trained model: masked matrices, parameters to train, and the rest, kept as it is.

    Embedding tables are not masked: a task reads few of their rows, so their scores would hardly be trained.

    train: parts to train as floats, such as the head of the task: as in `attach`
    """
    train = tuple(train)
    matrices = weight_matrices(model)
    rest = list(other_parameters(model, matrices))
    trained = trained_matrices(model, matrices, [name for name, _, _ in rest], train)
    for name, parameter, value in rest:
        if is_named(train, {"bias"} if value == 0 else {"norm"} if value == 1 else set(), name):
            trained[name] = parameter
    masked = [matrix for matrix in matrices if matrix.kind == "linear" and matrix.name not in trained]
    frozen: dict[str, FrozenTensor | TrainedTensor] = {
        matrix.name: TrainedTensor(seed, matrix.name, matrix.parameter.detach().cpu().numpy().copy())
        for matrix in masked
    }
    state = {clean_name(name): tensor for name, tensor in model.state_dict().items()}
    base = {name: tensor for name, tensor in state.items() if name not in trained}
    return remember(model, Attachment(frozen, masked, trained, {}, state_checksum(base)))


def magnitudes(weights: torch.Tensor) -> np.ndarray:
    """The first scores: the smallest weights are dropped first, because the model misses them least."""
    sizes = weights.detach().abs().float()
    return (_SPREAD / sizes.square().mean().sqrt().clamp_min(1e-30) * sizes).cpu().numpy()
