"""Strong lottery tickets in transformers: a random network plus a binary mask."""

from importlib.metadata import version as _version

__version__ = _version("strongticket")
