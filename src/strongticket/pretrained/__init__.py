"""Any trained torch model as a pruned random network. Importing this is cheap; torch loads when it is needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strongticket.pretrained._certify import certify_layers
    from strongticket.pretrained._compare import compare
    from strongticket.pretrained._plan import plan
    from strongticket.pretrained.build import build_file, build_ticket
    from strongticket.pretrained.inputs import batches
    from strongticket.pretrained.options import ModelOptions
    from strongticket.pretrained.target import load_target

# Where each name lives.
_HOME = {
    "build_file": "build",
    "build_ticket": "build",
    "batches": "inputs",
    "certify_layers": "_certify",
    "compare": "_compare",
    "load_target": "target",
    "ModelOptions": "options",
    "plan": "_plan",
}

__all__ = [
    "ModelOptions", "batches", "build_file", "build_ticket", "certify_layers", "compare", "load_target", "plan",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
