"""Files in the user's cache about runs that have ended, so that nothing is computed twice.

They are in `$XDG_CACHE_HOME/karat/` or `~/.cache/karat/`, never in a run folder, because files that
come with a run are not trusted. A file's name is a digest of the run's state (path, inodes, sizes
and times of its files, head and tail of the journal) and of the code that made it, so files for
another state or version are never found. Files are complete, read-only and never changed; above 2
GB in all, the oldest are removed. Deleting them costs nothing but time.
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
from karat.installation import packages
from karat.journal import KEPT, RunLock

if TYPE_CHECKING:
    from karat.journal import RunFolder

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

LARGE = 4 * 2**20
"""Bytes of a journal: smaller ones are read at once, and nothing is cached for them."""

_MOST_BYTES = 2 * 2**30  # of all files
_LARGEST = 256 * 2**20  # of one file
_ENDS = 2**16  # bytes of the journal's head and tail that are digested
# nanoseconds: a file changed more recently may change again within one tick of its file system
_SETTLED = 2 * 10**9
_ABANDONED_SECONDS = 3600  # after which a temporary file counts as abandoned
# and the journal, and the files of the dataset that the run keeps
_CONTENT = ("run.json", "samples.jsonl")
_LIBRARIES = ("msgspec", "numpy", "pydantic", "pyyaml", "scipy")


def is_large(run: RunFolder, *, at_least: int = LARGE) -> bool:
    """Whether a run takes so long to read that its index is worth caching."""
    try:
        return run.journal_size >= at_least
    except (BadRun, OSError):
        return False


class CacheFile:
    """A cached file about a run in its present state, with a name such as `summary`.

    Creating this reads nothing.
    """

    def __init__(self, run: RunFolder, name: str, *, at_least: int = LARGE) -> None:
        self._run = run
        self._name = name
        self._at_least = at_least
        self._path = self._find()

    @property
    def possible(self) -> bool:
        """Whether the run in its present state can have a cached file."""
        return self._path is not None

    def read(self) -> bytes | None:
        """The cached data; None if there is none, or it is incomplete."""
        if self._path is None:
            return None
        try:
            with open_regular(self._path, within=self._path.parent, at_most=_LARGEST) as file:
                digest = file.read(32)
                data = file.read(_LARGEST)
        except OSError:
            return None

        return data if hashlib.sha256(data).digest() == digest else None

    def write(self, data: bytes) -> None:
        """Stores data, unless the run or the code has changed since this was created, or the cache
        is not writable.
        """
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
        except OSError:  # a full disk or a read-only cache: the next process computes again
            with suppress(OSError):
                part.unlink()

    def _find(self) -> Path | None:
        """The path of the file, existing or not; None for a small or running run, or without a
        cache.
        """
        try:
            if not is_large(self._run, at_least=self._at_least) or RunLock(self._run.path).held():
                return None
            folder = cache_folder()
            home = Path(karat.__file__).parent.parent
            code = _code(*(home / name for name in packages()), started=karat.BEGUN)
            state = _state(self._run)
        except (OSError, RuntimeError, ValueError):
            return None

        if folder is None or not code:
            return None
        key = f"{FORMAT_VERSION}\n{self._name}\n{code}\n{state}"
        return folder / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}.{self._name}"


def cache_folder() -> Path | None:
    """The user's cache, created if missing; None if it would not belong to this user alone, e.g.
    under `sudo`.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        base = Path(given)
    else:
        base = Path.home() / ".cache"

    if not base.is_absolute():
        return None
    nearest = next(folder for folder in (base, *base.parents) if folder.exists())
    if nearest.stat().st_uid != os.geteuid():
        return None
    folder = base / "karat"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    private = (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
    )
    return folder if private else None


def _content(run: RunFolder) -> list[Path]:
    """Every file from which a run's numbers are computed."""
    kept = (path for path in (run.path / KEPT).glob("*") if path.suffix in (".yaml", ".yml"))
    return [*(run.path / name for name in _CONTENT), run.journal, *sorted(kept)]


def _state(run: RunFolder) -> str:
    """A digest that changes when the run is written to, even if file times are reset.

    Raises OSError.
    """
    lines = [str(run.path.resolve())]
    for path in _content(run):
        status = path.lstat()
        times = f"{status.st_mtime_ns}.{status.st_ctime_ns}"
        lines.append(f"{path.name} {status.st_dev}.{status.st_ino}.{status.st_size}.{times}")

    with open_regular(run.journal, within=run.path) as file:
        lines.append(hashlib.sha256(file.read(_ENDS)).hexdigest())
        file.seek(max(0, run.journal.stat().st_size - _ENDS))
        lines.append(hashlib.sha256(file.read(_ENDS)).hexdigest())

    return "\n".join(lines)


def _code(*roots: Path, started: int) -> str:
    """A digest of the files below `roots`: a version number is not enough for a checkout under
    development.

    Empty if a file has changed since the process `started` (nanoseconds since 1970): the running
    code may be older.
    """
    from importlib.metadata import PackageNotFoundError, version

    lines = [karat.__version__, sys.version]
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            lines.append(f"{name} {version(name)}")

    for root in roots:
        for file in sorted(root.rglob("*.py")):
            status = file.stat()
            if max(status.st_mtime_ns, status.st_ctime_ns) > started - _SETTLED:
                return ""
            lines.append(f"{file.relative_to(root.parent)} {status.st_size} {status.st_mtime_ns}")

    return "\n".join(lines)


def _remove_oldest(folder: Path) -> None:
    """Removes files that killed writers left, and the oldest files beyond 2 GB."""
    files = sorted(
        ((path.lstat(), path) for path in folder.iterdir()), key=lambda file: -file[0].st_mtime_ns
    )
    total = 0
    for status, path in files:
        total += status.st_size
        abandoned = path.name.startswith(".") and time.time() - status.st_mtime > _ABANDONED_SECONDS
        if abandoned or total > _MOST_BYTES:
            with suppress(OSError):
                path.unlink()
