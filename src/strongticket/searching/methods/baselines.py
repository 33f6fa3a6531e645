"""Baselines: a random mask, ordinary and quantised training of the same network, rounding after ordinary training.

Straight-through rounding (Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013) with
one step for each tensor, which the file stores. The levels are entropy-coded, so the comparison is byte for byte.
The blended ones move from plain to rounded weights while they train (Liu and Mattina, "Learning low-precision neural
networks without straight-through estimator", IJCAI 2019), on the schedule of the annealed masks.
"""

from collections.abc import Callable

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.attach import attach_weights
from strongticket.searching.masking.parameters import Attachment, prepare_parameters
from strongticket.searching.masking.weights import Nearest, Rounded
from strongticket.searching.methods.annealed import anneal
from strongticket.searching.methods.edge_popup import edge_popup, scheme_of

Method = Callable[[nn.Module, SearchConfig], Attachment]
_SMALLEST = 1e-30  # a step: the law of a tensor that is 0 needs one too


def random(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep weights at random: edge-popup with the scores it starts from, untrained."""
    attachment = edge_popup(model, config)
    for matrix in attachment.masked:
        matrix.parameter.requires_grad_(False)
    return attachment


def dense(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train the weights themselves, from the same draw without the query and key scale."""
    attachment = _prepare(model, config, train=("*",))
    model.requires_grad_(True)
    return attachment


def _prepare(model: nn.Module, config: SearchConfig, train: tuple[str, ...]) -> Attachment:
    if config.source.dropped or config.source.locked:
        raise StrongTicketError(
            f"method {config.source.method!r} trains every weight: it has no dropped or locked ones",
            hint="Leave out dropped and locked.",
        )
    return prepare_parameters(model, seed=config.seed, scheme=scheme_of(config), qk_scale=1.0, train=train)


def integers(bits: int) -> Nearest:
    """Whole numbers from -(2^(bits-1) - 1) to 2^(bits-1) - 1, the largest weight at the last one."""
    last = 2 ** (bits - 1) - 1

    def nearest(latent: torch.Tensor, offset: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        step = (latent.abs().max() / last).clamp(min=_SMALLEST)
        return step, (latent / step).sub_(offset).round_().clamp_(-last, last)

    return nearest


def to_ternary(latent: torch.Tensor, _offset: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """0 below 0.7 times the mean size, else ± the mean of the rest (Li et al., "Ternary weight networks", 2016)."""
    sizes = latent.abs()
    kept = sizes > 0.7 * sizes.mean()
    step = (sizes * kept).sum() / kept.sum().clamp(min=1)
    return step.clamp(min=_SMALLEST), latent.sign() * kept


def to_binary(latent: torch.Tensor, _offset: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """± the mean size (Rastegari et al., "XNOR-Net", 2016)."""
    return latent.abs().mean().clamp(min=_SMALLEST), torch.where(latent < 0, -1.0, 1.0)


def round_at_the_end(attachment: Attachment) -> Attachment:
    """Train with the latent weights; only what is validated and stored is rounded."""
    for matrix in attachment.masked:
        matrix.weights.softness = 1.0
    return attachment


def _rounding(nearest: Nearest, schedule: Callable[[Attachment], Attachment] | None = None) -> Method:
    """The method that trains latent weights with their rounding straight through."""

    def method(model: nn.Module, config: SearchConfig) -> Attachment:
        # Weights of one size would all be rounded alike: training starts from the normal law whatever `law` says.
        attachment = _prepare(model, config.changed(law="normal"), config.source.train)
        with torch.no_grad():
            for matrix in attachment.masked:
                matrix.parameter.copy_(torch.from_numpy(attachment.sources[matrix.name].weights()))
                matrix.weights = Rounded(nearest).to(matrix.parameter.device)
        attach_weights(model, attachment)
        return schedule(attachment) if schedule else attachment

    return method


int8 = _rounding(integers(8))
int4 = _rounding(integers(4))
ternary = _rounding(to_ternary)
binary = _rounding(to_binary)
blended_int4 = _rounding(integers(4), anneal)
blended_ternary = _rounding(to_ternary, anneal)
blended_binary = _rounding(to_binary, anneal)
rounded_int8 = _rounding(integers(8), round_at_the_end)
rounded_int4 = _rounding(integers(4), round_at_the_end)
