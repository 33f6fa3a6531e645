"""The theorems' networks in plain torch, and what can be asked of two of them: merge, certify, attack, compare.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strongticket.nets._attack import Attack, attack, start_directions
    from strongticket.nets._certify import certify
    from strongticket.nets._compare import Comparison, compare, output_error, probe_inputs
    from strongticket.nets._initialise import initialise
    from strongticket.nets._merge import merge
    from strongticket.nets.attention import MultiHeadAttention, causal_mask, padding_mask
    from strongticket.nets.files import load, make, save
    from strongticket.nets.merged import MergedAttention, MergedRelu
    from strongticket.nets.norm import Norm, find_norms, keeps_to, length_floors
    from strongticket.nets.relu import ReluNetwork
    from strongticket.nets.transformer import Block, Transformer

# name -> the module that defines it
_MODULE_OF = {
    "Attack": "_attack",
    "Block": "transformer",
    "Comparison": "_compare",
    "MergedAttention": "merged",
    "MergedRelu": "merged",
    "MultiHeadAttention": "attention",
    "Norm": "norm",
    "ReluNetwork": "relu",
    "Transformer": "transformer",
    "attack": "_attack",
    "causal_mask": "attention",
    "certify": "_certify",
    "compare": "_compare",
    "find_norms": "norm",
    "initialise": "_initialise",
    "keeps_to": "norm",
    "length_floors": "norm",
    "load": "files",
    "make": "files",
    "merge": "_merge",
    "output_error": "_compare",
    "padding_mask": "attention",
    "probe_inputs": "_compare",
    "save": "files",
    "start_directions": "_attack",
}

__all__ = [
    "Attack",
    "Block",
    "Comparison",
    "MergedAttention",
    "MergedRelu",
    "MultiHeadAttention",
    "Norm",
    "ReluNetwork",
    "Transformer",
    "attack",
    "causal_mask",
    "certify",
    "compare",
    "find_norms",
    "initialise",
    "keeps_to",
    "length_floors",
    "load",
    "make",
    "merge",
    "output_error",
    "padding_mask",
    "probe_inputs",
    "save",
    "start_directions",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
