"""A whole search: data, model, method, training, ticket, and how good and how large it is."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from strongticket import __version__
from strongticket.files import check_output, exclusive_lock, write_file
from strongticket.models.rebuilding import describe
from strongticket.models.tensors import state_checksum
from strongticket.searching.architectures import make_model
from strongticket.searching.config import SearchConfig
from strongticket.searching.kind import to_ticket
from strongticket.searching.masking.calibrate import calibrated_scale, logit_std, scaled_weights
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.registry import find_method
from strongticket.searching.resume import checkpoint_folder, remove_all, run_identity
from strongticket.searching.tasks import Task, device_of, evaluate, load_task, stacked
from strongticket.searching.train import OnStep, Training, train
from strongticket.ticket import Ticket

_CALIBRATION_ITEMS = 16


@dataclass(frozen=True)
class SearchResult:
    """What a search found. Losses are on the validation data; those of text are in nats per token."""

    config: SearchConfig
    ticket: Ticket
    loss: float  # at the end: the ticket's
    best_loss: float  # lowest seen, at the end or at a validation of eval_every
    measures: dict[str, float]  # besides the loss, such as accuracy
    bits_per_byte: float | None  # of text
    qk_scale: float  # the factor used
    logit_std: float | None  # of the attention logits before training, where there are any
    parameters: int  # of the model, tied ones once
    kept: int  # weights the ticket keeps, and trained floats
    file_bytes: int
    seconds: float
    history: list[tuple[int, float]]  # (step, validation loss)
    curve: list[tuple[int, float]]  # (step, mean training loss since the point before)
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
            "settings": self.config.settings(),
            "dense_bytes": self.dense_bytes,
            "path": str(self.path) if self.path else None,
        }


def search(
    config: SearchConfig,
    *,
    task: Task | None = None,
    model: nn.Module | None = None,
    out: str | Path | None = None,
    on_step: OnStep | None = None,
) -> SearchResult:
    """Search for a ticket on data: choose which random weights to keep, by training a score for each.

    Args:
        config: the settings.
        task: data and a loss of your own; by default what `config.task` names.
        model: a module of your own, changed in place; by default the one that `config.model` describes.
        out: where to write the ticket; by default nothing is written.
        on_step: called with (steps done, training loss) after every step.

    >>> from strongticket.searching import SearchConfig
    >>> search(SearchConfig().changed(dim=8, heads=1, layers=1, context=8, steps=1, warmup=0)).ticket.kind
    'search'
    """
    out = Path(out) if out else None
    # Under torchrun all processes search together: the first one locks and writes for them.
    is_first = os.environ.get("RANK", "0") == "0"
    with ExitStack() as locks:
        if out:
            check_output(out)
            if is_first:
                locks.enter_context(exclusive_lock(out))
        task = task or load_task(config)
        model = make_model(config, **task.sizes) if model is None else model
        attachment = find_method(config.source.method)(model, config)
        describe(model)  # refuses, before any training, what its ticket could not rebuild
        scale, spread = _query_key_scale(model, config, attachment, task)
        identity, checkpoints = "", None
        if config.run.save_every:
            trained_base = attachment.base and f"{attachment.base} {state_checksum(attachment.trained)}"
            identity = run_identity(config, model, task.contents(), trained_base or "")
            checkpoints = checkpoint_folder(config, identity)
            if is_first:
                checkpoints.parent.mkdir(parents=True, exist_ok=True)
                locks.enter_context(exclusive_lock(checkpoints))
        training = Training()
        if config.training.steps and any(parameter.requires_grad for parameter in model.parameters()):
            before = attachment.before_step
            training = train(model, config, task, identity=identity, before_step=before, on_step=on_step)
        measures = evaluate(model, task)
        metadata = _metadata(config, task, model, training, measures)
        ticket = to_ticket(model, attachment, metadata=metadata)
        data = ticket.to_bytes()
        if out and is_first:
            write_file(out, data)
        if checkpoints and is_first:
            remove_all(checkpoints)
    loss = measures.pop("loss")
    return SearchResult(
        config=config,
        ticket=ticket,
        loss=loss,
        best_loss=min([loss, *(seen for _, seen in training.history)]),
        measures=measures,
        bits_per_byte=metadata.get("bits_per_byte"),
        qk_scale=scale,
        logit_std=spread,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        kept=sum(stored.kept for stored in attachment.stored().values())
        + sum(tensor.size for tensor in ticket.floats.values()),
        file_bytes=len(data),
        seconds=training.seconds,
        history=training.history,
        curve=training.curve,
        data=task.name,
        path=out,
    )


def _metadata(
    config: SearchConfig, task: Task, model: nn.Module, training: Training, measures: dict[str, float]
) -> dict[str, Any]:
    """What the ticket's file says besides the network: how it was made, how good it is, what its page shows."""
    found = task.metadata | {"data": task.name, **measures}
    if task.bytes_per_token is not None:
        found["bits_per_byte"] = measures["loss"] / math.log(2) / task.bytes_per_token
    if training.curve:
        found["curve"] = [list(point) for point in training.curve]
    if task.samples:
        found["samples"] = task.samples(model.eval())
    return found | {"search": config.settings(), "version": __version__}


def _query_key_scale(
    model: nn.Module, config: SearchConfig, attachment: Attachment, task: Task
) -> tuple[float, float | None]:
    """(factor on query and key weights, standard deviation of the attention logits), before training.

    The deviation is None for models without attention, or whose attention cannot be looked into.
    """
    scaled = scaled_weights(attachment)
    factor = scaled[0].source.slices[0].factor if scaled else 1.0
    if not any(source.slices for source in attachment.sources.values()):
        return factor, None  # nothing to scale
    if not hasattr(model, "set_attn_implementation") and config.source.qk_scale != "calibrated":
        return factor, None
    count = min(_CALIBRATION_ITEMS, len(task.train))  # type: ignore[arg-type]
    step = len(task.train) // count  # type: ignore[arg-type]
    inputs = stacked(task.train, range(0, count * step, step), device_of(model))
    inputs.pop("labels", None)
    if scaled and config.source.qk_scale == "calibrated":
        factor = calibrated_scale(model, inputs)
    return factor, logit_std(model, inputs)
