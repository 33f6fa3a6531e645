"""Text from a found network."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from strongticket.errors import StrongTicketError
from strongticket.search.found import rebuild
from strongticket.search.tokens import from_json
from strongticket.ticket import Ticket


def generate(
    ticket: Ticket,
    prompt: str,
    *,
    tokens: int = 200,
    temperature: float = 0.8,
    seed: int = 0,
    tokenizer: str | None = None,
) -> Iterator[str]:
    """The continuation of the prompt, piece by piece. The same seed gives the same text.

    temperature: 0 takes the likeliest token each time
    tokenizer: folder or name of a named tokenizer, if it is not where it was
    """
    if not prompt:
        raise StrongTicketError("prompt is empty; give at least one character to go on from")
    if tokens < 1 or not temperature >= 0:
        raise StrongTicketError(
            f"tokens must be at least 1 and temperature not negative, got {tokens} and {temperature}"
        )
    if "tokenizer" not in ticket.metadata:
        raise StrongTicketError(
            "the ticket names no tokenizer, so it reads no text; it was not made by a search"
        )
    words = from_json(ticket.metadata["tokenizer"], name=tokenizer)
    context = int(ticket.metadata["context"])
    model = rebuild(ticket)
    chance = torch.Generator().manual_seed(seed)
    ids = [int(token) for token in words.encode(prompt)]
    shown = len(ids)
    for _ in range(tokens):
        with torch.no_grad():
            logits = model(torch.tensor([ids[-context:]])).logits[0, -1]
        if temperature == 0:
            ids.append(int(logits.argmax()))
        else:
            chances = (logits / temperature).softmax(-1)
            ids.append(int(torch.multinomial(chances, 1, generator=chance)))
        piece = words.decode(ids[shown:])
        if not piece.endswith("\ufffd"):  # half a character: wait for its other bytes
            yield piece
            shown = len(ids)
    if shown < len(ids):
        yield words.decode(ids[shown:])
