"""How a command ends: one exit code, and one sentence where something went wrong."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from types import TracebackType

import click

from karat.errors import KaratError

__all__ = ["Ending", "Exit"]


class Exit(IntEnum):
    """What the exit code of a command says."""

    DONE = 0
    GATE_MISSED = 1
    CHANGE_SOMETHING = 2
    TRIALS_FAILED = 3
    KARAT_FAULT = 70
    STOPPED = 130


class Ending:
    """Around a whole command: whatever it raises becomes `code` and a message on standard error.

    A context manager, because it looks at what passes and catches nothing by a broad `except`:
    `--debug` can so show the traceback of anything, and SystemExit goes on its way.
    """

    def __init__(self) -> None:
        self.code = 0
        self.debug = False

    def __enter__(self) -> Ending:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            return True
        if isinstance(error, SystemExit):
            return False
        if isinstance(error, BrokenPipeError):
            _close_pipes()
            return True
        self.code = _code(error)
        _tell(error, self.code, debug=self.debug)
        return True


def _code(error: BaseException) -> int:
    if isinstance(error, KaratError):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return Exit.STOPPED
    if isinstance(error, click.ClickException) or (isinstance(error, OSError) and error.filename is not None):
        return Exit.CHANGE_SOMETHING
    return Exit.KARAT_FAULT


def _tell(error: BaseException, code: int, *, debug: bool) -> None:
    from karat.formats import clean, excerpt

    if debug and not isinstance(error, (click.Abort, click.UsageError)):
        import traceback

        click.echo(clean("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, click.ClickException):
        error.show()
    elif code == Exit.STOPPED:
        click.echo("stopped", err=True)
    elif code == Exit.KARAT_FAULT:
        what = excerpt(f"{type(error).__name__}: {error}", 300)
        hint = "" if debug else "; --debug shows where"
        click.echo(f"karat: a fault of karat itself: {what}{hint}", err=True)
    elif isinstance(error, OSError):
        click.echo(f"karat: {clean(str(error.filename))}: {error.strerror}", err=True)
    else:
        click.echo(clean(str(error)), err=True)


def _close_pipes() -> None:
    """Whoever read our output has gone: what is still buffered has nowhere to go, and that is no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
