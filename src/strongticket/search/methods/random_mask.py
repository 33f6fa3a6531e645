"""Baseline: a random mask."""

from __future__ import annotations

from torch import nn

from strongticket.search.config import SearchConfig
from strongticket.search.masking._attach import masked_tensors
from strongticket.search.masking._initialise import Attachment
from strongticket.search.methods.edge_popup import edge_popup


def random_mask(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep weights at random: edge-popup with the scores it starts from, untrained."""
    attachment = edge_popup(model, config)
    for masked in masked_tensors(model).values():
        masked.scores.requires_grad_(False)
    return attachment
