"""The index of a run that is looked at: kept in memory, continued as the run goes on, made again where it cannot be.

Nothing is written anywhere, so any number of viewers may show one run. One thread continues the index (`catch_up`);
pages read it between two of its steps.
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
from karat.viewer.queries import Questions

__all__ = ["LiveIndex", "Progress"]

_STEP = 4 * 2**20  # bytes of the journal between two chances of a page
_TAIL = 512  # bytes before the end of what was read, by which the journal is known again


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the index is."""

    done: int  # bytes of the journal
    total: int
    damaged: int  # lines that could not be read

    @property
    def finished(self) -> bool:
        """Whether every whole line that was there is in it."""
        return self.done >= self.total


class LiveIndex:
    """One run's index. May be asked from several threads."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self._guard = threading.RLock()
        self._index: RunIndex | None = None
        self._listing = SampleList()
        self._sample_places = array("q")
        self._samples_state = self._read_state = self._tail = b""  # what was read
        self._questions: Questions | None = None

    def progress(self) -> Progress:
        """How much of the journal is read, as long as it is now."""
        index, total = self._index, _size(self.run)
        if index is None:
            return Progress(done=0, total=max(total, 1), damaged=0)
        # Behind what was read there may be the beginning of a line: what counts is whether anything came since.
        finished = self._read_state == self._state()
        return Progress(done=total if finished else min(index.end, total - 1), total=total, damaged=index.damaged)

    def catch_up(self, *, going_on: Callable[[], bool] = lambda: True) -> None:
        """Reads what the journal has gained. Raises BadRun for a run that is none."""
        while going_on():
            with self._guard, trusted(self.run):
                state = self._state()
                if not self._fits():
                    self._begin()
                assert self._index is not None
                more = self._index.follow(at_most=_STEP)
                self._tail = self._before(self._index.end)
                if not more:
                    self._read_state = state
                    return

    @contextmanager
    def reading(self) -> Iterator[Questions]:
        """What there is to be asked of the run now; the index does not change meanwhile."""
        with self._guard, trusted(self.run):
            if self._index is None:
                self.catch_up()
            assert self._index is not None
            if self._questions is None or self._questions.end != self._index.end:
                self._questions = Questions(self._index, self._listing, self._sample_places)
            yield self._questions

    def discard(self) -> None:
        """Makes the next pass begin again."""
        with self._guard:
            self._index = None

    def _fits(self) -> bool:
        """Whether the index is still about this journal and these samples."""
        index = self._index
        if index is None or index.outgrown or self._samples_state != _file_state(self.run.path / "samples.jsonl"):
            return False
        return self._before(index.end) == self._tail

    def _begin(self) -> None:
        self._samples_state = _file_state(self.run.path / "samples.jsonl")
        self._index, self._questions, self._tail = RunIndex(self.run), None, b""
        self._sample_places = array("q", [0])
        with self.run.open_file("samples.jsonl") or BytesIO() as file:
            for line in file:
                self._sample_places.append(self._sample_places[-1] + len(line))
        self._listing, views = SampleList(), kinds.of(self.run.info.kind).views()
        if type(views).listing is not Views.listing:  # else it needs no samples, which may be many
            rows = self._index.samples
            self._listing = views.listing((rows[sample.id], sample) for sample in self.run.samples())

    def _before(self, end: int) -> bytes:
        with self.run.open_journal() or BytesIO() as file:
            file.seek(max(0, end - _TAIL))
            return file.read(min(end, _TAIL))

    def _state(self) -> bytes:
        """Changes with the journal and with the samples."""
        return _file_state(self.run.journal) + _file_state(self.run.path / "samples.jsonl")


def _file_state(path: Path) -> bytes:
    try:
        status = path.stat()
    except OSError:
        return b"none "
    return b"%d.%d.%d " % (status.st_ino, status.st_size, status.st_mtime_ns)


def _size(run: RunFolder) -> int:
    try:
        return run.journal_size
    except (BadRun, OSError):
        return 0
