"""What a search is trained and judged on: data, a loss, and what the ticket remembers of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

Batch = dict[str, torch.Tensor]


def model_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The loss that a model of transformers computes itself from the batch."""
    loss: torch.Tensor = model(**batch).loss
    return loss


@dataclass(frozen=True)
class Task:
    """Data and a loss. `search(config, task=..., model=...)` takes your own.

    name: of the data
    train, valid: each item is a dict of tensors; items are stacked to batches
    loss: (model, batch) -> mean loss of the batch
    measures: (model, batch) -> numbers besides the loss, such as accuracy, each a mean over the batch
    metadata: stored with the ticket
    sizes: what the model's size depends on; see make_model
    bytes_per_token: of the validation text, if it is one
    samples: model -> what the ticket's page shows of the data: examples with predictions
    """

    name: str
    train: Dataset[Batch]
    valid: Dataset[Batch]
    loss: Callable[[Any, Batch], torch.Tensor] = model_loss
    measures: Callable[[Any, Batch], dict[str, torch.Tensor]] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    bytes_per_token: float | None = None
    samples: Callable[[nn.Module], list[dict[str, Any]]] | None = None

    def contents(self) -> Iterator[Any]:
        """All data, item by item, and the text of the loss: for a hash of it."""
        try:
            yield inspect.getsource(self.loss)
        except (OSError, TypeError):  # typed at a prompt, or a partial
            yield repr(type(self.loss))
        for data in (self.train, self.valid):
            for index in range(len(data)):  # type: ignore[arg-type]
                for name, value in sorted(data[index].items()):
                    yield name
                    yield torch.as_tensor(value).numpy()
        yield self.metadata


def accuracy(model: Any, batch: Batch) -> dict[str, torch.Tensor]:
    """How many of the batch a classifier of transformers puts into the right class."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    right = model(**inputs).logits.argmax(-1) == batch["labels"]
    return {"accuracy": right.double().mean()}


def stacked(data: Any, rows: range, device: torch.device) -> Batch:
    """Some items of a data set as one batch."""
    items = [data[row] for row in rows]
    return {
        name: torch.stack([torch.as_tensor(item[name]) for item in items]).to(device) for name in items[0]
    }


def device_of(model: nn.Module) -> torch.device:
    """Where the model is."""
    return next(model.parameters()).device
