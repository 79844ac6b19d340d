"""Lines that are drawn again and again, on a real pseudo-terminal that a small screen reads."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from karat.cli.live import Painter, can_paint, size_of

from .screen import CODES, Screen

MARK = "\x06"  # nothing that a painter writes


class Pseudo:
    """A terminal of a size, with a painter on it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self.resize(columns, rows)
        self.screen = Screen(columns, rows)
        self.raw: list[str] = []
        self.lines: list[str] = []
        self.painter = Painter(self.stream, lambda columns, rows: [line[:columns] for line in self.lines[:rows]])

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def draw(self, *lines: str) -> str:
        """What was written for these lines."""
        self.lines = list(lines)
        self.painter.draw()
        return self.read()

    def read(self) -> str:
        """All that was written until now: a terminal hands it on in parts, and later."""
        self.stream.write(MARK)
        self.stream.flush()
        told = b""
        while not told.endswith(MARK.encode()):
            told += os.read(self.master, 1 << 16)
        text = told.decode().removesuffix(MARK)
        self.screen.feed(text)
        return text

    def close(self) -> None:
        self.stream.close()
        os.close(self.master)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Pseudo]]:
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    opened: list[Pseudo] = []

    def make(columns: int = 40, rows: int = 8) -> Pseudo:
        opened.append(Pseudo(columns, rows))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_lines_are_written_over_the_ones_before(terminal):
    one = terminal()
    one.draw("━━── 1/2", "in flight 10", "third")
    assert one.screen.shown[:4] == ["━━── 1/2", "in flight 10", "third", ""]
    one.draw("━━━─ 2/2", "in 9")
    assert one.screen.shown[:4] == ["━━━─ 2/2", "in 9", "", ""]
    assert one.screen.gone == []


def test_what_has_not_changed_is_not_drawn_again(terminal):
    one = terminal()
    assert one.draw("same") != ""
    assert one.draw("same") == ""


def test_nothing_is_erased_before_it_is_drawn(terminal):
    """Whoever sees a frame in parts sees old lines or new ones, never an empty place."""
    one = terminal()
    one.draw("first", "second")
    told = one.draw("First", "Second")
    assert told.index("First") < told.index("\x1b[K")
    assert told.index("Second") < told.index("\x1b[J")


def test_text_passes_above_and_stays(terminal):
    one = terminal(rows=5)
    one.draw("counts", "more")
    for number in range(9):
        one.painter.above(f"said {number}", notice=number == 3)
        one.read()
    assert one.screen.gone + one.screen.shown == [*(f"said {number}" for number in range(9)), "counts", "more", ""]


def test_at_the_end_nothing_is_left(terminal):
    one = terminal()
    one.draw("counts", "more")
    one.painter.above("said")
    one.painter.end()
    one.read()
    assert one.screen.shown == ["said", *[""] * 7]
    assert one.screen.row == 1


def test_as_many_lines_as_the_terminal_has_scroll_nothing(terminal):
    one = terminal(rows=4)
    for number in range(5):
        one.draw(*(f"line {line} of {number}" for line in range(20)))
    assert one.screen.gone == []
    assert one.screen.shown == ["line 0 of 4", "line 1 of 4", "line 2 of 4", ""]


def test_a_terminal_that_became_narrower_is_drawn_anew(terminal):
    one = terminal(columns=40, rows=8)
    one.draw("a" * 39, "b" * 39)
    one.resize(20, 8)
    assert "\x1b[4A" in one.draw("a" * 39, "b" * 39)  # the two lines take four rows now


def test_without_colours_none_are_written(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    one = terminal()
    told = one.draw("━━── 1/2")
    one.painter.above("said", notice=True)
    assert "m" not in "".join(code[2] for code in CODES.finditer(told + one.read()))


@pytest.mark.parametrize(
    ("real", "env", "size"),
    [
        ((120, 50), {}, (120, 50)),
        ((120, 50), {"COLUMNS": "80", "LINES": "24"}, (80, 24)),
        ((60, 20), {"COLUMNS": "80", "LINES": "24"}, (60, 20)),
        ((0, 0), {}, (80, 24)),
        ((0, 0), {"COLUMNS": "100", "LINES": "x"}, (100, 24)),
    ],
)
def test_the_smaller_of_what_the_terminal_and_the_environment_say(terminal, monkeypatch, real, env, size):
    one = terminal(*real)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert size_of(one.stream) == size


@pytest.mark.parametrize("term", ["", "dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(terminal, monkeypatch, term):
    one: Any = terminal()
    assert can_paint(one.stream)
    monkeypatch.setenv("TERM", term)
    assert not can_paint(one.stream)


def test_letters_that_the_terminal_does_not_know_are_not_drawn(terminal, tmp_path):
    one: Any = terminal()
    with os.fdopen(os.dup(one.stream.fileno()), "w", encoding="ascii") as narrow:
        assert not can_paint(narrow)
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        assert not can_paint(file)
