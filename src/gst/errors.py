"""The one family of errors that a user can cause."""


class GSTError(Exception):
    """Base of every error raised on purpose; its text is one line a user can act on."""


class InputError(GSTError, ValueError):
    """Bad input: what is wrong, where, and what would be right."""
