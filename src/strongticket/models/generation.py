"""Text from a language model, one token at a time."""

import math
from collections.abc import Iterator
from typing import Any

import torch

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.models.tokenizers import Tokenizer


def generate(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    context: int | None = None,
    tokens: int = 200,
    temperature: float = 0.8,
    seed: int = 0,
) -> Iterator[str]:
    """The continuation of the prompt, piece by piece. The same seed gives the same text.

    Args:
        model: a transformers causal language model.
        tokenizer: that belongs to it.
        prompt: at least one token.
        context: continue on the last so many tokens, for ever; None ends at the model's last position, or at a
            token that its config names as the end of a text.
        tokens: how many at most.
        temperature: 0 takes the likeliest token each time.
        seed: of the choices.
    """
    slide = context is not None
    end = () if slide else model.config.eos_token_id
    ends = end if isinstance(end, list | tuple) else [end]
    if context is None:
        context = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 20
    if tokens < 1 or not 0 <= temperature < math.inf:
        raise StrongTicketError(
            f"tokens must be at least 1 and temperature finite and not negative, got {tokens} and {temperature}"
        )
    if any("\ud800" <= character <= "\udfff" for character in prompt):
        raise StrongTicketError(
            "prompt is not valid Unicode: it has an unpaired surrogate", hint="Leave it out."
        )
    checks.whole(context=context)
    positions = getattr(model.config, "max_position_embeddings", None)
    if isinstance(positions, int):
        context = min(context, positions)
    ids = [int(token) for token in tokenizer.encode(prompt)]
    if ids and max(ids) >= (known := model.get_input_embeddings().num_embeddings):
        raise StrongTicketError(
            f"the tokenizer gives token {max(ids)}, the network knows {known}: they do not belong together"
        )
    if not ids or (len(ids) >= context and not slide):
        raise StrongTicketError(
            f"prompt has {len(ids)} tokens: expected at least 1 and fewer than the {context} that the "
            "model takes"
        )
    generator = torch.Generator().manual_seed(seed)
    begun, shown, unread, cache = 0, len(ids), ids, None
    for _ in range(tokens if slide else min(tokens, context - len(ids))):
        with torch.no_grad():
            if len(ids) <= context:
                out = model(torch.tensor([unread]), past_key_values=cache, use_cache=True)
                cache = out.past_key_values
            else:
                out = model(torch.tensor([ids[-context:]]), use_cache=False)
        # Tables are often padded with tokens that mean nothing.
        logits = out.logits[0, -1, : tokenizer.size].double()
        if logits.isnan().any() or logits.max().isinf():
            raise StrongTicketError("the network's outputs are not numbers", hint="Verify the ticket.")
        if temperature == 0:
            token = int(logits.argmax())
        else:
            # Differences first: dividing the logits themselves would overflow at tiny temperatures.
            probabilities = ((logits - logits.max()) / temperature).softmax(-1)
            token = int(torch.multinomial(probabilities, 1, generator=generator))
        if token in ends:
            break
        ids.append(token)
        unread = [token]
        # Only the last piece is decoded again, because what follows may change how it is written.
        before, now = (tokenizer.decode(part) for part in (ids[begun:shown], ids[begun:]))
        if not now.endswith("\ufffd"):  # half a character waits for its other bytes
            yield now[len(before) :]
            begun, shown = shown, len(ids)
    if shown < len(ids):
        yield now[len(before) :]
