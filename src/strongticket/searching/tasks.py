"""What a search is trained and judged on: data, a loss, and what the ticket remembers of them.

The tasks of `--task` are functions (config) -> Task; `load_task` has their names.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from strongticket.data.labelled import ImageItems, Labelled, TextItems, load_images, load_texts
from strongticket.data.text import Windows, load_tokens
from strongticket.models.tokenizers import make_tokenizer
from strongticket.searching.config import SearchConfig

Batch = dict[str, torch.Tensor]
_NUMBERS = 1 << 13  # tokens or pixels in a forward pass of `evaluate`
_TEXT_SAMPLES = 8
_IMAGE_SAMPLES = 10
_IMAGE_SAMPLE_BYTES = 1024  # of all samples, because they are part of the ticket's file


def model_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The loss that a model of transformers computes itself from the batch."""
    loss: torch.Tensor = model(**batch).loss
    return loss


@dataclass(frozen=True)
class Task:
    """Data and a loss. `search(config, task=..., model=...)` takes your own.

    Attributes:
        name: of the data.
        train: data set to train on: each item is a dict of tensors, and items are stacked to batches.
        valid: data set to validate on.
        loss: (model, batch) -> mean loss of the batch.
        measures: (model, batch) -> numbers besides the loss, such as accuracy, each a mean over the batch.
        metadata: stored with the ticket.
        sizes: what the model's size depends on; see `make_model`.
        bytes_per_token: of the validation text, if it is one.
        samples: model -> what the ticket's page shows of the data: examples with predictions.
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


def load_task(config: SearchConfig) -> Task:
    """The task that the settings name, with its data."""
    tasks = {"language": _language, "classification": _classification, "images": _images}
    return tasks[config.task.task](config)


def _language(config: SearchConfig) -> Task:
    """Predict the next token of a text, cut into windows."""
    text = load_tokens(config.task.data, config.task.tokens, config.task.vocabulary, config.run.cache_folder)
    return Task(
        text.name,
        Windows(text.train, config.model.context, "training text"),
        Windows(text.valid, config.model.context, "validation text"),
        metadata={"tokenizer": text.tokenizer.to_json(), "context": config.model.context},
        sizes={"vocabulary": text.tokenizer.size},
        bytes_per_token=text.bytes_per_token,
    )


def _classification(config: SearchConfig) -> Task:
    """Put a text into a class."""
    texts, context = load_texts(config.task.data), config.model.context
    tokenizer = make_tokenizer(
        config.task.tokens, config.task.vocabulary, "".join(texts.train), "".join(texts.valid)
    )
    valid = TextItems(texts.valid, texts.valid_labels, tokenizer, context)
    return Task(
        texts.name,
        TextItems(texts.train, texts.train_labels, tokenizer, context),
        valid,
        measures=_accuracy,
        metadata={"tokenizer": tokenizer.to_json(), "context": context, "labels": list(texts.labels)},
        sizes={"vocabulary": tokenizer.size, "classes": len(texts.labels)},
        samples=_samples(texts, valid, _TEXT_SAMPLES, lambda text: {"text": text[:200]}),
    )


def _images(config: SearchConfig) -> Task:
    """Put an image into a class."""
    images = load_images(config.task.data, config.task.image_size)
    mean, std = images.pixels
    valid = ImageItems(images.valid, images.valid_labels, images.pixels)
    _, channels, side, _ = images.train.shape
    samples = max(1, min(_IMAGE_SAMPLES, _IMAGE_SAMPLE_BYTES // images.valid[0].size))
    return Task(
        images.name,
        ImageItems(images.train, images.train_labels, images.pixels),
        valid,
        measures=_accuracy,
        metadata={"labels": list(images.labels), "pixels": {"mean": mean, "std": std}},
        sizes={"classes": len(images.labels), "channels": channels, "image_size": side},
        samples=_samples(
            images, valid, samples, lambda image: {"pixels": b64encode(image.tobytes()).decode()}
        ),
    )


def _accuracy(model: Any, batch: Batch) -> dict[str, torch.Tensor]:
    """How many of the batch a classifier of transformers puts into the right class."""
    return {"accuracy": (_predictions(model, batch) == batch["labels"]).double().mean()}


def _predictions(model: Any, batch: Batch) -> torch.Tensor:
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    found: torch.Tensor = model(**inputs).logits.argmax(-1)
    return found


def _samples(
    data: Labelled, items: Any, count: int, show: Callable[[Any], dict[str, str]]
) -> Callable[[nn.Module], list[dict[str, Any]]]:
    """Held-out examples as the page shows them, each with its label and the model's prediction."""

    def samples(model: nn.Module) -> list[dict[str, Any]]:
        rows = range(0, len(items), -(-len(items) // count))
        with torch.no_grad():
            predictions = _predictions(model, stacked(items, rows, device_of(model)))
        return [
            {**show(data.valid[row]), "label": int(data.valid_labels[row]), "prediction": int(prediction)}
            for row, prediction in zip(rows, predictions, strict=True)
        ]

    return samples


def stacked(data: Any, rows: range, device: torch.device) -> Batch:
    """Some items of a data set as one batch."""
    items = [data[row] for row in rows]
    return {
        name: torch.stack([torch.as_tensor(item[name]) for item in items]).to(device) for name in items[0]
    }


def device_of(model: nn.Module) -> torch.device:
    """Where the model is."""
    return next(model.parameters()).device


def evaluate(model: nn.Module, task: Task) -> dict[str, float]:
    """Means over all held-out data: the loss (of text, in nats per predicted token) and the task's other measures.

    Equal weights give equal bits.
    """
    data: Any = task.valid
    size = max(1, _NUMBERS // max(torch.as_tensor(value).numel() for value in data[0].values()))
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
