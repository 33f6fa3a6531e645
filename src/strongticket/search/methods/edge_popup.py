"""Edge-popup (Ramanujan et al., "What's hidden in a randomly weighted neural network?", CVPR 2020)."""

from __future__ import annotations

from torch import nn

from strongticket.search.config import SearchConfig
from strongticket.search.masking._attach import attach
from strongticket.search.masking._initialise import Attachment
from strongticket.search.masking.schemes import Scheme


def edge_popup(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train a score per weight; keep the top k."""
    return attach(
        model,
        config.kept,
        scope=config.scope,  # type: ignore[arg-type]
        seed=config.seed,
        scheme=scheme_of(config),
        # a calibrated scale is measured later, on the attached model
        qk_scale=1.0 if config.qk_scale == "calibrated" else config.known_qk_scale,
        train=config.trained_parts,
        redraw=config.redraw,
    )


def scheme_of(config: SearchConfig) -> Scheme:
    """The initialisation that the settings describe."""
    law = "" if config.law == "normal" else config.law  # each scheme's own law is the paper's
    return Scheme(config.init, config.std, config.embedding_std, config.residual_scaling, law)
