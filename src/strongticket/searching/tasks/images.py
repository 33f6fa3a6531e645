"""Put an image into a class."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import torch
from torch import nn

from strongticket.data.labelled import ImageItems, Labelled, load_images
from strongticket.searching.config import SearchConfig
from strongticket.searching.tasks.task import Task, accuracy, device_of, stacked

_SAMPLES = 10
_SAMPLE_BYTES = 1024  # of all samples, because they are part of the ticket's file


def images(config: SearchConfig) -> Task:
    """The labelled images of the settings."""
    found = load_images(config.task.data, config.task.image_size)
    mean, std = found.pixels
    valid = ImageItems(found.valid, found.valid_labels, found.pixels)
    _, channels, side, _ = found.train.shape
    return Task(
        found.name,
        ImageItems(found.train, found.train_labels, found.pixels),
        valid,
        measures=accuracy,
        metadata={"labels": list(found.labels), "pixels": {"mean": mean, "std": std}},
        sizes={"classes": len(found.labels), "channels": channels, "image_size": side},
        samples=partial(_samples, found, valid),
    )


def _samples(found: Labelled, items: ImageItems, model: nn.Module) -> list[dict[str, Any]]:
    """Held-out images: their bytes (channels, height, width) in base64, the label and the prediction."""
    count = max(1, min(_SAMPLES, _SAMPLE_BYTES // found.valid[0].size))
    rows = range(0, len(items), -(-len(items) // count))
    with torch.no_grad():
        predictions = model(
            pixel_values=stacked(items, rows, device_of(model))["pixel_values"]
        ).logits.argmax(-1)
    return [
        {
            "pixels": base64.b64encode(found.valid[row].tobytes()).decode(),
            "label": int(found.valid_labels[row]),
            "prediction": int(prediction),
        }
        for row, prediction in zip(rows, predictions, strict=True)
    ]
