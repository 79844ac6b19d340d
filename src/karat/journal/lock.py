"""One writer a run: an advisory lock that dies with its process, and a note of who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

import msgspec

from karat.errors import RunBusy

__all__ = ["Holder", "RunLock"]

_PATIENCE_SECONDS = 0.5  # a reader that looks whether a run goes on holds the lock for microseconds


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes to a run."""

    pid: int
    host: str


class RunLock:
    """Held by `run` and `score` for as long as they may write; flock, so kill −9 releases it.

    On a file of its own: closing any other handle on the journal must not release it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises RunBusy with the holder's pid and host."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not _try(fd, fcntl.LOCK_EX):
            if time.monotonic() > give_up:
                os.close(fd)
                holder = self.holder()
                pid, host = (holder.pid, holder.host) if holder is not None else (None, None)
                raise RunBusy(str(self._path.parent), pid=pid, host=host)
            time.sleep(0.02)
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(Holder(pid=os.getpid(), host=socket.gethostname())), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def held(self) -> bool:
        """Whether some process is writing now."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _try(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)

    def holder(self) -> Holder | None:
        """Who took the lock last; says nothing of whether it is still held."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Holder)
        except (OSError, msgspec.DecodeError):
            return None


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
