"""Several viewers on one index: whoever reads or writes it holds it, one at a time fills it, and it is only removed
while nobody holds it.

Locks are `flock` on files of their own, which are never removed: they end with their process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.files import new_file_mode

__all__ = ["alone", "held", "is_passing"]

_BUSY = 5
_PASSING = {_BUSY, 6, 9, 10, 14, 15}  # SQLite's BUSY, LOCKED, INTERRUPT, IOERR, CANTOPEN, PROTOCOL


@contextmanager
def held(lock: Path, *, seconds: float = 2.0) -> Iterator[None]:
    """Beside others who hold it.

    Raises sqlite3.OperationalError where there can be no lock, and a passing one where somebody has it alone for
    longer than that.
    """
    fd = _opened(lock)
    try:
        if not _taken(fd, fcntl.LOCK_SH, time.monotonic() + seconds):
            busy = sqlite3.OperationalError("another process is removing the index, and does not end")
            busy.sqlite_errorcode = _BUSY
            raise busy
        yield
    finally:
        os.close(fd)


@contextmanager
def alone(lock: Path, *, seconds: float) -> Iterator[bool]:
    """Whether nobody else holds it, or does not within so many seconds. Raises as `held`."""
    fd = _opened(lock)
    try:
        yield _taken(fd, fcntl.LOCK_EX, time.monotonic() + seconds)
    finally:
        os.close(fd)


def is_passing(error: BaseException) -> bool:
    """Whether an error of SQLite says no more than that another process is at work."""
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING


def _opened(lock: Path) -> int:
    try:
        # For writing: without that a network file system does not lock for one alone.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(lock, flags, new_file_mode(lock.parent))
    except OSError as error:
        raise sqlite3.OperationalError(f"{lock.name} cannot be opened: {error.strerror}") from error


def _taken(fd: int, how: int, end: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        except OSError as error:  # a file system without locks
            raise sqlite3.OperationalError(f"the index cannot be locked: {error.strerror}") from error
        else:
            return True
