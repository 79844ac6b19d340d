"""What foreign code prints in this process, or through a program that it starts: line by line, as talk.

Standard output is for the result of a command alone. Agents, scorers and other code of the user's may print when
they are imported and when they run, to `sys.stdout` or to descriptor 1, which their subprocesses inherit.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from karat import formats
from karat.cli.output import whisper

__all__ = ["aside", "printed"]

_LONGEST_LINE = 65536  # bytes; what never ends its line is shown all the same


@contextmanager
def aside() -> Iterator[None]:
    """What is printed goes to standard error: around what foreign code does outside a run, its import above all."""
    stream = sys.stderr
    with printed(lambda line: whisper(line, stream), behind=stream):
        yield


@contextmanager
def printed(show: Callable[[str], None], *, behind: TextIO, descriptors: tuple[int, ...] = (1,)) -> Iterator[None]:
    """Hands each line that is printed, to standard output or standard error, to `show`, cleaned.

    `behind`: the stream whose file number is given to those who ask for one. `descriptors`: those of which
    the output is taken, too.
    """
    lines = _Lines(show, behind)
    # Never closed: a logging handler that an agent made holds it for as long as the process lives.
    stream = io.TextIOWrapper(lines, encoding="utf-8", errors="replace", write_through=True)  # type: ignore[type-var]  # it writes only
    with ExitStack() as stack:
        for number in descriptors:
            stack.enter_context(_taken(number, lines))
        stack.enter_context(redirect_stdout(stream))
        stack.enter_context(redirect_stderr(stream))
        yield
    lines.rest()


@contextmanager
def _taken(number: int, lines: _Lines) -> Iterator[None]:
    """What is written to a descriptor becomes `lines`; afterwards it is what it was."""
    real = sys.__stdout__ if number == 1 else sys.__stderr__
    try:
        before = os.dup(number)
    except OSError:  # it is closed
        yield
        return
    _flush(real)
    reading, writing = os.pipe()
    os.dup2(writing, number)
    os.close(writing)
    end, drained = b"\0" + secrets.token_hex(16).encode(), threading.Event()
    threading.Thread(target=_read, args=(reading, lines, end, drained), name="karat-printed", daemon=True).start()
    try:
        yield
    finally:
        _flush(real)
        os.write(number, end)  # behind it comes only what programs write that outlive the block
        os.dup2(before, number)
        os.close(before)
        drained.wait()


def _flush(stream: TextIO | None) -> None:
    with suppress(OSError, ValueError):
        if stream is not None:
            stream.flush()


def _read(reading: int, lines: _Lines, end: bytes, drained: threading.Event) -> None:
    held = b""
    while data := os.read(reading, 65536):
        if drained.is_set():
            continue  # a program that was left behind: it can write, and nobody listens
        held += data
        text, found, _ = held.partition(end)
        if not found:
            begun = held.rfind(end[:1], -len(end))  # the mark may have come in part
            text, held = (held, b"") if begun < 0 else (held[:begun], held[begun:])
        lines.write(text)
        if found:
            drained.set()
    os.close(reading)


class _Lines(io.RawIOBase):
    """Bytes → whole lines. Agents run on threads: each has a line of its own."""

    def __init__(self, show: Callable[[str], None], behind: TextIO) -> None:
        self._show, self._behind = show, behind
        self._open: dict[int, bytes] = {}  # thread → the line it has begun

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._behind.fileno()

    def write(self, data: object) -> int:
        written = bytes(data)  # type: ignore[call-overload]  # any buffer, as the class above has it
        thread = threading.get_ident()
        *whole, rest = (self._open.pop(thread, b"") + written).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            whole, rest = [*whole, rest], b""
        if rest:
            self._open[thread] = rest
        for line in whole:
            self._tell(line)
        return len(written)

    def rest(self) -> None:
        """Shows the lines that were begun and not ended."""
        while self._open:
            _, line = self._open.popitem()
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        self._show(formats.clean(line.rstrip(b"\r").decode("utf-8", "replace")))
