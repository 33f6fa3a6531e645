"""What two models are compared on: a text, or inputs made up from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError

WINDOW = 256  # tokens of a sequence, if the model takes as many
SEQUENCES = 64  # compared at most
BATCH = 8
SAMPLES = 4000  # of a sound
MASKED = 7  # one token in this many is hidden from a masked language model


@dataclass(frozen=True)
class Batch:
    """inputs: of the model; labels: the token that each position should predict, −100 for none."""

    inputs: dict[str, Tensor]
    labels: Tensor | None = None

    def rows(self, some: slice) -> "Batch":
        """Some of its sequences."""
        labels = None if self.labels is None else self.labels[some]
        return Batch({name: tensor[some] for name, tensor in self.inputs.items()}, labels)

    @property
    def real(self) -> Tensor | None:
        """True at tokens that are not padding."""
        mask = self.inputs.get("attention_mask")
        return None if mask is None else mask.bool()


def task(model: nn.Module) -> str:
    """next-token, masked-token or none."""
    name = type(model).__name__
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "next-token"
    return "masked-token" if name.endswith("ForMaskedLM") else "none"


def batches(
    model: nn.Module, data: Path | None, tokenizer: Any, *, seed: int = 0, sequences: int = SEQUENCES
) -> list[Batch]:
    """What to compare a model and its ticket's network on.

    Args:
        model: decides what inputs look like.
        data: a text file, read by the tokenizer; without it, inputs are made up from the seed.
        tokenizer: a transformers tokenizer, for data.
        seed: of made-up inputs and of masked tokens.
        sequences: how many at most; of made-up ones at most SEQUENCES.
    """
    if sequences < 1:
        raise StrongTicketError(f"sequences={sequences}: expected at least 1 to compare on")
    if data is not None:
        if tokenizer is None:
            raise StrongTicketError(
                "data is text, but the target has no tokenizer", hint="Leave the data out."
            )
        found = list(_text(model, data, tokenizer, sequences, seed))
        if not found:
            raise StrongTicketError(
                f"{data} has no passage that is long enough to compare on: expected {_window(model)} "
                "tokens in a row, or for models that do not generate text, lines of 20 words",
                hint="Give a longer text.",
            )
        return found
    return list(_made_up(model, sequences, seed))


def _text(model: Any, data: Path, tokenizer: Any, sequences: int, seed: int) -> Iterator[Batch]:
    try:
        text = data.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StrongTicketError(
            f"cannot read {data}: {error}", hint="Expected a text file in UTF-8."
        ) from error
    window = _window(model)
    if task(model) == "next-token":
        ids = tokenizer(text, return_tensors="pt", verbose=False).input_ids[0]
        rows = ids[: len(ids) // window * window].reshape(-1, window)[:sequences]
        if len(rows):
            yield from (_labelled(model, {"input_ids": part}, tokenizer, seed) for part in rows.split(BATCH))
        return
    passages = [line.strip() for line in text.splitlines() if len(line.split()) >= 20][:sequences]
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    for first in range(0, len(passages), BATCH):
        some = passages[first : first + BATCH]
        inputs = tokenizer(some, padding=True, truncation=True, max_length=window, return_tensors="pt")
        yield _labelled(model, dict(inputs), tokenizer, seed + first)


def _made_up(model: Any, sequences: int, seed: int) -> Iterator[Batch]:
    """Text sampled from a language model itself; random tokens, pictures, sounds or vectors for others."""
    generator = torch.Generator().manual_seed(seed)
    wanted = min(sequences, SEQUENCES)
    for count in (min(BATCH, wanted - first) for first in range(0, wanted, BATCH)):
        inputs = _random_inputs(model, count, generator) if hasattr(model, "main_input_name") else {}
        if not inputs:
            raise StrongTicketError(
                f"cannot make up inputs for a {type(model).__name__}",
                hint="Compare the two networks on inputs of your own with strongticket.models.compare_models.",
            )
        if task(model) == "next-token" and "past_key_values" in signature(model.forward).parameters:
            begun = inputs["input_ids"][:, :1]
            inputs = {"input_ids": sample_tokens(model, begun, _window(model), generator)}
        yield _labelled(model, inputs, None, seed) if "input_ids" in inputs else Batch(inputs)


def _random_inputs(model: Any, count: int, generator: torch.Generator) -> dict[str, Tensor]:
    """What the model's forward takes, judging by its arguments and its config."""
    config, takes = model.config, signature(model.forward).parameters
    noise = partial(torch.randn, count, generator=generator)

    def tokens(length: int) -> Tensor:
        words = config.get_text_config().vocab_size
        return torch.randint(0, words, (count, length), generator=generator)

    found: dict[str, Tensor] = {}
    if "input_ids" in takes:
        found["input_ids"] = tokens(_window(model))
    if "pixel_values" in takes and not (found and model.can_generate()):
        vision = getattr(config, "vision_config", config)
        size = getattr(vision, "image_size", None) or 64
        sides = (size, size) if isinstance(size, int) else size
        found["pixel_values"] = noise(getattr(vision, "num_channels", 3), *sides)
    if "input_features" in takes:
        found["input_features"] = noise(config.num_mel_bins, 2 * config.max_source_positions)
    if "input_values" in takes:
        found["input_values"] = noise(SAMPLES)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        found["decoder_input_ids"] = tokens(min(16, _window(model)))
    return found


def _window(model: Any) -> int:
    """Tokens of a sequence; RoBERTa's positions begin at 2."""
    text = model.config.get_text_config()
    names = ("max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len")
    sizes = (getattr(text, name, None) for name in names)
    longest = next((size for size in sizes if isinstance(size, int)), WINDOW + 2)
    return min(WINDOW, longest - 2) if longest > 2 else WINDOW


def sample_tokens(model: Any, ids: Tensor, tokens: int, generator: torch.Generator) -> Tensor:
    """Continue `ids` to `tokens` tokens, each sampled from the model's probabilities."""
    cache, last = None, ids
    with torch.no_grad():
        while ids.shape[1] < tokens:
            out = model(last, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            last = torch.multinomial(out.logits[:, -1].softmax(-1), 1, generator=generator)
            ids = torch.cat([ids, last], 1)
    return ids


def _labelled(model: nn.Module, inputs: dict[str, Tensor], tokenizer: Any, seed: int) -> Batch:
    ids = inputs["input_ids"]
    if task(model) == "next-token":
        labels = torch.full_like(ids, -100)
        labels[:, :-1] = ids[:, 1:]
        return Batch(inputs, labels)
    hidden = getattr(tokenizer, "mask_token_id", None)
    if task(model) == "none" or hidden is None:
        return Batch(inputs)
    chosen = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed)) < 1 / MASKED
    chosen &= inputs["attention_mask"].bool()
    return Batch(inputs | {"input_ids": ids.masked_fill(chosen, hidden)}, ids.masked_fill(~chosen, -100))
