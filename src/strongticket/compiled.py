"""numba's njit, also where compiled code cannot be kept: without a home, in an install that is read-only."""

from collections.abc import Callable
from typing import Any

import numba


def njit(*, cache: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, and keep the result in numba's cache folder if there is one.

    Args:
        cache: keep compiled code on disk. numba chooses NUMBA_CACHE_DIR, the package's own folder or the
            user's cache folder, and raises RuntimeError if none is writable; then every process compiles anew.
        options: as numba.njit takes them.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError:
            return numba.njit(**options)(function)

    return compiled
