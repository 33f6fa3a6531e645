"""Edge-popup (Ramanujan et al., "What's hidden in a randomly weighted neural network?", CVPR 2020)."""

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
    model: nn.Module, config: SearchConfig, parametrization: type[Masked] = Masked
) -> Attachment:
    """Attach a score per weight, with the settings of the search.

    Args:
        model: changed in place
        config: the settings
        parametrization: how weights follow from scores
    """
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


def whole_scheme(config: SearchConfig) -> Scheme:
    """The same for methods that train all weights."""
    if config.source.dropped or config.source.locked:
        raise StrongTicketError(
            f"method {config.source.method!r} trains every weight: it has no dropped or locked ones",
            hint="Leave out dropped and locked.",
        )
    return scheme_of(config)
