"""Put a text into a class."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from strongticket.data.labelled import Labelled, TextItems, load_texts
from strongticket.data.tokenizers import make_tokenizer
from strongticket.searching.config import SearchConfig
from strongticket.searching.tasks.task import Task, accuracy, device_of, stacked

_SAMPLES = 8


def classification(config: SearchConfig) -> Task:
    """The labelled texts of the settings."""
    texts = load_texts(config.task.data)
    tokenizer = make_tokenizer(
        config.task.tokens, config.task.vocabulary, "".join(texts.train), "".join(texts.valid)
    )
    held_out = TextItems(texts.valid, texts.valid_labels, tokenizer, config.model.context)
    return Task(
        texts.name,
        TextItems(texts.train, texts.train_labels, tokenizer, config.model.context),
        held_out,
        measures=accuracy,
        metadata={
            "tokenizer": tokenizer.to_json(),
            "context": config.model.context,
            "labels": list(texts.labels),
        },
        sizes={"vocabulary": tokenizer.size, "classes": len(texts.labels)},
        samples=partial(_samples, texts, held_out),
    )


def _samples(texts: Labelled, items: TextItems, model: nn.Module) -> list[dict[str, Any]]:
    rows = range(0, len(items), -(-len(items) // _SAMPLES))
    batch = stacked(items, rows, device_of(model))
    with torch.no_grad():
        found = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.argmax(-1)
    return [
        {
            "text": texts.valid[row][:200],
            "label": int(texts.valid_labels[row]),
            "prediction": int(prediction),
        }
        for row, prediction in zip(rows, found, strict=True)
    ]
