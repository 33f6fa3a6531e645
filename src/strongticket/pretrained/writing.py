"""Text from a ticket: its metadata carries the tokenizer, so that the file is enough."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from strongticket.errors import StrongTicketError
from strongticket.pretrained.target import transformers
from strongticket.ticket import Ticket


def tokenizer_of(files: dict[str, str]) -> Any:
    """The tokenizer that these files make, None if there are none."""
    if not files:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / Path(name).name).write_text(text, encoding="utf-8")
        return transformers().AutoTokenizer.from_pretrained(folder)


def generate(
    ticket: Ticket,
    prompt: str,
    *,
    tokens: int = 200,
    temperature: float = 0.0,
    seed: int = 0,
    base: str | None = None,
    faithful: bool = False,
) -> Iterator[str]:
    """The continuation of the prompt, piece by piece, until the model ends it or `tokens` are written.

    temperature: 0 takes the likeliest token each time; base: the trained model of a partial ticket.
    """
    if tokens < 1 or not temperature >= 0:
        raise StrongTicketError(
            f"tokens must be at least 1 and temperature not negative, got {tokens} and {temperature}"
        )
    tokenizer = tokenizer_of(ticket.metadata.get("tokenizer", {}))
    model: Any = ticket.network(base=base, faithful=faithful)
    if tokenizer is None or not hasattr(model, "generate"):
        raise StrongTicketError(
            f"a ticket of a {type(model).__name__}"
            + (" without a tokenizer" if hasattr(model, "generate") else "")
            + " writes no text; build one from the folder of a language model"
        )
    chance = torch.Generator().manual_seed(seed)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    start = shown = ids.shape[1]
    room = model.config.max_position_embeddings
    if not 0 < start < room:
        raise StrongTicketError(
            f"prompt has {start} tokens: expected at least 1 and fewer than the {room} that the model takes"
        )
    ends = model.config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    cache, last = None, ids
    while ids.shape[1] < min(start + tokens, room):
        with torch.no_grad():
            out = model(last, past_key_values=cache, use_cache=True)
        cache, logits = out.past_key_values, out.logits[:, -1]
        if temperature == 0:
            last = logits.argmax(-1, keepdim=True)
        else:
            last = torch.multinomial((logits / temperature).softmax(-1), 1, generator=chance)
        if int(last) in ends:
            break
        ids = torch.cat([ids, last], 1)
        # A piece is what the new tokens add to the text; half a character waits for its other bytes.
        before = tokenizer.decode(ids[0, :shown], skip_special_tokens=True)
        now = tokenizer.decode(ids[0], skip_special_tokens=True)
        if not now.endswith("\ufffd"):
            yield now[len(before) :]
            shown = ids.shape[1]
