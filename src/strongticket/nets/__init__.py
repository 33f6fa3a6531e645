"""The theorems' networks in plain torch, and what can be done with two of them: merge, certify, attack, compare.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from strongticket.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
