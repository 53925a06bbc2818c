"""The one family of errors that a user can cause."""

from gst.base.text import message as one_line


class GSTError(Exception):
    """Base of every error raised on purpose; its text is one line a user can act on, of at most 300 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class InputError(GSTError, ValueError):
    """Bad input: what is wrong, where, and what would be right."""


class MissingError(InputError):
    """A file that is not there."""


class DamagedError(InputError):
    """A file that is not as it was written: cut, changed or foreign."""


class DivergedError(InputError):
    """Numbers that are none: with these data and settings training does not work."""


class AgreementWarning(UserWarning):
    """A sparse graph on which many answers are not those of the dense model."""


class InterruptedRunError(GSTError):
    """Work was asked to stop and did, with its state on disk."""

    def __init__(self, signal: int, message: str) -> None:
        super().__init__(message)
        self.code = 128 + signal  # what a shell calls a process that this signal has ended
