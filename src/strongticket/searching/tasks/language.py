"""Predict the next token of a text."""

from __future__ import annotations

from strongticket.data.text import Windows, load_tokens
from strongticket.searching.config import SearchConfig
from strongticket.searching.tasks.task import Task


def language(config: SearchConfig) -> Task:
    """The text of the settings, cut into windows."""
    text = load_tokens(config.task.data, config.task.tokens, config.task.vocabulary, config.run.cache_folder)
    return Task(
        text.name,
        Windows(text.train, config.model.context, "training text"),
        Windows(text.valid, config.model.context, "validation text"),
        metadata={"tokenizer": text.tokenizer.to_json(), "context": config.model.context},
        sizes={"vocabulary": text.tokenizer.size},
        bytes_per_token=text.bytes_per_token,
    )
