"""Packages whose names are imported on first use, so that importing a package stays cheap (SPEC 1)."""

from collections.abc import Callable
from typing import Any

import lazy_loader

from strongticket.errors import as_missing_dependency


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package (its name and file) that `__init__.pyi` describes."""
    find, everything, names = lazy_loader.attach_stub(package, file)

    def __getattr__(name: str) -> Any:
        try:
            return find(name)
        except ModuleNotFoundError as error:
            raise as_missing_dependency(error) from error

    return __getattr__, everything, names
