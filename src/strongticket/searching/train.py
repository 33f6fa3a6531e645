"""The training loop: transformers' Trainer, without its messages, saving only what is trained."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
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
from transformers.integrations.integration_utils import TensorBoardCallback, WandbCallback

from strongticket.errors import StrongTicketError, require
from strongticket.searching.config import SearchConfig
from strongticket.searching.resume import checkpoint_folder, last_whole, remove_after, seal
from strongticket.searching.tasks import Task, evaluate, model_loss

OnStep = Callable[[int, float], None]  # (steps done, training loss)
_CURVE = 40  # points of the loss curve that a ticket remembers


@dataclass(frozen=True)
class Training:
    """What a training did."""

    seconds: float = 0.0
    history: list[tuple[int, float]] = field(default_factory=list)  # (step, validation loss)
    # (step, mean training loss since the point before)
    curve: list[tuple[int, float]] = field(default_factory=list)


def train(
    model: nn.Module,
    config: SearchConfig,
    task: Task,
    *,
    identity: str = "",
    before_step: Callable[[int, int], None] | None = None,
    on_step: OnStep | None = None,
) -> Training:
    """Train every parameter that requires a gradient. Under torchrun every process ends with the same scores.

    Args:
        model: changed in place.
        config: steps, batch, learning rate, checkpoints.
        task: what to train and validate on.
        identity: of the run, whose checkpoints are written and resumed; see `run_identity`.
        before_step: called with (steps done, total) before every step.
        on_step: called with (steps done, training loss) after every step.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_process_unchanged())
        folder = checkpoint_folder(config, identity)
        if not config.run.save_every:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trainer = _ScoreTrainer(
            task,
            identity,
            model=model,
            args=_arguments(config, folder, len(task.train)),  # type: ignore[arg-type]
            callbacks=[_Hooks(before_step, on_step), *_loggers(config)],
        )
        checkpoint = last_whole(folder, identity, config.training.steps) if config.run.resume else None
        trainer.accelerator.wait_for_everyone()  # every process has looked before one removes anything
        if trainer.is_world_process_zero():
            remove_after(folder, checkpoint)
        start = time.perf_counter()
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        seconds = time.perf_counter() - start
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # no mixed precision from here on
    logs = trainer.state.log_history
    return Training(
        seconds,
        [(int(log["step"]), log["eval_loss"]) for log in logs if "eval_loss" in log],
        _curve([(int(log["step"]), log["loss"]) for log in logs if "loss" in log]),
    )


def _curve(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The loss of every step as at most _CURVE means: from single steps, so that a resumed run has the same."""
    length = -(-len(losses) // _CURVE) or 1
    groups = [losses[start : start + length] for start in range(0, len(losses), length)]
    return [(group[-1][0], float(f"{sum(loss for _, loss in group) / len(group):.4g}")) for group in groups]


class _ScoreTrainer(Trainer):
    def __init__(self, task: Task, identity: str, **options: Any) -> None:
        super().__init__(train_dataset=task.train, eval_dataset=task.valid, **options)
        self.task, self.identity = task, identity
        self.remove_callback(PrinterCallback)
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
        metrics = {"eval_loss": evaluate(self.model, replace(self.task, measures=None))["loss"]}
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
        except (OSError, RuntimeError, SafetensorError) as error:  # torch.save: RuntimeError for a full disk
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
    def __init__(self, before_step: Callable[[int, int], None] | None, on_step: OnStep | None) -> None:
        self._before_step, self._on_step = before_step, on_step

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._before_step:
            self._before_step(state.global_step, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self._on_step and state.is_world_process_zero and "loss" in (logs or {}):
            self._on_step(state.global_step, logs["loss"])


def _loggers(config: SearchConfig) -> list[TrainerCallback]:
    """Losses for TensorBoard or Weights & Biases, by transformers' own callbacks."""
    if config.run.log_to == "tensorboard":
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        # runs/ is where TensorBoard looks
        name = f"{config.task.task}-{config.source.method.replace(':', '.')}-seed{config.seed}"
        return [TensorBoardCallback(SummaryWriter(log_dir=str(Path("runs") / name)))]
    if config.run.log_to == "wandb":
        if find_spec("wandb") is None:
            raise StrongTicketError("wandb is not installed", hint="Run `pip install wandb`.")
        return [WandbCallback()]
    return []


def _arguments(config: SearchConfig, folder: Path, items: int) -> TrainingArguments:
    """The settings as Trainer has them, for that many items to train on."""
    training, run = config.training, config.run
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    micro = min(training.micro_batch, max(1, training.batch // processes))
    if training.batch % (processes * micro):
        raise StrongTicketError(
            f"batch={training.batch} is not a multiple of micro_batch={micro} times {processes} processes",
            hint="Choose a micro_batch that divides it.",
        )
    if items < processes * micro:  # Trainer drops an incomplete last batch: it would not train at all
        of_what = (
            f"sequences of {config.model.context} tokens" if config.task.task == "language" else "examples"
        )
        raise StrongTicketError(
            f"the training data has {items} {of_what}, fewer than the {processes * micro} of one forward pass",
            hint="Give more data, a smaller micro_batch or a smaller context.",
        )
    on_gpu = torch.cuda.is_available() and not run.cpu
    if training.precision != "float32" and not on_gpu:
        check_half_precision()
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=training.steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=training.batch // (processes * micro),
        learning_rate=training.lr,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr": training.lr_end},
        warmup_steps=training.warmup,
        weight_decay=training.weight_decay,
        max_grad_norm=0.0,  # B.2 has no clipping
        bf16=training.precision == "bf16",
        fp16=training.precision == "fp16",
        eval_strategy="steps" if run.eval_every else "no",
        eval_steps=run.eval_every or None,
        save_strategy="steps" if run.save_every else "no",
        save_steps=run.save_every or 1,
        save_total_limit=2,  # the last one may be half written when a run is killed
        logging_strategy="steps",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        seed=config.seed % (1 << 32),  # NumPy's global generator takes no more
        use_cpu=run.cpu,
        remove_unused_columns=False,
        dataloader_drop_last=True,
        dataloader_pin_memory=on_gpu,
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,  # every process draws the same frozen weights
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # one process drives one GPU; torchrun starts more
    return arguments


@cache
def check_half_precision() -> None:
    """Raise if a product in half precision is wrong on this processor, or would end this process.

    Some virtual machines announce matrix instructions (AMX) that they do not run, so another process tries one first.
    """
    trial = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); assert (x @ x == 64).all()"
    if subprocess.run([sys.executable, "-c", trial], stderr=subprocess.DEVNULL).returncode:
        raise StrongTicketError(
            "this processor announces instructions for half precision that it cannot run",
            hint="Set ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 and run the same command again, or leave precision at "
            "float32.",
        )


@contextlib.contextmanager
def _process_unchanged() -> Iterator[None]:
    """Trainer seeds every global generator and prints messages; afterwards all is as the caller had it."""
    python, numpy, torch_cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(torch_cpu)
        transformers.logging.set_verbosity(verbosity)
