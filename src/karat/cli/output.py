"""Results on standard output, talk on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from karat.installation import shown_path

__all__ = ["Output", "aligned", "program", "typed", "whisper"]


class Output:
    """How much a command prints, and in which form."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False, events: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.events = events  # standard error is a stream of JSON lines, with nothing else in it

    def say(self, *lines: str) -> None:
        """Messages for the person at the terminal."""
        if not (self.quiet or self.events):
            self.complain(*lines)

    def complain(self, *lines: str) -> None:
        """What is wrong: printed whatever the flags."""
        from karat.formats import clean

        for line in lines:
            whisper(clean(line))

    def result(self, text: str, data: Any = None) -> None:
        """The result: `text`, or with --json the value. Of what a terminal obeys, colours alone stay in `text`."""
        if self.as_json:
            import msgspec

            self.json(msgspec.json.format(msgspec.json.encode(data)).decode())
        else:
            self.text(text)

    def text(self, *parts: str) -> None:
        """A result that has one form only, for people."""
        for part in parts:
            _print(_cleaned(part))

    def json(self, text: str) -> None:
        """A result that is JSON: the same value, and nothing in it that a terminal obeys."""
        from karat.formats import escaped

        _print(escaped(text))

    def file(self, text: str) -> None:
        """The text of a file for programs: as it is, unless a terminal would get it."""
        _print(_cleaned(text) if sys.stdout.isatty() else text)

    @property
    def live(self) -> bool:
        """Whether a person may be watching."""
        return sys.stderr.isatty() and not (self.quiet or self.events)


_COLORS = re.compile("(\x1b\\[[0-9;]*m)")


def _cleaned(text: str) -> str:
    from karat.formats import clean

    # Every second piece is a colour: that of our own report, since foreign text was cleaned on its way into it.
    return "".join(piece if index % 2 else clean(piece) for index, piece in enumerate(_COLORS.split(text)))


def _print(text: str) -> None:
    click.echo(text, nl=not text.endswith("\n"))


def whisper(line: str, stream: TextIO | None = None) -> None:
    """One line on standard error; nothing where nobody can read it any more: a run does not end for that."""
    try:
        click.echo(line, file=stream, err=True)
    except OSError:
        return


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows of cleaned cells as lines, two spaces between columns; those in `right` are set right.

    >>> aligned([("a", "1"), ("long", "10")], right={1})
    ['a      1', 'long  10']
    """
    from karat.formats import width

    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        pairs = [(cell, " " * (wide - width(cell))) for cell, wide in zip(row, widths, strict=True)]
        cells = (blank + cell if at in right else cell + blank for at, (cell, blank) in enumerate(pairs))
        lines.append("  ".join(cells).rstrip())
    return lines


def program() -> tuple[str, ...]:
    """How this very program is called from here: `karat` where the shell finds it, else by its path."""
    import shutil

    python = Path(sys.executable)
    own = python.with_name("karat")
    found = shutil.which("karat")
    if not own.is_file():
        return (shown_path(python), "-m", "karat")
    if found is not None and own.samefile(found):
        return ("karat",)
    path = shown_path(own)
    return (path if "/" in path else f"./{path}",)


def typed(*words: str | Sequence[str]) -> str:
    """A command of karat that can be copied and typed, from here, into a shell."""
    import shlex

    flat = [word for part in words for word in ([part] if isinstance(part, str) else part)]
    return shlex.join([*program(), *flat])
