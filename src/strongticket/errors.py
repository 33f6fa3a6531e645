"""The errors a user can mend. The command line prints them without a traceback."""


class StrongTicketError(ValueError):
    """Something asked for is wrong: the message says what, what was expected and what to do."""


class TicketError(StrongTicketError):
    """A ticket file is damaged, unknown or does not fit."""


class MissingDependency(StrongTicketError, ImportError):
    """An optional package is not installed: the message says which extra brings it."""
