"""What a person sees while a run goes on: a live line on a terminal, a sparse plain line elsewhere, or JSON events."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from karat import formats
from karat.cli.output import Output, whisper
from karat.cli.printed import printed
from karat.engine import Watch

if TYPE_CHECKING:
    from karat.redact import Redactor

__all__ = ["bar", "following", "status_line"]

_FIRST_LINE_SECONDS = 10.0
_LONGEST_SILENCE_SECONDS = 300.0
_BAR_COLUMNS = 20
_ENOUGH_FOR_ETA = 3  # trials; from fewer nothing can be said of the rest


@contextmanager
def following(output: Output, redact: Redactor) -> Iterator[Watch]:
    """A Watch whose counts and notices are shown, for as long as the block runs.

    What agents written in Python print goes to standard error meanwhile (standard output is
    for the result): without what a terminal obeys, and as an event among events.
    """
    if output.events:
        shown = _as_events(redact, sys.stderr)
    elif output.quiet:
        shown = _silent()
    elif output.live:
        shown = _live(redact)
    else:
        shown = _sparse(output, redact)
    with shown as watch:
        behind = sys.stderr  # where a live line stands: the stream that prints above it
        write = _event_writer(redact, behind) if output.events else None

        def show(text: str) -> None:
            if write is not None:
                write({"event": "output", "text": text})
            else:
                whisper(redact(text), behind)

        with printed(show, behind=behind):
            yield watch


def status_line(watch: Watch) -> str:
    """Where a run stands, in one line.

    >>> status_line(Watch())
    'preparing'
    """
    if not watch.planned:
        return "preparing"
    done, planned = _done(watch), formats.count(watch.planned)
    parts = [f"{formats.count(done)}/{planned}", f"answered {formats.count(watch.before + watch.answered)}"]
    parts += [f"failed {formats.count(watch.failed)}"] if watch.failed else []
    parts += [f"retries {formats.count(watch.retries)}"] if watch.retries else []
    parts += [f"in flight {watch.in_flight}"] if watch.in_flight else []
    parts += [f"{name} at most {limit} at a time" for name, limit in watch.slowed.items()]
    if watch.answered or watch.dollars:
        parts.append(formats.dollars(watch.dollars, unknown=int(watch.dollars_unknown)))
    if watch.draining:
        parts.append("finishing")
    elif (left := _seconds_left(watch)) is not None:
        parts.append(f"{formats.duration(left)} left")
    return " · ".join(parts)


def bar(watch: Watch) -> str:
    """How much is done, drawn.

    >>> watch = Watch()
    >>> watch.planned, watch.settled = 4, 1
    >>> bar(watch)
    '━━━━━───────────────'
    """
    full = _BAR_COLUMNS * _done(watch) // watch.planned if watch.planned else 0
    return "━" * full + "─" * (_BAR_COLUMNS - full)


def _done(watch: Watch) -> int:
    # An earlier part's answer that is scored now counts in both: the sum is never shown above the plan.
    return min(watch.planned, watch.before + watch.settled)


def _seconds_left(watch: Watch) -> float | None:
    if watch.settled < _ENOUGH_FOR_ETA:
        return None
    return (watch.planned - _done(watch)) * watch.seconds / watch.settled


def _notices(show: Callable[[str], None], redact: Redactor) -> Callable[[Any], None]:
    def listener(event: Any) -> None:
        if isinstance(event, str):
            show(redact(formats.clean(event)))

    return listener


@contextmanager
def _silent() -> Iterator[Watch]:
    yield Watch()


@contextmanager
def _as_events(redact: Redactor, stream: TextIO) -> Iterator[Watch]:
    write = _event_writer(redact, stream)

    def listen(event: Any) -> None:
        write({"event": "notice", "text": event} if isinstance(event, str) else event)

    yield Watch(listen)


def _event_writer(redact: Redactor, stream: TextIO) -> Callable[[Any], None]:
    from karat.journal import Codec

    codec = Codec(redact)
    return lambda event: whisper(codec.line(event).decode().rstrip("\n"), stream)


@contextmanager
def _live(redact: Redactor) -> Iterator[Watch]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # This very stream: later sys.stderr is what takes in the agents' prints.
    console = Console(file=sys.stderr, highlight=False)
    if console.is_dumb_terminal:
        with _sparse(Output(), redact) as watch:
            yield watch
        return
    watch = Watch(_notices(lambda text: console.print(Text(text, style="yellow")), redact))

    def line() -> Text:
        styled = Text(bar(watch), style="cyan", no_wrap=True, overflow="ellipsis")
        return styled.append(f" {status_line(watch)}", style="default")

    with Live(get_renderable=line, console=console, refresh_per_second=5, transient=True):
        yield watch


@contextmanager
def _sparse(output: Output, redact: Redactor) -> Iterator[Watch]:
    """A line after ten seconds, then ever more rarely: a log file is read afterwards."""
    watch = Watch(_notices(output.say, redact))
    over = threading.Event()

    def tick() -> None:
        pause = _FIRST_LINE_SECONDS
        while not over.wait(pause):
            output.say(status_line(watch))
            pause = min(1.5 * pause, _LONGEST_SILENCE_SECONDS)

    thread = threading.Thread(target=tick, name="karat-progress", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
