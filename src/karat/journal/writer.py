"""The only writer of a journal, on two threads.

`await append(event)` returns when the event is on disk. A thread writes what arrives, then syncs;
meanwhile the other writes what arrives next, so that kill −9 cannot lose it, and leaves its sync
to the first. No timer: a single event does not wait, and many share one sync.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from karat.errors import BadRun
from karat.files import sync_folder
from karat.journal.codec import (
    LONGEST_LINE,
    Codec,
    Cover,
    LineDamaged,
    checked_lines,
    content_of,
    ended,
    is_unended,
    is_whole,
)
from karat.journal.events import End, Event, Resume
from karat.journal.lock import RunLock, open_own
from karat.redact import Redactor

if TYPE_CHECKING:
    import asyncio

_FIRST = b'{"event":"'
_FLUSH_SECONDS = 10.0  # for the threads to finish writing when the process ends
_BLOCK = 65_536  # bytes
_RESTORE = "restore it from a copy"

# macOS has no fdatasync.
_sync = getattr(os, "fdatasync", os.fsync)

# what states the lines before it is encoded in its turn
_Item = tuple[list[bytes] | End | Resume, "asyncio.Future[None]"]


class Journal:
    """An open journal: holds the run's lock from entry to exit.

    Entering truncates the incomplete line that kill −9 can leave; readers never repair.
    """

    def __init__(
        self, folder: Path, *, redact: Redactor | None = None, sync: Callable[[int], None] = _sync
    ) -> None:
        """`sync`: makes data written to a descriptor durable."""
        self.path = folder / "journal.jsonl"
        self._lock = RunLock(folder)
        if redact is None:
            self.redact = Redactor({})
        else:
            self.redact = redact

        self._codec = Codec(self.redact)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._sync = sync
        self._fd = -1
        self._size = 0  # of the events that were written
        self._broken: BaseException | None = None  # set: nothing is written any more
        self._durable = 0  # of these, synced
        self._unsynced: list[asyncio.Future[None]] = []
        self._syncing = False
        self._taking = threading.Lock()  # from the queue
        self._changing = threading.Lock()  # the file or any of these

    async def __aenter__(self) -> Journal:
        import asyncio  # 0.09 s that reading a run does not need

        self._lock.acquire()
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            self._fd = open_own(self.path)
            undo.callback(os.close, self._fd)
            path = str(self.path)
            size = os.fstat(self._fd).st_size
            first = os.pread(self._fd, 2 * len(_FIRST), 0).lstrip(b"\xef\xbb\xbf\r\n")[
                : len(_FIRST)
            ]
            if not _FIRST.startswith(first) or (size and not first):
                raise BadRun(path, "is not a journal: it does not begin with an event")
            self._size = complete_lines(self._fd, self.path)
            if self._size != size:
                _sync(self._fd)
            self._cover = _cover(self.path)
            sync_folder(self.path.parent)
            self._loop = asyncio.get_running_loop()
            self._durable = self._size
            self._threads = [
                threading.Thread(target=self._work, name="karat-journal", daemon=True)
                for _ in range(2)
            ]
            for thread in self._threads:
                thread.start()

            undo.pop_all()

        return self

    @property
    def empty(self) -> bool:
        """Whether nothing has been written yet."""
        return self._size == 0

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The threads are joined without awaiting: they have at most two syncs to make, and a
        # second Ctrl-C must not leave them behind.
        self._queue.put(None)
        for thread in self._threads:
            thread.join()

        os.close(self._fd)
        self._lock.release(lines=self._cover.lines if self._broken is None else None)

    def append(self, *events: Event, lines: bytes = b"") -> asyncio.Future[None]:
        """A future that is done when the events, written together, are on disk.

        It raises BadRun if the disk refuses. `lines`: instead of events, whole lines that a `Codec`
        with the same secrets has written elsewhere.
        """
        item: list[bytes] | End | Resume = [*filter(None, lines.split(b"\n"))]
        if events and isinstance(last := events[-1], End | Resume):
            assert len(events) == 1
            item = last
        elif len(events) == 1:
            item = [self._codec.line(events[0])[:-1]]
        elif events:
            item = self._codec.lines(events)

        future: asyncio.Future[None] = self._loop.create_future()
        if self._broken is not None:
            self._settle([future], self._broken)
            return future

        self._queue.put((item, future))
        return future

    def write_out(self, last: End) -> None:
        """Writes what is queued, then `last`, and waits a few seconds at most; for a process that
        ends, from any thread.
        """
        self._queue.put((last, self._loop.create_future()))
        self._queue.put(None)
        deadline = monotonic() + _FLUSH_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _work(self) -> None:
        """Takes, writes and syncs, in turn with the other thread, until the end."""
        last = False
        while not last:
            batch = list[_Item]()
            with self._taking:
                item = self._queue.get()
                with suppress(queue.Empty):
                    while item is not None:
                        batch.append(item)
                        item = self._queue.get_nowait()

                last = item is None
                if last:
                    self._queue.put(None)  # for the other thread
                with self._changing:
                    self._write(batch)

            self._sync_written()

    def _write(self, batch: list[_Item]) -> None:
        waiting = [future for _, future in batch]
        kept = 0
        if self._broken is None:
            lines = list[bytes]()
            kept = len(batch)
            try:
                lines = self._encoded([item for item, _ in batch])
                write_whole(self._fd, b"".join(lines))
            except BaseException as error:  # noqa: BLE001 -- every waiting caller gets it
                self._broken, kept = error, self._that_fitted(lines)

            self._size += sum(map(len, lines[:kept]))
            if self._broken is not None:
                self._truncate()
            self._unsynced += waiting[:kept]

        if kept < len(batch):
            self._settle_in_loop(waiting[kept:], self._broken)

    def _sync_written(self) -> None:
        """Syncs what was written, and settles its futures, until nothing is left.

        Leaves it to the other thread if that syncs.
        """
        while True:
            with self._changing:
                if not self._unsynced or self._syncing:
                    return
                self._syncing = True
                waiting, size = self._unsynced, self._size
                self._unsynced = []

            failure: BaseException | None = None
            try:
                self._sync(self._fd)
            except BaseException as error:  # noqa: BLE001 -- every waiting caller gets it
                failure = error

            with self._changing:
                self._syncing = False
                if failure is None:
                    self._durable = size
                else:
                    # After a failed sync, the next one may succeed without having written: nothing
                    # that was written since the last full sync counts.
                    self._broken = self._broken or failure
                    waiting += self._unsynced
                    self._unsynced = []
                    self._size = self._durable
                    self._truncate()

            self._settle_in_loop(waiting, failure)

    def _truncate(self) -> None:
        """Leaves the events that count, since the content behind them is unknown."""
        # If that fails too, the next writer truncates when it opens the journal.
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)

    def _settle_in_loop(
        self, waiting: list[asyncio.Future[None]], problem: BaseException | None
    ) -> None:
        # The loop may already be closed: then there is no caller left.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, waiting, problem)

    def _settle(self, waiting: list[asyncio.Future[None]], problem: BaseException | None) -> None:
        for future in waiting:
            if future.done():
                continue
            if problem is None:
                future.set_result(None)
                continue

            remedy = (
                "everything journalled before is safe: free some space, then continue with --resume"
            )
            why = getattr(problem, "strerror", None) or repr(problem)
            message = f"the disk refused to write ({why}); {remedy}"
            future.set_exception(BadRun(str(self.path), message))
            # callers waiting for later events get it too, so Python need not warn about this one
            future.exception()

    def _encoded(self, items: list[list[bytes] | End | Resume]) -> list[bytes]:
        """The lines of each, which the running checksum then covers."""
        encoded = list[bytes]()
        uncovered = list[bytes]()
        for item in items:
            lines = item
            if isinstance(lines, End | Resume):
                self._cover.add(uncovered)
                uncovered = []
                lines = self._codec.lines([self._cover.stated_by(lines)])

            uncovered += lines
            encoded.append(ended(lines))

        self._cover.add(uncovered)
        return encoded

    def _that_fitted(self, lines: list[bytes]) -> int:
        """How many events of a batch are completely in the file, if the disk refused some."""
        with suppress(OSError):
            room = os.fstat(self._fd).st_size - self._size
            for number, line in enumerate(lines):
                room -= len(line)
                if room < 0:
                    return number

        return 0


def _cover(path: Path) -> Cover:
    """The running checksum of a journal that is not being written. Raises BadRun."""
    cover = Cover()
    try:
        with path.open("rb") as file:
            for _ in checked_lines(file, required=False, check=False, cover=cover):
                pass
    except LineDamaged as error:
        raise BadRun(path, f"line {error.number} is damaged ({error}): {_RESTORE}") from error

    return cover


def write_whole(fd: int, data: bytes) -> None:
    """Every byte, in as many writes as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def complete_lines(fd: int, path: Path) -> int:
    """Ends the last line, or removes it if it is incomplete; the bytes that the file then has.

    Raises BadRun.
    """
    size = os.fstat(fd).st_size
    end = end_of_lines(fd)
    if size - end > LONGEST_LINE:
        raise BadRun(
            path, f"its last line has no end within {LONGEST_LINE // 2**20} MB: {_RESTORE}"
        )

    rest = os.pread(fd, size - end, end)
    if is_whole(content_of(rest)):
        write_whole(fd, b"\n")
        return size + 1

    if is_unended(rest):
        raise BadRun(path, f"the newline of its last line is damaged: {_RESTORE}")
    if rest:
        os.ftruncate(fd, end)
    return end


def end_of_lines(fd: int) -> int:
    """The offset after the last newline of a file; 0 if it has none.

    After more bytes than a line may have it looks no further: then it is where they begin.
    """
    size = end = os.fstat(fd).st_size
    while end > 0 and size - end <= LONGEST_LINE:
        start = max(0, end - _BLOCK)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start

    return end
