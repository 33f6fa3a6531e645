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

    from strongticket.searching.masking._initialise import Attachment

    Method = Callable[[nn.Module, Any], Attachment]  # Any: a SearchConfig, which checks the names here

# name -> module of search/methods and function in it; text, so that reading the names does not load torch
METHODS: dict[str, str] = {
    "annealed": "annealed:annealed",
    "edge-popup": "edge_popup:edge_popup",
    "iterand": "iterand:iterand",
    "biprop": "biprop:biprop",
    "multicoat": "multicoat:multicoat",
    "signed": "signed:signed",
    "bernoulli": "bernoulli:bernoulli",
    "threshold": "threshold:threshold",
    "dense": "dense:dense",
    "random": "random_mask:random_mask",
    "int8": "quantised:int8",
    "int4": "quantised:int4",
    "ternary": "quantised:ternary",
    "binary": "quantised:binary",
    "blended-int4": "quantised:blended_int4",
    "blended-ternary": "quantised:blended_ternary",
    "blended-binary": "quantised:blended_binary",
    "rounded-int8": "quantised:rounded_int8",
    "rounded-int4": "quantised:rounded_int4",
}


_registered: dict[str, Method] = {}


def register_method(name: str, method: Method) -> None:
    """Make your own method available to `preset(..., method=name)`, in this process.

    name: not that of a built-in method
    method: a function (model, config) -> Attachment
    """
    if name in METHODS or ":" in name:
        raise StrongTicketError(
            f"{name!r} cannot be the name of a new method", hint="Choose another name, without a colon."
        )
    _registered[name] = method


def check_method(name: object) -> None:
    """Raise an error unless `name` is a known method or has the form package.module:function."""
    if not isinstance(name, str) or not (name in METHODS or name in _registered or _is_path(name)):
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
        module, _, function = METHODS[name].partition(":")
        known: Method = getattr(import_module(f"strongticket.searching.methods.{module}"), function)
        return known
    module, _, function = name.partition(":")
    try:
        own: Method = getattr(import_module(module), function)
        return own
    except (ImportError, AttributeError) as error:
        raise StrongTicketError(
            f"method {name!r} cannot be imported: {error}",
            hint="Check the spelling, and that the package is installed or in the current folder.",
        ) from error


def _is_path(name: str) -> bool:
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))
