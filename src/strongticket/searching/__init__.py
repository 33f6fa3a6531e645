"""Tickets by search: random weights stay frozen, data decides which of them are kept.

Importing this is cheap; torch and transformers load when a name that needs them is used.
"""

from strongticket.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
