"""Validation: the loss and what else a task measures, over all of its held-out data."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from strongticket.searching.tasks import Task, device_of, stacked

_NUMBERS = 1 << 13  # tokens or pixels in a forward pass


def evaluate(model: nn.Module, task: Task) -> dict[str, float]:
    """Means over all held-out data: the loss (of text, in nats per predicted token) and the task's other measures.

    Equal weights give equal bits.
    """
    data: Any = task.valid
    largest = max(torch.as_tensor(value).numel() for value in data[0].values())
    size = max(1, _NUMBERS // largest)
    was_training = model.training
    model.eval()
    totals: dict[str, float] = {}
    with torch.no_grad():
        for start in range(0, len(data), size):
            rows = range(start, min(start + size, len(data)))
            batch = stacked(data, rows, device_of(model))
            found = {"loss": task.loss(model, batch)}
            if task.measures:
                found |= task.measures(model, batch)
            for name, value in found.items():
                totals[name] = totals.get(name, 0.0) + float(value) * len(rows)
    model.train(was_training)
    return {name: total / len(data) for name, total in totals.items()}
