"""Files in the user's cache about large runs that have ended: what was computed once need not be computed again.

They are in `$XDG_CACHE_HOME/karat/` or `~/.cache/karat/`, never in a run folder: nothing that comes with a run is
believed. A file's name is a digest of what it is about (path, inodes, sizes and times of the run's files, head and tail
of the journal) and of the code that made it, so another state or another version is simply not found. Files are whole,
read-only and never changed; the oldest go once all take more than 2 GB. Who deletes them loses nothing but time.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import karat
from karat.errors import BadRun
from karat.files import open_regular
from karat.journal import RunLock

if TYPE_CHECKING:
    from karat.journal import RunFolder

__all__ = ["LARGE", "CacheFile", "cache_folder", "is_large"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

LARGE = 64 * 2**20
"""Bytes of a journal: smaller ones are read within a second, and nothing is kept of them."""

_MOST_BYTES = 2 * 2**30  # of all files
_LARGEST = 256 * 2**20  # of one file
_ENDS = 2**16  # bytes of the journal's head and tail that are digested
_SETTLED = 2 * 10**9  # nanoseconds: a file that changed just now may change once more within its file system's clock
_ABANDONED_SECONDS = 3600  # after which nobody is still writing a temporary file
_CONTENT = ("run.json", "samples.jsonl")  # and the journal, and the studies that the run keeps
_LIBRARIES = ("msgspec", "numpy", "pydantic", "pyyaml", "scipy")


def is_large(run: RunFolder, *, at_least: int = LARGE) -> bool:
    """Whether a run takes long enough to read that what it says is kept."""
    try:
        return run.journal_size >= at_least
    except (BadRun, OSError):
        return False


class CacheFile:
    """What is kept of a run in its present state, under a name such as `summary`. Opening it reads nothing."""

    def __init__(self, run: RunFolder, name: str, *, at_least: int = LARGE) -> None:
        self._run, self._name, self._at_least = run, name, at_least
        self._path = self._find()

    @property
    def possible(self) -> bool:
        """Whether anything is kept of the run in its present state."""
        return self._path is not None

    def read(self) -> bytes | None:
        """What is kept; None where nothing is, or nothing that is whole."""
        if self._path is None:
            return None
        try:
            with open_regular(self._path, within=self._path.parent, at_most=_LARGEST) as file:
                digest, data = file.read(32), file.read(_LARGEST)
        except OSError:
            return None
        return data if hashlib.sha256(data).digest() == digest else None

    def write(self, data: bytes) -> None:
        """Keeps data, unless the run or the code has changed since this was made, or the cache cannot be written to."""
        path = self._path
        if path is None or len(data) + 32 > _LARGEST or self._find() != path:
            return
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            newest = max(file.stat().st_ctime_ns for file in _content(self._run))
            if time.time_ns() - newest < _SETTLED:
                return
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
            with os.fdopen(fd, "wb") as file:
                file.write(hashlib.sha256(data).digest())
                file.write(data)
            part.rename(path)
            _remove_oldest(path.parent)
        except OSError:  # a disk that is full, a cache that is read-only: the next one computes again
            with suppress(OSError):
                part.unlink()

    def _find(self) -> Path | None:
        """Where the file is, or would be; None for a small run, one that is running, and where there is no cache."""
        try:
            if not is_large(self._run, at_least=self._at_least) or RunLock(self._run.path).held():
                return None
            folder, code = cache_folder(), _code(Path(karat.__file__).parent, started=karat.BEGUN)
            state = _state(self._run)
        except (OSError, RuntimeError, ValueError):
            return None
        if folder is None or not code:
            return None
        key = f"{FORMAT_VERSION}\n{self._name}\n{code}\n{state}"
        return folder / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}.{self._name}"


def cache_folder() -> Path | None:
    """The user's cache, made where it is missing; None where it would not be this user's alone: under `sudo`, say."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    if not base.is_absolute():
        return None
    nearest = next(folder for folder in (base, *base.parents) if folder.exists())
    if nearest.stat().st_uid != os.geteuid():
        return None
    folder = base / "karat"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return folder if private else None


def _content(run: RunFolder) -> list[Path]:
    """Every file that the numbers of a run are made of."""
    studies = (path for path in (run.path / "studies").glob("*") if path.suffix in (".yaml", ".yml"))
    return [*(run.path / name for name in _CONTENT), run.journal, *sorted(studies)]


def _state(run: RunFolder) -> str:
    """Changes when the run is written to, whatever its times are set to. Raises OSError."""
    lines = [str(run.path.resolve())]
    for path in _content(run):
        found = path.lstat()
        times = f"{found.st_mtime_ns}.{found.st_ctime_ns}"
        lines.append(f"{path.name} {found.st_dev}.{found.st_ino}.{found.st_size}.{times}")
    with open_regular(run.journal, within=run.path) as file:
        lines.append(hashlib.sha256(file.read(_ENDS)).hexdigest())
        file.seek(max(0, run.journal.stat().st_size - _ENDS))
        lines.append(hashlib.sha256(file.read(_ENDS)).hexdigest())
    return "\n".join(lines)


def _code(root: Path, *, started: int) -> str:
    """Changes with the files below `root`: a version says nothing of a checkout that somebody works in.

    Empty where a file has changed since the process started, in nanoseconds since 1970: what runs may be older.
    """
    lines = [karat.__version__, sys.version, *(f"{name} {_version(name)}" for name in _LIBRARIES)]
    for file in sorted(root.rglob("*.py")):
        found = file.stat()
        if max(found.st_mtime_ns, found.st_ctime_ns) > started - _SETTLED:
            return ""
        lines.append(f"{file.relative_to(root)} {found.st_size} {found.st_mtime_ns}")
    return "\n".join(lines)


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _remove_oldest(folder: Path) -> None:
    """Removes what killed writers left, and the oldest files beyond 2 GB."""
    files = sorted(((path.lstat(), path) for path in folder.iterdir()), key=lambda file: -file[0].st_mtime_ns)
    total = 0
    for found, path in files:
        total += found.st_size
        abandoned = path.name.startswith(".") and time.time() - found.st_mtime > _ABANDONED_SECONDS
        if abandoned or total > _MOST_BYTES:
            with suppress(OSError):
                path.unlink()
