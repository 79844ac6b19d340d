"""What is printed of an error that ends a command."""

from __future__ import annotations

import io
import traceback
from collections.abc import Mapping

import click

from karat.cli.ending import Exit
from karat.formats import clean, excerpt
from karat.redact import Redactor


def complain(error: BaseException, code: int, *, debug: bool, secrets: Mapping[str, str]) -> None:
    """Prints one sentence, or with `debug` the traceback, in which no secret is legible.

    Raises OSError if standard error is closed.
    """
    redact = Redactor(secrets)
    if debug and not isinstance(error, (click.Abort, click.UsageError)):
        click.echo(clean(redact("".join(traceback.format_exception(error)))), err=True)

    if isinstance(error, click.ClickException):
        message = io.StringIO()
        error.show(message)
        click.echo(clean(redact(message.getvalue())), err=True, nl=False)
    elif code == Exit.STOPPED:
        click.echo("stopped", err=True)
    elif code == Exit.KARAT_FAULT:
        shown = excerpt(redact(f"{type(error).__name__}: {error}"), 300)
        hint = "" if debug else "; --debug shows where"
        click.echo(f"karat: a bug in karat: {shown}{hint}", err=True)
    elif isinstance(error, OSError):
        if error.filename is not None:
            where = clean(redact(str(error.filename)))
        else:
            where = "the output could not be written"

        click.echo(f"karat: {where}: {error.strerror}", err=True)
    else:
        click.echo(clean(redact(str(error))), err=True)
