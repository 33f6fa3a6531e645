"""Strong lottery tickets in transformers: a random network plus a binary mask.

`__init__.pyi` beside this file lists the API. A name is imported when it is first used: `import strongticket` alone
loads neither torch nor numba.
"""

from importlib.metadata import version

from strongticket.lazy import lazy_names

__version__ = version("strongticket")
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
