"""Baseline: a random mask."""

from __future__ import annotations

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import masked_tensors
from strongticket.searching.masking._initialise import Attachment
from strongticket.searching.methods.edge_popup import edge_popup


def random_mask(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep weights at random: edge-popup with the scores it starts from, untrained."""
    attachment = edge_popup(model, config)
    for masked in masked_tensors(model).values():
        masked.scores.requires_grad_(False)
    return attachment
