"""Reviews of answers by people: `labels.jsonl` in the run folder, append-only.

The first line is the head, every other line is a label. The newest label of a person on a trial
counts as a whole: an empty one withdraws the earlier one. Labels of a turn are separate
from labels of the whole answer.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from karat.errors import BadRun
from karat.files import sync_folder
from karat.journal.codec import (
    UNREADABLE,
    Codec,
    LineDamaged,
    checked_lines,
    checksum_fault,
    content_of,
    is_whole,
)
from karat.journal.folder import RunFolder
from karat.journal.lock import open_own
from karat.journal.writer import complete_lines, write_whole

FORMAT_VERSION = 2
"""1: 2026-11, the first. Verdicts and readings of turns came as further fields, which older readers
pass over. 2: every line has a checksum, `crc`, as its last key.
"""

_CHECKSUMS_SINCE = 2

LONGEST_NOTE = 10_000
"""Characters."""

_MOST_BYTES = 64 * 2**20  # of the file: far more than people write in years
_PATIENCE_SECONDS = 10.0  # another writer holds the lock for one line

Verdict = Literal["confirmed", "rejected"]
Judged = Literal["right", "wrong", "cannot_tell"]


class Label(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="label", tag_field="event"
):
    """One person's label of one answer, or of one of its turns."""

    at: str  # UTC, ISO 8601
    who: str
    trial: str
    # from 0; None: for the whole answer
    turn: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    scores: dict[str, float] = {}  # metric, as named in reports → the person's own score
    claims: dict[str, Verdict] = {}  # an unverified claim, word for word → whether it holds
    note: str = ""
    verdict: Judged | None = None  # for a turn, compared with its golden answer
    diagnosis: str = ""  # for a wrong turn: why, in the terms of `karat_conversations.numeric`
    # for a turn of a study: field → the answer that the person reads
    answers: dict[str, float | str | list[str]] = {}
    # the same: field → why it has no answer, in the terms of the journal
    unread: dict[str, str] = {}

    @property
    def empty(self) -> bool:
        """Whether it is empty: the earlier label is withdrawn."""
        return not (
            self.scores
            or self.claims
            or self.note
            or self.verdict
            or self.diagnosis
            or self.answers
            or self.unread
        )


class FileHead(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="event"):
    """The first line of a file that is kept beside the journal."""

    format: int
    run: str


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Every label that counts."""

    newest: dict[str, tuple[Label, ...]]  # trial → one per person and turn, the oldest first
    lines: int = 0
    damaged_lines: tuple[int, ...] = ()  # from 1; not as karat wrote them

    @property
    def damaged(self) -> int:
        """The number of lines that are not as karat wrote them."""
        return len(self.damaged_lines)

    def of(self, trial: str) -> tuple[Label, ...]:
        """The labels of one trial."""
        return self.newest.get(trial, ())


_decode = msgspec.json.Decoder(FileHead | Label).decode


def labels_path(run: RunFolder) -> Path:
    """The path of the file, existing or not."""
    return run.path / "labels.jsonl"


def read_labels(run: RunFolder) -> Labels:
    """Raises BadRun for a file of a newer format, of another run, or too large to be written by
    people.
    """
    file = run.open_file("labels.jsonl", at_most=_MOST_BYTES)
    if file is None:
        return Labels(newest={})
    with file:
        ended = (line for line in file if line.endswith(b"\n") or is_whole(content_of(line)))

        lines = (content_of(line.removesuffix(b"\n")) for line in ended)
        newest: dict[tuple[str, str, int | None], Label] = {}
        count = 0
        damaged = []
        required = False
        for stored in lines:
            count += 1
            if not stored:
                continue
            try:
                entry = _decode(stored)
            except UNREADABLE:
                damaged.append(count)
                continue

            if isinstance(entry, FileHead):
                _check_head(entry, run, labels_path(run).name, FORMAT_VERSION, "labels")
                required = entry.format >= _CHECKSUMS_SINCE

            if checksum_fault(stored, required=required) is not None:
                damaged.append(count)
                continue

            if isinstance(entry, FileHead):
                continue
            key = (entry.trial, entry.who, entry.turn)
            newest.pop(key, None)
            if not entry.empty:
                newest[key] = entry

        by_trial: dict[str, list[Label]] = {}
        for label in newest.values():
            by_trial.setdefault(label.trial, []).append(label)
        return Labels(
            newest={trial: tuple(labels) for trial, labels in by_trial.items()},
            lines=count,
            damaged_lines=tuple(damaged),
        )


def add_label(run: RunFolder, label: Label) -> None:
    """Appends a label; it is on disk when this returns. Writers in different processes wait for
    each other.

    Raises BadRun if it cannot be written.
    """
    read_labels(run)  # never write to anything but this run's labels
    append_events(run, labels_path(run).name, FORMAT_VERSION, [label])


def read_events(
    run: RunFolder, name: str, kinds: object, *, newest_format: int, holds: str, remedy: str
) -> Iterator[object]:
    """Every line of a file that `append_events` wrote, the head too. `kinds`: the types of the
    others.

    Raises BadRun for a damaged line, and for a file of a newer format, of another run, or larger
    than 64 MB. `holds` and `remedy` are for its message.
    """
    file = run.open_file(name, at_most=_MOST_BYTES)
    if file is None:
        return
    where = str(run.path / name)
    decode = msgspec.json.Decoder(FileHead | kinds).decode
    count = 0
    with file:
        try:
            for _, _, line in checked_lines(file, required=True):
                count += 1
                event = decode(line)
                if isinstance(event, FileHead):
                    _check_head(event, run, name, newest_format, holds)
                yield event
        except (LineDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            number = error.number if isinstance(error, LineDamaged) else count
            raise BadRun(where, f"line {number} is not as karat wrote it; {remedy}") from error


def append_events(run: RunFolder, name: str, file_format: int, events: Iterable[object]) -> None:
    """Appends events to a file of the run folder, durably; a new or empty file gets the head first.

    Raises BadRun if it cannot be written.
    """
    path = run.path / name
    new = not path.exists()
    fd = open_own(path)
    try:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > give_up:
                    raise BadRun(path, "another process keeps writing to it; try again") from error
                time.sleep(0.01)

        codec = Codec()
        end = complete_lines(fd, path)
        if end:
            lines = b""
        else:
            lines = codec.line(FileHead(format=file_format, run=run.info.run))

        lines += b"".join(map(codec.line, events))
        try:
            write_whole(fd, lines)
        except OSError:
            os.ftruncate(fd, end)
            raise

        os.fsync(fd)
    except OSError as error:
        raise BadRun(path, f"the disk refused to write ({error.strerror})") from error
    finally:
        os.close(fd)

    if new:
        sync_folder(run.path)


def _check_head(head: FileHead, run: RunFolder, name: str, newest: int, holds: str) -> None:
    """Raises BadRun for a file of a newer format, or of another run."""
    where = str(run.path / name)
    if head.format > newest:
        raise BadRun(
            where, f"has format {head.format}, this karat reads up to {newest}: update karat"
        )

    if head.run != run.info.run:
        raise BadRun(where, f"holds {holds} of run {head.run}, this is run {run.info.run}")
