"""How a command ends: one exit code, and one sentence if something went wrong."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from select import select
from types import TracebackType

import click

from karat.errors import KaratError
from karat.garbage import freeze_own_objects

_PATIENCE_SECONDS = 5.0
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Exit(IntEnum):
    """The meaning of a command's exit code."""

    DONE = 0
    GATE_MISSED = 1
    CHANGE_SOMETHING = 2
    TRIALS_FAILED = 3
    GATE_UNDECIDED = 4
    KARAT_FAULT = 70
    STOPPED = 130
    READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended


def leave_in_time(code: int) -> None:
    """Ends the process soon, also if its main thread then waits for threads and processes that
    agents have left.
    """
    freeze_own_objects()
    threading.Thread(target=_leave, args=(code,), name="karat-leave", daemon=True).start()


def _leave(code: int) -> None:
    select([], [], [], _PATIENCE_SECONDS)  # `sleep` would need a clock, which may be set
    with suppress(OSError):
        os.write(
            2,
            (
                b"karat: does not wait for threads and processes that an agent or a scorer left "
                b"running\n"
            ),
        )

    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()

    os._exit(code)


class ReaderGone(Exception):
    """The output pipe is closed."""


@contextmanager
def past_click() -> Iterator[None]:
    """Lets a broken pipe pass click, which would exit with code 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class Ending:
    """Wraps a whole command: turns whatever it raises into `code` and a message on standard error.

    A context manager rather than a broad `except`, so that `--debug` can show the traceback of
    anything and SystemExit passes through.
    """

    def __init__(self) -> None:
        self.code = 0
        self.debug = False
        self.secrets: dict[str, str] = {}  # never printed, however the command ends

    def __enter__(self) -> Ending:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            return True
        if isinstance(error, (ReaderGone, BrokenPipeError)):
            self.code = Exit.READER_GONE
            _close_pipes()
            return True

        if isinstance(error, SystemExit):
            return False
        from karat.cli.complaint import complain  # most commands end well

        self.code = Exit.KARAT_FAULT
        if isinstance(error, KaratError):
            self.code = error.exit_code
        elif isinstance(error, (KeyboardInterrupt, click.Abort)):
            self.code = Exit.STOPPED
        elif isinstance(error, OSError):
            if error.filename is not None or error.errno in _FULL:
                self.code = Exit.CHANGE_SOMETHING
        elif isinstance(error, click.ClickException):
            self.code = Exit.CHANGE_SOMETHING

        with suppress(OSError):  # standard error is closed: the exit code has to do
            complain(error, self.code, debug=self.debug, secrets=self.secrets)

        if isinstance(error, OSError):
            _close_pipes()
        return True


def keep_hidden(secrets: Mapping[str, str]) -> None:
    """From now on, the current command's error messages show these values as `${NAME}`."""
    context = click.get_current_context(silent=True)
    if context is not None:
        ending = context.find_object(Ending)
    else:
        ending = None

    if ending is not None:
        ending.secrets.update(secrets)


def _close_pipes() -> None:
    """Discards what is still buffered: the interpreter would complain about it on exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # click replaces the first two
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
