"""The summary of a large run, left in the folder's `cache/` by whoever has added it up, for who looks next.

It counts only where it is about exactly this content of the run, made by exactly this karat, and sealed by this
user: then it is what adding up anew would give. Anything else is passed over, and nothing of it is shown. Runs that
go on, and those that are added up at once, have none.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat.analysis import summarize
from karat.analysis.model import Summary
from karat.analysis.program import program
from karat.analysis.seals import is_sealed, seal
from karat.errors import BadRun
from karat.files import make_folder, new_file_mode, open_regular
from karat.journal import RunFolder, RunLock

if TYPE_CHECKING:
    from karat.kinds import AllowCode

__all__ = ["is_large", "kept", "summarize_and_keep"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_LARGE = 24 * 2**20  # bytes of a journal: below, adding up takes less than half a second
_MOST_BYTES = 64 * 2**20  # of the file: a million scores of 100,000 questions take 10 MB
_PIECE = 32 * 2**20  # bytes that are digested by one thread
_SETTLED = 2 * 10**9  # nanoseconds: what changed just now may change once more at what the file system calls now
_FOLDER, _FILE = "cache", "summary.json"
_PART = f".{_FILE}."  # and some hex digits: a file that is being written
_CONTENT = ("run.json", "samples.jsonl", "journal.jsonl")  # and the studies that the run keeps
_LEFT_SECONDS = 3600  # after which nobody is still writing a part


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of the file; the second one is the summary. `seal` is over both, itself empty."""

    format: int
    program: str
    content: str
    state: str  # with this one the content need not be digested again; empty: it must
    seal: str = ""


def is_large(run: RunFolder) -> bool:
    """Whether one waits for a run to be added up."""
    try:
        return run.journal.stat().st_size >= _LARGE
    except OSError:
        return False


def summarize_and_keep(
    run: RunFolder,
    *,
    scorings: Mapping[str, str] | None = None,
    allow_code: AllowCode = False,
    right: str | None = None,
    **compared: Any,
) -> Summary:
    """As `karat.analysis.summarize`; of a large run that has ended the summary stays in its folder, where that can be.

    Only the usual one does: of the newest scorings, without a study's own code, by the run's own `right`, of the usual
    comparisons (`compared`: the `pairs` and `baseline` of `summarize`).
    """
    before = _state(run) if is_large(run) and not (scorings or allow_code or right or compared) else ""
    summary = summarize(run, scorings=scorings, allow_code=allow_code, right=right, **compared)
    if before and summary.status != "running":
        # A folder that is read-only, a disk that is full, no thread to be had: the next one adds up again.
        with suppress(OSError, RuntimeError, MemoryError, ValueError):
            _keep(run, summary, before)
    return summary


def kept(run: RunFolder) -> Summary | None:
    """The summary that adding up would give; None where none is kept, or none that can be believed."""
    try:
        if not is_large(run) or RunLock(run.path).held():
            return None
        data = _read(run)
        line, newline, body = data.partition(b"\n")
        head = msgspec.json.decode(line, type=_Head) if newline and len(line) < 1000 else None
        if head is None or not head.program or (head.format, head.program) != (FORMAT_VERSION, program()):
            return None
        if not is_sealed(_line(head, "") + body, head.seal):
            return None
        if (not head.state or head.state != _state(run)) and head.content != _digest(run):
            return None
        return msgspec.json.decode(body, type=Summary)
    except (BadRun, OSError, ValueError, msgspec.DecodeError, RuntimeError, MemoryError):
        return None


def _keep(run: RunFolder, summary: Summary, before: str) -> None:
    body = msgspec.json.encode(summary)
    settled = time.time_ns() - max(path.stat().st_ctime_ns for path in _content(run)) > _SETTLED
    head = _Head(format=FORMAT_VERSION, program=program(), content=_digest(run), state=before if settled else "")
    if len(body) > _MOST_BYTES // 2 or not head.program or _state(run) != before:
        return  # somebody wrote to the run or to karat meanwhile
    told = seal(_line(head, "") + body)
    if told is not None:
        with _folder(run, make=True) as folder:
            _sweep(folder)
            _replace(folder, _line(head, told) + body)


def _line(head: _Head, told: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(head, seal=told)) + b"\n"


def _read(run: RunFolder) -> bytes:
    with open_regular(run.path / _FOLDER / _FILE, within=run.path, at_most=_MOST_BYTES) as file:
        return file.read(_MOST_BYTES)


def _replace(folder: int, data: bytes) -> None:
    """Puts the file there, whole."""
    part = f"{_PART}{secrets.token_hex(8)}"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, new_file_mode(folder), dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.rename(part, _FILE, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(OSError):  # it is gone, once it has its name
            os.unlink(part, dir_fd=folder)


def _sweep(folder: int) -> None:
    """Removes what writers that were killed have left."""
    with os.scandir(folder) as entries:
        left = [entry.name for entry in entries if entry.name.startswith(_PART) and _is_left(entry)]
    for name in left:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _is_left(entry: os.DirEntry[str]) -> bool:
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_SECONDS
    except OSError:
        return False


@contextmanager
def _folder(run: RunFolder, *, make: bool = False) -> Iterator[int]:
    """The cache as a descriptor: it does not become a link while it is used. Raises OSError for a link."""
    path = run.path / _FOLDER
    if make:
        make_folder(path)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _content(run: RunFolder) -> list[Path]:
    """Every file that a summary is made of."""
    studies = (path for path in (run.path / "studies").glob("*") if path.suffix in (".yaml", ".yml"))
    return [*(run.path / name for name in _CONTENT), *sorted(studies)]


def _state(run: RunFolder) -> str:
    """Changes when the run is written to, whatever its times are set to; empty where something is missing."""
    try:
        told = [(path.name, path.stat()) for path in _content(run)]
    except OSError:
        return ""
    lines = (f"{name} {one.st_dev}.{one.st_ino}.{one.st_size}.{one.st_ctime_ns}" for name, one in told)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def _digest(run: RunFolder) -> str:
    """Of every byte that a summary is made of: half a second a gigabyte and core. Raises OSError."""
    pieces = [(path, start) for path in _content(run) for start in range(0, max(1, _size(path)), _PIECE)]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # hashing lets go of the interpreter
        found = pool.map(lambda piece: _piece(*piece), pieces)
        told = [f"{path.name} {start} {digest}" for (path, start), digest in zip(pieces, found, strict=True)]
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()


def _size(path: Path) -> int:
    told = path.lstat()
    if not stat.S_ISREG(told.st_mode):
        raise OSError(f"{path} is no plain file")
    return told.st_size


def _piece(path: Path, start: int) -> str:
    digest, left = hashlib.sha256(), _PIECE
    with open_regular(path) as file:
        file.seek(start)
        while left and (part := file.read(min(left, 2**20))):
            digest.update(part)
            left -= len(part)
    return f"{_PIECE - left} {digest.hexdigest()}"
