"""What agents written in Python print while a run goes on: line by line, without what a terminal obeys."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

from karat import formats

__all__ = ["printed"]

_LONGEST_LINE = 65536  # bytes; what never ends its line is shown all the same


@contextmanager
def printed(show: Callable[[str], None], *, behind: TextIO) -> Iterator[None]:
    """Hands each line that is printed, to standard output or standard error, to `show`, cleaned.

    `behind`: the stream whose file number is given to those who ask for one.
    """
    lines = _Lines(show, behind)
    # Never closed: a logging handler that an agent made holds it for as long as the process lives.
    stream = io.TextIOWrapper(lines, encoding="utf-8", errors="replace", write_through=True)  # type: ignore[type-var]  # it writes only
    with redirect_stdout(stream), redirect_stderr(stream):
        yield
    lines.rest()


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
