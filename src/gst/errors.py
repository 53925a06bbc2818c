"""The one family of errors that a user can cause."""


class GSTError(Exception):
    """Base of every error raised on purpose; its text is one line a user can act on."""


class InputError(GSTError, ValueError):
    """Bad input: what is wrong, where, and what would be right."""


class DamagedError(InputError):
    """A file that is not as it was written: cut, changed or foreign."""


class InterruptedRunError(GSTError):
    """Work was asked to stop and did, with its state on disk."""

    def __init__(self, signal: int, message: str) -> None:
        super().__init__(message)
        self.code = 128 + signal  # what a shell calls a process that this signal has ended
