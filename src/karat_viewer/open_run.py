"""One run that is being viewed: its index, numbers and labels, kept up to date with the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import msgspec

from karat.analysis import Summary
from karat.analysis.parts import kind_of
from karat.document.run import Document, document
from karat.errors import BadRun
from karat.index.cache import is_large
from karat.journal import Labels, RunFolder, RunLock, labels_path, read_labels
from karat_viewer.jobs import PATIENCE_SECONDS, NotYet
from karat_viewer.live_index import LiveIndex, Progress, file_state
from karat_viewer.queries import Questions
from karat_viewer.summing import summed
from karat_viewer.texts import Moved, Texts

_ALMOST = 4 * 2**20  # bytes by which a page may lag behind a running run


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One state of the index, from which every page of a run is made."""

    questions: Questions
    texts: Texts
    right: str = ""  # the match that makes a turn right; empty: the kind has no such option


class OpenRun:
    """A run being viewed. Safe to use from several threads."""

    def __init__(
        self, run: RunFolder, pool: ThreadPoolExecutor, *, going_on: Callable[[], bool]
    ) -> None:
        self.run = run
        self.name = run.path.name
        self._pool, self._going_on = pool, going_on
        self.index = LiveIndex(run)
        self._right, _ = kind_of(run.info.kind).rule(run, {})
        self._guard = threading.Lock()
        self._catching: Future[None] | None = None
        self._sum: _Sum | None = None
        self._document: tuple[Summary, Document] | None = None
        self._labels: tuple[str, Labels] | None = None

    def stamp(self) -> str:
        """A stamp that changes whenever a page may: with the journal, the samples, the labels or
        the status.
        """
        return f"{self._state()}-{file_state(labels_path(self.run))}"

    def _state(self) -> str:
        """The same without the labels, which no number depends on."""
        files = [file_state(file) for file in (self.run.journal, self.run.path / "samples.jsonl")]
        return "-".join([*files, "on" if self.going() else "off"])

    def going(self) -> bool:
        """Whether some process is writing to the run."""
        return held(self.run)

    def fresh(self) -> Progress:
        """Updates the index for as long as a page may wait."""
        progress = self.index.progress()
        if progress.finished:
            return progress
        job = self._catch_up()
        wait([job], timeout=PATIENCE_SECONDS)
        if job.done() and (error := job.exception()) is not None:
            raise error
        return self.index.progress()

    def look_ahead(self) -> None:
        """Starts building the index for the next page, unless the run is running and needs the
        machine.
        """
        if not self.going() and not self.index.progress().finished:
            self._catch_up()

    def _catch_up(self) -> Future[None]:
        with self._guard:
            if self._catching is None or self._catching.done():
                self._catching = self._pool.submit(self.index.catch_up, going_on=self._going_on)
            return self._catching

    @contextmanager
    def page(self) -> Iterator[Page]:
        """One state of the index, up to date.

        Raises NotYet while it is built, BadRun if there are no samples.
        """
        if not (self.run.path / "samples.jsonl").is_file():
            raise BadRun(str(self.run.path), "samples.jsonl is missing")
        progress = self.fresh()
        if not progress.finished and progress.total - progress.done > _ALMOST:
            raise NotYet("index", progress)
        try:
            with self.index.reading() as questions, questions.index.reader() as reader:
                yield Page(questions=questions, texts=Texts(questions, reader), right=self._right)
        except Moved as error:
            self.index.discard()
            raise NotYet("index") from error

    def summary(self) -> Summary:
        """Every number of the run. Raises NotYet while it is being computed, KaratError if that is
        impossible.

        For a running run it may be somewhat out of date, because computing must not slow the run
        down.
        """
        stamp = self._state()
        with self._guard:
            last = self._sum
            if last is None or (
                last.stamp != stamp and last.job.done() and not (self.going() and last.fresh())
            ):
                self._sum = _Sum(stamp, self._pool, self.run, before=last)

            job = self._sum or last

        assert job is not None
        wait([job.job], timeout=PATIENCE_SECONDS)
        if job.job.done():
            return job.job.result()
        if job.before is not None:
            return job.before
        raise NotYet("summary")

    def document(self, summary: Summary) -> Document:
        """The run's report, made only once."""
        if self._document is None or self._document[0] is not summary:
            self._document = summary, document(summary)
        return self._document[1]

    def labels(self) -> Labels:
        """The run's labels. Raises BadRun if their file is invalid."""
        stamp = file_state(labels_path(self.run))
        if self._labels is None or self._labels[0] != stamp:
            self._labels = stamp, read_labels(self.run)
        return self._labels[1]


def held(run: RunFolder) -> bool:
    """Whether some process is writing to a run."""
    try:
        return RunLock(run.path).held()
    except (BadRun, OSError):
        return False


class _Sum:
    """A summary that is being computed, or is ready."""

    def __init__(
        self,
        stamp: str,
        pool: ThreadPoolExecutor,
        run: RunFolder,
        *,
        before: _Sum | None,
    ) -> None:
        self.stamp = stamp
        self.before: Summary | None = None  # what to show meanwhile
        if before is not None:
            if before.job.exception() is None:
                self.before = before.job.result()
            else:
                self.before = before.before

        self._large = is_large(run)
        self._took = 0.0
        self._ended = 0.0
        self.job: Future[Summary] = pool.submit(self._make, run)

    def _make(self, run: RunFolder) -> Summary:
        started = time.monotonic()
        summary = summed(run)
        self._ended = time.monotonic()
        self._took = self._ended - started
        return summary

    def fresh(self) -> bool:
        """Whether, for a large run, a new one now would mean spending over a tenth of the time on
        summaries.
        """
        return self._large and time.monotonic() - self._ended < 10 * self._took
