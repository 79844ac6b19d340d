"""The one writer of a journal, on a thread of its own.

`await append(event)` returns when the event is on disk. The thread writes whatever
gathered while the last sync ran: no timer, so a lone event waits for nothing and a
crowd shares one sync.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from pathlib import Path
from types import TracebackType

from karat.errors import BadRun
from karat.journal.codec import Codec
from karat.journal.events import Event
from karat.journal.lock import RunLock
from karat.redact import Redactor

__all__ = ["Journal"]

# macOS has no fdatasync.
_sync = getattr(os, "fdatasync", os.fsync)

_Item = tuple[bytes, "asyncio.Future[None]"]


class Journal:
    """An open journal: holds the run's lock from entry to exit.

    Entering truncates the torn line that kill −9 can leave; nobody else ever repairs.
    """

    def __init__(self, folder: Path, *, redact: Redactor | None = None) -> None:
        self.path = folder / "journal.jsonl"
        self._lock = RunLock(folder)
        self.redact = redact or Redactor({})
        self._codec = Codec(self.redact)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._fd = -1
        self._size = 0
        self._broken: OSError | None = None

    async def __aenter__(self) -> Journal:
        self._lock.acquire()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = _without_torn_tail(self._fd)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write_all, name="karat-journal", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The thread is joined without awaiting: it has at most one batch to write, and a
        # second Ctrl-C must not leave it behind.
        self._queue.put(None)
        self._thread.join()
        os.close(self._fd)
        self._lock.release()

    def append(self, *events: Event) -> asyncio.Future[None]:
        """A future that is done when the events, side by side, are on disk.

        It raises BadRun when the disk refuses.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        lines = self._codec.line(events[0]) if len(events) == 1 else b"".join(map(self._codec.line, events))
        self._queue.put((lines, done))
        return done

    def _write_all(self) -> None:
        last = False
        while not last:
            batch: list[_Item] = []
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            else:
                last = True
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_Item]) -> None:
        problem = self._broken
        if problem is None:
            try:
                self._size += _write(self._fd, b"".join([line for line, _ in batch]))
                _sync(self._fd)
            except OSError as error:
                # What stands behind the last full sync is unknown: cut it off, and write no more.
                problem = self._broken = error
                _truncate(self._fd, self._size)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, [done for _, done in batch], problem, str(self.path))


def _settle(waiting: list[asyncio.Future[None]], problem: OSError | None, path: str) -> None:
    for done in waiting:
        if done.cancelled():
            continue
        if problem is None:
            done.set_result(None)
        else:
            remedy = "what was journalled before is safe: make room, then go on with --resume"
            done.set_exception(BadRun(path, f"the disk refused to write ({problem.strerror}); {remedy}"))


def _write(fd: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return len(data)


def _truncate(fd: int, size: int) -> None:
    try:
        os.ftruncate(fd, size)
    except OSError:
        # The tail stays torn; the next writer cuts it when it opens the journal.
        return


def _without_torn_tail(fd: int) -> int:
    size = os.fstat(fd).st_size
    end, block = size, 65536
    while end > 0:
        start = max(0, end - block)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
        _sync(fd)
    return end
