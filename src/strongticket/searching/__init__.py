"""Tickets by search: random weights stay frozen, data decides which of them are kept.

Importing this is cheap; torch and transformers load when a name that needs them is used.
"""

from typing import TYPE_CHECKING

from strongticket.lazy import lazy_names
from strongticket.searching.config import METHODS as METHODS
from strongticket.searching.config import PRESETS as PRESETS
from strongticket.searching.config import SearchConfig as SearchConfig
from strongticket.searching.config import preset as preset
from strongticket.searching.config import register_method as register_method

if TYPE_CHECKING:
    from strongticket.searching._search import SearchResult as SearchResult
    from strongticket.searching._search import search as search
    from strongticket.searching.kind import to_ticket as to_ticket
    from strongticket.searching.masking._attach import attach as attach
    from strongticket.searching.masking._attach import detach as detach
    from strongticket.searching.masking._attach import masked_tensors as masked_tensors
    from strongticket.searching.masking._attach import masks as masks
    from strongticket.searching.masking._initialise import Attachment as Attachment
    from strongticket.searching.masking._initialise import initialise as initialise
    from strongticket.searching.masking.logits import TARGET_LOGIT_STD as TARGET_LOGIT_STD
    from strongticket.searching.masking.logits import calibrated_scale as calibrated_scale
    from strongticket.searching.masking.logits import logit_std as logit_std
    from strongticket.searching.masking.schemes import Scheme as Scheme
    from strongticket.searching.task_masks import TaskMasks as TaskMasks
    from strongticket.searching.tasks import Task as Task

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "masking._initialise": ["Attachment", "initialise"],
        "masking.schemes": ["Scheme"],
        "_search": ["SearchResult", "search"],
        "masking.logits": ["TARGET_LOGIT_STD", "calibrated_scale", "logit_std"],
        "tasks": ["Task"],
        "task_masks": ["TaskMasks"],
        "masking._attach": ["attach", "detach", "masked_tensors", "masks"],
        "kind": ["to_ticket"],
    },
    loaded=["METHODS", "PRESETS", "SearchConfig", "preset", "register_method"],
)
