"""How ``gst`` exits: one line for a user's mistake, and an exit code that shells understand."""

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from gst.base.errors import AgreementWarning, DataWarning, GSTError, InputError, InterruptedRunError
from gst.base.text import message, shown

BAD_INPUT = 2
SAID = (AgreementWarning, DataWarning)  # warnings that are for a user of the command line, too
INTERRUPTED = 130
CLOSED_PIPE = 141


def run_and_exit(app: Callable[..., Any]) -> NoReturn:
    """Runs the command line and exits with 0, with 2 and one line for bad input, or with 128 + signal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a character shows a substitute
    try:
        check_arguments(sys.argv[1:])
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, so that a full disk is one line and not a traceback at shutdown
    except InterruptedRunError as error:
        _fail(str(error), error.code)
    except GSTError as error:
        _fail(str(error), BAD_INPUT)
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        _silence(sys.stdout)
        subject = "input or output failed" if error.filename is None else shown(error.filename, 160)
        _fail(f"{subject}: {error.strerror or error}", BAD_INPUT)
    except MemoryError:
        _fail("not enough memory: use a smaller graph, a smaller --hidden or --batch clusters", BAD_INPUT)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as stop:  # the parser and rich turn a closed pipe into this, each with another code
        if isinstance(stop.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except Exception as error:
        text = getattr(error, "format_message", None)  # errors of the command-line parser have it
        if text is None:
            raise
        _fail(text(), getattr(error, "exit_code", BAD_INPUT))
    if code == INTERRUPTED:  # the parser turns Ctrl-C into this
        _fail("interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Prints a warning of gst as one line without file and line number, and only from the first worker."""
    with warnings.catch_warnings():
        for kind in SAID:
            warnings.simplefilter("always", kind)
        default = warnings.showwarning

        def show(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
            if not issubclass(category, SAID):
                default(message, category, *args, **kwargs)
                return
            from gst.base import distributed  # noqa: PLC0415 - torch has long been loaded when a run warns

            if distributed.rank() == 0:
                print(f"gst: {message}", file=sys.stderr)

        warnings.showwarning = show
        yield


def check_arguments(arguments: Iterable[str]) -> None:
    """Refuses bytes that are not UTF-8: they could be neither printed nor stored with the run."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise InputError(f"'{shown(argument)}' is not UTF-8: give names that are")


def _leave_quietly() -> NoReturn:
    """Exits without output: the reader of the pipe has gone."""
    _silence(sys.stdout)
    _silence(sys.stderr)
    sys.exit(CLOSED_PIPE)


def _fail(text: str, code: int) -> NoReturn:
    try:
        print(f"gst: {message(text)}", file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)
    sys.exit(code)


def _silence(stream: TextIO | None) -> None:
    """Discards the rest of the buffer, which would fail again when the interpreter exits."""
    with suppress(OSError, ValueError, AttributeError):  # the stream may be closed, or replaced by a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]
