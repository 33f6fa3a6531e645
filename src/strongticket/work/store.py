"""Stands in for the store until it is merged."""

from collections.abc import Callable

Advance = Callable[[int, int], None]
