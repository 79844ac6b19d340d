"""The only writer of a journal, on its own thread.

`await append(event)` returns when the event is on disk. The thread writes all events
that arrived during the last sync: no timer, so a single event does not wait, and
many share one sync.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from karat.errors import BadRun
from karat.files import sync_folder
from karat.journal.codec import Codec, is_unended
from karat.journal.events import Event
from karat.journal.lock import RunLock, open_own
from karat.redact import Redactor

if TYPE_CHECKING:
    import asyncio

_FIRST = b'{"event":"'
_BLOCK = 65_536  # bytes

# macOS has no fdatasync.
_sync = getattr(os, "fdatasync", os.fsync)

_Item = tuple[bytes, "asyncio.Future[None]"]


class Journal:
    """An open journal: holds the run's lock from entry to exit.

    Entering truncates the incomplete line that kill −9 can leave; readers never repair.
    """

    def __init__(self, folder: Path, *, redact: Redactor | None = None, sync: Callable[[int], None] = _sync) -> None:
        """`sync`: makes data written to a descriptor durable."""
        self.path = folder / "journal.jsonl"
        self._lock = RunLock(folder)
        self.redact = redact or Redactor({})
        self._codec = Codec(self.redact)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._sync, self._fd = sync, -1
        self._size = 0
        self._broken: BaseException | None = None

    async def __aenter__(self) -> Journal:
        import asyncio  # 0.09 s that reading a run does not need

        self._lock.acquire()
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            self._fd = open_own(self.path)
            undo.callback(os.close, self._fd)
            path = str(self.path)
            size, end = os.fstat(self._fd).st_size, end_of_lines(self._fd)
            if size and not os.pread(self._fd, len(_FIRST), 0).startswith(_FIRST[: min(size, len(_FIRST))]):
                raise BadRun(path, "is not a journal: it does not begin with an event")
            if end < size:
                if is_unended(os.pread(self._fd, size - end, end)):
                    raise BadRun(path, "the newline of its last line is damaged; restore it from a copy")
                os.ftruncate(self._fd, end)
                _sync(self._fd)
            self._size = end
            sync_folder(self.path.parent)
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write_all, name="karat-journal", daemon=True)
            self._thread.start()
            undo.pop_all()
        return self

    @property
    def empty(self) -> bool:
        """Whether nothing has been written yet."""
        return self._size == 0

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
        """A future that is done when the events, written together, are on disk.

        It raises BadRun if the disk refuses.
        """
        lines = self._codec.line(events[0]) if len(events) == 1 else b"".join(map(self._codec.line, events))
        return self.append_lines(lines)

    def append_lines(self, lines: bytes) -> asyncio.Future[None]:
        """As `append`, for whole lines that a `Codec` with the same secrets has written elsewhere."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._broken is not None:
            _settle([future], self._broken, str(self.path))
            return future
        self._queue.put((lines, future))
        return future

    def write_out(self, last: Event, *, seconds: float) -> None:
        """Writes what is queued, then `last`, and waits `seconds` at most; for a process that ends, from any thread."""
        self._queue.put((self._codec.line(last), self._loop.create_future()))
        self._queue.put(None)
        self._thread.join(seconds)

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
        kept = 0
        if self._broken is None:
            kept = len(batch)
            try:
                write_whole(self._fd, b"".join([line for line, _ in batch]))
            except BaseException as error:  # noqa: BLE001 -- every waiting caller gets it
                self._broken, kept = error, self._that_fitted(batch)
            try:
                self._sync(self._fd)
            except BaseException as error:  # noqa: BLE001 -- every waiting caller gets it
                # After a failed sync, the next one may succeed without having written: nothing of the batch counts.
                self._broken, kept = self._broken or error, 0
            self._size += sum(len(line) for line, _ in batch[:kept])
            if self._broken is not None:
                # The content after the last full sync is unknown: truncate it, and stop writing. If that fails too, the
                # next writer truncates it when it opens the journal.
                with suppress(OSError):
                    os.ftruncate(self._fd, self._size)
        waiting = [future for _, future in batch]
        # The loop may already be closed: then there is no caller left.
        with suppress(RuntimeError):
            if kept:
                self._loop.call_soon_threadsafe(_settle, waiting[:kept], None, str(self.path))
            if kept < len(batch):
                self._loop.call_soon_threadsafe(_settle, waiting[kept:], self._broken, str(self.path))

    def _that_fitted(self, batch: list[_Item]) -> int:
        """How many events of a batch are completely in the file, if the disk refused some."""
        with suppress(OSError):
            room = os.fstat(self._fd).st_size - self._size
            for number, (line, _) in enumerate(batch):
                room -= len(line)
                if room < 0:
                    return number
        return 0


def _settle(waiting: list[asyncio.Future[None]], problem: BaseException | None, path: str) -> None:
    for future in waiting:
        if future.done():
            continue
        if problem is None:
            future.set_result(None)
        else:
            remedy = "everything journalled before is safe: free some space, then continue with --resume"
            why = getattr(problem, "strerror", None) or repr(problem)
            future.set_exception(BadRun(path, f"the disk refused to write ({why}); {remedy}"))
            future.exception()  # callers waiting for later events get it too, so Python need not warn about this one


def write_whole(fd: int, data: bytes) -> None:
    """Every byte, in as many writes as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def end_of_lines(fd: int) -> int:
    """The offset after the last newline of a file; 0 if it has none."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
