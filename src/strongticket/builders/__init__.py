"""Target networks in, tickets out: one file per lemma or theorem.

Importing this is cheap; torch loads when a name that needs it is used.
"""

from strongticket.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
