"""Losses for TensorBoard or Weights & Biases, by transformers' own callbacks."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from transformers import TrainerCallback

from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.searching.config import SearchConfig

FOLDER = "runs"  # TensorBoard's own default


def loggers(config: SearchConfig) -> list[TrainerCallback]:
    """The callback that `config.run.log_to` names, or none."""
    if config.run.log_to == "tensorboard":
        return [_tensorboard(config)]
    if config.run.log_to == "wandb":
        return [_wandb()]
    return []


def _tensorboard(config: SearchConfig) -> TrainerCallback:
    if find_spec("tensorboard") is None:
        raise MissingDependency("tensorboard", "tensorboard")
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations.integration_utils import TensorBoardCallback

    name = f"{config.task.task}-{config.source.method.replace(':', '.')}-seed{config.seed}"
    return TensorBoardCallback(SummaryWriter(log_dir=str(Path(FOLDER) / name)))


def _wandb() -> TrainerCallback:
    if find_spec("wandb") is None:
        raise StrongTicketError("wandb is not installed", hint="Run `pip install wandb`.")
    from transformers.integrations.integration_utils import WandbCallback

    return WandbCallback()
