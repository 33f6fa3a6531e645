"""Validation: the loss and what else a task measures, over all of its held-out data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from strongticket.searching.tasks.task import Batch, Task, device_of, model_loss, stacked

_NUMBERS = 1 << 13  # tokens or pixels in a forward pass


def validation_loss(
    model: nn.Module, data: Any, loss: Callable[[Any, Batch], torch.Tensor] = model_loss
) -> float:
    """Mean loss over all items of a data set; for text, in nats per predicted token. Equal weights give equal bits.

    model: left unchanged
    data: items are dicts of tensors
    loss: (model, batch) -> mean loss of the batch
    """
    return _means(model, data, lambda model, batch: {"loss": loss(model, batch)})["loss"]


def evaluate(model: nn.Module, task: Task) -> dict[str, float]:
    """The loss of a model on the held-out data of a task, and its other measures."""
    measures = task.measures or (lambda model, batch: {})
    return _means(
        model, task.valid, lambda model, batch: {"loss": task.loss(model, batch), **measures(model, batch)}
    )


def bits_per_byte(loss: float, bytes_per_token: float) -> float:
    """A loss in nats per token as bits per byte of UTF-8 text."""
    return loss / math.log(2) / bytes_per_token


def _means(
    model: nn.Module, data: Any, measure: Callable[[Any, Batch], dict[str, torch.Tensor]]
) -> dict[str, float]:
    largest = max(torch.as_tensor(value).numel() for value in data[0].values())
    batch = max(1, _NUMBERS // largest)
    was_training = model.training
    model.eval()
    totals: dict[str, float] = {}
    with torch.no_grad():
        for start in range(0, len(data), batch):
            rows = range(start, min(start + batch, len(data)))
            for name, value in measure(model, stacked(data, rows, device_of(model))).items():
                totals[name] = totals.get(name, 0.0) + float(value) * len(rows)
    model.train(was_training)
    return {name: total / len(data) for name, total in totals.items()}
