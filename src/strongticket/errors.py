"""Errors the user can fix. The command line prints them without a traceback."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StrongTicketError(ValueError):
    """A request that cannot be carried out.

    Attributes:
        what: what is wrong, and what was expected.
        hint: what to do about it; may be empty.

    >>> str(StrongTicketError("width=0: expected a whole number above 0", hint="Pass width=16."))
    'width=0: expected a whole number above 0. Pass width=16.'
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)  # both as arguments, so that other processes can send it
        self.what, self.hint = what, hint

    def __str__(self) -> str:
        if not self.hint:
            return self.what
        stop = "" if self.what.endswith((".", "!", "?", ":")) else "."
        return f"{self.what}{stop} {self.hint}"


class TicketError(StrongTicketError):
    """A ticket file is damaged, unknown or does not fit."""


# Packages imported at the top of a module, and the extra that brings each.
_EXTRAS = dict.fromkeys(("transformers", "accelerate", "tokenizers", "huggingface_hub"), "huggingface")


class MissingDependency(StrongTicketError, ImportError):
    """An optional package is not installed; the hint names the extra that brings it."""

    def __init__(self, package: str, extra: str = "") -> None:
        super().__init__(
            f"{package} is not installed" if extra else package,
            hint=f'Run: pip install "strongticket[{extra}]"' if extra else "",
        )
        self.args = (package, extra)


def as_missing_dependency(error: ModuleNotFoundError) -> ImportError:
    """Return the same error, or a MissingDependency if an extra brings the missing package.

    >>> str(as_missing_dependency(ModuleNotFoundError(name="transformers.models")))
    'transformers is not installed. Run: pip install "strongticket[huggingface]"'
    """
    package = (error.name or "").partition(".")[0]
    return MissingDependency(package, _EXTRAS[package]) if package in _EXTRAS else error


def require(module: str, extra: str, package: str = "") -> Any:
    """Import an optional module that this extra of strongticket brings; `package` is its other name on PyPI."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingDependency(package or module, extra) from None


@contextmanager
def prefixed(what: str, error_class: type[StrongTicketError] = StrongTicketError) -> Iterator[None]:
    """Put `what` in front of our errors, and turn those of libraries (panics of Rust too) into ours.

    >>> with prefixed("config.json"):
    ...     {}["n_layer"]
    Traceback (most recent call last):
    strongticket.errors.StrongTicketError: config.json: KeyError: 'n_layer'
    """
    try:
        yield
    except (MissingDependency, TicketError):
        raise
    except StrongTicketError as error:
        raise error_class(f"{what}: {error.what}", hint=error.hint) from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise error_class(f"{what}: {first_line(error)}") from error


@contextmanager
def in_ticket(where: str) -> Iterator[None]:
    """Raise our errors, and a lack of memory, as a TicketError that begins with where: the file or the tensor.

    Without where, they are TicketErrors as they are.
    """
    prefix = f"{where}: " if where else ""
    try:
        yield
    except StrongTicketError as error:
        raise TicketError(prefix + error.what, hint=error.hint) from None
    except OSError as error:
        raise TicketError(
            f"cannot read {where}: {error.strerror or error}", hint="Name a ticket file."
        ) from None
    except MemoryError:
        raise TicketError(f"{prefix}not enough memory for it") from None


def first_line(error: object) -> str:
    """Return the first line of what a library said, shortened; a missing key is called one."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    text = f"KeyError: {text}" if isinstance(error, KeyError) else text
    return text if len(text) < 300 else f"{text[:300]}…"
