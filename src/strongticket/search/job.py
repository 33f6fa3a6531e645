"""A whole search: data, model, method, training, ticket, and how good and how large it is."""

from __future__ import annotations

import json
import shutil
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
from strongticket.search.calibrate import calibrated_scale, logit_std
from strongticket.search.config import SearchConfig, cache_folder
from strongticket.search.evaluate import bits_per_byte, validation_loss
from strongticket.search.kind import build_model, to_ticket
from strongticket.search.methods import METHODS
from strongticket.search.scores import masked_tensors
from strongticket.search.train import OnStep, Training, train
from strongticket.ticket import Ticket

_CALIBRATION_SEQUENCES = 16


@dataclass(frozen=True)
class SearchResult:
    """What a search found. Losses are in nats a token, on the validation text."""

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


def run_all(
    config: SearchConfig, *, out: str | Path | None = None, on_step: OnStep | None = None
) -> Iterator[SearchResult]:
    """One search for each of `config.seeds`; with several, F.ticket becomes F-seed0.ticket and so on."""
    for seed in range(config.seed, config.seed + config.seeds):
        path = Path(out) if out else None
        if path and config.seeds > 1:
            path = path.with_name(f"{path.stem}-seed{seed}{path.suffix}")
        yield run(replace(config, seed=seed, seeds=1), out=path, on_step=on_step)


def run(
    config: SearchConfig, *, out: str | Path | None = None, on_step: OnStep | None = None
) -> SearchResult:
    """Search once; write the ticket to `out` if given."""
    if out and (Path(out).is_dir() or not Path(out).parent.is_dir()):
        raise StrongTicketError(
            f"out={str(out)!r}: its parent folder does not exist, or it is a folder itself",
            hint="Create it first.",
        )
    text = load_tokens(config.data, config.tokens, config.vocabulary, cache_folder(config))
    windows = Windows(text.valid, config.context, "validation text")
    model = make_model(config, text.tokenizer.size)
    plan = METHODS[config.method](model, config)
    scale, spread = _query_key_scale(model, config, text)
    training = Training(0.0, 0, [], True)
    if config.steps and any(parameter.requires_grad for parameter in model.parameters()):
        training = train(model, config, text, on_step=on_step)
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
    ticket = to_ticket(model, plan, metadata=metadata)
    data = ticket.to_bytes()
    if out and training.is_first_process:
        write_file(Path(out), data)
    if config.save_every and training.is_first_process:
        _remove(cache_folder(config) / "runs" / config.digest())
    return SearchResult(
        config=config,
        ticket=ticket,
        loss=loss,
        best_loss=min([loss, *(seen for _, seen in training.history)]),
        bits_per_byte=bits,
        qk_scale=scale,
        logit_std=spread,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        kept=sum(int(mask.sum()) for mask in ticket.masks.values())
        + sum(tensor.size for tensor in ticket.floats.values()),
        file_bytes=len(data),
        seconds=training.seconds,
        step_seconds=training.seconds / max(1, training.steps),
        history=training.history,
        data=text.name,
        path=Path(out) if out else None,
    )


def _remove(checkpoints: Path) -> None:
    """Out of the way first: half-removed checkpoints would be resumed, and end elsewhere."""
    gone = checkpoints.with_name(f".{checkpoints.name}")
    shutil.rmtree(gone, ignore_errors=True)  # a killed run's
    if checkpoints.exists():
        checkpoints.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def make_model(config: SearchConfig, vocabulary: int) -> nn.Module:
    """The model of the settings: GPT-2 of that size, or the architecture of a folder's config.json."""
    if not config.model:
        return build_model(
            {
                "model_type": "gpt2",
                "vocab_size": vocabulary,
                "n_positions": config.context,
                "n_embd": config.dim,
                "n_layer": config.layers,
                "n_head": config.heads,
                "activation_function": config.activation,
                "resid_pdrop": 0.0,
                "embd_pdrop": 0.0,
                "attn_pdrop": 0.0,
                "bos_token_id": None,
                "eos_token_id": None,
            }
        )
    path = Path(config.model) / "config.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"model={config.model!r}: {path} is no readable config.json ({error})"
        ) from None
    if not isinstance(stored, dict):
        raise StrongTicketError(
            f"model={config.model!r}: {path} holds no JSON object", hint="Give a model's config.json."
        )
    if stored.get("model_type") == "bert":
        raise StrongTicketError(
            "model is a BERT, which predicts no next token", hint="Search trains causal models."
        )
    drop = ("architectures", "transformers_version", "torch_dtype", "dtype", "_name_or_path")
    kept = {name: value for name, value in stored.items() if name not in drop}
    model: Any = build_model(kept | {"vocab_size": vocabulary})
    positions = getattr(model.config, "n_positions", config.context)  # learned ones end; rotary ones do not
    if positions < config.context:
        raise StrongTicketError(
            f"model={config.model!r} has {positions} positions, fewer than context={config.context}",
            hint="Choose a smaller context.",
        )
    return model


def _query_key_scale(model: nn.Module, config: SearchConfig, text: TokenisedText) -> tuple[float, float]:
    """(factor on query and key weights, standard deviation of the attention logits), before training."""
    windows = Windows(text.train, config.context, "training text")
    count = min(_CALIBRATION_SEQUENCES, len(windows))
    tokens = torch.stack([windows[i * (len(windows) // count)]["input_ids"] for i in range(count)])
    if config.method == "dense":
        return 1.0, logit_std(model, tokens)
    if config.qk_scale == "calibrated":
        calibrated_scale(model, tokens)
    parts = [part for masked in masked_tensors(model).values() for part in masked.source.parts]
    return parts[0].factor if parts else 1.0, logit_std(model, tokens)
