"""Search methods by name: the only list of them. A method is a function (model, config) -> Attachment.

It sets the model's parameters, leaves `requires_grad` on what is to be trained, and returns an Attachment that
says which tensors the ticket masks and which it stores as floats. docs/add-a-search-method.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from strongticket.errors import StrongTicketError

if TYPE_CHECKING:
    from torch import nn

    from strongticket.searching.masking.parameters import Attachment

    Method = Callable[[nn.Module, Any], Attachment]  # Any: a SearchConfig, which checks the names here

# name -> module of searching/methods, where the function has the method's name; text, so that no torch is loaded
METHODS: dict[str, str] = {
    "annealed": "annealed",
    "edge-popup": "edge_popup",
    "iterand": "iterand",
    "biprop": "biprop",
    **dict.fromkeys(("multicoat", "signed"), "edge_popup"),
    "bernoulli": "bernoulli",
    "threshold": "edge_popup",
    **dict.fromkeys(("dense", "random", "int8", "int4", "ternary", "binary"), "baselines"),
    **dict.fromkeys(("blended-int4", "blended-ternary", "blended-binary"), "baselines"),
    **dict.fromkeys(("rounded-int8", "rounded-int4"), "baselines"),
}

_registered: dict[str, Method] = {}


def register_method(name: str, method: Method) -> None:
    """Make your own method, (model, config) -> Attachment, available to `preset(..., method=name)` in this process."""
    if name in METHODS or ":" in name:
        raise StrongTicketError(
            f"{name!r} cannot be the name of a new method", hint="Choose another name, without a colon."
        )
    _registered[name] = method


def check_method(name: str) -> None:
    """Raise an error unless `name` is a known method or has the form package.module:function."""
    module, _, function = name.partition(":")
    is_path = all(map(str.isidentifier, [*module.split("."), function]))
    if name not in METHODS and name not in _registered and not is_path:
        raise StrongTicketError(
            f"method must be one of {', '.join([*METHODS, *_registered])}, got {name!r}",
            hint="Your own method is package.module:function, or a name given to register_method.",
        )


def find_method(name: str) -> Method:
    """The method of that name: built in, registered, or package.module:function.

    >>> find_method("edge-popup").__name__
    'edge_popup'
    """
    check_method(name)
    if name in _registered:
        return _registered[name]
    if name in METHODS:
        module = import_module(f"strongticket.searching.methods.{METHODS[name]}")
        known: Method = getattr(module, name.replace("-", "_"))
        return known
    path, _, function = name.partition(":")
    try:
        own: Method = getattr(import_module(path), function)
        return own
    except (ImportError, AttributeError) as error:
        raise StrongTicketError(
            f"method {name!r} cannot be imported: {error}",
            hint="Check the spelling, and that the package is installed or in the current folder.",
        ) from error
