"""The runs in a folder: lists them, and opens one. Nothing outside the folder is opened."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
from msgspec import structs

from karat.analysis.cached import cached_summary, summarize_cached
from karat.analysis.model import Summary
from karat.analysis.numbers import from_fields
from karat.document.verdicts import verdicts
from karat.errors import BadRun, KaratError
from karat.index.cache import LARGE
from karat.journal import End, RunFolder, RunInfo, labels_path
from karat_viewer.open_run import OpenRun, held

_MOST_RUNS = 2_000
_MOST_OPEN = 8
_RESULTS_SECONDS = 1.0  # how long the list waits for results


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A run's entry in the list. `fault`: why it cannot be opened."""

    folder: str  # its name, also in its address
    name: str = ""
    run: str = ""
    created: str = ""
    kind: str = ""
    model: str = ""
    agent: str = ""
    conditions: tuple[str, ...] = ()
    samples: int = 0
    repetitions: int = 0
    status: str = ""
    rehearsed: bool = False
    labelled: bool = False
    fault: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags by which the list can be filtered."""
        made_up = ("rehearsed",) if self.rehearsed else ()
        return tuple(
            filter(
                None, (self.kind, self.status, self.model or self.agent, *made_up, *self.conditions)
            )
        )


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, and how many folders were not looked at."""

    cards: tuple[Card, ...]
    left: int = 0


class Library:
    """Every run directly in a folder, or only some of them."""

    def __init__(self, root: Path, *, only: Iterable[str] = (), pool: ThreadPoolExecutor) -> None:
        self.root = root.resolve()
        self.only = tuple(only)
        self.closing = threading.Event()
        self.pool = pool
        self._open: dict[str, tuple[str, OpenRun]] = {}
        self._infos: dict[str, tuple[str, RunInfo | str]] = {}
        self._statuses: dict[str, tuple[str, str]] = {}
        self._results: dict[str, tuple[str, Future[tuple[str, Summary | None]]]] = {}
        # A pool of its own, so that opening a run does not wait for the results of a hundred
        # others.
        self._results_pool = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="karat-view-results"
        )
        self._guard = threading.Lock()

    def listing(self) -> Listing:
        """The newest first."""
        names = self._names()
        cards = []
        for name in names[:_MOST_RUNS]:
            info = self._info(name)
            if isinstance(info, str):
                card = Card(folder=name, name=name, fault=info)
            else:
                path = self.root / name
                run = RunFolder(path, info)
                card = from_fields(
                    Card,
                    info.plan,
                    info,
                    folder=name,
                    model=info.agent_model or "",
                    agent=info.agent_type,
                    status=self._status(name, run),
                    labelled=bool(_stamp(labels_path(run))),
                )

            cards.append(card)

        return Listing(
            cards=tuple(sorted(cards, key=lambda card: (card.created, card.folder), reverse=True)),
            left=max(0, len(names) - _MOST_RUNS),
        )

    def results(self, names: Sequence[str]) -> dict[str, str]:
        """The result of each run in one sentence; for a large run, only if its summary is in the
        cache.

        Results that take too long are computed by one background thread, and shown when the page is
        reloaded.
        """
        waiting = "being computed: reload the page"
        sentences = {}
        for name, job in self._computed(names).items():
            if job.done():
                sentences[name] = job.result()[0]
            else:
                sentences[name] = waiting

        return {name: sentences.get(name, "") for name in names}

    def history_of(self, name: str) -> tuple[list[Summary], int]:
        """Summaries, without questions, of all runs of this run's experiment; and how many are not
        ready yet.

        Large runs are included if their summary is in the cache. Raises BadRun if there is no such
        run.
        """
        if name in self._names():
            info = self._info(name)
        else:
            info = "there is no such run in this folder"

        if not isinstance(info, RunInfo):
            raise BadRun(name, info)
        alike = []
        for other in self._names()[:_MOST_RUNS]:
            if isinstance(known := self._info(other), RunInfo) and known.name == info.name:
                alike.append(other)

        jobs = self._computed(alike)
        ready = [job.result()[1] for job in jobs.values() if job.done()]
        return [summary for summary in ready if summary is not None], sum(
            not job.done() for job in jobs.values()
        )

    def _computed(self, names: Sequence[str]) -> dict[str, Future[tuple[str, Summary | None]]]:
        jobs: dict[str, Future[tuple[str, Summary | None]]] = {}
        for name in names:
            info = self._info(name)
            if not isinstance(info, RunInfo):
                continue
            run = RunFolder(self.root / name, info)
            stamp = _stamp(run.journal)
            if not stamp:
                continue
            known = self._results.get(name)
            is_old = known is not None and known[0] != stamp and known[1].done()
            if known is None or is_old:
                known = stamp, self._results_pool.submit(self._result, run)
                self._results[name] = known

            jobs[name] = known[1]

        wait(jobs.values(), timeout=_RESULTS_SECONDS)
        return jobs

    def _result(self, run: RunFolder) -> tuple[str, Summary | None]:
        """The result in a sentence, and the summary without the parts that grow with the run."""
        if self.closing.is_set():
            return "", None
        try:
            if run.journal_size >= LARGE:
                summary = cached_summary(run)
            else:
                summary = summarize_cached(run)
        except (KaratError, OSError, RecursionError):
            return "cannot be computed: open the run to see why", None

        if summary is None:
            return "open the run to compute", None
        return verdicts(summary)[0], structs.replace(
            summary,
            table_of_samples=None,
            lowest=(),
            parts={},
        )

    def open(self, name: str) -> OpenRun:
        """Raises BadRun if there is no such run here."""
        if (
            not name
            or name.startswith(".")
            or not name.isprintable()
            or set(name) & set("/\\")
            or (self.only and name not in self.only)
        ):
            raise BadRun(name, "there is no such run in this folder")

        path = self.root / name

        stamp = _stamp(path / "run.json")
        if path.resolve().parent != self.root or not stamp:
            raise BadRun(name, "there is no such run in this folder")
        _require_plain(path)
        with self._guard:
            known = self._open.pop(name, None)
            if known is None or known[0] != stamp:
                known = (
                    stamp,
                    OpenRun(
                        RunFolder.open(path), self.pool, going_on=lambda: not self.closing.is_set()
                    ),
                )

            self._open[name] = known
            while len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]

        return known[1]

    def _names(self) -> Sequence[str]:
        if self.only:
            return self.only
        try:
            with os.scandir(self.root) as entries:
                # A link may point outside the folder.
                folders = []
                for entry in entries:
                    if (
                        entry.is_dir(follow_symlinks=False)
                        and entry.name.isprintable()
                        and _stamp(Path(entry.path, "run.json"))
                    ):
                        folders.append(entry.name)

                return sorted(folders, reverse=True)
        except OSError as error:
            raise BadRun(str(self.root), f"cannot be read: {error.strerror}") from error

    def _status(self, name: str, run: RunFolder) -> str:
        """The status of the run; read only once if nothing writes to it."""
        stamp = _stamp(run.journal)
        if (known := self._statuses.get(name)) is not None and known[0] == stamp and not held(run):
            return known[1]
        status = _status(run)
        if status != "running":
            self._statuses[name] = stamp, status
        return status

    def _info(self, name: str) -> RunInfo | str:
        file = self.root / name / "run.json"
        stamp = _stamp(file)
        known = self._infos.get(name)
        if known is None or known[0] != stamp:
            try:
                _require_plain(file.parent)
                read: RunInfo | str = RunFolder.open(file.parent).info
            except (BadRun, OSError, RecursionError) as error:
                read = str(error)

            known = self._infos[name] = stamp, read

        return known[1]


def _require_plain(run: Path) -> None:
    """Raises BadRun if a file links outside the folder, or reading it could block forever."""
    for name in _FILES:
        try:
            mode = (run / name).lstat().st_mode
        except FileNotFoundError:
            continue

        if not stat.S_ISREG(mode):
            raise BadRun(str(run), f"{name} is a link or not a regular file, so it is not opened")


_FILES = ("run.json", "samples.jsonl", "journal.jsonl", "journal.lock")


def _status(run: RunFolder) -> str:
    try:
        if not run.journal.exists():
            return "not started"
        if run.journal_size >= LARGE:
            # The status according to the lock and the last line: a list must not read a long
            # journal
            if held(run):
                return "running"
            try:
                end = msgspec.json.decode(run.last_line(), type=End)
            except msgspec.DecodeError:
                return "crashed"

            return end.reason if end.command == "run" else "scored again"

        return run.status()
    except (BadRun, OSError):
        return "damaged"


def _stamp(file: Path) -> str:
    """A stamp that changes with the file; empty if there is no regular file."""
    try:
        status = file.lstat()
    except OSError:
        return ""

    if stat.S_ISREG(status.st_mode):
        return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}"
    return ""
