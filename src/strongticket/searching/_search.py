"""A whole search: data, model, method, training, ticket, and how good and how large it is."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from strongticket import __version__
from strongticket.files import check_output, held, write_file
from strongticket.searching.checkpoints import remove_all
from strongticket.searching.config import SearchConfig
from strongticket.searching.config.methods import find_method
from strongticket.searching.evaluate import bits_per_byte, evaluate
from strongticket.searching.identity import run_identity
from strongticket.searching.kind import check_rebuilds, to_ticket
from strongticket.searching.masking.calibrate import calibrated_scale, logit_std, scaled_weights
from strongticket.searching.masking.parameters import Attachment, checksum
from strongticket.searching.models import make_model
from strongticket.searching.tasks import Task, load_task
from strongticket.searching.tasks.task import device_of, stacked
from strongticket.searching.train import OnLoss, OnStep, Training, checkpoint_folder, train
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
    step_seconds: float
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
    on_loss: OnLoss | None = None,
) -> SearchResult:
    """Search for a ticket on data: choose which random weights to keep, by training a score for each.

    config: the settings
    task: data and a loss of your own; None means what `config.task.task` and `config.task.data` name
    model: a module of your own, changed in place; None means the one that the settings describe
    out: where to write the ticket; None writes nothing
    on_step: called with (steps done, total) after every step
    on_loss: called with (step, training loss) after every step

    >>> from strongticket.searching import SearchConfig
    >>> search(SearchConfig().changed(dim=8, heads=1, layers=1, context=8, steps=1, warmup=0)).ticket.kind
    'search'
    """
    with ExitStack() as holding:
        if out:
            check_output(Path(out))
            _hold(holding, Path(out))
        return _search(config, task, model, Path(out) if out else None, on_step, on_loss, holding)


def _hold(holding: ExitStack, path: Path) -> None:
    """Under torchrun all processes search together: the first holds the output for them."""
    if os.environ.get("RANK", "0") == "0":
        path.parent.mkdir(parents=True, exist_ok=True)
        holding.enter_context(held(path))


def _search(
    config: SearchConfig,
    task: Task | None,
    model: nn.Module | None,
    out: Path | None,
    on_step: OnStep | None,
    on_loss: OnLoss | None,
    holding: ExitStack,
) -> SearchResult:
    task = task or load_task(config)
    model = make_model(config, **task.sizes) if model is None else model
    attachment = find_method(config.source.method)(model, config)
    scale, spread = _query_key_scale(model, config, attachment, task)
    check_rebuilds(model, attachment)
    training, identity = Training(0.0, 0, [], [], True), ""
    if config.run.save_every:
        identity = run_identity(config, model, task.contents(), _base(attachment))
        _hold(holding, checkpoint_folder(config, identity))
    if config.training.steps and any(parameter.requires_grad for parameter in model.parameters()):
        training = train(
            model,
            config,
            task,
            identity=identity,
            before_step=attachment.before_step,
            on_step=on_step,
            on_loss=on_loss,
        )
    measures = evaluate(model, task)
    loss = measures.pop("loss")
    bits = None if task.bytes_per_token is None else bits_per_byte(loss, task.bytes_per_token)
    ticket = to_ticket(model, attachment, metadata=_metadata(config, task, model, training, loss, measures))
    data = ticket.to_bytes()
    if out and training.is_first_process:
        write_file(out, data)
    if config.run.save_every and training.is_first_process:
        remove_all(checkpoint_folder(config, identity))
    return SearchResult(
        config=config,
        ticket=ticket,
        loss=loss,
        best_loss=min([loss, *(seen for _, seen in training.history)]),
        measures=measures,
        bits_per_byte=bits,
        qk_scale=scale,
        logit_std=spread,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        kept=sum(stored.kept for stored in attachment.stored().values())
        + sum(tensor.size for tensor in ticket.floats.values()),
        file_bytes=len(data),
        seconds=training.seconds,
        step_seconds=training.seconds / max(1, training.steps),
        history=training.history,
        curve=training.curve,
        data=task.name,
        path=out,
    )


def _base(attachment: Attachment) -> str:
    """Checksums of a trained model: of what is masked and kept, and of what is trained further."""
    return "" if attachment.base is None else f"{attachment.base} {checksum(attachment.trained)}"


def _metadata(
    config: SearchConfig,
    task: Task,
    model: nn.Module,
    training: Training,
    loss: float,
    measures: dict[str, float],
) -> dict[str, Any]:
    """What the ticket's file says besides the network: how it was made, how good it is, what its page shows."""
    found = task.metadata | {"data": task.name, "loss": loss, **measures}
    if task.bytes_per_token is not None:
        found["bits_per_byte"] = bits_per_byte(loss, task.bytes_per_token)
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
