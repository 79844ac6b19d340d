"""Opens files that somebody else may have put there: regular ones only, and never waiting for one."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

__all__ = ["make_folder", "new_file_mode", "open_regular"]

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(
    path: str | os.PathLike[str], *, within: str | os.PathLike[str] | None = None, at_most: int | None = None
) -> BufferedReader:
    """The file, open for reading. It is regular, and at most `at_most` bytes long when it is opened.

    `within`: a folder above it. The path below that folder must have no symbolic link; the folder itself may be one.
    Raises FileNotFoundError, or OSError; its `strerror` follows the file's name: "is a FIFO, not a regular file".
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
    return OSError(errno.EINVAL, f"is {kind}, not a regular file", os.fspath(path))
