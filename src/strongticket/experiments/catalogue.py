"""The experiments by name. A new one is a module (see driver.py) and an entry here."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from strongticket.errors import MissingDependency, StrongTicketError


@dataclass(frozen=True)
class Entry:
    """One experiment that can be reproduced.

    module: below strongticket.experiments; imported only when it is run
    about: one line of help
    reads: the options, beyond those that all read, that change its results
    extra: of the package, which it needs
    """

    module: str
    about: str
    reads: frozenset[str] = frozenset()
    extra: str = ""


CATALOGUE = {
    "figure4": Entry("figures.figure4", "error against width", frozenset({"learning_rate", "mip"})),
    "figure5": Entry(
        "figures.figure5", "error against sequence length", frozenset({"learning_rate", "init"})
    ),
    "figure6": Entry("figures.figure6", "error against width for 1 to 6 blocks", frozenset({"init"})),
    "figure7": Entry(
        "figures.figure7", "loss against parameters, with and without scaling", extra="huggingface"
    ),
    "figure8": Entry("figures.figure8", "loss against the scale of queries and keys", extra="huggingface"),
    "frontier": Entry(
        "studies.frontier", "loss against bytes, tickets and quantised training", extra="huggingface"
    ),
    "lengths": Entry("studies.lengths", "sequences of up to 65,536 tokens", extra="huggingface"),
    "rule": Entry("studies.rule", "which rule finds the best scale of queries and keys", extra="images"),
    "images": Entry("studies.images", "the valley of Figure 8 for a vision transformer", extra="images"),
    "multimodal": Entry("studies.multimodal", "the same valley for image and text towers", extra="images"),
    "initialisations": Entry(
        "studies.initialisations", "which property of the random weights decides the loss", extra="images"
    ),
    "algorithms": Entry(
        "studies.algorithms", "what tickets can compute: sums, parentheses, a needle", extra="huggingface"
    ),
}
# extra -> packages of it that a run needs
PACKAGES = {
    "huggingface": ("transformers", "accelerate", "tokenizers"),
    "images": ("sklearn", "transformers", "accelerate"),
}


def names(which: str) -> tuple[str, ...]:
    """Return the experiments that a word of the command line stands for.

    which: a name of the catalogue, "figures", "studies" or "all"

    >>> names("figure4")
    ('figure4',)
    """
    if which in CATALOGUE:
        return (which,)
    chosen = tuple(
        name for name, entry in CATALOGUE.items() if which == "all" or entry.module.startswith(f"{which}.")
    )
    if not chosen:
        raise StrongTicketError(
            f"{which!r} is not a figure or study", hint=f"Use one of {', '.join(CATALOGUE)} or all."
        )
    return chosen


def load(name: str) -> ModuleType:
    """Import the module of one experiment, if all that it needs is installed.

    name: a key of CATALOGUE
    """
    (name,) = names(name)
    entry = CATALOGUE[name]
    for package in PACKAGES.get(entry.extra, ()):
        if not _is_installed(package):
            raise MissingDependency(package, entry.extra)
    return import_module(f"strongticket.experiments.{entry.module}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # blocked: its entry in sys.modules is None
        return False
