"""Predict the next token of a text."""

from __future__ import annotations

from strongticket.data.text import Windows, load_tokens
from strongticket.searching.config import SearchConfig, cache_folder
from strongticket.searching.tasks.task import Task


def language(config: SearchConfig) -> Task:
    """The text of the settings, cut into windows."""
    text = load_tokens(config.data, config.tokens, config.vocabulary, cache_folder(config))
    return Task(
        text.name,
        Windows(text.train, config.context, "training text"),
        Windows(text.valid, config.context, "validation text"),
        metadata={"tokenizer": text.tokenizer.to_json(), "context": config.context},
        sizes={"vocabulary": text.tokenizer.size},
        bytes_per_token=text.bytes_per_token,
    )
