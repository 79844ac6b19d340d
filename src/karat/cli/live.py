"""What you see during a run: live lines on a terminal, an occasional line elsewhere, or JSON
events.

Live lines are redrawn at the bottom of the terminal while other text scrolls above them. To avoid
flicker, nothing is erased first: each line overwrites the one before, then the rest of that is
cleared, all in one write, and only when something has changed. No line reaches the last column,
because terminals differ in what happens there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from karat import formats
from karat.cli.output import Output, whisper
from karat.cli.printed import printed
from karat.cli.progress import ProgressReader
from karat.cli.progress_lines import block, log_line
from karat.cli.running_means import RunningMeans
from karat.execution import RunStatus
from karat.journal import Codec

if TYPE_CHECKING:
    from karat.redact import Redactor

_UP = "\x1b[{}A"
_END_OF_LINE = "\x1b[K"
_BELOW = "\x1b[J"
_BAR = "\x1b[36m"
_NOTICE = "\x1b[33m"
_PLAIN = "\x1b[0m"

Show = Callable[[str], None]
Compose = Callable[[int, int], Sequence[str]]
"""Columns and rows of the terminal → lines without control sequences."""

_FIRST_LINE_SECONDS = 10.0
_LONGEST_SILENCE_SECONDS = 300.0
_DRAWN_EVERY_SECONDS = 0.25
_EVENT_EVERY_SECONDS = 10.0


@contextmanager
def following(output: Output, redact: Redactor) -> Iterator[RunStatus]:
    """A RunStatus whose counts and notices are shown while the block runs.

    Meanwhile, whatever Python agents print goes to standard error (standard output is for the
    result), without control sequences; with --events, as an event.
    """
    stream = sys.stderr  # kept, because sys.stderr is replaced below to capture the agents' prints
    descriptors: tuple[int, ...] = (1,)
    descriptor = None
    if output.events:
        with suppress(OSError):
            descriptor = stream.fileno()
    # what the agent's programs write there must become events too
    if descriptor == 2:
        descriptors = (1, 2)
        stream = os.fdopen(os.dup(2), "w", encoding=stream.encoding, errors="replace")

    with (
        _shown(output, redact, stream) as (status, show),
        printed(_in_context(redact, show), behind=stream, descriptors=descriptors),
    ):
        yield status


def _in_context(redact: Redactor, show: Show) -> Show:
    """Shows a line without the secrets in it, also one that began on the line before."""
    before = ""

    def masked(line: str) -> None:
        nonlocal before
        lines = redact.values([before, line])
        before = line
        show(lines[1])

    return masked


@contextmanager
def _shown(output: Output, redact: Redactor, stream: TextIO) -> Iterator[tuple[RunStatus, Show]]:
    """The status, and a function that shows a line printed by an agent."""
    means = RunningMeans()

    def show(text: str) -> None:
        whisper(redact(text), stream)

    def notice(write: Show) -> Show:
        return lambda text: write(redact(formats.clean(text)))

    if output.events:
        with _as_events(redact, stream, means) as shown:
            yield shown
    elif output.quiet:
        yield RunStatus(), show
    elif output.live and can_paint(stream):
        above = notice(lambda text: painter.above(text, notice=True))
        status = RunStatus(follower=means, on_notice=above)
        reader = ProgressReader(status, means, redact=redact)
        painter = Painter(
            stream, lambda columns, rows: block(reader.read(), columns=columns, rows=rows)
        )
        status.on_remark = lambda text: painter.above(redact(text))
        painter.draw()
        try:
            with _every(_DRAWN_EVERY_SECONDS, painter.draw):
                yield status, lambda text: painter.above(redact(text))
        finally:
            painter.end()
    else:  # a line after ten seconds, then less and less often: a log file is read afterwards
        whispered = notice(lambda text: whisper(text, stream))
        status = RunStatus(follower=means, on_notice=whispered)
        status.on_remark = show
        reader = ProgressReader(status, means, redact=redact)
        with _every(
            _FIRST_LINE_SECONDS, lambda: whisper(log_line(reader.read()), stream), slower=1.5
        ):
            yield status, show


@contextmanager
def _as_events(
    redact: Redactor, stream: TextIO, means: RunningMeans
) -> Iterator[tuple[RunStatus, Show]]:
    """Every journalled event as it happens; the progress now and then, and at the end."""
    codec = Codec(redact)

    def write(event: object) -> None:
        whisper(formats.escaped(codec.line(event, checksum=False).decode()), stream)

    def write_progress() -> None:
        if status.planned:
            write(reader.read(exact=True))

    status = RunStatus(
        lambda event: write(
            {"event": "notice", "text": event} if isinstance(event, str) else event
        ),
        means,
    )
    reader = ProgressReader(status, means)
    with _every(_EVENT_EVERY_SECONDS, write_progress):
        yield status, lambda text: write({"event": "output", "text": text})
    write_progress()


@contextmanager
def _every(seconds: float, act: Callable[[], None], *, slower: float = 1.0) -> Iterator[None]:
    """Calls `act` repeatedly on a separate thread, `slower` times less often each time."""
    over = threading.Event()

    def tick() -> None:
        pause = seconds
        while not over.wait(pause):
            act()
            pause = min(slower * pause, max(seconds, _LONGEST_SILENCE_SECONDS))

    thread = threading.Thread(target=tick, name="karat-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Painter:
    """`draw()` when something may have changed; `above(text)` for text that stays; `end()` removes
    the lines.
    """

    def __init__(self, stream: TextIO, compose: Compose) -> None:
        self._stream = stream
        self._compose = compose
        self._color = not os.environ.get("NO_COLOR")
        self._shown: list[str] = []
        self._columns = 0
        self._lock = threading.RLock()

    def draw(self) -> None:
        """Draws the current lines, unless they are on the screen already."""
        columns, rows = size_of(self._stream)
        # One column and one row less: the cursor rests below the lines.
        lines = list(self._compose(columns - 1, rows - 1))
        with self._lock:
            if lines != self._shown or columns != self._columns:
                self._write(self._back() + self._drawn(lines))
                self._shown = lines
                self._columns = columns

    def above(self, text: str, *, notice: bool = False) -> None:
        """Prints text, already cleaned, above the lines, where it stays."""
        if notice and self._color:
            styled = f"{_NOTICE}{text}{_PLAIN}"
        else:
            styled = text

        with self._lock:
            self._write(f"{self._back()}{_BELOW}{styled}\n{self._drawn(self._shown)}")

    def end(self) -> None:
        """Removes the lines."""
        with self._lock:
            self._write(f"{self._back()}{_BELOW}")
            self._shown = []

    def _back(self) -> str:
        """Moves to the first of the lines. If the terminal became narrower, they have wrapped."""
        columns, _ = size_of(self._stream)
        rows = sum(max(1, -(-formats.width(line) // max(1, columns))) for line in self._shown)
        return "\r" + (_UP.format(rows) if rows else "")

    def _drawn(self, lines: Sequence[str]) -> str:
        drawn = []
        for line in lines:
            bar = len(line) - len(line.lstrip("━─"))
            if bar and self._color:
                drawn.append(f"{_BAR}{line[:bar]}{_PLAIN}{line[bar:]}")
            else:
                drawn.append(line)

        return "".join(f"{line}{_END_OF_LINE}\n" for line in drawn) + (_BELOW if lines else "")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            return  # the terminal is gone: no reason to end a run


def can_paint(stream: TextIO) -> bool:
    """Whether this is a terminal that can move its cursor and show the characters we draw."""
    if not stream.isatty() or os.environ.get("TERM", "").lower() in ("", "dumb", "unknown"):
        return False
    return (getattr(stream, "encoding", None) or "").lower().startswith(
        "utf"
    ) and sys.platform != "win32"


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal; COLUMNS and LINES can make them fewer."""
    try:
        real = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        real = os.terminal_size((0, 0))

    return _least(real.columns, "COLUMNS", 80), _least(real.lines, "LINES", 24)


def _least(real: int, name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    if text.isascii() and text.isdigit():
        number = int(text)
    else:
        number = 0

    return min([size for size in (real, number) if size > 0], default=otherwise)
