"""All errors that a user can cause."""

from gst.base.text import message as one_line


class GSTError(Exception):
    """Base of every error raised on purpose; its text is one line of at most 300 characters that a user can act on."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class InputError(GSTError, ValueError):
    """Bad input: what is wrong, where, and what would be right."""


class MissingError(InputError):
    """A file that does not exist."""


class DamagedError(InputError):
    """A file that is truncated, altered or foreign."""


class DivergedError(InputError):
    """Training produced NaN or infinite values: it does not work with these data and settings."""


class AgreementWarning(UserWarning):
    """Many predictions on the sparse graph differ from those of the dense model."""


class InterruptedRunError(GSTError):
    """Work stopped by a signal; with a checkpoint, its state is on disk."""

    def __init__(self, signal: int, message: str) -> None:
        super().__init__(message)
        self.code = 128 + signal  # a shell's exit code for a process ended by this signal
