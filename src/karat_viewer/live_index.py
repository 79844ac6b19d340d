"""The index of a viewed run: kept in memory, extended as the run grows, rebuilt if that is
impossible.

Nothing is written, so any number of viewers may show one run. One thread extends the index
(`catch_up`); pages read it between two of its steps.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import msgspec

from karat import kinds
from karat.errors import BadRun
from karat.index import RunIndex, trusted
from karat.journal import RunFolder
from karat.kind_views import SampleList, Views
from karat_viewer.queries import Questions

_STEP = 4 * 2**20  # bytes of the journal per step; pages get a chance between steps
_TAIL = 512  # bytes before the end of what was read, by which the journal is recognised


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the journal is indexed."""

    done: int  # bytes of the journal
    total: int
    damaged: int  # lines that could not be read

    @property
    def finished(self) -> bool:
        """Whether the index has every complete line."""
        return self.done >= self.total


class LiveIndex:
    """One run's index. Safe to use from several threads."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self._guard = threading.RLock()
        self._index: RunIndex | None = None
        self._listing = SampleList()
        self._sample_places = array("q")
        self._samples_state = self._read_state = ""  # of what was read
        self._tail = b""
        self._questions: Questions | None = None

    def progress(self) -> Progress:
        """How much of the journal, at its present length, has been read."""
        try:
            total = self.run.journal_size
        except (BadRun, OSError):
            total = 0

        index = self._index
        if index is None:
            return Progress(done=0, total=max(total, 1), damaged=0)
        # The journal may end with an unfinished line, so what counts is whether anything has
        # changed since.
        finished = self._read_state == self._state()
        if finished:
            done = total
        else:
            done = min(index.end, total - 1)

        return Progress(
            done=done,
            total=total,
            damaged=index.damaged,
        )

    def catch_up(self, *, going_on: Callable[[], bool] = lambda: True) -> None:
        """Reads new lines of the journal. Raises BadRun for an invalid run."""
        while going_on():
            with self._guard, trusted(self.run):
                state = self._state()
                # Whether the index still belongs to this journal and these samples
                if (
                    self._index is None
                    or self._index.outgrown
                    or self._samples_state != file_state(self.run.path / "samples.jsonl")
                    or self._before(self._index.end) != self._tail
                ):
                    self._begin()

                assert self._index is not None
                more = self._index.follow(at_most=_STEP)
                self._tail = self._before(self._index.end)
                if not more:
                    self._read_state = state
                    return

    @contextmanager
    def reading(self) -> Iterator[Questions]:
        """The current state, to query; the index does not change meanwhile."""
        with self._guard, trusted(self.run):
            if self._index is None:
                self.catch_up()
            assert self._index is not None
            if self._questions is None or self._questions.end != self._index.end:
                self._questions = Questions(self._index, self._listing, self._sample_places)
            yield self._questions

    def discard(self) -> None:
        """Makes the next pass start from the beginning."""
        with self._guard:
            self._index = None

    def _begin(self) -> None:
        self._samples_state = file_state(self.run.path / "samples.jsonl")
        self._index = RunIndex(self.run)
        self._questions = None
        self._tail = b""
        self._sample_places = array("q", [0])
        with self.run.open_file("samples.jsonl") or BytesIO() as file:
            for line in file:
                self._sample_places.append(self._sample_places[-1] + len(line))

        self._listing, views = SampleList(), kinds.of(self.run.info.kind).views()
        # otherwise the samples, perhaps many, need not be read
        if type(views).listing is not Views.listing:
            rows = self._index.samples
            self._listing = views.listing(
                (rows[sample.id], sample) for sample in self.run.samples()
            )

    def _before(self, end: int) -> bytes:
        with self.run.open_journal() or BytesIO() as file:
            file.seek(max(0, end - _TAIL))
            return file.read(min(end, _TAIL))

    def _state(self) -> str:
        """A stamp that changes with the journal and the samples."""
        return f"{file_state(self.run.journal)}-{file_state(self.run.path / 'samples.jsonl')}"


def file_state(path: Path) -> str:
    """A stamp that changes with the file; `none` if there is none."""
    try:
        status = path.stat()
    except OSError:
        return "none"

    return f"{status.st_ino:x}.{status.st_size:x}.{status.st_mtime_ns:x}"
