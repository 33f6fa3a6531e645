"""Settings by name: a laptop's, and the paper's models."""

from __future__ import annotations

from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.searching.config.settings import SearchConfig

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
