"""Errors the user can fix. The command line prints them without a traceback."""


class StrongTicketError(ValueError):
    """A request that cannot be carried out.

    what: what is wrong, and what was expected
    hint: what to do about it; may be empty

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


# Packages that rooms import at their top, and the extra that brings each.
_EXTRAS = dict.fromkeys(("transformers", "accelerate", "tokenizers", "huggingface_hub"), "huggingface")


class MissingDependency(StrongTicketError, ImportError):
    """An optional package is not installed; the hint names the extra that brings it."""

    def __init__(self, package: str, extra: str = "") -> None:
        super().__init__(
            f"{package} is not installed" if extra else package,
            hint=f'Run: pip install "strongticket[{extra}]"' if extra else "",
        )
        self.args = (package, extra)


def explained(error: ModuleNotFoundError) -> ImportError:
    """The same error, or a MissingDependency if an extra brings the missing package.

    >>> str(explained(ModuleNotFoundError(name="transformers.models")))
    'transformers is not installed. Run: pip install "strongticket[huggingface]"'
    """
    package = (error.name or "").partition(".")[0]
    return MissingDependency(package, _EXTRAS[package]) if package in _EXTRAS else error
