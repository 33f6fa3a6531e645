"""A whole search: data, model, method, training, ticket, and how good and how large it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from strongticket import __version__
from strongticket.data.windows import TokenisedText, Windows, load_tokens
from strongticket.errors import StrongTicketError
from strongticket.files import write_file
from strongticket.search.checkpoints import remove_all
from strongticket.search.config import SearchConfig, cache_folder
from strongticket.search.config.methods import find_method
from strongticket.search.evaluate import bits_per_byte, validation_loss
from strongticket.search.identity import run_identity
from strongticket.search.kind import check_rebuilds, to_ticket
from strongticket.search.masking._attach import masked_tensors
from strongticket.search.masking._initialise import Attachment
from strongticket.search.masking.logits import calibrated_scale, logit_std
from strongticket.search.models import make_model
from strongticket.search.train import OnStep, Training, checkpoint_folder, train
from strongticket.ticket import Ticket

_CALIBRATION_SEQUENCES = 16


@dataclass(frozen=True)
class SearchResult:
    """What a search found. Losses are in nats per token, on the validation text."""

    config: SearchConfig
    ticket: Ticket
    loss: float  # at the end: the ticket's
    best_loss: float  # lowest seen, of the end and of what eval_every saw
    bits_per_byte: float
    qk_scale: float  # the factor used
    logit_std: float  # of the attention logits before training
    parameters: int  # of the model, tied ones once
    kept: int  # weights the ticket keeps, and trained floats
    file_bytes: int
    seconds: float
    step_seconds: float
    history: list[tuple[int, float]]
    data: str
    path: Path | None = None

    @property
    def dense_bytes(self) -> dict[str, int]:
        """The same parameters as a dense model would store them."""
        return {"float32": 4 * self.parameters, "float16": 2 * self.parameters, "int8": self.parameters}

    def to_json(self) -> dict[str, Any]:
        """Everything but the ticket itself."""
        plain = {
            name: value for name, value in vars(self).items() if name not in ("ticket", "config", "path")
        }
        return plain | {
            "version": __version__,
            "settings": self.config.recipe(),
            "dense_bytes": self.dense_bytes,
            "path": str(self.path) if self.path else None,
        }


def search_all(
    config: SearchConfig, *, out: str | Path | None = None, on_step: OnStep | None = None
) -> Iterator[SearchResult]:
    """One search for each of `config.seeds` seeds.

    config: the settings
    out: where to write the ticket; with several seeds, F.ticket becomes F-seed0.ticket and so on
    on_step: called with (steps done, total) after every step
    """
    for seed in range(config.seed, config.seed + config.seeds):
        path = Path(out) if out else None
        if path and config.seeds > 1:
            path = path.with_name(f"{path.stem}-seed{seed}{path.suffix}")
        yield search(replace(config, seed=seed, seeds=1), out=path, on_step=on_step)


def search(
    config: SearchConfig, *, out: str | Path | None = None, on_step: OnStep | None = None
) -> SearchResult:
    """Search once.

    config: the settings; `config.seeds` is not used
    out: where to write the ticket; None writes nothing
    on_step: called with (steps done, total) after every step
    """
    if out and (Path(out).is_dir() or not Path(out).parent.is_dir()):
        raise StrongTicketError(
            f"out={str(out)!r}: its parent folder does not exist, or it is a folder itself",
            hint="Create it first.",
        )
    text = load_tokens(config.data, config.tokens, config.vocabulary, cache_folder(config))
    windows = Windows(text.valid, config.context, "validation text")
    model = make_model(config, text.tokenizer.size)
    attachment = find_method(config.method)(model, config)
    scale, spread = _query_key_scale(model, config, attachment, text)
    check_rebuilds(model, attachment)
    training, identity = Training(0.0, 0, [], True), ""
    if config.save_every:
        identity = run_identity(config, model, (text.train, text.valid, text.tokenizer.to_json()))
    if config.steps and any(parameter.requires_grad for parameter in model.parameters()):
        training = train(model, config, text, identity=identity, on_step=on_step)
    loss = validation_loss(model, windows)
    bits = bits_per_byte(loss, text.bytes_per_token)
    metadata = {
        "tokenizer": text.tokenizer.to_json(),
        "context": config.context,
        "data": text.name,
        "loss": loss,
        "bits_per_byte": bits,
        "search": config.recipe(),
        "version": __version__,
    }
    ticket = to_ticket(model, attachment, metadata=metadata)
    data = ticket.to_bytes()
    if out and training.is_first_process:
        write_file(Path(out), data)
    if config.save_every and training.is_first_process:
        remove_all(checkpoint_folder(config, identity))
    return SearchResult(
        config=config,
        ticket=ticket,
        loss=loss,
        best_loss=min([loss, *(seen for _, seen in training.history)]),
        bits_per_byte=bits,
        qk_scale=scale,
        logit_std=spread,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        kept=sum(int(mask.sum()) for name, mask in ticket.masks.items() if name in attachment.frozen)
        + sum(tensor.size for tensor in ticket.floats.values()),
        file_bytes=len(data),
        seconds=training.seconds,
        step_seconds=training.seconds / max(1, training.steps),
        history=training.history,
        data=text.name,
        path=Path(out) if out else None,
    )


def _query_key_scale(
    model: nn.Module, config: SearchConfig, attachment: Attachment, text: TokenisedText
) -> tuple[float, float]:
    """(factor on query and key weights, standard deviation of the attention logits), before training."""
    windows = Windows(text.train, config.context, "training text")
    count = min(_CALIBRATION_SEQUENCES, len(windows))
    tokens = torch.stack([windows[i * (len(windows) // count)]["input_ids"] for i in range(count)])
    sources = masked_tensors(model).values() if attachment.masked else ()
    slices = [each for source in sources for each in source.slices]
    if not slices:  # trained weights find their own scale
        return 1.0, logit_std(model, tokens)
    if config.qk_scale == "calibrated":
        return calibrated_scale(model, tokens), logit_std(model, tokens)
    return slices[0].factor, logit_std(model, tokens)
