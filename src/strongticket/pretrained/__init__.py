"""Any trained torch model as a pruned random network. Importing this is cheap; torch loads when it is needed."""

from strongticket.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
