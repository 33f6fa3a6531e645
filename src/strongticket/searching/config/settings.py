"""All settings of a search, as one flat dataclass: each field is an option of the command line."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.searching.config.methods import METHODS, check_method

SCOPES = ("tensor", "global")
PRECISIONS = ("float32", "bf16", "fp16")


TASKS = ("language", "classification", "images")
LOGS = ("", "tensorboard", "wandb")


def _flag(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


# first setting of each group, for help
GROUPS = {
    "task": "Task",
    "kept": "Masks",
    "law": "Frozen weights",
    "architecture": "Model",
    "data": "Data",
    "steps": "Training",
    "eval_every": "Progress and checkpoints",
}


def _at_least(name: str, value: object, least: int) -> None:
    if type(value) is not int or value < least:
        raise StrongTicketError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class SearchConfig:
    """The defaults are the laptop preset's, the best settings known; PRESETS has the paper's."""

    task: str = _flag(
        "language",
        "What the model is for: the next token of a text, the class of a text or of an image.",
        TASKS,
    )
    method: str = _flag("annealed", f"One of {', '.join(METHODS)}, or your own as package.module:function.")
    seed: int = _flag(0, "Seed of the frozen weights, the scores and the order of the data.")
    seeds: int = _flag(1, "How many runs, with seeds SEED, SEED + 1, ...")
    # masks
    kept: float = _flag(0.7, "Fraction of the weights that is kept; of a sparse source, of its free weights.")
    scope: str = _flag("global", "Keep that fraction of each tensor, or of the model as a whole.", SCOPES)
    train: str = _flag(
        "", "Parts trained as floats: embedding, head, norm, bias, name patterns; separated by commas."
    )
    redraw: bool | None = _flag(
        None, "Draw frozen weights again instead of keeping them: less memory, more time. Default: by size."
    )
    # frozen weights
    law: str = _flag(
        "hadamard",
        "Law of the frozen weights: hadamard is ±σ by an orthogonal matrix, signed ±σ at random.",
        ("hadamard", "signed", "normal", "uniform"),
    )
    dropped: float = _flag(0.0, "Fraction of the weights that the seed alone drops: they cost no bit.")
    locked: float = _flag(0.0, "Fraction of the weights that the seed alone keeps: they cost no bit.")
    init: str = _flag(
        "auto",
        "Which standard deviation a tensor has: gpt2 (--std), kaiming-normal, kaiming-uniform, xavier-normal, "
        "xavier-uniform, or auto: gpt2, and kaiming-normal for a module without norms.",
    )
    std: float = _flag(0.05, "Standard deviation of the gpt2 scheme.")
    embedding_std: float | None = _flag(0.12, "Standard deviation of the embeddings; unset: that of --std.")
    residual_scaling: bool = _flag(True, "Scale projections into the residual stream by (2 blocks)^-1/2.")
    qk_scale: str = _flag(
        "calibrated",
        "Scale of query and key weights: calibrated (attention logits of deviation 0.7), paper (n_K^1/4) or a number.",
    )
    # model
    architecture: str = _flag(
        "llama", "Blocks of the model, unless --model is given.", ("gpt2", "llama", "bert", "vit")
    )
    layers: int = _flag(2, "Transformer blocks.")
    heads: int = _flag(4, "Attention heads.")
    dim: int = _flag(128, "Width of the model.")
    inner: int = _flag(0, "Width of the feed-forward network; 0: 8/3 × dim for llama, 4 × dim for others.")
    context: int = _flag(64, "Tokens in a sequence.")
    activation: str = _flag(
        "silu", "Activation of the feed-forward network.", ("relu", "gelu", "gelu_new", "silu", "tanh")
    )
    patch: int = _flag(2, "Side of the square patches that vit cuts an image into.")
    model: str = _flag("", "Folder with a config.json whose architecture is used instead.")
    # data
    data: str = _flag(
        "builtin",
        "builtin (Python's own documentation; for images scikit-learn's digits), a file, a folder, or the name of "
        "a dataset.",
    )
    image_size: int = _flag(0, "Side in pixels to which images are resized; 0 leaves them as they are.")
    tokens: str = _flag(
        "characters", "characters, bpe (trained on the data), or a tokenizer's name or folder."
    )
    vocabulary: int = _flag(1024, "Size of the vocabulary that bpe trains.")
    # training
    steps: int = _flag(600, "Optimiser steps.")
    batch: int = _flag(16, "Sequences in a step, over all processes.")
    micro_batch: int = _flag(16, "Sequences in a forward pass of one process; the rest is accumulated.")
    lr: float = _flag(5e-3, "Peak learning rate of AdamW; the default is best for 600 and for 2,400 steps.")
    lr_end: float = _flag(0.0, "Learning rate at the end of the cosine.")
    warmup: int = _flag(50, "Steps of linear warm-up.")
    weight_decay: float = _flag(0.01, "Weight decay of AdamW (on the scores).")
    precision: str = _flag("float32", "Arithmetic of the forward and backward pass.", PRECISIONS)
    eval_every: int = _flag(0, "Steps between validations during training; 0: only at the end.")
    save_every: int = _flag(0, "Steps between checkpoints; 0: none.")
    resume: bool = _flag(False, "Continue from the last checkpoint of the same settings.")
    log_to: str = _flag("", "Write losses for tensorboard or wandb, to runs/ in the current folder.", LOGS)
    cpu: bool = _flag(False, "Do not use an accelerator.")
    cache: str = _flag(
        "", "Folder of tokenised data and checkpoints; default: STRONGTICKET_CACHE or ~/.cache."
    )

    def __post_init__(self) -> None:
        check_method(self.method)
        for setting in fields(self):
            choices = setting.metadata["choices"]
            if choices and getattr(self, setting.name) not in choices:
                raise StrongTicketError(
                    f"{setting.name} must be one of {', '.join(choices)}, got {getattr(self, setting.name)!r}"
                )
        for name in (
            "layers",
            "heads",
            "dim",
            "context",
            "patch",
            "batch",
            "micro_batch",
            "seeds",
            "vocabulary",
        ):
            _at_least(name, getattr(self, name), 1)
        for name in ("steps", "warmup", "eval_every", "save_every", "seed", "inner", "image_size"):
            _at_least(name, getattr(self, name), 0)
        for name in ("weight_decay", "lr_end"):
            if not _is_number(getattr(self, name)) or not 0 <= getattr(self, name) < float("inf"):
                raise StrongTicketError(f"{name} must be a number of at least 0, got {getattr(self, name)!r}")
        if not (_is_number(self.kept) and 0 < self.kept <= 1):
            raise StrongTicketError(f"kept must be a fraction from 0 (excluded) to 1, got {self.kept!r}")
        for name in ("dropped", "locked"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < 1 or not self.dropped + self.locked < 1:
                raise StrongTicketError(
                    f"{name} must be a fraction from 0 to 1 (excluded), got {value!r}",
                    hint="Together dropped and locked must leave some weights to choose.",
                )
        if not (_is_number(self.lr) and 0 < self.lr < float("inf")):
            raise StrongTicketError(f"lr must be a positive number, got {self.lr!r}")
        if not isinstance(self.train, str):
            raise StrongTicketError(
                f"train must be a comma-separated string such as 'norm,bias', got {self.train!r}"
            )
        if self.context < 2:
            raise StrongTicketError(f"context must be at least 2 (one token to predict), got {self.context}")
        known = ARCHITECTURES[self.task]
        if not self.model and self.architecture not in known:
            raise StrongTicketError(
                f"architecture must be one of {', '.join(known)} for task {self.task!r}, got {self.architecture!r}",
                hint=f"preset({self.task!r}) has settings for it." if self.task != "language" else "",
            )
        if self.dim % self.heads:
            raise StrongTicketError(
                f"dim must be a multiple of heads, got dim={self.dim}, heads={self.heads}"
            )
        if self.qk_scale not in ("paper", "calibrated"):
            try:
                good = 0 < float(self.qk_scale) < float("inf")
            except (TypeError, ValueError):
                good = False
            if not good:
                raise StrongTicketError(
                    f"qk_scale must be paper, calibrated or a positive number, got {self.qk_scale!r}"
                )

    @property
    def trained_parts(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.train.split(",") if part.strip())

    @property
    def known_qk_scale(self) -> float | str:
        """The scale as `attach` takes it, unless it is "calibrated", which is measured on the attached model."""
        return self.qk_scale if self.qk_scale == "paper" else float(self.qk_scale)

    def settings(self) -> dict[str, Any]:
        """The settings that decide the result, without file locations and progress."""
        return {name: value for name, value in asdict(self).items() if name not in _WITHOUT_EFFECT}


# task -> architectures that can do it
ARCHITECTURES = {
    "language": ("gpt2", "llama"),
    "classification": ("bert", "gpt2", "llama"),
    "images": ("vit",),
}
_WITHOUT_EFFECT = (
    "log_to",
    "seeds",
    "redraw",
    "eval_every",
    "save_every",
    "resume",
    "cpu",
    "cache",
    "micro_batch",
)


def cache_folder(config: SearchConfig) -> Path:
    """Where tokenised data and checkpoints are kept."""
    if named := config.cache or os.environ.get("STRONGTICKET_CACHE"):
        return Path(named)
    try:
        return Path.home() / ".cache" / "strongticket"
    except RuntimeError:  # a service user
        raise StrongTicketError(
            "this user has no home folder to keep tokenised data in",
            hint="Set STRONGTICKET_CACHE, or give --cache.",
        ) from None
