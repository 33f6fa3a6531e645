"""Edge-popup (Ramanujan et al., "What's hidden in a randomly weighted neural network?", CVPR 2020)."""

from __future__ import annotations

from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.attach import attach
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.schemes import Scheme
from strongticket.searching.masking.source import Sparsity
from strongticket.searching.masking.weights import Masked


def edge_popup(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train a score per weight; keep the top k."""
    return attach_scores(model, config)


def attach_scores(
    model: nn.Module, config: SearchConfig, parametrization: type[Masked] = Masked, **changes: Any
) -> Attachment:
    """Attach a score per weight, with the settings of the search.

    Args:
        model: changed in place
        config: the settings
        parametrization: how weights follow from scores
        changes: arguments of `attach` that are not those of the settings
    """
    # a calibrated scale is measured later, on the attached model
    qk_scale = 1.0 if config.qk_scale == "calibrated" else config.known_qk_scale
    settings = {
        "kept": config.kept,
        "scope": config.scope,
        "seed": config.seed,
        "scheme": scheme_of(config),
        "qk_scale": qk_scale,
        "train": config.trained_parts,
    }
    return attach(model, parametrization=parametrization, **(settings | changes))


def scheme_of(config: SearchConfig, law: str = "") -> Scheme:
    """The initialisation that the settings describe, or the same with another law."""
    law = law or config.law
    law = "" if law == "normal" else law  # each scheme's own law is the paper's
    sparsity = Sparsity(config.dropped, config.locked)
    return Scheme(config.init, config.std, config.embedding_std, config.residual_scaling, law, sparsity)


def whole_scheme(config: SearchConfig, law: str = "") -> Scheme:
    """The same for methods that train all weights."""
    if config.dropped or config.locked:
        raise StrongTicketError(
            f"method {config.method!r} trains every weight: it has no dropped or locked ones",
            hint="Leave out dropped and locked.",
        )
    return scheme_of(config, law)
