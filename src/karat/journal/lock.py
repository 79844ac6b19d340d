"""One writer per run: an advisory lock released when its process ends, and a note of its holder."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from karat.errors import BadRun, RunBusy
from karat.files import new_file_mode, open_regular

_LARGEST_NOTE = 4096  # bytes of the note of the lock's holder
_Note = TypeVar("_Note")
_PATIENCE_SECONDS = 0.5  # a reader that checks the lock holds it for microseconds


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that writes to a run."""

    pid: int
    host: str


class _Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer that ended in order leaves in place of its own name."""

    lines: int  # of the journal


class RunLock:
    """Held by `run` and `score` while they may write; flock, so kill −9 releases it.

    On a separate file: closing any other handle on the journal must not release it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises RunBusy with the holder's pid and host."""
        fd = open_own(self._path)
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not _try(fd, fcntl.LOCK_EX):
            if time.monotonic() > give_up:
                os.close(fd)
                holder = self.holder()
                if holder is not None:
                    pid, host = (holder.pid, holder.host)
                else:
                    pid, host = (None, None)

                raise RunBusy(self._path.parent, pid=pid, host=host)

            time.sleep(0.02)

        os.ftruncate(fd, 0)
        os.write(fd, msgspec.json.encode(Holder(pid=os.getpid(), host=socket.gethostname())))
        self._fd = fd
        _held.add(fd)

    def release(self, *, lines: int | None = None) -> None:
        """`lines`: what the journal has now, for its next readers; None: unknown."""
        if self._fd is not None:
            _held.discard(self._fd)
            os.ftruncate(self._fd, 0)
            if lines is not None:
                os.write(self._fd, msgspec.json.encode(_Left(lines=lines)))
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def held(self) -> bool:
        """Whether some process is writing now."""
        try:
            with open_regular(self._path, within=self._path.parent) as file:
                return not _try(file.fileno(), fcntl.LOCK_SH)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise BadRun(self._path, error.strerror or str(error)) from error

    def holder(self) -> Holder | None:
        """The last holder of the lock, if it still holds it or was killed."""
        return self._note(Holder)

    def lines_left(self) -> int | None:
        """The lines that the journal had when its last writer ended in order; None: it has not, or
        is not known.
        """
        left = self._note(_Left)
        return None if left is None else left.lines

    def _note(self, kind: type[_Note]) -> _Note | None:
        try:
            with open_regular(self._path, within=self._path.parent, at_most=_LARGEST_NOTE) as file:
                return msgspec.json.decode(file.read(), type=kind)
        except (OSError, msgspec.DecodeError):
            return None


def open_own(path: Path) -> int:
    """A file of the run folder, for writing.

    Raises BadRun for a link: the folder may come from someone else.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(path, flags, new_file_mode(path.parent))
    except OSError as error:
        if path.is_symlink():
            reason = "is a link; a run is written to in its own folder only"
        else:
            reason = f"{error.strerror}"

        raise BadRun(path, reason) from error

    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadRun(path, "is not a regular file")

    return fd


# A child that an agent forks must not keep the run locked after this process has ended.
_held: set[int] = set()


def _close_in_child() -> None:
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False

    return True
