"""Opens files that may come from someone else: only regular ones, and without blocking."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, wraps
from io import BufferedReader
from pathlib import Path
from typing import ParamSpec

LARGEST_TEXT = 1_000_000
"""Bytes of a file that a person writes: a prompt, instructions, variables, a manifest."""

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}
_LEFTOVER_SECONDS = 3600  # a new folder is not yet marked as in use
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(
    path: str | os.PathLike[str],
    *,
    within: str | os.PathLike[str] | None = None,
    at_most: int | None = None,
) -> BufferedReader:
    """The file, open for reading. It is regular, and at most `at_most` bytes long when opened.

    `within`: a folder above it. The path below that folder must have no symbolic link; the folder
    itself may be one. Raises FileNotFoundError, IsADirectoryError, or OSError with a `strerror`
    that follows the file's name: "is a FIFO, not a regular file".
    """
    if within is None:
        fd = os.open(path, _FLAGS)
    else:
        fd = _open_below(Path(within), Path(path).relative_to(within))

    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and (at_most is None or status.st_size <= at_most):
        return os.fdopen(fd, "rb")
    os.close(fd)
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(status.st_mode, path)
    raise OSError(errno.EFBIG, f"is larger than {at_most} bytes", os.fspath(path))


def new_file_mode(folder: int | str | os.PathLike[str]) -> int:
    """The mode, before the umask, of a new file: 0600, or 0666 if others than the owner may enter
    the folder.
    """
    return 0o666 if os.stat(folder).st_mode & 0o077 else 0o600


def make_folder(path: Path) -> None:
    """Creates a folder, as private as its parent; leaves an existing one."""
    path.mkdir(mode=0o777 if new_file_mode(path.parent) & 0o077 else 0o700, exist_ok=True)


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Protects a folder from `remove_leftovers` of other processes, until the block or this process
    ends.
    """
    fd = os.open(folder, _FOLDER)
    try:
        with suppress(OSError):  # no file locks here; then remove_leftovers cannot lock it either
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def remove_leftovers(parent: Path, name: str) -> None:
    """Removes the folders in `parent` that killed processes of this user left.

    Their names match the regular expression `name` in full. Those that are `in_use`, or were
    changed within the last hour, are kept, and so is anything that cannot be removed. Links are
    neither followed nor removed.
    """
    with suppress(OSError):
        for entry in os.listdir(parent):
            if re.fullmatch(name, entry):
                with suppress(OSError):
                    _remove_if_dead(parent / entry)


def remove_tree(folder: str | os.PathLike[str]) -> None:
    """Removes a folder with anything an untrusted program left in it, as far as possible.

    No link is followed. Neither the depth of folders nor the modes of this user's files matter:
    each folder is moved to the top before it is emptied.
    """
    import secrets

    with suppress(OSError):
        top = os.open(folder, _FOLDER)
        try:
            prefix = f".{secrets.token_hex(8)}-"
            number = 0
            waiting = deque(["."])
            while waiting:
                name = waiting.popleft()
                with suppress(OSError), unlocked(name, dir_fd=top) as fd, os.scandir(fd) as entries:
                    for entry in entries:
                        with suppress(OSError):
                            if not entry.is_dir(follow_symlinks=False):
                                os.unlink(entry.name, dir_fd=fd)
                            elif not entry.name.startswith(prefix):
                                number += 1
                                # a folder must be writable to be moved
                                with unlocked(entry.name, dir_fd=fd):
                                    os.rename(
                                        entry.name,
                                        f"{prefix}{number}",
                                        src_dir_fd=fd,
                                        dst_dir_fd=top,
                                    )

                                waiting.append(f"{prefix}{number}")

                with suppress(OSError):
                    os.rmdir(name, dir_fd=top)  # not ".", which is removed last
        finally:
            os.close(top)

        os.rmdir(folder)


@contextmanager
def unlocked(name: str, *, dir_fd: int) -> Iterator[int]:
    """Opens a file or folder, not a link, of this user; if its mode forbids that, the owner's
    rights are added.
    """
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    wanted = 0o700 if stat.S_ISDIR(status.st_mode) else 0o400
    if status.st_mode & wanted != wanted and hasattr(os, "O_PATH"):
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(status.st_mode) | wanted)
        finally:
            os.close(handle)

    fd = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


_LONGEST_SOCKET = 103
"""Bytes of the whole path of a socket on macOS; Linux allows 107."""


@contextmanager
def temporary_folder(purpose: str, *, for_socket: int = 0) -> Iterator[Path]:
    """A new folder `karat-PURPOSE-…` in the system's temporary folder, removed at the end of the
    block.

    Only this user can enter it. First removes those of the same purpose left by killed processes,
    once per process. `for_socket`: bytes of the path of a socket in it, at most; it is in /tmp if
    the whole path would be too long.
    """
    import tempfile  # here: most commands do not need it, and it takes milliseconds

    parent = Path(tempfile.gettempdir())
    prefix = f"karat-{purpose}-{os.getpid()}-"
    # 8 letters and a slash
    if for_socket and len(os.fsencode(parent / prefix)) + 9 + for_socket > _LONGEST_SOCKET:
        parent = Path("/tmp")  # noqa: S108 -- the folder in it is made by mkdtemp
    _sweep(parent, purpose)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with in_use(folder):
            yield folder
    finally:
        remove_tree(folder)


@cache
def _sweep(parent: Path, purpose: str) -> None:
    remove_leftovers(parent, rf"karat-{purpose}-\d+-\w+")


def _remove_if_dead(folder: Path) -> None:
    fd = os.open(folder, _FOLDER)
    try:
        status = os.fstat(fd)
        if status.st_uid == os.getuid() and status.st_mtime < time.time() - _LEFTOVER_SECONDS:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    finally:
        os.close(fd)


def _open_below(root: Path, path: Path) -> int:
    """Opens component by component, so that none can become a link meanwhile."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(path.parts, start=1):
        if number == len(path.parts):
            flags = _FLAGS
        else:
            flags = _FLAGS | os.O_DIRECTORY

        try:
            fd = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            # a link, or a socket
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EMLINK):
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


_Given = ParamSpec("_Given")


class Streamed(Mapping[str, str]):
    """Files that are written as they are generated: pairs of a name and the next piece of that
    file.

    Names may have folders (`traces/1.json`); such a file is reopened for each piece, so it
    should have few. As a mapping it gives the complete files, generated on access.
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


def streamed(pieces: Callable[_Given, Iterable[tuple[str, str]]]) -> Callable[_Given, Streamed]:
    """A function that yields pieces of files, as one that returns them as `Streamed`."""

    @wraps(pieces)
    def files(*args: _Given.args, **kwargs: _Given.kwargs) -> Streamed:
        return Streamed(partial(pieces, *args, **kwargs))

    return files


_RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    "data",
    "unknown",
    "none",
    *(f"com{n}" for n in range(1, 10)),
    *(f"lpt{n}" for n in range(1, 10)),
}


def file_safe(name: str) -> str:
    """A name valid for a folder on any system.

    >>> file_safe("Support KB (v2)"), file_safe("../x"), file_safe("con"), file_safe("…")
    ('Support-KB-v2', 'x', 'x-con', 'x')
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-. ")[:80].strip("-. ")
    if plain.split(".", 1)[0].lower() in _RESERVED:
        return f"x-{plain}"
    return plain or "x"


def write_durably(path: Path, parts: Iterable[bytes]) -> None:
    """Replaces a file so that a reader, or a crash, sees the complete old or new one."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    # Never through a link: the folder may come from someone else.
    fd = os.open(
        part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, new_file_mode(path.parent)
    )
    with os.fdopen(fd, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())

    part.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable, as syncing a file does for its content."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
