"""The index of one run, in its folder's `cache/`: made in one pass over the journal, then continued.

Thrown away whenever it does not fit: another format, another run, a journal that became shorter or
differs where the last pass ended. Where the folder cannot be written to, or leads elsewhere, it is
made in a temporary folder instead. Several viewers may show one run: `karat.viewer.sharing`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import msgspec

from karat.files import make_folder, new_file_mode
from karat.journal import RunFolder, checksum_fault
from karat.viewer.filling import Clash, Filling
from karat.viewer.schema import FORMAT_VERSION, create, is_ours
from karat.viewer.sharing import alone, held, is_passing
from karat.viewer.standings import stand

__all__ = ["Index", "Progress"]

LONGEST_LINE = 64 * 2**20
"""Bytes. A longer line is counted and passed over."""

_BATCH_BYTES = 16 * 2**20
_PRINT = 512  # bytes before the place where a pass ended, by which the journal is known again
_FOLDER = "cache"
_FILE = f"index-{FORMAT_VERSION}.sqlite"  # a viewer of another version has its own
_ENDINGS = ("", "-wal", "-shm", "-journal")
_HELD, _FILLED = ".held", ".filled"  # locks beside the file
_TRIES = 4  # to make an index that fits
_TRIES_OF_OTHERS = 10  # until a process that fills the index and gets nowhere is no longer waited for
_MOST_PARTS = 3
_ABOUT_ALL = 5_000  # samples: with more, the standings are computed once, at the end


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the index is."""

    done: int  # bytes of the journal
    total: int
    damaged: int  # lines that could not be read
    lines: int

    @property
    def finished(self) -> bool:
        """Whether every whole line that was there is in it."""
        return self.done >= self.total


class Index:
    """One run's index. One thread of one process writes (`catch_up`); every reader has a connection of its own."""

    def __init__(self, run: RunFolder, *, elsewhere: Path) -> None:
        """`elsewhere`: a folder of this process alone, for runs whose folder cannot be written to."""
        self.run = run
        self._elsewhere = elsewhere
        self.note: str | None = None  # why it does not stand in the run folder
        self.path = self._place()
        self.patience = 2.0  # seconds, for another viewer
        self._waited = ("", 0)  # where another process was in the journal, and how often it was there

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that cannot write. Raises sqlite3.Error where there is no index, or a foreign one."""
        with held(self._beside(_HELD), seconds=self.patience), closing(_connected(self.path, "ro")) as base:
            base.execute("PRAGMA query_only = 1")
            base.execute("BEGIN")  # one state for a whole page
            if not is_ours(base):
                raise sqlite3.DatabaseError("the index has other tables than karat makes")
            yield base

    def progress(self) -> Progress:
        """As the file says, and as long as the journal is now."""
        total, state = _size(self.run.journal), self._state()
        try:
            with self.reading() as base:
                meta = self._checked(base)
        except (sqlite3.Error, OSError, _Stale):
            return Progress(done=0, total=max(total, 1), damaged=0, lines=0)
        offset, damaged, lines = (_whole(meta.get(name)) for name in ("offset", "damaged", "lines"))
        # Behind the offset there may be the beginning of a line: what counts is whether anything came since.
        finished = meta.get("seen") == state
        return Progress(done=total if finished else min(offset, total - 1), total=total, damaged=damaged, lines=lines)

    def catch_up(self, *, going_on: Callable[[], bool] = lambda: True) -> bool:
        """Reads what the journal has gained; whether anything had. Stops between two batches when told to.

        Leaves it to another process that is at it. Raises sqlite3.Error where no index can be written at all, BadRun
        for a run that is none.
        """
        removed, left = True, _TRIES
        while going_on():
            left -= 1
            try:
                with alone(self._beside(_FILLED), seconds=self.patience) as mine:
                    if mine:
                        self._waited = ("", 0)
                        return self._fill(going_on)
                if self._is_waited_for():
                    return False
                left = _TRIES
            except _Stale as error:
                if not left:
                    why = "the journal changes faster than it can be read"
                    raise sqlite3.DatabaseError(why if removed else "another process holds the old index") from error
                removed = self.discard()
            except sqlite3.DatabaseError as error:
                if not left:
                    raise
                if is_passing(error) and self.path.exists():
                    time.sleep(self.patience / _TRIES)
                elif not (isinstance(error, sqlite3.OperationalError) and self._move()):
                    self.discard()
        return False

    def _is_waited_for(self) -> bool:
        """Whether another process may go on filling the index; one that gets nowhere may have been stopped."""
        try:
            with self.reading() as base:
                at = _meta(base).get("offset", "")
        except (sqlite3.Error, OSError):
            at = ""
        self._waited = (at, self._waited[1] + 1 if self._waited[0] == at else 1)
        return self._waited[1] < _TRIES_OF_OTHERS or not self._move()

    def _fill(self, going_on: Callable[[], bool]) -> bool:
        gained = False
        with held(self._beside(_HELD), seconds=self.patience), closing(self._writing()) as base:
            while going_on() and self._pass(base, going_on):
                gained = True
        return gained

    def discard(self) -> bool:
        """Removes the file, so that the next pass makes another; whether it did: not while another process uses it."""
        with alone(self._beside(_HELD), seconds=self.patience) as mine:
            for ending in _ENDINGS if mine else ():
                with suppress(FileNotFoundError):
                    self._beside(ending).unlink()
        return mine

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def _place(self) -> Path:
        folder = self.run.path / _FOLDER
        if self.note is None:
            self.note = _unfit(folder)
        if self.note is None:
            return folder / _FILE
        return self._elsewhere / f"{hashlib.sha256(str(self.run.path.absolute()).encode()).hexdigest()[:24]}.sqlite"

    def _move(self) -> bool:
        """Goes elsewhere, because writing here failed; False where it has already."""
        if self.note is not None:
            return False
        self.note = "the index could not be written to its folder"
        self.path = self._place()
        return True

    def _writing(self) -> sqlite3.Connection:
        new = not self.path.exists()
        with ExitStack() as undo:
            if new:  # SQLite gives its other files the mode of this one
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, new_file_mode(self.path.parent)))
            base = undo.enter_context(closing(_connected(self.path, "rwc")))
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = OFF")  # it can be made anew
            base.execute("PRAGMA cache_size = -65536")
            base.execute("PRAGMA wal_autocheckpoint = 16384")
            with _Transaction(base):
                if new or not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    _remove_older(self.path.parent)
                    create(base)
                    self._note(base, run=self.run.info.run, offset="0", lines="0", damaged="0", latest="{}")
            if not is_ours(base):
                raise _Stale
            undo.pop_all()
        return base

    def _pass(self, base: sqlite3.Connection, going_on: Callable[[], bool]) -> bool:
        """Batches until the journal's end, or until told to stop; whether there was anything new."""
        filling: Filling | None = None
        offset, one_by_one = -1, False
        while going_on():
            try:
                with _Transaction(base):
                    meta = self._checked(base)
                    if filling is None or offset != int(meta["offset"]):  # another process went on meanwhile
                        filling = self._filling(base, meta)
                    filling.one_by_one = one_by_one
                    offset, more = self._batch(base, meta, filling)
            except Clash:
                filling, one_by_one = None, True
                continue
            one_by_one = False
            if not more:
                return filling.began < offset
        return False

    def _filling(self, base: sqlite3.Connection, meta: dict[str, str]) -> Filling:
        filling = Filling(base, self.run, searchable=meta["searchable"] == "yes", began=int(meta["offset"]))
        for name in self.run.info.plan.conditions:
            filling.add_condition(name)
        filling.latest = {one.name: one.scoring for one in self.run.info.scorers} | json.loads(meta["latest"])
        return filling

    def _checked(self, base: sqlite3.Connection) -> dict[str, str]:
        """What the file says of itself. Raises _Stale where that is not this journal."""
        meta = _meta(base)
        wanted = (str(FORMAT_VERSION), self.run.info.run)
        try:
            offset = int(meta["offset"])
            fits = (meta["format"], meta["run"]) == wanted and offset >= 0 and json.loads(meta["latest"]) is not None
        except (KeyError, ValueError) as error:
            raise _Stale from error
        if not fits or offset > _size(self.run.journal) or meta.get("print", "") != self._print(offset):
            raise _Stale
        return meta

    def _print(self, offset: int) -> str:
        if offset <= 0:
            return ""
        start = max(0, offset - _PRINT)
        with self.run.open_file("journal.jsonl") or BytesIO() as file:
            file.seek(start)
            return hashlib.sha256(file.read(offset - start)).hexdigest()

    def _batch(self, base: sqlite3.Connection, meta: dict[str, str], filling: Filling) -> tuple[int, bool]:
        """Where the batch ended, and whether lines are left."""
        start = int(meta["offset"])
        state = self._state()
        lines, offset, torn = _batch(self.run, start)
        # After the lines: a resume replaces the samples before it writes lines about new ones.
        self._samples(base, meta, filling)
        damaged = int(meta["damaged"]) + filling.add(lines, start)
        count, more = int(meta["lines"]) + len(lines), bool(lines)
        filling.flush()
        last = not more or offset + torn >= _size(self.run.journal)
        if last and (filling.touched or meta.get("standing") == "no"):
            everything = len(filling.touched) > _ABOUT_ALL or meta.get("standing") == "no"
            stand(base, None if everything else filling.touched)
            filling.touched.clear()
        self._note(
            base,
            offset=str(offset),
            lines=str(count),
            damaged=str(damaged),
            seen=state if last else "",
            print=self._print(offset),
            latest=json.dumps(filling.latest),
            standing="no" if filling.touched else "yes",
        )
        filling.forget()
        return offset, not last

    def _state(self) -> str:
        """Changes with the journal and with the samples."""
        told = []
        for path in (self.run.journal, self.run.path / "samples.jsonl"):
            try:
                found = path.stat()
            except OSError:
                told.append("none")
            else:
                told.append(f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}")
        return " ".join(told)

    def _samples(self, base: sqlite3.Connection, meta: dict[str, str], filling: Filling) -> None:
        path = self.run.path / "samples.jsonl"
        try:
            told = path.stat()
        except OSError:
            return
        state = f"{told.st_size}:{told.st_mtime_ns}:{told.st_ino}"
        if meta.get("samples") == state or not stat.S_ISREG(told.st_mode):
            return
        filling.forget_samples()
        for at, line in _sample_lines(self.run):
            # What karat did not write is passed over; a page still stands.
            with suppress(msgspec.DecodeError, UnicodeError, RecursionError, OverflowError):
                if checksum_fault(line, required=self.run.has_checksums) is None:
                    filling.add_sample(line, at)
            filling.flush_words()
        self._note(base, samples=state)

    def _note(self, base: sqlite3.Connection, **values: str) -> None:
        base.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


class _Transaction:
    """All of a block, or nothing of it."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def __enter__(self) -> None:
        self._base.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._base.execute("COMMIT" if kind is None else "ROLLBACK")


class _Stale(Exception):
    """The file is not, or no longer, about this journal."""


def _unfit(folder: Path) -> str | None:
    """Why nothing can be kept in the folder; None where it can. Makes it where it is missing."""
    try:
        make_folder(folder)
        mode = folder.lstat().st_mode
        if not stat.S_ISDIR(mode):
            return "its folder `cache` is a link, or no folder"
        for ending in (*_ENDINGS, _HELD, _FILLED):
            file = folder / (_FILE + ending)
            if file.is_symlink() or (file.exists() and not file.is_file()):
                return "a file in its folder `cache` is a link"
        if not os.access(folder, os.W_OK | os.X_OK):
            return "its folder cannot be written to"
    except OSError as error:
        return f"its folder cannot be written to ({error.strerror})"
    return None


def _remove_older(folder: Path) -> None:
    """Indexes of versions before this one: hundreds of megabytes that nobody would miss."""
    for name in {file.name.partition(".")[0] for file in folder.glob("index*.sqlite*")}:
        version = name.removeprefix("index").removeprefix("-")
        if not version or (version.isdigit() and int(version[:9]) < FORMAT_VERSION):
            with suppress(OSError, sqlite3.OperationalError):
                _remove_unheld(folder / f"{name}.sqlite")


def _remove_unheld(file: Path) -> None:
    """Unless a viewer of its version has it open. Its locks stay: who waits for them must find the same ones."""
    lock = file.with_name(file.name + _HELD)
    with alone(lock, seconds=0) if lock.exists() else nullcontext(True) as mine:
        for ending in _ENDINGS if mine else ():
            file.with_name(file.name + ending).unlink(missing_ok=True)


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    base = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=10, isolation_level=None, check_same_thread=False
    )
    base.execute("PRAGMA trusted_schema = 0")
    base.execute("PRAGMA cell_size_check = 1")
    base.execute("PRAGMA mmap_size = 0")
    return base


def _meta(base: sqlite3.Connection) -> dict[str, str]:
    return {str(name): str(value) for name, value in base.execute("SELECT name, value FROM meta LIMIT 100")}


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 19 else 0


def _size(path: Path) -> int:
    try:
        told = path.stat()
    except OSError:
        return 0
    return told.st_size if stat.S_ISREG(told.st_mode) else 0


def _batch(run: RunFolder, start: int) -> tuple[list[bytes], int, int]:
    """The lines of one transaction, without their newlines; where they end; how many bytes of a torn one follow.

    A line that is too long comes as nothing, and alone.
    """
    with run.open_file("journal.jsonl") or BytesIO() as file:
        file.seek(start)
        found = file.read(_BATCH_BYTES)
        end = found.rfind(b"\n")
        if end >= 0:
            rest = len(found) - end - 1
            return found[:end].split(b"\n"), start + end + 1, rest
        file.seek(start)
        line = file.readline(LONGEST_LINE)
        after = start + len(line)
        if line and not line.endswith(b"\n"):
            line, after = _rest(file, line, after)
        return ([line[:-1]], after, 0) if line and after >= 0 else ([], start, len(line))


def _sample_lines(run: RunFolder) -> Iterator[tuple[int, bytes]]:
    """Where each line begins, and the line; what is torn or too long is left out."""
    with run.open_file("samples.jsonl") or BytesIO() as file:
        at = 0
        while line := file.readline(LONGEST_LINE):
            end = at + len(line)
            if not line.endswith(b"\n"):
                line, end = _rest(file, line, end)
            if end < 0:
                return
            yield at, line[:-1]
            at = end


def _rest(file: BinaryIO, line: bytes, end: int) -> tuple[bytes, int]:
    """What follows a line that was not ended: the end of one too long, or nothing.

    A line that is still not ended after `_MOST_PARTS` times the longest is not followed: the file may be endless.
    """
    if len(line) < LONGEST_LINE:
        return line, -1
    for _ in range(_MOST_PARTS):
        part = file.readline(LONGEST_LINE)
        end += len(part)
        if part.endswith(b"\n"):
            return b"\n", end
    return b"", -1
