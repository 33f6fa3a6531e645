"""Strong lottery tickets in transformers: a random network plus a binary mask.

Reading this file is reading the API. A name is imported when it is first used: `import strongticket` alone
loads neither torch nor numba.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from strongticket.errors import MissingDependency, StrongTicketError, TicketError

if TYPE_CHECKING:
    from strongticket.build import build_attention, build_product, build_relu, build_transformer
    from strongticket.nets import (
        Block,
        MultiHeadAttention,
        ReluNetwork,
        Transformer,
        attack,
        causal_mask,
        certify,
        merge,
    )
    from strongticket.pretrained import build_ticket
    from strongticket.search import attach, detach
    from strongticket.seeds import Hadamard, Normal, SignedConstant, Uniform, draw
    from strongticket.subset_sum import Products, Solution, solve
    from strongticket.ticket import Ticket

__version__ = version("strongticket")

_ROOM_OF = {
    # random weights
    "Uniform": "seeds",
    "Normal": "seeds",
    "SignedConstant": "seeds",
    "Hadamard": "seeds",
    "draw": "seeds",
    # subset sums
    "solve": "subset_sum",
    "Products": "subset_sum",
    "Solution": "subset_sum",
    # networks of the theorems, their bounds
    "MultiHeadAttention": "nets",
    "ReluNetwork": "nets",
    "Block": "nets",
    "Transformer": "nets",
    "merge": "nets",
    "causal_mask": "nets",
    "certify": "nets",
    "attack": "nets",
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
    # seed + masks
    "Ticket": "ticket",
}

__all__ = [
    "Block",
    "Hadamard",
    "MissingDependency",
    "MultiHeadAttention",
    "Normal",
    "Products",
    "ReluNetwork",
    "SignedConstant",
    "Solution",
    "StrongTicketError",
    "Ticket",
    "TicketError",
    "Transformer",
    "Uniform",
    "__version__",
    "attach",
    "attack",
    "build_attention",
    "build_product",
    "build_relu",
    "build_ticket",
    "build_transformer",
    "causal_mask",
    "certify",
    "detach",
    "draw",
    "merge",
    "solve",
]


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'strongticket' has no attribute {name!r}")
    return getattr(import_module(f"strongticket.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
