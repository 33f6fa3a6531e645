"""Baselines: quantised training of the same network, and rounding after ordinary training.

Straight-through rounding (Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013) with
one step for each tensor, which the file stores. The levels are entropy-coded, so the comparison is byte for byte.
The blended ones move from plain to rounded weights while they train (Liu and Mattina, "Learning low-precision neural
networks without straight-through estimator", IJCAI 2019), on the schedule of the annealed masks.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking._attach import attach_parametrizations, masked_tensors
from strongticket.searching.masking._initialise import Attachment, initialise
from strongticket.searching.masking.quantised import Quantised, Rounding, integers
from strongticket.searching.masking.quantised import binary as binary_rounding
from strongticket.searching.masking.quantised import ternary as ternary_rounding
from strongticket.searching.methods.annealed import soft_share
from strongticket.searching.methods.edge_popup import whole_scheme


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


def blended_int4(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights that become 4 bits."""
    return _blended(model, config, integers(4))


def blended_ternary(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights that become -step, 0 and step."""
    return _blended(model, config, ternary_rounding)


def blended_binary(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train with weights that become -step and step."""
    return _blended(model, config, binary_rounding)


def rounded_int8(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train dense, then round to 8 bits."""
    return _quantised(model, config, integers(8), share=0.0)


def rounded_int4(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train dense, then round to 4 bits."""
    return _quantised(model, config, integers(4), share=0.0)


def _blended(model: nn.Module, config: SearchConfig, rounding: Rounding) -> Attachment:
    attachment = _quantised(model, config, rounding, share=0.0)
    tensors = list(masked_tensors(model).values())

    def harden(done: int, total: int) -> None:
        for tensor in tensors:
            tensor.share = 1 - soft_share(done / total)

    return replace(attachment, before_step=harden)


def _quantised(
    model: nn.Module, config: SearchConfig, rounding: Rounding, *, share: float = 1.0
) -> Attachment:
    # Weights of one size would all be rounded alike: training starts from the normal law whatever `law` says.
    scheme = whole_scheme(config.changed(law="normal"))
    attachment = initialise(model, seed=config.seed, scheme=scheme, qk_scale=1.0, train=config.source.train)
    parametrizations = {
        matrix.name: Quantised(attachment.frozen[matrix.name], matrix.parameter, rounding, share=share)
        for matrix in attachment.masked
    }
    return attach_parametrizations(model, attachment, parametrizations)
