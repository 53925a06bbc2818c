"""All errors that a user can cause."""

from gst.base.text import message as one_line


class GSTError(Exception):
    """Base of every error raised on purpose; its text is one line of at most 300 characters that a user can act on.

    >>> try:
    ...     raise InputError("sparsity=2: a share below 1 is needed")
    ... except GSTError as error:
    ...     print(error)
    sparsity=2: a share below 1 is needed
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class InputError(GSTError, ValueError):
    """Bad input: what is wrong, where, and what would be right.

    >>> import gst
    >>> try:
    ...     gst.load("coro")
    ... except InputError as error:
    ...     print(str(error).partition("? ")[0])
    unknown data set 'coro': did you mean 'Cora'
    """


class MissingError(InputError):
    """A file that does not exist."""


class DamagedError(InputError):
    """A file that is truncated, altered or foreign.

    >>> import gst, pathlib, tempfile
    >>> run = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (run / "run.json").write_text("{")
    >>> try:
    ...     gst.Result.load(run)
    ... except DamagedError as error:
    ...     print("run.json" in str(error))
    True
    """


class DivergedError(InputError):
    """Training produced NaN or infinite values: it does not work with these data and settings.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> try:
    ...     few = dict(hidden=4, anchor_epochs=2, sparse_epochs=1, cache=False)
    ...     data.x = data.x * 1e38
    ...     gst.sparsify(data, "gst", sparsity=0.5, **few)
    ... except DivergedError as error:
    ...     print("epoch" in str(error))
    True
    """


class AgreementWarning(UserWarning):
    """Many predictions on the sparse graph differ from those of the dense model.

    >>> import gst, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", AgreementWarning)  # in comparisons of methods it is no news
    """


class DataWarning(UserWarning):
    """What was left out, merged or assumed while data were read.

    >>> import gst, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DataWarning)  # refuse tables in which anything is repeated or left out
    """


class CostWarning(UserWarning):
    """A search takes long, because the model is not one that the kernels know.

    >>> import gst, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", gst.CostWarning)  # where the time is there
    """


class InterruptedRunError(GSTError):
    """Work stopped by a signal; with a checkpoint, its state is on disk.

    >>> InterruptedRunError(15, "stopped").code
    143
    """

    def __init__(self, signal: int, message: str) -> None:
        super().__init__(message)
        self.code = 128 + signal  # a shell's exit code for a process ended by this signal
