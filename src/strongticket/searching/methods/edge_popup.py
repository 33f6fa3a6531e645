"""Edge-popup (Ramanujan et al., "What's hidden in a randomly weighted neural network?", CVPR 2020), and near relatives.

- threshold: Mallya et al., "Piggyback: adapting a single network to multiple tasks by learning to mask weights", 2018
- signed: Koster et al., "Signing the supermask: keep, hide, invert", ICLR 2022
- multicoat: Okoshi et al., "Multicoated supermasks enhance hidden networks", ICML 2022
"""

import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.attach import attach
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.source import Scheme, Sparsity
from strongticket.searching.masking.topk import Cut
from strongticket.searching.masking.weights import Masked


def edge_popup(model: nn.Module, config: SearchConfig) -> Attachment:
    """Train a score per weight; keep the top k."""
    return attach_scores(model, config)


def threshold(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights whose |score| is above a threshold, the one that keeps `kept` of each tensor before training.

    Training decides how many are kept in the end.
    """
    attachment = attach_scores(model, config.changed(scope="tensor"))
    attachment.groups = []  # the first cuts stay
    for matrix in attachment.masked:
        matrix.weights.cuts = tuple(Cut(cut.threshold) for cut in matrix.weights.cuts)
    return attachment


def signed(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights of the largest |score|, inverted where the score is negative. The file stores the signs."""
    return attach_scores(model, config, Signed)


class Signed(Masked):
    """A gate of 1 or -1 where a weight is kept, by the sign of its score."""

    has_levels = True

    def gate(self, scores: torch.Tensor) -> torch.Tensor:
        return self.with_locked(super().gate(scores).mul_(torch.where(scores < 0, -1.0, 1.0)))

    def gradient(self, gradient: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return gradient * self.frozen


def multicoat(model: nn.Module, config: SearchConfig) -> Attachment:
    """Lay three masks over each other: the larger |score|, the more of them keep the weight.

    The weight is multiplied by their number. The coats keep 1, 2/3 and 1/3 of the kept fraction; the file stores the
    number of each weight.
    """
    return attach_scores(model, config, Coated)


class Coated(Masked):
    """Three masks over each other."""

    coats = 3
    has_levels = True


def attach_scores(
    model: nn.Module, config: SearchConfig, parametrization: type[Masked] = Masked
) -> Attachment:
    """Attach a score per weight, with the settings of the search; `parametrization` makes weights of scores."""
    return attach(
        model,
        config.source.kept,
        scope=config.source.scope,
        seed=config.seed,
        scheme=scheme_of(config),
        # a calibrated scale is measured later, on the attached model
        qk_scale=1.0 if config.source.qk_scale == "calibrated" else config.source.qk_scale,
        train=config.source.train,
        parametrization=parametrization,
    )


def scheme_of(config: SearchConfig) -> Scheme:
    """The initialisation that the settings describe."""
    source = config.source
    law = "" if source.law == "normal" else source.law  # each scheme's own law is the paper's
    sparsity = Sparsity(source.dropped, source.locked)
    return Scheme(source.init, source.std, source.embedding_std, source.residual_scaling, law, sparsity)
