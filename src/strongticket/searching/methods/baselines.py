"""Baselines: ordinary training of the same network, and a random mask."""

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment, prepare_parameters
from strongticket.searching.methods.edge_popup import edge_popup, whole_scheme


def dense(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train the weights themselves, from the same draw without the query and key scale."""
    scheme = whole_scheme(config)
    attachment = prepare_parameters(model, seed=config.seed, scheme=scheme, qk_scale=1.0, train=("*",))
    model.requires_grad_(True)
    return attachment


def random(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep weights at random: edge-popup with the scores it starts from, untrained."""
    attachment = edge_popup(model, config)
    for matrix in attachment.masked:
        matrix.parameter.requires_grad_(False)
    return attachment
