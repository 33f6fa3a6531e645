"""What two models answer to the same prompts, for people to read side by side."""

from typing import Any

import torch

from strongticket.data._generate import generate

PROMPTS = ("Once upon a time", "The little dog", "One day, a girl named Lily", "They went to the park and")
_TOKENS = 40


def answers(target: Any, source: Any, tokenizer: Any, prompts: tuple[str, ...]) -> list[dict[str, str]]:
    """A row for each prompt: what a language model writes next, a classifier says, or an encoder finds nearest."""
    if hasattr(target, "generate") and target.can_generate():
        texts = [
            [_continuation(model, tokenizer, prompt) for prompt in prompts] for model in (target, source)
        ]
    else:
        outputs = [_outputs(model, tokenizer, prompts) for model in (target, source)]
        if outputs[0] is None or outputs[1] is None:
            return []
        texts = [
            _classes(target, output) if hasattr(output, "logits") else _nearest(output, prompts)
            for output in outputs
        ]
    return [
        {"prompt": prompt, "target": target_text, "ticket": source_text}
        for prompt, target_text, source_text in zip(prompts, *texts, strict=True)
    ]


def _continuation(model: Any, tokenizer: Any, prompt: str) -> str:
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


def _outputs(model: Any, tokenizer: Any, prompts: tuple[str, ...]) -> Any:
    """None for a model that does not take text."""
    if getattr(model, "main_input_name", "") != "input_ids":
        return None
    batch = tokenizer.inner(list(prompts), padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
    output.real = batch["attention_mask"]
    return output


def _classes(model: Any, output: Any) -> list[str]:
    shares = output.logits.double().softmax(-1)
    if shares.ndim != 2:
        return [""] * len(shares)
    best = shares.max(-1)
    names = model.config.id2label
    return [f"{names[int(i)]} ({share:.0%})" for share, i in zip(best.values, best.indices, strict=True)]


def _nearest(output: Any, prompts: tuple[str, ...]) -> list[str]:
    """The most similar other prompt, by the mean of the last hidden states."""
    real = output.real[..., None].double()
    means = (output.last_hidden_state.double() * real).sum(1) / real.sum(1)
    cosines = torch.nn.functional.normalize(means, dim=-1) @ torch.nn.functional.normalize(means, dim=-1).T
    best = (cosines - 2 * torch.eye(len(prompts))).max(-1)
    return [f"{prompts[int(i)]} ({cosine:.3f})" for cosine, i in zip(best.values, best.indices, strict=True)]
