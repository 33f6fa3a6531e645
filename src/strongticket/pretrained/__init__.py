"""Pretrained transformers as pruned random networks. Importing this is cheap; torch loads when it is needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strongticket.pretrained.build import build_file, build_ticket
    from strongticket.pretrained.source import make
    from strongticket.pretrained.target import load_target

_HOME = {"build_file": "build", "build_ticket": "build", "make": "source", "load_target": "target"}

__all__ = ["build_file", "build_ticket", "load_target", "make"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
