"""The figures and studies by name. A new one is a file with a STUDY (see study.py) and a line here."""

from importlib import import_module
from types import ModuleType

from strongticket.errors import StrongTicketError, require

# name of the module -> (a line of help, the extra it needs)
CATALOGUE = {
    "figure4": ("error against width", ""),
    "figure5": ("error against sequence length", ""),
    "figure6": ("error against width for 1 to 6 blocks", ""),
    "figure7": ("loss against parameters, with and without scaling", "huggingface"),
    "figure8": ("loss against the scale of queries and keys", "huggingface"),
    "frontier": ("loss against bytes, tickets and quantised training", "huggingface"),
    "lengths": ("sequences of up to 65,536 tokens", "huggingface"),
    "rule": ("which rule finds the best scale of queries and keys", "images"),
    "images": ("the valley of Figure 8 for a vision transformer", "images"),
    "multimodal": ("the same valley for image and text towers", "images"),
    "initialisations": ("which property of the random weights decides the loss", "images"),
    "constant": ("the theorems' constant C, measured", ""),
    "bits": ("width against bits: a subset of few random weights, or one of many", ""),
    "randomness": ("bits above the limit, from independent random weights to a fixed grid", ""),
    "sparsity": ("width against the fraction of weights that is kept", ""),
    "quantised": ("exact tickets: width against the bits of quantised weights", ""),
    "algorithms": ("what tickets can compute: sums, parentheses, a needle", "huggingface"),
}
# extra -> (module, package) of it that a study needs
_NEEDED = {
    "": (),
    "huggingface": (("transformers", ""), ("accelerate", ""), ("tokenizers", "")),
    "images": (("sklearn", "scikit-learn"), ("transformers", ""), ("accelerate", "")),
}


def load(name: str) -> ModuleType:
    """Import the module of a study, if all that it needs is installed."""
    if name not in CATALOGUE:
        raise StrongTicketError(
            f"{name!r} is not a figure or study", hint=f"Use one of {', '.join(CATALOGUE)} or all."
        )
    require("matplotlib", "figures")
    extra = CATALOGUE[name][1]
    for module, package in _NEEDED[extra]:
        require(module, extra, package)
    return import_module(f"strongticket.reproduce.{name}")
