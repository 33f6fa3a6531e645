"""The settings of a search, in five parts, and presets of them. Each setting is an option of the command line.

A name belongs to one part only, so `SearchConfig.changed` and `preset` take settings by name alone.
"""

# ruff: noqa: RUF009 (_setting makes a dataclass field)
from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from strongticket.errors import StrongTicketError
from strongticket.searching.registry import METHODS, check_method
from strongticket.settings import Count, Fraction, NotNegative, Positive, Range, Settings, Size

Seed = Annotated[int, Range(least=0, most=2**64 - 1)]
Init = Literal["auto", "gpt2", "kaiming-normal", "kaiming-uniform", "xavier-normal", "xavier-uniform"]

# task -> architectures that can do it
ARCHITECTURES = {
    "language": ("gpt2", "llama"),
    "classification": ("bert", "gpt2", "llama"),
    "images": ("vit",),
}


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class TaskSettings(Settings):
    """What the model is for, and the data."""

    task: Literal["language", "classification", "images"] = _setting(
        "language", "What the model is for: the next token of a text, the class of a text or of an image."
    )
    data: str = _setting(
        "builtin",
        "builtin (Python's documentation, scikit-learn's digits), a file, a folder or a dataset's name.",
    )
    image_size: Size = _setting(0, "Side in pixels to which images are resized; 0 leaves them as they are.")
    tokens: str = _setting(
        "characters", "characters, bpe (trained on the data) or a tokenizer's name or folder."
    )
    vocabulary: Count = _setting(1024, "Size of the vocabulary that bpe trains.")


@dataclass(frozen=True)
class ModelSettings(Settings):
    """Architecture and size of the model."""

    architecture: Literal["gpt2", "llama", "bert", "vit"] = _setting(
        "llama", "Blocks of the model, unless --model is given."
    )
    layers: Count = _setting(2, "Transformer blocks.")
    heads: Count = _setting(4, "Attention heads.")
    dim: Count = _setting(128, "Width of the model.")
    inner: Size = _setting(0, "Width of the feed-forward network; 0: 8/3 × dim for llama, else 4 × dim.")
    context: Annotated[int, Range(least=2)] = _setting(64, "Tokens in a sequence.")
    activation: Literal["relu", "gelu", "gelu_new", "silu", "tanh"] = _setting(
        "silu", "Activation of the feed-forward network."
    )
    patch: Count = _setting(2, "Side of the square patches that vit cuts an image into.")
    model: str = _setting("", "Folder with a config.json whose architecture is used instead.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % self.heads:
            raise StrongTicketError(
                f"dim must be a multiple of heads, got dim={self.dim}, heads={self.heads}"
            )


@dataclass(frozen=True)
class SourceSettings(Settings):
    """The random weights, and how a mask is chosen."""

    method: str = _setting(
        "annealed", f"One of {', '.join(METHODS)}, or your own as package.module:function."
    )
    kept: Annotated[float, Range(above=0, most=1)] = _setting(
        0.7, "Fraction of the weights that is kept; of a sparse source, of its free weights."
    )
    scope: Literal["tensor", "global"] = _setting(
        "global", "Keep that fraction of each tensor, or of the model as a whole."
    )
    train: tuple[str, ...] = _setting(
        (), "Parts trained as floats: embedding, head, norm, bias, name patterns; separated by commas."
    )
    law: Literal["hadamard", "signed", "normal", "uniform"] = _setting(
        "hadamard", "Law of the random weights: hadamard is ±σ by an orthogonal matrix, signed ±σ at random."
    )
    dropped: Fraction = _setting(0.0, "Fraction of the weights that the seed alone drops: they cost no bit.")
    locked: Fraction = _setting(0.0, "Fraction of the weights that the seed alone keeps: they cost no bit.")
    init: Init = _setting(
        "auto",
        "Standard deviation of a tensor: gpt2's is --std; auto is kaiming-normal without norms, else gpt2.",
    )
    std: Positive = _setting(0.05, "Standard deviation of the gpt2 scheme.")
    embedding_std: Positive | None = _setting(0.12, "Standard deviation of the embeddings; None: --std.")
    residual_scaling: bool = _setting(True, "Scale projections into the residual stream by (2 blocks)^-1/2.")
    qk_scale: Literal["calibrated", "paper"] | Positive = _setting(
        "calibrated",
        "Scale of query and key weights: calibrated (attention logits of deviation 0.7), paper (n_K^1/4) or a number.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_method(self.method)
        if self.dropped + self.locked >= 1:
            raise StrongTicketError(
                f"dropped and locked must be below 1 together, got {self.dropped} and {self.locked}",
                hint="Leave some weights to choose from.",
            )


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """Steps, batches and learning rate."""

    steps: Size = _setting(600, "Optimiser steps.")
    batch: Count = _setting(16, "Sequences in a step, over all processes.")
    micro_batch: Count = _setting(16, "Sequences in a forward pass of one process; the rest is accumulated.")
    lr: Positive = _setting(5e-3, "Peak learning rate of AdamW; the default is best for 600 to 2,400 steps.")
    lr_end: NotNegative = _setting(0.0, "Learning rate at the end of the cosine.")
    warmup: Size = _setting(50, "Steps of linear warm-up.")
    weight_decay: NotNegative = _setting(0.01, "Weight decay of AdamW (on the scores).")
    precision: Literal["float32", "bf16", "fp16"] = _setting(
        "float32", "Arithmetic of the forward and backward pass."
    )


@dataclass(frozen=True)
class RunSettings(Settings):
    """Progress, checkpoints and device: how a search is run, not what it finds."""

    eval_every: Size = _setting(0, "Steps between validations during training; 0: only at the end.")
    save_every: Size = _setting(0, "Steps between checkpoints; 0: none.")
    resume: bool = _setting(False, "Continue from the last checkpoint of the same settings.")
    log_to: Literal["tensorboard", "wandb", None] = _setting(
        None, "Write losses for tensorboard or wandb, to runs/ in the current folder."
    )
    cpu: bool = _setting(False, "Do not use an accelerator.")
    cache: str = _setting("", "Folder of tokens and checkpoints; default: STRONGTICKET_CACHE or ~/.cache.")

    @property
    def cache_folder(self) -> Path:
        """Where tokenised data and checkpoints are kept."""
        if named := self.cache or os.environ.get("STRONGTICKET_CACHE"):
            return Path(named)
        try:
            return Path.home() / ".cache" / "strongticket"
        except RuntimeError:  # a service user
            raise StrongTicketError(
                "this user has no home folder to keep tokenised data in",
                hint="Set STRONGTICKET_CACHE, or give --cache.",
            ) from None


@dataclass(frozen=True)
class SearchConfig(Settings):
    """The settings of a search. The defaults are the laptop preset's, the best known; PRESETS has the paper's.

    Attributes:
        seed: of the random weights, the scores and the order of the data.
        task: what the model is for, and its data.
        model: its architecture and size.
        source: the random weights, and the method that chooses among them.
        training: steps, batches and learning rate.
        run: progress, checkpoints and device; changes nothing but the last bits, on another device.

    >>> SearchConfig().changed(steps=100, dim=64).training.steps
    100
    """

    seed: Seed = _setting(0, "Seed of the random weights, the scores and the order of the data.")
    task: TaskSettings = TaskSettings()
    model: ModelSettings = ModelSettings()
    source: SourceSettings = SourceSettings()
    training: TrainingSettings = TrainingSettings()
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        super().__post_init__()
        task, architecture = self.task.task, self.model.architecture
        if not self.model.model and architecture not in ARCHITECTURES[task]:
            raise StrongTicketError(
                f"architecture must be one of {', '.join(ARCHITECTURES[task])} for task {task!r}, got {architecture!r}",
                hint=f"preset({task!r}) has settings for it." if task != "language" else "",
            )

    def changed(self, **settings: Any) -> SearchConfig:
        """The same with some settings changed, by name: `config.changed(steps=100, dim=64)`."""
        if unknown := sorted(settings.keys() - PART_OF.keys() - {"seed"}):
            raise StrongTicketError(
                f"{unknown[0]!r} is not a setting of a search",
                hint=f"The settings are seed, {', '.join(sorted(PART_OF))}.",
            )
        parts: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
        for name in settings.keys() - {"seed"}:
            parts[PART_OF[name]][name] = settings[name]
        changed = {part: replace(getattr(self, part), **values) for part, values in parts.items()}
        return replace(self, seed=settings.get("seed", self.seed), **changed)

    def settings(self) -> dict[str, Any]:
        """What decides the result, by name, as JSON has it: all but `run`."""
        found: dict[str, Any] = {"seed": self.seed}
        for part in PARTS:
            if part != "run":
                found |= asdict(getattr(self, part))
        return found | {"train": list(self.source.train)}


PARTS: dict[str, type[Settings]] = {
    "task": TaskSettings,
    "model": ModelSettings,
    "source": SourceSettings,
    "training": TrainingSettings,
    "run": RunSettings,
}
PART_OF = {setting.name: part for part, kind in PARTS.items() for setting in fields(kind)}

# B.2 of the paper at a laptop's size; the standard deviations are those that train best there.
_PAPER_LAPTOP = SearchConfig().changed(
    method="edge-popup",
    kept=0.3,
    scope="tensor",
    law="normal",
    init="gpt2",
    qk_scale="paper",
    architecture="gpt2",
    heads=2,
    activation="relu",
    lr=3e-3,
    lr_end=3e-4,
)
# B.2: 50 epochs of 227 steps; 227 * 512 * 1024 tokens are one pass over WikiText-103.
_MINI = _PAPER_LAPTOP.changed(
    std=0.02,
    embedding_std=None,
    layers=4,
    heads=8,
    dim=512,
    context=1024,
    data="wikitext-103",
    tokens="gpt2",
    steps=50 * 227,
    batch=512,
    micro_batch=8,
    lr=1e-4,
    lr_end=1e-5,
    warmup=227,
    eval_every=227,
    save_every=227,
)
_CLASSIFICATION = SearchConfig().changed(
    task="classification", architecture="bert", activation="gelu", steps=300, dim=64, context=66, lr=3e-3
)
_IMAGES = SearchConfig().changed(
    task="images", architecture="vit", activation="gelu", steps=400, dim=64, batch=64, micro_batch=64, lr=3e-3
)
PRESETS: dict[str, SearchConfig] = {
    "laptop": SearchConfig(),
    "classification": _CLASSIFICATION,
    "images": _IMAGES,
    "paper-laptop": _PAPER_LAPTOP,
    "gpt2-mini": _MINI,
    "gpt2": _MINI.changed(layers=12, heads=12, dim=768),
    "gpt2-medium": _MINI.changed(layers=24, heads=16, dim=1024, micro_batch=4),
}


def preset(name: str, **settings: Any) -> SearchConfig:
    """A preset, one of PRESETS, with some settings changed.

    >>> preset("laptop", steps=100).model.dim
    128
    """
    if name not in PRESETS:
        raise StrongTicketError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name].changed(**settings)
