"""How a process of ``gst`` ends: one line for a person's mistake, and a code that a shell understands."""

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from gst.base.errors import GSTError, InputError, InterruptedRunError
from gst.base.text import message, shown

BAD, INTERRUPTED, CLOSED_PIPE = 2, 130, 141


def leave_by(app: Callable[..., Any]) -> NoReturn:
    """Runs the command line and ends the process: 0, or 2 and one line for bad input, or 128 + a signal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that does not know a sign shows another
    try:
        check_words(sys.argv[1:])
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk is still a line and not noise of the interpreter
    except InterruptedRunError as error:
        _fail(str(error), error.code)
    except GSTError as error:
        _fail(str(error), BAD)
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        _silence(sys.stdout)
        place = "input or output failed" if error.filename is None else shown(error.filename, 160)
        _fail(f"{place}: {error.strerror or error}", BAD)
    except MemoryError:
        _fail("not enough memory: a smaller graph, a smaller hidden or batch clusters would help", BAD)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as stop:  # how the parser and rich, each with a code of its own, take a closed pipe
        if isinstance(stop.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except Exception as error:
        text = getattr(error, "format_message", None)  # the command-line parser's own errors have one
        if text is None:
            raise
        _fail(text(), getattr(error, "exit_code", BAD))
    if code == INTERRUPTED:  # the parser turns Ctrl-C into this
        _fail("interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def check_words(words: Iterable[str]) -> None:
    """Refuses bytes that are no text: they could be neither printed nor stored with the run."""
    for word in words:
        if any("\ud800" <= sign <= "\udfff" for sign in word):
            raise InputError(f"'{shown(word)}' is not UTF-8: give names that are")


def _leave_quietly() -> NoReturn:
    """The reader of a pipe has gone: nobody is left to tell."""
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
    """Sends what is left in the buffer nowhere: it would fail once more when the interpreter ends."""
    with suppress(OSError, ValueError, AttributeError):  # a stream may be closed, or of a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]
