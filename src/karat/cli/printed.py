"""Redirects what foreign code prints, itself or through a program that it starts, to messages, line
by line.

Standard output is only for the result of a command. But agents, scorers and other user code may
print when they are imported or run, to `sys.stdout` or to descriptor 1, which their subprocesses
inherit.
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

_LONGEST_LINE = 65536  # bytes; a longer line is shown in parts


@contextmanager
def aside() -> Iterator[None]:
    """Sends prints to standard error while foreign code runs outside a run, above all during its
    import.
    """
    stream = sys.stderr
    with printed(lambda line: whisper(line, stream), behind=stream):
        yield


@contextmanager
def printed(
    show: Callable[[str], None], *, behind: TextIO, descriptors: tuple[int, ...] = (1,)
) -> Iterator[None]:
    """Passes each line printed to standard output or standard error to `show`, cleaned.

    `behind` is the stream whose `fileno()` code gets if it asks for one; output to `descriptors` is
    captured too.
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
    """Sends what is written to a descriptor to `lines`, and restores the descriptor afterwards."""
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
    end = b"\0" + secrets.token_hex(16).encode()
    drained = threading.Event()
    threading.Thread(
        target=_read, args=(reading, lines, end, drained), name="karat-printed", daemon=True
    ).start()
    try:
        yield
    finally:
        _flush(real)
        os.write(number, end)  # after it come only writes of programs that outlive the block
        os.dup2(before, number)
        os.close(before)
        drained.wait()


def _flush(stream: TextIO | None) -> None:
    with suppress(OSError, ValueError):
        if stream is not None:
            stream.flush()


def _read(reading: int, lines: _Lines, end: bytes, drained: threading.Event) -> None:
    pending = b""
    while data := os.read(reading, 65536):
        if drained.is_set():
            continue  # a program that was left running: its output is no longer read
        pending += data
        text, marker, _ = pending.partition(end)
        if not marker:
            # perhaps only part of the marker has arrived
            marker_start = pending.rfind(end[:1], -len(end))
            if marker_start < 0:
                text, pending = (pending, b"")
            else:
                text, pending = (pending[:marker_start], pending[marker_start:])

        lines.write(text)
        if marker:
            drained.set()

    os.close(reading)


class _Lines(io.RawIOBase):
    """Bytes → whole lines. Agents run on threads: each has its own line."""

    def __init__(self, show: Callable[[str], None], behind: TextIO) -> None:
        self._show = show
        self._behind = behind
        self._open: dict[int, bytes] = {}  # thread → its unfinished line

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        try:
            return self._behind.fileno()
        except io.UnsupportedOperation:  # in a notebook; a child process needs one
            return 2

    def write(self, data: object) -> int:
        written = bytes(data)  # type: ignore[call-overload]  # any buffer, as in the base class
        thread = threading.get_ident()
        *lines, partial = (self._open.pop(thread, b"") + written).split(b"\n")
        if len(partial) > _LONGEST_LINE:
            lines = [*lines, partial]
            partial = b""

        if partial:
            self._open[thread] = partial
        for line in lines:
            self._tell(line)
        return len(written)

    def rest(self) -> None:
        """Shows unfinished lines."""
        while self._open:
            _, line = self._open.popitem()
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        self._show(formats.clean(line.rstrip(b"\r").decode("utf-8", "replace")))
