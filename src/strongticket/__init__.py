"""Strong lottery tickets in transformers: a random network plus a binary mask.

Reading this file is reading the API. A name is imported when it is first used: `import strongticket` alone
loads neither torch nor numba.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from strongticket.errors import MissingDependency, StrongTicketError, TicketError

__version__ = version("strongticket")

_ROOM_OF = {
    # random weights
    "Uniform": "seeds",
    "Normal": "seeds",
    "draw": "seeds",
    # subset sums
    "solve": "subset_sum",
    "Products": "subset_sum",
    "Solution": "subset_sum",
    # networks of the theorems
    "MultiHeadAttention": "nets",
    "ReluNetwork": "nets",
    "Block": "nets",
    "Transformer": "nets",
    "merge": "nets",
    "causal_mask": "nets",
    # target -> ticket
    "build_product": "build",
    "build_relu": "build",
    "build_attention": "build",
    "build_transformer": "build",
    # a pretrained model -> ticket
    "build_ticket": "pretrained",
    # data -> ticket
    "attach": "search",
    "detach": "search",
    # bounds
    "certify": "build",
    "attack": "theory",
    # seed + masks
    "Ticket": "ticket",
}

__all__ = ["MissingDependency", "StrongTicketError", "TicketError", "__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'strongticket' has no attribute {name!r}")
    return getattr(import_module(f"strongticket.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
