"""Results on standard output, messages on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TextIO

import click

from karat.formats import clean, escaped, width
from karat.installation import shown_path


class Output:
    """How much a command prints, and in which form."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False, events: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.events = events  # standard error is a stream of JSON lines and nothing else

    def say(self, *lines: str) -> None:
        """Prints messages for the person at the terminal."""
        if not (self.quiet or self.events):
            self.complain(*lines)

    def complain(self, *lines: str) -> None:
        """Prints problems, whatever the flags."""
        for line in lines:
            whisper(clean(line))

    def result(self, text: str, data: object = None) -> None:
        """Prints the result: `text`, or with --json the value.

        `text` keeps colours but no other control sequences.
        """
        if self.as_json:
            import msgspec

            self.json(msgspec.json.format(msgspec.json.encode(data)).decode())
        else:
            self.text(text)

    def text(self, *parts: str) -> None:
        """Prints a result that only has a form for people."""
        for part in parts:
            _print(_cleaned(part))

    def json(self, text: str) -> None:
        """Prints a result that is JSON already, with control characters escaped: the value stays
        the same.
        """
        _print(escaped(text))

    def file(self, text: str) -> None:
        """Prints the text of a file for programs: unchanged, except on a terminal."""
        _print(_cleaned(text) if sys.stdout.isatty() else text)

    @property
    def live(self) -> bool:
        """Whether a person may be watching."""
        return sys.stderr.isatty() and not (self.quiet or self.events)


_COLORS = re.compile("(\x1b\\[[0-9;]*m)")


def _cleaned(text: str) -> str:
    # Every second piece is a colour, and one of ours: foreign text was cleaned before it got here.
    return "".join(
        piece if index % 2 else clean(piece) for index, piece in enumerate(_COLORS.split(text))
    )


def _print(text: str) -> None:
    click.echo(text, nl=not text.endswith("\n"))


def whisper(line: str, stream: TextIO | None = None) -> None:
    """Prints one line to standard error; does nothing if that is closed, which is no reason to end
    a run.
    """
    try:
        click.echo(line, file=stream, err=True)
    except OSError:
        return


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows of cleaned cells as lines, with two spaces between columns; those in `right` are
    right-aligned.

    >>> aligned([("a", "1"), ("long", "10")], right={1})
    ['a      1', 'long  10']
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        pairs = [(cell, " " * (wide - width(cell))) for cell, wide in zip(row, widths, strict=True)]
        cells = (
            blank + cell if at in right else cell + blank for at, (cell, blank) in enumerate(pairs)
        )
        lines.append("  ".join(cells).rstrip())

    return lines


def program() -> tuple[str, ...]:
    """How to call this program from here: `karat` if the shell finds it, else its path."""
    import shutil

    python = Path(sys.executable)
    own = python.with_name("karat")
    command = shutil.which("karat")
    if not own.is_file():
        return (shown_path(python), "-m", "karat")
    if command is not None and own.samefile(command):
        return ("karat",)
    path = shown_path(own)
    return (path if "/" in path else f"./{path}",)


def typed(*words: str | Sequence[str]) -> str:
    """A command of karat that can be pasted into a shell."""
    import shlex

    flat = [word for part in words for word in ([part] if isinstance(part, str) else part)]
    return shlex.join([*program(), *flat])
