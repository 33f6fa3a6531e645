"""numba's njit, imported and applied when a function is first called, also where compiled code cannot be kept.

Importing numba takes half a second, more than most commands need for all their work. Without a home, or in an
install that is read-only, numba finds no place for its cache; then every process compiles again.
"""

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any


class Compiled:
    """A function that numba compiles on its first call, or when another compiled function calls it."""

    def __init__(self, function: Callable[..., Any], cache: bool, options: dict[str, Any]) -> None:
        self._function, self._cache, self._options = function, cache, options
        update_wrapper(self, function)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba.njit returns."""
        import numba

        try:
            return numba.njit(cache=self._cache and _has_place(), **self._options)(self._function)
        except RuntimeError:  # no folder for the cache is writable
            return numba.njit(**self._options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """The numba type of this object, for calls from compiled code."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)


def _has_place() -> bool:
    """Whether numba knows where a user-wide cache goes: without a home it makes a folder named ~ where it runs."""
    return "NUMBA_CACHE_DIR" in os.environ or os.path.expanduser("~") != "~"


def njit(*, cache: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Compiled]:
    """Compile a function on its first call, with these options of numba.njit; `cache` keeps the code on disk."""
    return lambda function: Compiled(function, cache, options)


kernel = njit(nogil=True, error_model="numpy")  # runs beside other threads, and tests no divisor for 0
