"""The theorems' networks in plain torch, and what can be done with two of them: merge, certify, attack, compare.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from typing import TYPE_CHECKING

from strongticket.lazy import lazy_names

if TYPE_CHECKING:
    from strongticket.nets._attack import Attack as Attack
    from strongticket.nets._attack import attack as attack
    from strongticket.nets._attack import start_directions as start_directions
    from strongticket.nets._certify import certify as certify
    from strongticket.nets._compare import Comparison as Comparison
    from strongticket.nets._compare import compare as compare
    from strongticket.nets._compare import output_error as output_error
    from strongticket.nets._compare import probe_inputs as probe_inputs
    from strongticket.nets._initialise import initialise as initialise
    from strongticket.nets._merge import merge as merge
    from strongticket.nets.attention import MultiHeadAttention as MultiHeadAttention
    from strongticket.nets.attention import causal_mask as causal_mask
    from strongticket.nets.files import load as load
    from strongticket.nets.files import make as make
    from strongticket.nets.files import save as save
    from strongticket.nets.merged import MergedAttention as MergedAttention
    from strongticket.nets.merged import MergedRelu as MergedRelu
    from strongticket.nets.norm import Norm as Norm
    from strongticket.nets.norm import find_norms as find_norms
    from strongticket.nets.norm import keeps_to as keeps_to
    from strongticket.nets.norm import length_floors as length_floors
    from strongticket.nets.relu import ReluNetwork as ReluNetwork
    from strongticket.nets.transformer import Block as Block
    from strongticket.nets.transformer import Transformer as Transformer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "_attack": ["Attack", "attack", "start_directions"],
        "transformer": ["Block", "Transformer"],
        "_compare": ["Comparison", "compare", "output_error", "probe_inputs"],
        "merged": ["MergedAttention", "MergedRelu"],
        "attention": ["MultiHeadAttention", "causal_mask"],
        "norm": ["Norm", "find_norms", "keeps_to", "length_floors"],
        "relu": ["ReluNetwork"],
        "_certify": ["certify"],
        "_initialise": ["initialise"],
        "files": ["load", "make", "save"],
        "_merge": ["merge"],
    },
)
