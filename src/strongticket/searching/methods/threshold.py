"""Score thresholds: a fixed threshold instead of a top k.

Mallya et al., "Piggyback: adapting a single network to multiple tasks by learning to mask weights", ECCV 2018.
"""

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.topk import Cut
from strongticket.searching.methods.edge_popup import attach_scores


def threshold(model: nn.Module, config: SearchConfig) -> Attachment:
    """Keep the weights whose |score| is above a threshold, the one that keeps `kept` of each tensor before training.

    Training decides how many are kept in the end.
    """
    attachment = attach_scores(model, config.changed(scope="tensor"))
    attachment.groups = []  # the first cuts stay
    for matrix in attachment.masked:
        matrix.weights.cuts = tuple(Cut(cut.threshold) for cut in matrix.weights.cuts)
    return attachment
