"""Target networks in, tickets out: one file a lemma or theorem.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strongticket.build._plan import Plan, plan
    from strongticket.build.attention import build_attention
    from strongticket.build.network import build_network, products_of
    from strongticket.build.options import BuildOptions
    from strongticket.build.product import ProductBuild, build_product
    from strongticket.build.relu import build_relu
    from strongticket.build.transformer import build_transformer

# name -> the module that defines it
_MODULE_OF = {
    "BuildOptions": "options",
    "Plan": "_plan",
    "ProductBuild": "product",
    "build_attention": "attention",
    "build_network": "network",
    "build_product": "product",
    "build_relu": "relu",
    "build_transformer": "transformer",
    "plan": "_plan",
    "products_of": "network",
}

__all__ = [
    "BuildOptions",
    "Plan",
    "ProductBuild",
    "build_attention",
    "build_network",
    "build_product",
    "build_relu",
    "build_transformer",
    "plan",
    "products_of",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
