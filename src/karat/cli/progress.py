"""What a person sees while a run goes on: live lines on a terminal, a sparse line elsewhere, or JSON events."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from karat import formats
from karat.cli.output import Output, whisper
from karat.cli.painter import Painter, can_paint
from karat.cli.printed import printed
from karat.cli.progress_lines import block, log_line
from karat.cli.running import Running
from karat.cli.sofar import Look
from karat.execution import RunStatus

if TYPE_CHECKING:
    from karat.redact import Redactor

__all__ = ["following"]

Show = Callable[[str], None]

_FIRST_LINE_SECONDS = 10.0
_LONGEST_SILENCE_SECONDS = 300.0
_DRAWN_EVERY_SECONDS = 0.25
_EVENT_EVERY_SECONDS = 10.0


@contextmanager
def following(output: Output, redact: Redactor) -> Iterator[RunStatus]:
    """A RunStatus whose counts and notices are shown, for as long as the block runs.

    What agents written in Python print goes to standard error meanwhile (standard output is
    for the result): without what a terminal obeys, and as an event among events.
    """
    stream = sys.stderr  # this very one: later sys.stderr is what takes in the agents' prints
    descriptors: tuple[int, ...] = (1,)
    if output.events:
        if _descriptor(stream) == 2:  # what programs of the agent write there must be events, too
            descriptors, stream = (1, 2), os.fdopen(os.dup(2), "w", encoding=stream.encoding, errors="replace")
        shown = _as_events(redact, stream)
    elif output.quiet:
        shown = _silent(redact, stream)
    elif output.live and can_paint(stream):
        shown = _live(redact, stream)
    else:
        shown = _sparse(redact, stream)
    with shown as (watch, show), printed(show, behind=stream, descriptors=descriptors):
        yield watch


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except OSError:
        return None


@contextmanager
def _silent(redact: Redactor, stream: TextIO) -> Iterator[tuple[RunStatus, Show]]:
    yield RunStatus(), lambda text: whisper(redact(text), stream)


@contextmanager
def _as_events(redact: Redactor, stream: TextIO) -> Iterator[tuple[RunStatus, Show]]:
    """Every journalled event as it comes; how things stand at the beginning, now and then, and at the end."""
    from karat.journal import Codec

    codec = Codec(redact)

    def write(event: Any) -> None:
        whisper(formats.escaped(codec.encode(event).decode()), stream)

    def listen(event: Any) -> None:
        write({"event": "notice", "text": event} if isinstance(event, str) else event)

    running = Running()
    watch = RunStatus(listen, running)
    look = Look(watch, running)

    def tell() -> None:
        if watch.planned:
            write(look(exact=True))

    with _every(_EVENT_EVERY_SECONDS, tell):
        yield watch, lambda text: write({"event": "output", "text": text})
    tell()


@contextmanager
def _live(redact: Redactor, stream: TextIO) -> Iterator[tuple[RunStatus, Show]]:
    running = Running()
    watch = RunStatus(_notices(lambda text: painter.above(text, notice=True), redact), running)
    look = Look(watch, running, redact=redact)
    painter = Painter(stream, lambda columns, rows: block(look(), columns=columns, rows=rows))
    painter.draw()
    try:
        with _every(_DRAWN_EVERY_SECONDS, painter.draw):
            yield watch, lambda text: painter.above(redact(text))
    finally:
        painter.end()


@contextmanager
def _sparse(redact: Redactor, stream: TextIO) -> Iterator[tuple[RunStatus, Show]]:
    """A line after ten seconds, then ever more rarely: a log file is read afterwards."""
    running = Running()
    watch = RunStatus(_notices(lambda text: whisper(text, stream), redact), running)
    look = Look(watch, running, redact=redact)

    def tell() -> None:
        whisper(log_line(look()), stream)

    with _every(_FIRST_LINE_SECONDS, tell, slower=1.5):
        yield watch, lambda text: whisper(redact(text), stream)


def _notices(show: Show, redact: Redactor) -> Callable[[Any], None]:
    def listener(event: Any) -> None:
        if isinstance(event, str):
            show(redact(formats.clean(event)))

    return listener


@contextmanager
def _every(seconds: float, act: Callable[[], None], *, slower: float = 1.0) -> Iterator[None]:
    """Calls `act` again and again on a thread of its own, `slower` times more rarely each time."""
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
