"""What a trial changed in its workspace: stores it in the run folder, and rebuilds the workspace
from that.

`RUN/workspaces/TRIAL-ATTEMPT.tar.gz` holds `changes.json` (`Stored`), `diff` (text) and `files/…`:
every changed or new file. `RUN/workspaces/base-DIGEST.tar.gz` is the folder that the trials started
from. What a build leaves, and anything too large, not a file, or linking out of the workspace, is
left out, and `left_out` says so.
"""

from __future__ import annotations

import difflib
import errno
import gzip
import hashlib
import os
import re
import stat
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import IO

import msgspec

from karat.context.archive import END, BadArchive, member, members
from karat.context.trees import Entry, is_plain_name, leads_inside
from karat.errors import BadOption
from karat.files import open_regular, remove_tree, unlocked, write_durably
from karat.formats import count
from karat.records import Answer, WorkspaceChanges
from karat.redact import Redactor
from karat_coding.workspace import Base, Workspace

MOST_BYTES = 64_000_000
"""Of changed files, for each trial."""
MOST_ENTRIES = 20_000
"""Changed, new and removed, for each trial."""

_MOST_SEEN = 500_000  # entries; in a copy, including unchanged ones
_MOST_DIFF = 200_000  # characters
_MOST_COMPARED = 1_000_000  # bytes of a file
_MOST_LINES = 1_000  # of a file, without equal lines at start and end: time grows with the square
_CONTEXT = 3  # lines around a difference
_DIFF_SECONDS = 5.0  # for all files of a trial
_BUILT = frozenset(
    [
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    ]
)
_LARGEST = 2**30 + 2**28  # bytes of an archive, unpacked
_NOTES_IN_ANSWER = 3
_LONG = b"\0long"
_NOTHING = (Entry(""), b"")
# errors where the changes are written, not in the workspace
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_FILE = re.compile(r"(base-[0-9a-f]{1,64}|[0-9a-f]{1,64}-\d{1,9})\.tar\.gz", re.ASCII)


class Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`changes.json`: the archive's metadata."""

    base: str  # digest of the folder that the trial started from
    changed: int  # files and links that are new or different
    bytes: int  # of these files
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what is missing from the archive, and why; (): it is complete
    # new folders that are not kept, as a build or an installation makes them again
    built: tuple[str, ...] = ()
    added_lines: int | None = None  # in text files; None: not all of them were compared
    removed_lines: int | None = None
    answer: Answer | None = None  # about to be written to the journal; None: the attempt failed


def refuse_secrets(base: Base, redact: Redactor) -> None:
    """Raises BadOption if a file of a starting folder holds a secret, because the run folder stores
    the file.
    """
    for entry in base.tree.entries if redact.active else ():
        if not entry.folder and entry.link is None:
            data = (base.path / entry.path).read_bytes()
            if _masked(data, redact) != data:
                problem = (
                    f"its file '{entry.path}' holds a secret of the experiment, and would be in "
                    f"the run folder"
                )
                raise BadOption("workspace", f"{problem}; remove the secret")


def store_base(folder: Path, base: Base) -> None:
    """Stores the folder that trials start from in `folder`, once."""
    path = folder / f"base-{base.tree.digest}.tar.gz"
    if path.exists():
        return
    with tempfile.TemporaryFile(dir=folder) as spool:
        with gzip.GzipFile(fileobj=spool, mode="wb", compresslevel=6, mtime=0) as stream:
            for entry in base.tree.entries:
                if entry.folder or entry.link is not None:
                    data = b""
                else:
                    data = (base.path / entry.path).read_bytes()

                stream.write(member(entry, data))

            stream.write(END)

        write_durably(path, _blocks(spool))


def store_changes(
    workspace: Workspace,
    base: Base,
    path: Path,
    *,
    redact: Redactor,
    answer: bytes | None,
    ignore: Sequence[str] = (),
) -> WorkspaceChanges:
    """Writes the changes to `path` and syncs it. Raises OSError, but never because of what an agent
    left.

    `ignore`: names of files and folders anywhere, or paths from the workspace, with `*` and `?`;
    they count as unchanged. `answer`: the line about to be written to the journal, so that a killed
    run asks nothing twice.
    """
    workspace.end_processes()
    with tempfile.TemporaryFile(dir=path.parent) as spool:
        with gzip.GzipFile(fileobj=spool, mode="wb", compresslevel=1, mtime=0) as stream:
            changes = _Changes(workspace, base, stream, redact, ignore)
            changes.read()
            stream.write(END)

        diff = changes.diff
        stored = Stored(
            base=base.tree.digest,
            changed=changes.changed,
            bytes=changes.bytes,
            removed=tuple(changes.removed),
            left_out=tuple(changes.left_out),
            built=tuple(changes.built),
            answer=msgspec.json.decode(answer, type=Answer) if answer else None,
            added_lines=diff.added if diff.whole else None,
            removed_lines=diff.removed if diff.whole else None,
        )
        head = member(Entry("changes.json"), msgspec.json.encode(stored))
        head += member(Entry("diff"), redact("".join(diff.parts)).encode())
        digest = hashlib.sha256()
        write_durably(path, _blocks(spool, gzip.compress(head, mtime=0), digest))
        return summary_of(stored, path, digest.hexdigest())


def _blocks(
    file: IO[bytes], head: bytes = b"", digest: hashlib._Hash | None = None
) -> Iterator[bytes]:
    """`head`, then a file from its start; `digest` is updated with all of it."""
    file.seek(0)
    for block in chain([head], iter(partial(file.read, 2**20), b"")):
        if digest is not None:
            digest.update(block)
        yield block


def summary_of(stored: Stored, path: Path, sha256: str | None = None) -> WorkspaceChanges:
    """An answer's record of its workspace. `sha256`: of the archive; None: it is read."""
    if sha256 is None:
        with open_regular(path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()

    return WorkspaceChanges(
        file=path.name,
        sha256=sha256,
        base=stored.base,
        changed=stored.changed,
        removed=len(stored.removed),
        bytes=stored.bytes,
        added_lines=stored.added_lines,
        removed_lines=stored.removed_lines,
        complete=not stored.left_out,
        left_out=stored.left_out[:_NOTES_IN_ANSWER],
    )


def _masked(data: bytes, redact: Redactor) -> bytes:
    if not redact.active:
        return data
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class _Changes:
    """Reads the changes of one workspace, and writes the changed files to `stream`."""

    def __init__(
        self,
        workspace: Workspace,
        base: Base,
        stream: gzip.GzipFile,
        redact: Redactor,
        ignore: Sequence[str],
    ) -> None:
        self._ignore = ignore
        self._workspace = workspace
        self._base = base
        self._stream = stream
        self._redact = redact
        self.changed = self.bytes = 0
        self.removed: dict[str, None] = {}
        self.left_out: list[str] = []
        self.built: list[str] = []
        self.diff = _Diff()
        self._seen: set[str] = set()
        # what is not met was removed
        if workspace.overlay is not None:
            self._hidden = set[str]()
        else:
            self._hidden = {""}

    def read(self) -> None:
        """Goes through everything that changed; in a copy, through everything."""
        top = os.open(self._workspace.changed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            waiting = deque([""])  # what is nearest to the top comes first
            while waiting and not self._is_full:
                waiting += self._read_folder(top, waiting.popleft())
        finally:
            os.close(top)

        if self._is_full:
            self._leave_out(
                "", f"more than {count(MOST_ENTRIES)} changed files, or {count(_MOST_SEEN)} in all"
            )
            self.diff.whole = False
            return

        ignored: set[str] = set()
        for name, entry in self._base.entries.items():  # a folder before what is in it
            if self._is_ignored(name) or name.rpartition("/")[0] in ignored:
                ignored.add(name)
                continue

            above = []
            for at in [0, *(at for at, letter in enumerate(name) if letter == "/")]:
                above.append(name[:at])
            gone = any(parent in self.removed for parent in above)
            if (
                not gone
                and name not in self._seen
                and any(parent in self._hidden for parent in above)
            ):
                self.removed[name] = None

            if (gone or name in self.removed) and not entry.folder and entry.link is None:
                self.diff.add(name, self._before(entry), None)

    @property
    def _is_full(self) -> bool:
        return len(self._seen) > _MOST_SEEN or self.changed + len(self.removed) > MOST_ENTRIES

    def _is_ignored(self, name: str) -> bool:
        part = name.rpartition("/")[2]
        return any(
            fnmatchcase(part, pattern) or fnmatchcase(name, pattern) for pattern in self._ignore
        )

    def _read_folder(self, top: int, folder: str) -> list[str]:
        """Reads a folder; returns the folders in it."""
        below: list[str] = []
        try:
            with _opened_below(top, folder) as fd:
                if self._workspace.overlay is not None and _is_opaque(fd):
                    self._hidden.add(folder)
                with os.scandir(fd) as entries:
                    names = sorted(entry.name for entry in islice(entries, _MOST_SEEN))
                for part in names:
                    if folder:
                        name = f"{folder}/{part}"
                    else:
                        name = part

                    if self._is_ignored(name):
                        continue
                    self._seen.add(name)
                    if self._is_full:
                        break
                    if not is_plain_name(name):
                        self._leave_out(name, "a name that is not printable UTF-8, or too long")
                    elif self._read_entry(fd, part, name):
                        below.append(name)
        except OSError as error:
            if error.errno in _DISK:
                raise
            self._leave_out(folder, error.strerror or str(error))

        return below

    def _read_entry(self, fd: int, part: str, name: str) -> bool:
        """Reads an entry; returns whether it is a folder."""
        status = os.stat(part, dir_fd=fd, follow_symlinks=False)
        before = self._base.entries.get(name)
        mode = status.st_mode
        if before is not None and (stat.S_ISDIR(mode), stat.S_ISLNK(mode)) != (
            before.folder,
            before.link is not None,
        ):
            self.removed[name] = None

        if stat.S_ISDIR(mode):
            if before is None and (part in _BUILT or _exists(fd, f"{part}/pyvenv.cfg")):
                self.built.append(name)
                return False

            if before is None or not before.folder:
                self._stream.write(member(Entry(f"files/{name}", folder=True)))
            return True

        if stat.S_ISREG(mode):
            self._read_file(fd, part, name, before)
        elif stat.S_ISLNK(mode):
            self._read_link(os.readlink(part, dir_fd=fd), name, before)
        elif stat.S_ISCHR(mode) and status.st_rdev == 0 and self._workspace.overlay is not None:
            self.removed[name] = None  # an overlay's mark for this
        else:
            self._leave_out(name, "neither a file nor a folder nor a link")

        return False

    def _read_link(self, target: str, name: str, before: Entry | None) -> None:
        if before is not None and before.link == target:
            return
        place = self._workspace.path
        if target.startswith(f"{place}/"):
            target = os.path.relpath(target, (place / name).parent)
        if not leads_inside(name, target) or not target.isprintable():
            self._leave_out(name, f"a link that leads out of the workspace, to {target!a:.100}")
            return

        self.changed += 1
        self._stream.write(member(Entry(f"files/{name}", link=target)))

    def _read_file(self, fd: int, part: str, name: str, before: Entry | None) -> None:
        with unlocked(part, dir_fd=fd) as opened, open(opened, "rb", closefd=False) as file:
            status = os.fstat(opened)
            if status.st_size > MOST_BYTES - self.bytes:
                self._leave_out(
                    name,
                    (
                        f"{count(status.st_size)} bytes, which would make the changes more than "
                        f"{count(MOST_BYTES)}"
                    ),
                )
                self.diff.whole = False
                return

            data = file.read(status.st_size)

        executable = bool(status.st_mode & stat.S_IXUSR)
        old = None
        if before is not None and not before.folder and before.link is None:
            old = self._before(before)
            same = before.size == len(data) and before.executable == executable
            if same and (self._base.path / name).read_bytes() == data:
                return

        kept = _masked(data, self._redact)
        if kept != data:
            self._leave_out(name, "a secret in it is masked")
        self.changed += kept == data  # otherwise it is counted already
        self.bytes += len(kept)
        self._stream.write(member(Entry(f"files/{name}", executable=executable), kept))
        self.diff.add(name, old, kept if len(kept) <= _MOST_COMPARED else _LONG)

    def _before(self, entry: Entry) -> bytes:
        """A file of the starting folder, for the comparison of texts."""
        if entry.size <= _MOST_COMPARED:
            return (self._base.path / entry.path).read_bytes()
        return _LONG

    def _leave_out(self, name: str, why: str) -> None:
        self.changed += 1
        if not name:
            self.left_out.insert(0, why)
        else:
            self.left_out.append(f"{_shown(name)}: {why}")


def _exists(fd: int, path: str) -> bool:
    try:
        os.stat(path, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False

    return True


@contextmanager
def _opened_below(top: int, folder: str) -> Iterator[int]:
    """Opens a path part by part, so that no part can become a link meanwhile."""
    fd = os.dup(top)
    try:
        for part in filter(None, folder.split("/")):
            with unlocked(part, dir_fd=fd) as below:
                os.dup2(below, fd)

        yield fd
    finally:
        os.close(fd)


def _is_opaque(fd: int) -> bool:
    """Whether an overlay shows nothing of the starting folder below this folder."""
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError, AttributeError):  # Linux only
            if os.getxattr(fd, name) == b"y":
                return True

    return False


class _Diff:
    """Differences of text files in the format of `diff -u`, up to a limit."""

    def __init__(self) -> None:
        self.added = self.removed = 0
        self.whole = True  # whether every text file was compared
        self.parts: list[str] = []
        self._room = _MOST_DIFF
        self._deadline = time.monotonic() + _DIFF_SECONDS

    def add(self, name: str, old: bytes | None, new: bytes | None) -> None:
        """`old`, `new`: None if there is no such file, `_LONG` if it is too long to compare."""
        before = _lines(old)
        after = _lines(new)
        if before is None or after is None:
            long = _LONG in (old, new)
            self.whole = self.whole and not long
            self._write([f"{'Long' if long else 'Binary'} file {name}: {_fate(old, new)}"])
            return

        if self._room <= 0 or time.monotonic() > self._deadline:
            lines = None
        else:
            lines = _difference(before, after)

        if lines is None:
            self.whole = False
            self._write([f"File {name}: {_fate(old, new)}, not compared"])
            return

        self.added += sum(line.startswith("+") for line in lines)
        self.removed += sum(line.startswith("-") for line in lines)
        head = [
            f"--- {'/dev/null' if old is None else f'a/{name}'}",
            f"+++ {'/dev/null' if new is None else f'b/{name}'}",
        ]
        self._write([*head, *lines])

    def _write(self, lines: list[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if self._room > 0 and len(text) > self._room:
            text = f"{text[: self._room]}\n… the rest of the differences is left out\n"
        if self._room > 0:
            self.parts += [text]
        self._room -= len(text)


def _fate(old: bytes | None, new: bytes | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "changed"


def _lines(data: bytes | None) -> list[str] | None:
    """The lines of a text file; None if it is not text."""
    if data is None or not data:
        return []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None

    if "\0" in text:
        return None
    lines = text.split("\n")
    lines[-1:] = [f"{lines[-1]}\n\\ No newline at end of file"] if lines[-1] else []
    return lines


def _difference(old: list[str], new: list[str]) -> list[str] | None:
    """The hunks; None if comparing would take too long.

    Equal lines at start and end are not compared.
    """
    both = min(len(old), len(new))
    head = next((at for at in range(both) if old[at] != new[at]), both)
    tail = next((at for at in range(both - head) if old[-1 - at] != new[-1 - at]), both - head)
    start = max(0, head - _CONTEXT)
    end = max(0, tail - _CONTEXT)
    a = old[start : len(old) - end]
    b = new[start : len(new) - end]
    if len(a) * len(b) > _MOST_LINES**2:
        return None
    hunks = list(difflib.unified_diff(a, b, lineterm="", n=_CONTEXT))[2:]
    return [
        _HUNK.sub(
            lambda at: (
                f"@@ -{int(at[1]) + start}{at[2] or ''} +{int(at[3]) + start}{at[4] or ''} @@"
            ),
            line,
        )
        for line in hunks
    ]


def read_stored(run: Path, file: str) -> tuple[Stored, str]:
    """An archive's metadata, and the differences. Raises OSError, BadArchive."""
    with _opened(run, file) as opened:
        return _head(members(opened, at_most=_LARGEST))


def _head(entries: Iterator[tuple[Entry, bytes]]) -> tuple[Stored, str]:
    (head, data) = next(entries, _NOTHING)
    (diff, text) = next(entries, _NOTHING)
    if (head.path, diff.path) != ("changes.json", "diff"):
        raise BadArchive("it does not start with changes.json and diff")
    try:
        return msgspec.json.decode(data, type=Stored), text.decode("utf-8", "replace")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadArchive(f"changes.json in it is damaged: {error}") from error


def _opened(run: Path, file: str) -> BufferedReader:
    if not _FILE.fullmatch(file):
        raise BadArchive(f"{file!a:.100} is not the name of an archive")
    return open_regular(run / "workspaces" / file, within=run, at_most=_LARGEST)


def unpack_base(run: Path, digest: str, folder: Path) -> Base:
    """Restores the folder that trials started from as the new folder `folder`.

    Raises OSError, BadArchive.
    """
    folder.mkdir(mode=0o700)
    with _opened(run, f"base-{digest}.tar.gz") as file:
        for entry, data in members(file, at_most=_LARGEST):
            _write(folder, entry, entry.path, data)

    base = Base(folder)
    if base.tree.digest != digest:
        raise BadArchive("it is not what the trials started from")
    return base


def apply_changes(run: Path, changes: WorkspaceChanges, folder: Path) -> None:
    """Turns a copy of a trial's starting folder into what the trial left.

    Raises OSError, BadArchive.
    """
    with _opened(run, changes.file) as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != changes.sha256:
            raise BadArchive("it has changed since the answer was given")
        file.seek(0)
        entries = members(file, at_most=_LARGEST)
        for name in _head(entries)[0].removed:
            if not is_plain_name(name):
                raise BadArchive(f"a name in it is {name!a:.200}")
            remove(_room_for(folder, name))

        for entry, data in entries:
            _write(folder, entry, entry.path.removeprefix("files/"), data)


def all_left_out(run: Path, changes: WorkspaceChanges) -> tuple[str, ...]:
    """What a trial left and its archive lacks, and why. Raises OSError, BadArchive."""
    stored = read_stored(run, changes.file)[0]
    return (
        *stored.left_out,
        *(f"{_shown(name)}: a build or an installation made it" for name in stored.built),
    )


def why_left_out(name: str, left_out: Sequence[str]) -> str | None:
    """Why a path, or a folder above it, was not kept; None: it was, if most of the workspace was.

    >>> why_left_out(".venv/bin/pytest", [".venv: what a build leaves"])
    '.venv: what a build leaves'
    >>> why_left_out("a.py", [".venv: what a build leaves"])
    """
    inside = f"{_shown(name)}/"
    return next(
        (
            text
            for text in left_out
            if ": " in text and inside.startswith(f"{text.partition(': ')[0]}/")
        ),
        None,
    )


def why_mostly_left_out(left_out: Sequence[str]) -> str | None:
    """Why more may be missing from a workspace than what `left_out` names; None: it is not."""
    return next((text for text in left_out if ": " not in text), None)


def _shown(name: str) -> str:
    return f"{ascii(name)[1:-1]:.200}"


def _write(folder: Path, entry: Entry, name: str, data: bytes) -> None:
    place = _room_for(folder, name)
    if entry.folder:
        place.mkdir(exist_ok=True)
    elif entry.link is not None:
        remove(place)
        place.symlink_to(entry.link)
    else:
        put(folder, name, data, executable=entry.executable)


def put(folder: Path, name: str, data: bytes, *, executable: bool = False) -> None:
    """Writes a file below a folder; removes whatever is in its way, such as a link, and follows no
    link.
    """
    place = _room_for(folder, name)
    remove(place)
    place.write_bytes(data)
    place.chmod(0o755 if executable else 0o644)


def _room_for(folder: Path, name: str) -> Path:
    """A path below a folder whose parents are all folders, not links."""
    *above, last = name.split("/")
    for part in above:
        folder = folder / part
        if folder.is_symlink() or not folder.is_dir():
            remove(folder)
            folder.mkdir()

    return folder / last


def remove(place: Path) -> None:
    """Removes a file, a link or a folder, if it exists."""
    if place.is_dir() and not place.is_symlink():
        remove_tree(place)
    else:
        place.unlink(missing_ok=True)
