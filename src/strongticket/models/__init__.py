"""Any torch or Hugging Face model and its tokenizer: open, describe, rebuild, fill, compare, checksum.

The only package that asks transformers for a model. Importing it is cheap; torch loads when it is needed.
"""

from strongticket.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
