"""Everything a search is told, as one flat dataclass: each field is a flag of the command line."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError

METHODS = ("edge-popup", "dense", "random")
SCOPES = ("tensor", "global")
PRECISIONS = ("float32", "bf16", "fp16")


def _flag(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


def _at_least(name: str, value: object, least: int) -> None:
    if type(value) is not int or value < least:
        raise StrongTicketError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class SearchConfig:
    """The defaults are the laptop preset's; PRESETS has the paper's."""

    method: str = _flag("edge-popup", "edge-popup, or a baseline: dense training, a random mask.", METHODS)
    seed: int = _flag(0, "Seed of the frozen weights, the scores and the order of the data.")
    seeds: int = _flag(1, "How many runs, with seeds SEED, SEED + 1, ...")
    # masks
    kept: float = _flag(0.3, "Fraction of the weights that is kept.")
    scope: str = _flag("tensor", "Keep that fraction of each tensor, or of the model as a whole.", SCOPES)
    train: str = _flag("", "Parts trained as floats: embedding, head, norm, bias, name patterns; by commas.")
    redraw: bool | None = _flag(
        None, "Draw frozen weights again instead of keeping them: less memory, more time. Default: by size."
    )
    # frozen weights
    init: str = _flag("gpt2", "Initialisation scheme.")
    std: float = _flag(0.05, "Standard deviation of the gpt2 scheme.")
    embedding_std: float | None = _flag(
        0.12, "Standard deviation of the embeddings; that of --std where the preset has none."
    )
    residual_scaling: bool = _flag(True, "Scale projections into the residual stream by (2 blocks)^-1/2.")
    qk_scale: str = _flag("paper", "Scale of query and key weights: paper (n_K^1/4), calibrated or a number.")
    # model
    layers: int = _flag(2, "Transformer blocks.")
    heads: int = _flag(2, "Attention heads.")
    dim: int = _flag(128, "Width of the model.")
    context: int = _flag(64, "Tokens in a sequence.")
    activation: str = _flag(
        "relu", "Activation of the feed-forward network.", ("relu", "gelu", "gelu_new", "silu", "tanh")
    )
    model: str = _flag("", "Folder with a config.json whose architecture is used instead of GPT-2's.")
    # data
    data: str = _flag(
        "builtin",
        "builtin (Python's own documentation), a text file, a folder of them, wikitext-103 or wikitext-2.",
    )
    tokens: str = _flag(
        "characters", "characters, bpe (trained on the data), or a tokenizer's name or folder."
    )
    vocabulary: int = _flag(1024, "Size of the vocabulary that bpe trains.")
    # training
    steps: int = _flag(600, "Optimiser steps.")
    batch: int = _flag(16, "Sequences in a step, over all processes.")
    micro_batch: int = _flag(16, "Sequences in a forward pass of one process; the rest is accumulated.")
    lr: float = _flag(3e-3, "Highest learning rate of AdamW.")
    lr_end: float = _flag(3e-4, "Learning rate at the end of the cosine.")
    warmup: int = _flag(50, "Steps of linear warm-up.")
    weight_decay: float = _flag(0.01, "Weight decay of AdamW (on the scores).")
    precision: str = _flag("float32", "Arithmetic of the forward and backward pass.", PRECISIONS)
    eval_every: int = _flag(0, "Steps between validations during the training; 0: only at the end.")
    save_every: int = _flag(0, "Steps between checkpoints; 0: none.")
    resume: bool = _flag(False, "Go on from the last checkpoint of the same settings.")
    cpu: bool = _flag(False, "Use no accelerator.")
    cache: str = _flag(
        "", "Folder of tokenised data and checkpoints; default: STRONGTICKET_CACHE or ~/.cache."
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            choices = each.metadata["choices"]
            if choices and getattr(self, each.name) not in choices:
                raise StrongTicketError(
                    f"{each.name} must be one of {', '.join(choices)}, got {getattr(self, each.name)!r}"
                )
        for name in ("layers", "heads", "dim", "context", "batch", "micro_batch", "seeds", "vocabulary"):
            _at_least(name, getattr(self, name), 1)
        for name in ("steps", "warmup", "eval_every", "save_every", "seed"):
            _at_least(name, getattr(self, name), 0)
        for name in ("weight_decay", "lr_end"):
            if not _is_number(getattr(self, name)) or not 0 <= getattr(self, name) < float("inf"):
                raise StrongTicketError(f"{name} must be a number of at least 0, got {getattr(self, name)!r}")
        if not _is_number(self.kept) or not 0 < self.kept <= 1:
            raise StrongTicketError(f"kept must be a fraction from 0 (excluded) to 1, got {self.kept!r}")
        if not _is_number(self.lr) or not 0 < self.lr < float("inf"):
            raise StrongTicketError(f"lr must be a positive number, got {self.lr!r}")
        if not isinstance(self.train, str):
            raise StrongTicketError(
                f"train must be one text with commas, such as 'norm,bias', got {self.train!r}"
            )
        if self.context < 2:
            raise StrongTicketError(f"context must be at least 2 (one token to predict), got {self.context}")
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

    def recipe(self) -> dict[str, Any]:
        """The settings that decide what comes out, without where files lie and how far the run is."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_RECIPE}

    def digest(self) -> str:
        """A short name for these settings."""
        text = json.dumps(self.recipe(), sort_keys=True).encode()
        return hashlib.blake2b(text, digest_size=8).hexdigest()


_NOT_RECIPE = ("seeds", "redraw", "eval_every", "save_every", "resume", "cpu", "cache", "micro_batch")

_LAPTOP = SearchConfig()
# B.2: 50 epochs of 227 steps; 227 * 512 * 1024 tokens are one pass over WikiText-103.
_MINI = replace(
    _LAPTOP,
    seeds=3,
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
PRESETS: dict[str, SearchConfig] = {
    "laptop": _LAPTOP,
    "gpt2-mini": _MINI,
    "gpt2": replace(_MINI, layers=12, heads=12, dim=768),
    "gpt2-medium": replace(_MINI, layers=24, heads=16, dim=1024, micro_batch=4),
}


def preset(name: str, **changes: Any) -> SearchConfig:
    """A preset with some settings changed.

    >>> preset("laptop", steps=100).dim
    128
    """
    if name not in PRESETS:
        raise StrongTicketError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    known = {each.name for each in fields(SearchConfig)}
    if odd := sorted(changes.keys() - known):
        raise StrongTicketError(
            f"{odd[0]!r} is no setting of a search", hint=f"The settings are {', '.join(sorted(known))}."
        )
    return replace(PRESETS[name], **changes)


def cache_folder(config: SearchConfig) -> Path:
    return Path(
        config.cache or os.environ.get("STRONGTICKET_CACHE") or Path.home() / ".cache" / "strongticket"
    )
