"""Some lines at the bottom of a terminal that are drawn again and again, with other text passing above them.

Nothing is erased before it is drawn: each line is written over the one before, then what is
left of that is cleared, all in one write, and only when something has changed. So it
does not flicker. No line reaches the last column, where terminals differ in what comes next.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TextIO

from karat import formats

__all__ = ["Painter", "can_paint", "size_of"]

_UP, _END_OF_LINE, _BELOW = "\x1b[{}A", "\x1b[K", "\x1b[J"
_BAR, _NOTICE, _PLAIN = "\x1b[36m", "\x1b[33m", "\x1b[0m"

Compose = Callable[[int, int], Sequence[str]]
"""Columns and rows that there are → lines without anything that a terminal obeys."""


class Painter:
    """`draw()` when something may have changed; `above(text)` for what is to stay; `end()` takes the lines away."""

    def __init__(self, stream: TextIO, compose: Compose) -> None:
        self._stream, self._compose = stream, compose
        self._color = not os.environ.get("NO_COLOR")
        self._shown: list[str] = []
        self._columns = 0
        self._lock = threading.RLock()

    def draw(self) -> None:
        """Draws the lines as they are now, unless they stand there already."""
        columns, rows = size_of(self._stream)
        # One column and one row less: the cursor rests below the lines.
        lines = list(self._compose(columns - 1, rows - 1))
        with self._lock:
            if lines != self._shown or columns != self._columns:
                self._write(self._back() + self._drawn(lines))
                self._shown, self._columns = lines, columns

    def above(self, text: str, *, notice: bool = False) -> None:
        """Prints text, cleaned before, where it stays: above the lines."""
        styled = f"{_NOTICE}{text}{_PLAIN}" if notice and self._color else text
        with self._lock:
            self._write(f"{self._back()}{_BELOW}{styled}\n{self._drawn(self._shown)}")

    def end(self) -> None:
        """Takes the lines away."""
        with self._lock:
            self._write(f"{self._back()}{_BELOW}")
            self._shown = []

    def _back(self) -> str:
        """To the first of the lines. A terminal that became narrower has folded them."""
        columns, _ = size_of(self._stream)
        rows = sum(max(1, -(-formats.width(line) // max(1, columns))) for line in self._shown)
        return "\r" + (_UP.format(rows) if rows else "")

    def _drawn(self, lines: Sequence[str]) -> str:
        return "".join(f"{self._styled(line)}{_END_OF_LINE}\n" for line in lines) + (_BELOW if lines else "")

    def _styled(self, line: str) -> str:
        full = len(line) - len(line.lstrip("━─"))
        return f"{_BAR}{line[:full]}{_PLAIN}{line[full:]}" if full and self._color else line

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            return  # nobody looks any more: a run does not end for that


def can_paint(stream: TextIO) -> bool:
    """Whether a terminal is there that knows how to move its cursor, and the letters that are drawn."""
    if not stream.isatty() or os.environ.get("TERM", "").lower() in ("", "dumb", "unknown"):
        return False
    return (getattr(stream, "encoding", None) or "").lower().startswith("utf") and sys.platform != "win32"


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and rows; where COLUMNS or LINES say less than the terminal does, so many."""
    try:
        real = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        real = os.terminal_size((0, 0))
    return _least(real.columns, "COLUMNS", 80), _least(real.lines, "LINES", 24)


def _least(real: int, name: str, otherwise: int) -> int:
    told = os.environ.get(name, "")
    said = int(told) if told.isascii() and told.isdigit() else 0
    known = [number for number in (real, said) if number > 0]
    return min(known, default=otherwise)
