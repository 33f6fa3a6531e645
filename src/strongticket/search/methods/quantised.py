"""Baselines: quantised training of the same network, and rounding after ordinary training.

Straight-through rounding (Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013) with
one step for each tensor, which the file stores. The levels are entropy-coded, so the comparison is byte for byte.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from strongticket.search.config import SearchConfig
from strongticket.search.masking._attach import attach_parametrizations
from strongticket.search.masking._initialise import Attachment, initialise
from strongticket.search.masking.quantised import Quantised, Rounding, integers
from strongticket.search.masking.quantised import binary as binary_rounding
from strongticket.search.masking.quantised import ternary as ternary_rounding
from strongticket.search.methods.edge_popup import whole_scheme


def int8(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights of 8 bits."""
    return _quantised(model, config, integers(8))


def int4(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights of 4 bits."""
    return _quantised(model, config, integers(4))


def ternary(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights -step, 0 and step."""
    return _quantised(model, config, ternary_rounding)


def binary(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights -step and step."""
    return _quantised(model, config, binary_rounding)


def rounded_int8(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train dense, then round to 8 bits."""
    return _quantised(model, config, integers(8), while_training=False)


def rounded_int4(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train dense, then round to 4 bits."""
    return _quantised(model, config, integers(4), while_training=False)


def _quantised(
    model: nn.Module, config: SearchConfig, rounding: Rounding, *, while_training: bool = True
) -> Attachment:
    # Weights of one size would all be rounded alike: training starts from the normal law whatever `law` says.
    scheme = whole_scheme(replace(config, law="normal"))
    attachment = initialise(model, seed=config.seed, scheme=scheme, qk_scale=1.0, train=config.trained_parts)
    parametrizations = {
        matrix.name: Quantised(
            attachment.frozen[matrix.name], matrix.parameter, rounding, while_training=while_training
        )
        for matrix in attachment.masked
    }
    return attach_parametrizations(model, attachment, parametrizations)
