"""Tickets by search: random weights stay frozen, data decides which of them are kept.

Importing this is cheap; torch and transformers load when a name that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from strongticket.search.config import METHODS as METHODS
from strongticket.search.config import PRESETS as PRESETS
from strongticket.search.config import SearchConfig as SearchConfig
from strongticket.search.config import preset as preset
from strongticket.search.config import register_method as register_method

if TYPE_CHECKING:
    from strongticket.search._search import SearchResult, search, search_all
    from strongticket.search.kind import to_ticket
    from strongticket.search.masking._attach import attach, detach, masked_tensors, masks
    from strongticket.search.masking._initialise import Attachment, initialise
    from strongticket.search.masking.logits import TARGET_LOGIT_STD, calibrated_scale, logit_std
    from strongticket.search.masking.schemes import Scheme
    from strongticket.search.task_masks import TaskMasks
    from strongticket.search.tasks import Task

# name -> the module that defines it
_MODULE_OF = {
    "Attachment": "masking._initialise",
    "Scheme": "masking.schemes",
    "SearchResult": "_search",
    "TARGET_LOGIT_STD": "masking.logits",
    "Task": "tasks",
    "TaskMasks": "task_masks",
    "attach": "masking._attach",
    "calibrated_scale": "masking.logits",
    "detach": "masking._attach",
    "initialise": "masking._initialise",
    "logit_std": "masking.logits",
    "masked_tensors": "masking._attach",
    "masks": "masking._attach",
    "search": "_search",
    "search_all": "_search",
    "to_ticket": "kind",
}

__all__ = [
    "METHODS",
    "PRESETS",
    "TARGET_LOGIT_STD",
    "Attachment",
    "Scheme",
    "SearchConfig",
    "SearchResult",
    "Task",
    "TaskMasks",
    "attach",
    "calibrated_scale",
    "detach",
    "initialise",
    "logit_std",
    "masked_tensors",
    "masks",
    "preset",
    "register_method",
    "search",
    "search_all",
    "to_ticket",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
