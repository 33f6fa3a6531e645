"""Multi-coated supermasks (Okoshi et al., "Multicoated supermasks enhance hidden networks", ICML 2022)."""

from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores


def multicoat(model: nn.Module, config: SearchConfig) -> Attachment:
    """Lay several masks over each other: the larger |score|, the more of them keep the weight.

    The weight is multiplied by their number. The coats keep 1, 2/3 and 1/3 of the kept fraction; the file stores the
    number of each weight.
    """
    return attach_scores(model, config, Coated)


class Coated(Masked):
    """Three masks over each other."""

    coats = 3
    has_levels = True
