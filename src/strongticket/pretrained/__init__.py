"""Any trained torch model as a pruned random network. Importing this is cheap; torch loads when it is needed."""

from typing import TYPE_CHECKING

from strongticket.lazy import lazy_names

if TYPE_CHECKING:
    from strongticket.pretrained._certify import certify_layers as certify_layers
    from strongticket.pretrained._compare import compare as compare
    from strongticket.pretrained._plan import plan as plan
    from strongticket.pretrained.build import build_file as build_file
    from strongticket.pretrained.build import build_ticket as build_ticket
    from strongticket.pretrained.inputs import batches as batches
    from strongticket.pretrained.options import ModelOptions as ModelOptions
    from strongticket.pretrained.target import load_target as load_target

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "build": ["build_file", "build_ticket"],
        "inputs": ["batches"],
        "_certify": ["certify_layers"],
        "_compare": ["compare"],
        "target": ["load_target"],
        "options": ["ModelOptions"],
        "_plan": ["plan"],
    },
)
