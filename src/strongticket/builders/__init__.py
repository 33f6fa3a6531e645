"""Target networks in, tickets out: one file per lemma or theorem.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from typing import TYPE_CHECKING

from strongticket.lazy import lazy_names

if TYPE_CHECKING:
    from strongticket.builders._plan import Plan as Plan
    from strongticket.builders._plan import plan as plan
    from strongticket.builders.attention import build_attention as build_attention
    from strongticket.builders.network import build_network as build_network
    from strongticket.builders.network import products_of as products_of
    from strongticket.builders.options import BuildOptions as BuildOptions
    from strongticket.builders.product import ProductBuild as ProductBuild
    from strongticket.builders.product import build_product as build_product
    from strongticket.builders.relu import build_relu as build_relu
    from strongticket.builders.transformer import build_transformer as build_transformer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "options": ["BuildOptions"],
        "_plan": ["Plan", "plan"],
        "product": ["ProductBuild", "build_product"],
        "attention": ["build_attention"],
        "network": ["build_network", "products_of"],
        "relu": ["build_relu"],
        "transformer": ["build_transformer"],
    },
)
