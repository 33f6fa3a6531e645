"""Tickets by search: random weights stay frozen, data decides which of them are kept.

Importing this is cheap; torch and transformers load when a name that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from strongticket.search.config import PRESETS, SearchConfig, preset

if TYPE_CHECKING:
    from strongticket.search.calibrate import calibrated_scale, logit_std
    from strongticket.search.job import SearchResult, run, run_all
    from strongticket.search.kind import rebuild, to_ticket
    from strongticket.search.plan import initialise
    from strongticket.search.schemes import Scheme
    from strongticket.search.scores import attach, detach, masks

# Where each name lives.
_HOME = {
    "attach": "scores",
    "detach": "scores",
    "masks": "scores",
    "calibrated_scale": "calibrate",
    "logit_std": "calibrate",
    "initialise": "plan",
    "rebuild": "kind",
    "to_ticket": "kind",
    "SearchResult": "job",
    "run": "job",
    "run_all": "job",
    "Scheme": "schemes",
}

__all__ = [
    "PRESETS",
    "Scheme",
    "SearchConfig",
    "SearchResult",
    "attach",
    "calibrated_scale",
    "detach",
    "initialise",
    "logit_std",
    "masks",
    "preset",
    "rebuild",
    "run",
    "run_all",
    "to_ticket",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
