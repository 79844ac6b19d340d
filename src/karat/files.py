"""Opens files that somebody else may have put there: regular ones only, and never waiting for one."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from io import BufferedReader
from pathlib import Path

__all__ = ["in_use", "make_folder", "new_file_mode", "open_regular", "remove_leftovers", "temporary_folder"]

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}
_LEFTOVER_SECONDS = 3600  # a folder is not marked as in use at the very moment it is made
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(
    path: str | os.PathLike[str], *, within: str | os.PathLike[str] | None = None, at_most: int | None = None
) -> BufferedReader:
    """The file, open for reading. It is regular, and at most `at_most` bytes long when it is opened.

    `within`: a folder above it. The path below that folder must have no symbolic link; the folder itself may be one.
    Raises FileNotFoundError, IsADirectoryError, or OSError with a `strerror` that follows the file's name: "is a FIFO,
    not a regular file".
    """
    fd = os.open(path, _FLAGS) if within is None else _open_below(Path(within), Path(path).relative_to(within))
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and (at_most is None or status.st_size <= at_most):
        return os.fdopen(fd, "rb")
    os.close(fd)
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(status.st_mode, path)
    raise OSError(errno.EFBIG, f"is larger than {at_most} bytes", os.fspath(path))


def new_file_mode(folder: int | str | os.PathLike[str]) -> int:
    """The mode, before the umask, of a new file: 0600, or 0666 where others than the owner may enter the folder."""
    return 0o666 if os.stat(folder).st_mode & 0o077 else 0o600


def make_folder(path: Path) -> None:
    """Makes a folder, as private as the one above it; leaves one that is there."""
    path.mkdir(mode=0o777 if new_file_mode(path.parent) & 0o077 else 0o700, exist_ok=True)


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Keeps `remove_leftovers` of other processes from a folder, until the block or this process ends."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # no file locks here; then remove_leftovers cannot lock it either
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def remove_leftovers(parent: Path, name: str) -> None:
    """Removes the folders in `parent` that killed processes of this user left.

    Their names match the regular expression `name` in full. Those that are `in_use`, or were changed within
    the last hour, stay, and so does whatever cannot be removed. Links are neither followed nor removed.
    """
    with suppress(OSError):
        for found in os.listdir(parent):
            if re.fullmatch(name, found):
                with suppress(OSError):
                    _remove_if_dead(parent / found)


_LONGEST_BEFORE_SOCKET = 60
"""Bytes. The whole path of a socket has at most 103 (macOS) or 107 (Linux)."""


@contextmanager
def temporary_folder(purpose: str, *, for_socket: bool = False) -> Iterator[Path]:
    """A new folder `karat-PURPOSE-…` in the system's temporary folder, removed at the end of the block.

    Only this user can enter it. First removes those of the same purpose that killed processes left, once a process.
    `for_socket`: in /tmp where the path of a socket in the temporary folder would be too long.
    """
    import tempfile  # here: most commands need none, and it takes milliseconds

    parent = Path(tempfile.gettempdir())
    if for_socket and len(os.fsencode(parent)) > _LONGEST_BEFORE_SOCKET:
        parent = Path("/tmp")  # noqa: S108 -- the folder in it is made by mkdtemp
    _sweep(parent, purpose)
    folder = Path(tempfile.mkdtemp(prefix=f"karat-{purpose}-{os.getpid()}-", dir=parent))
    try:
        with in_use(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _sweep(parent: Path, purpose: str) -> None:
    remove_leftovers(parent, rf"karat-{purpose}-\d+-\w+")


def _remove_if_dead(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if status.st_uid == os.getuid() and status.st_mtime < time.time() - _LEFTOVER_SECONDS:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(fd)


def _open_below(root: Path, path: Path) -> int:
    """Opens part by part, so that no part can become a link meanwhile."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(path.parts, start=1):
        flags = _FLAGS if number == len(path.parts) else _FLAGS | os.O_DIRECTORY
        try:
            fd = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EMLINK):  # a link, or a socket
                raise _not_regular(os.lstat(part, dir_fd=folder).st_mode, root / path) from error
            raise
        finally:
            os.close(folder)
        folder = fd
    return folder


def _not_regular(mode: int, path: str | os.PathLike[str]) -> OSError:
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    return OSError(number, f"is {kind}, not a regular file", os.fspath(path))


class Streamed(Mapping[str, str]):
    """Files that are written while they are made, piece by piece: pairs of a name and what comes next in that file.

    Names may have folders (`traces/1.json`); such a file is opened anew for each of its pieces, which
    are therefore few. As a mapping it is what the pieces come to, made when it is asked for.
    """

    def __init__(self, pieces: Callable[[], Iterable[tuple[str, str]]]) -> None:
        self.pieces = pieces

    @cached_property
    def _whole(self) -> dict[str, str]:
        parts: dict[str, list[str]] = {}
        for name, text in self.pieces():
            parts.setdefault(name, []).append(text)
        return {name: "".join(texts) for name, texts in parts.items()}

    def __getitem__(self, name: str) -> str:
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


_RESERVED = {
    "con", "prn", "aux", "nul", "data", "unknown", "none",
    *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10)),
}  # fmt: skip


def file_safe(name: str) -> str:
    """A name as one folder, on any system.

    >>> file_safe("Support KB (v2)"), file_safe("../x"), file_safe("con"), file_safe("…")
    ('Support-KB-v2', 'x', 'x-con', 'x')
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-. ")[:80].strip("-. ")
    return f"x-{plain}" if plain.split(".", 1)[0].lower() in _RESERVED else plain or "x"
