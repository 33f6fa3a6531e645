"""What two models answer to the same prompts, for people to read side by side."""

from typing import Any

import torch

from strongticket.data._generate import generate

PROMPTS = ("Once upon a time", "The little dog", "One day, a girl named Lily", "They went to the park and")
_TOKENS = 40


def answers(target: Any, source: Any, tokenizer: Any, prompts: tuple[str, ...]) -> list[dict[str, str]]:
    """A row for each prompt: what a language model writes next, the class that a classifier gives, the likeliest
    token at each place, or what an encoder finds nearest. None for models that do not take text."""
    if getattr(target, "main_input_name", "") != "input_ids":
        return []
    texts = [_answers(model, tokenizer, prompts) for model in (target, source)]
    return [
        {"prompt": prompt, "target": target_text, "ticket": source_text}
        for prompt, target_text, source_text in zip(prompts, *texts, strict=True)
    ]


def _answers(model: Any, tokenizer: Any, prompts: tuple[str, ...]) -> list[str]:
    if model.can_generate():
        return [_continuation(model, tokenizer, prompt) for prompt in prompts]
    # One by one: not every tokenizer has a padding token.
    with torch.no_grad():
        outputs = [model(**tokenizer.inner(prompt, return_tensors="pt")) for prompt in prompts]
    if hasattr(outputs[0], "logits"):
        return [_likeliest(model, tokenizer, output.logits[0].double().softmax(-1)) for output in outputs]
    return _nearest([output.last_hidden_state[0].double().mean(0) for output in outputs], prompts)


def _continuation(model: Any, tokenizer: Any, prompt: str) -> str:
    if model.config.is_encoder_decoder:
        asked = tokenizer.inner(prompt, return_tensors="pt")
        written = model.generate(**asked, max_new_tokens=_TOKENS, do_sample=False)
        return str(tokenizer.inner.decode(written[0], skip_special_tokens=True))
    ends = model.config.eos_token_id
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 20
    pieces = generate(
        model,
        tokenizer,
        prompt,
        context=context,
        tokens=_TOKENS,
        temperature=0.0,
        stop_at=ends if isinstance(ends, list) else [ends],
    )
    return "".join(pieces)


def _likeliest(model: Any, tokenizer: Any, shares: torch.Tensor) -> str:
    """The class of a prompt, or the tokens or classes at its places.

    shares: of classes, or of tokens or classes at each place
    """
    best, names = shares.max(-1), model.config.id2label
    if shares.ndim == 1:
        return f"{names[int(best.indices)]} ({best.values:.0%})"
    if shares.shape[-1] == model.config.vocab_size:
        return str(tokenizer.inner.decode(best.indices))
    return " ".join(names[int(i)] for i in best.indices)


def _nearest(means: list[torch.Tensor], prompts: tuple[str, ...]) -> list[str]:
    """The most similar other prompt, by the mean of the last hidden states."""
    units = torch.nn.functional.normalize(torch.stack(means), dim=-1)
    best = (units @ units.T - 2 * torch.eye(len(prompts))).max(-1)
    return [f"{prompts[int(i)]} ({cosine:.3f})" for cosine, i in zip(best.values, best.indices, strict=True)]
