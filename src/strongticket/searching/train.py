"""The training loop: transformers' Trainer, without its messages, saving only what is trained."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import accelerate  # noqa: F401 (Trainer needs it, and would say so when training starts)
import numpy as np
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from strongticket.errors import StrongTicketError
from strongticket.searching.checkpoints import last_whole, remove_after, seal, step_of
from strongticket.searching.config import SearchConfig
from strongticket.searching.evaluate import validation_loss
from strongticket.searching.half_precision import check_half_precision
from strongticket.searching.loggers import loggers
from strongticket.searching.tasks.task import Task, model_loss

OnStep = Callable[[int, int], None]  # (done, total)
OnLoss = Callable[[int, float], None]  # (step, training loss)
_CURVE = 40  # points of the loss curve that a ticket remembers


@dataclass(frozen=True)
class Training:
    seconds: float
    steps: int  # done in this call: fewer than asked for after a resume
    history: list[tuple[int, float]]  # (step, validation loss)
    curve: list[tuple[int, float]]  # (step, mean training loss since the point before)
    is_first_process: bool


def train(
    model: nn.Module,
    config: SearchConfig,
    task: Task,
    *,
    identity: str = "",
    before_step: OnStep | None = None,
    on_step: OnStep | None = None,
    on_loss: OnLoss | None = None,
) -> Training:
    """Train every parameter that requires a gradient. Under torchrun every process ends with the same scores.

    model: changed in place
    config: steps, batch, learning rate, checkpoints
    task: what to train and validate on
    identity: of the run, whose checkpoints are written and resumed; see run_identity
    before_step, on_step: called with (steps done, total) before and after every step
    on_loss: called with (step, training loss) after every step
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_random_state_kept())
        stack.enter_context(_quiet())
        folder = checkpoint_folder(config, identity)
        if not config.run.save_every:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trainer = _ScoreTrainer(
            model=model,
            args=_arguments(config, folder),
            train_dataset=_whole_batches(task.train, config),
            eval_dataset=task.valid,
            task=task,
            callbacks=[_Hooks(before_step, on_step, on_loss), *loggers(config)],
        )
        trainer.identity = identity
        trainer.remove_callback(PrinterCallback)
        checkpoint = last_whole(folder, identity, config.training.steps) if config.run.resume else None
        trainer.accelerator.wait_for_everyone()  # every process has looked before one removes anything
        if trainer.is_world_process_zero():
            remove_after(folder, checkpoint)
        start = time.perf_counter()
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        seconds = time.perf_counter() - start
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # no mixed precision from here on
    history = [
        (int(log["step"]), log["eval_loss"]) for log in trainer.state.log_history if "eval_loss" in log
    ]
    done = trainer.state.global_step - (step_of(checkpoint) if checkpoint else 0)
    curve = _curve([(int(log["step"]), log["loss"]) for log in trainer.state.log_history if "loss" in log])
    return Training(seconds, done, history, curve, trainer.is_world_process_zero())


def _curve(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The loss of every step as at most _CURVE means: from single steps, so that a resumed run has the same."""
    length = -(-len(losses) // _CURVE) or 1
    groups = [losses[start : start + length] for start in range(0, len(losses), length)]
    return [(group[-1][0], float(f"{sum(loss for _, loss in group) / len(group):.4g}")) for group in groups]


def checkpoint_folder(config: SearchConfig, identity: str) -> Path:
    """Where the checkpoints of a run are kept."""
    return config.run.cache_folder / "runs" / identity


class _ScoreTrainer(Trainer):
    identity = ""  # of the run, for the seal of its checkpoints

    def __init__(self, *, task: Task, **options: Any) -> None:
        super().__init__(**options)
        self.task = task
        if task.loss is not model_loss:  # a plain mean, which Trainer then averages over micro-batches
            self.model_accepts_loss_kwargs = False

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        if self.task.loss is model_loss:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        return self.task.loss(model, inputs)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """A checkpoint holds only what is trained: other tensors are missing by design."""

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """The same validation loss as at the end of the run: every window, each token counted once."""
        assert self.model is not None
        metrics = {"eval_loss": validation_loss(self.model, self.task.valid, self.task.loss)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        try:
            super()._save_checkpoint(*args, **kwargs)
            self.accelerator.wait_for_everyone()  # each process writes the state of its own generators
            if self.is_world_process_zero():
                folder = Path(self.args.output_dir or ".") / f"checkpoint-{self.state.global_step}"
                seal(folder, self.identity)
        except (
            OSError,
            RuntimeError,
            SafetensorError,
        ) as error:  # torch.save has RuntimeError for a full disk
            raise StrongTicketError(
                f"cannot write a checkpoint to {self.args.output_dir}: {error}",
                hint="Free some space or choose another cache folder; resume continues from the last complete "
                "checkpoint.",
            ) from error

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """What is trained and the buffers, tied tensors once: save_pretrained would want the model's own names."""
        folder = Path(output_dir or self.args.output_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        assert self.model is not None
        state = self.model.state_dict()
        trained = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}
        buffers = {name: b.contiguous() for name, b in self.model.named_buffers() if name in state}
        save_file(trained | buffers, folder / "model.safetensors")


class _Hooks(TrainerCallback):
    def __init__(self, before_step: OnStep | None, on_step: OnStep | None, on_loss: OnLoss | None) -> None:
        self._before_step, self._on_step, self._on_loss = before_step, on_step, on_loss

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._before_step:
            self._before_step(state.global_step, state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._on_step and state.is_world_process_zero:
            self._on_step(state.global_step, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self._on_loss and state.is_world_process_zero and "loss" in (logs or {}):
            self._on_loss(state.global_step, logs["loss"])


def _whole_batches(data: Any, config: SearchConfig) -> Any:
    """Trainer drops an incomplete last batch: with less than one batch it would not train at all."""
    processes, micro = _share(config)
    if len(data) < processes * micro:
        of_tokens = (
            f"sequences of {config.model.context} tokens" if config.task.task == "language" else "examples"
        )
        raise StrongTicketError(
            f"the training data has {len(data)} {of_tokens}, fewer than the {processes * micro} of one forward pass",
            hint="Give more data, a smaller micro_batch or a smaller context.",
        )
    return data


def _share(config: SearchConfig) -> tuple[int, int]:
    """(processes, sequences in a forward pass of each)"""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    return processes, min(config.training.micro_batch, max(1, config.training.batch // processes))


def _arguments(config: SearchConfig, folder: Path) -> TrainingArguments:
    processes, micro = _share(config)
    if config.training.batch % (processes * micro):
        raise StrongTicketError(
            f"batch={config.training.batch} is not a multiple of micro_batch={micro} times {processes} processes",
            hint="Choose a micro_batch that divides it.",
        )
    if config.training.precision != "float32" and (config.run.cpu or not torch.cuda.is_available()):
        check_half_precision()
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=config.training.steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=config.training.batch // (processes * micro),
        learning_rate=config.training.lr,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr": config.training.lr_end},
        warmup_steps=config.training.warmup,
        weight_decay=config.training.weight_decay,
        max_grad_norm=0.0,  # B.2 has no clipping
        bf16=config.training.precision == "bf16",
        fp16=config.training.precision == "fp16",
        eval_strategy="steps" if config.run.eval_every else "no",
        eval_steps=config.run.eval_every or None,
        save_strategy="steps" if config.run.save_every else "no",
        save_steps=config.run.save_every or 1,
        save_total_limit=2,  # the last one may be half written when a run is killed
        logging_strategy="steps",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        seed=config.seed % (1 << 32),  # NumPy's global generator takes no more
        use_cpu=config.run.cpu,
        remove_unused_columns=False,
        dataloader_drop_last=True,
        dataloader_pin_memory=torch.cuda.is_available() and not config.run.cpu,
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,  # every process draws the same frozen weights
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # one process drives one GPU; torchrun starts more
    return arguments


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """Trainer seeds every global generator; the caller gets them back as they were."""
    python, numpy, torch_cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(torch_cpu)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)
