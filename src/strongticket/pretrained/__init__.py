"""Pretrained transformers as pruned random networks. Importing this is cheap; torch loads when it is needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strongticket.pretrained.build import build_file, build_ticket
    from strongticket.pretrained.certificate import certify_layers
    from strongticket.pretrained.comparison import compare
    from strongticket.pretrained.inputs import batches
    from strongticket.pretrained.planning import plan
    from strongticket.pretrained.source import make
    from strongticket.pretrained.target import load_target
    from strongticket.pretrained.writing import generate

# Where each name lives. No module has the name of a function: importing it would hide the function.
_HOME = {
    "build_file": "build",
    "build_ticket": "build",
    "batches": "inputs",
    "certify_layers": "certificate",
    "compare": "comparison",
    "generate": "writing",
    "load_target": "target",
    "make": "source",
    "plan": "planning",
}

__all__ = [
    "batches", "build_file", "build_ticket", "certify_layers", "compare", "generate", "load_target", "make", "plan",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
