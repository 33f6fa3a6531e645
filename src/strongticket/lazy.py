"""Packages whose names are imported on first use, so that importing a package stays cheap."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from strongticket.errors import explained


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]], loaded: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    package: its `__name__`.
    names: submodule -> the names the package takes from it, as a `TYPE_CHECKING` block shows them to type checkers.
    loaded: further names that the package defines itself.
    """
    module_of = {name: module for module, members in names.items() for name in members}
    everything = sorted([*module_of, *loaded])

    def __getattr__(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{module_of[name]}")
        except ModuleNotFoundError as error:
            raise explained(error) from error
        return getattr(module, name)

    def __dir__() -> list[str]:
        return everything

    return __getattr__, __dir__, everything
