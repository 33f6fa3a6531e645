"""Text from a transformers language model, with the context and the ends that its config names."""

from collections.abc import Iterator
from typing import Any

from strongticket.data import _generate
from strongticket.data.tokenizers import Tokenizer


def generate(model: Any, tokenizer: Tokenizer, prompt: str, **options: Any) -> Iterator[str]:
    """The continuation of the prompt, piece by piece.

    options: tokens, temperature (by default 0) and seed, see `strongticket.data._generate.generate`
    """
    ends = model.config.eos_token_id
    return _generate.generate(
        model,
        tokenizer,
        prompt,
        context=getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 20,
        stop_at=ends if isinstance(ends, list) else [ends],
        **{"temperature": 0.0} | options,
    )
