"""Text from a language model, one token at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from strongticket.data.tokenizers import Tokenizer
from strongticket.errors import StrongTicketError


def generate(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    context: int,
    tokens: int = 200,
    temperature: float = 0.8,
    seed: int = 0,
    stop_at: Sequence[int] = (),
    slide: bool = False,
) -> Iterator[str]:
    """The continuation of the prompt, piece by piece. The same seed gives the same text.

    model: a transformers causal language model
    context: how many tokens it can read; slide: continue beyond them on the last `context`, or end there
    temperature: 0 takes the likeliest token each time
    stop_at: tokens that end the text
    """
    if tokens < 1 or not temperature >= 0:
        raise StrongTicketError(
            f"tokens must be at least 1 and temperature not negative, got {tokens} and {temperature}"
        )
    ids = [int(token) for token in tokenizer.encode(prompt)]
    if not ids or (len(ids) >= context and not slide):
        raise StrongTicketError(
            f"prompt has {len(ids)} tokens: expected at least 1 and fewer than the {context} that the "
            "model takes"
        )
    generator = torch.Generator().manual_seed(seed)
    shown, unread, cache = len(ids), ids, None
    for _ in range(tokens if slide else min(tokens, context - len(ids))):
        with torch.no_grad():
            if len(ids) <= context:
                out = model(torch.tensor([unread]), past_key_values=cache, use_cache=True)
                cache = out.past_key_values
            else:
                out = model(torch.tensor([ids[-context:]]), use_cache=False)
        logits = out.logits[0, -1]
        if temperature == 0:
            token = int(logits.argmax())
        else:
            token = int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
        if token in stop_at:
            break
        ids, unread = [*ids, token], [token]
        # A piece is what the new tokens add to the text; half a character waits for its other bytes.
        text = tokenizer.decode(ids)
        if not text.endswith("\ufffd"):
            yield text[len(tokenizer.decode(ids[:shown])) :]
            shown = len(ids)
    if shown < len(ids):
        yield tokenizer.decode(ids)[len(tokenizer.decode(ids[:shown])) :]
