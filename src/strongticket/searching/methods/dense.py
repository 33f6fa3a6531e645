"""Baseline: ordinary training of the same network."""

from __future__ import annotations

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._initialise import Attachment, initialise
from strongticket.searching.methods.edge_popup import whole_scheme


def dense(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train the weights themselves, from the same draw without the query and key scale."""
    attachment = initialise(model, seed=config.seed, scheme=whole_scheme(config), qk_scale=1.0, train=("*",))
    model.requires_grad_(True)
    return attachment
