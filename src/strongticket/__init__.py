"""Strong lottery tickets in transformers: a random network plus a binary mask.

Reading this file is reading the API. A name is imported when it is first used: `import strongticket` alone
loads neither torch nor numba.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from strongticket.errors import MissingDependency as MissingDependency
from strongticket.errors import StrongTicketError as StrongTicketError
from strongticket.errors import TicketError as TicketError
from strongticket.lazy import lazy_names

if TYPE_CHECKING:
    from strongticket.builders import build_attention as build_attention
    from strongticket.builders import build_product as build_product
    from strongticket.builders import build_relu as build_relu
    from strongticket.builders import build_transformer as build_transformer
    from strongticket.nets import Block as Block
    from strongticket.nets import MultiHeadAttention as MultiHeadAttention
    from strongticket.nets import ReluNetwork as ReluNetwork
    from strongticket.nets import Transformer as Transformer
    from strongticket.nets import attack as attack
    from strongticket.nets import causal_mask as causal_mask
    from strongticket.nets import certify as certify
    from strongticket.nets import merge as merge
    from strongticket.pretrained import build_ticket as build_ticket
    from strongticket.searching import attach as attach
    from strongticket.searching import detach as detach
    from strongticket.searching import search as search
    from strongticket.seeds import Hadamard as Hadamard
    from strongticket.seeds import Normal as Normal
    from strongticket.seeds import SignedConstant as SignedConstant
    from strongticket.seeds import Uniform as Uniform
    from strongticket.seeds import draw as draw
    from strongticket.subset_sum import Products as Products
    from strongticket.subset_sum import Solution as Solution
    from strongticket.subset_sum import solve as solve
    from strongticket.ticket import Ticket as Ticket

__version__ = version("strongticket")

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "seeds": ["Hadamard", "Normal", "SignedConstant", "Uniform", "draw"],
        "subset_sum": ["Products", "Solution", "solve"],
        "nets": [
            "Block",
            "MultiHeadAttention",
            "ReluNetwork",
            "Transformer",
            "attack",
            "causal_mask",
            "certify",
            "merge",
        ],
        "builders": ["build_attention", "build_product", "build_relu", "build_transformer"],
        "pretrained": ["build_ticket"],
        "searching": ["attach", "detach", "search"],
        "ticket": ["Ticket"],
    },
    loaded=["MissingDependency", "StrongTicketError", "TicketError", "__version__"],
)
