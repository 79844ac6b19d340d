"""Work that takes too long for one page: done once in the background, and kept for later
requests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from karat_viewer.live_index import Progress

PATIENCE_SECONDS = 3.0
"""How long a page waits for what it needs before it says that it is being computed."""

_KEPT = 8
_Result = TypeVar("_Result")


class NotYet(Exception):
    """What a page needs is still being computed. `what`: index or summary."""

    def __init__(self, what: str, progress: Progress | None = None) -> None:
        self.what, self.progress = what, progress
        super().__init__(what)


class Jobs(Generic[_Result]):
    """Results by what they depend on. Safe to use from several threads."""

    def __init__(self, pool: ThreadPoolExecutor, *, what: str) -> None:
        self._pool, self._what = pool, what
        self._guard = threading.Lock()
        self._jobs: dict[Hashable, Future[_Result]] = {}

    def result(self, key: Hashable, work: Callable[[], _Result]) -> _Result:
        """Raises NotYet while the work continues, or the error it raised."""
        with self._guard:
            job = self._jobs.pop(key, None) or self._pool.submit(work)
            self._jobs[key] = job
            while len(self._jobs) > _KEPT:
                self._jobs.pop(next(iter(self._jobs))).cancel()

        wait([job], timeout=PATIENCE_SECONDS)
        if not job.done():
            raise NotYet(self._what)
        return job.result()
