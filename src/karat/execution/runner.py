"""Concurrency: how many trials run at a time, in which order, and how a run ends early.

The agents have `max_concurrent` slots. A trial holds one while its agent is asked, and releases it
when the answer is with the journal. Answers waiting for the disk or a judge are bounded, so a slow
judge slows the agents down instead of filling the memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Literal

from karat.execution.executors import MakeTrials, TrialsElsewhere
from karat.execution.foreign_code import ForeignCode
from karat.execution.limits import Budget, FailureLimit, Limits, RunStatus
from karat.execution.recorded import are_recorded, recorded_answers
from karat.execution.scoring import PendingScore, RunContext, Scoring, Unfinished
from karat.execution.stopping import EarlyStop
from karat.execution.trial import Job, TrialRunner, Work
from karat.journal import Journal
from karat.records import Trial

_BATCH, _SMALL_BATCH = 1_000, 64  # answers written together; few if they then wait for a judge
_BATCHES_AT_ONCE = 2  # one is scored while the other is written
EndReason = Literal["done", "interrupted", "max_failures", "budget", "no_workers"]


class Runner:
    """Runs trials: `await Runner(...).run()`; `drain` and `cancel` from outside."""

    def __init__(
        self,
        work: Work,
        *,
        journal: Journal,
        limits: Limits,
        budget: Budget,
        status: RunStatus,
        early: EarlyStop | None = None,
        elsewhere: MakeTrials | None = None,
    ) -> None:
        """`early`: ends the run when it is decided; None: every trial is asked.

        `elsewhere`: makes what runs the trials; None: this process does.
        """
        self._budget = budget
        self._status = status
        self._limits = limits
        self._pending = work.pending
        # scored by rule, and now by scorers that wait
        self._unfinished: deque[tuple[PendingScore, Mapping[str, Unfinished]]] = deque()
        self._batches = 0  # in flight
        by_rule = all(used.info.offline and not used.waits for used in work.scorers)
        self._batch = _BATCH if by_rule else _SMALL_BATCH
        if early is not None:
            self._batch = 1  # each answer may decide the run
        self._calls = 1  # of judges for one of them
        self._late: Callable[[], Iterator[PendingScore]] | None = work.late
        self._early = early
        most_waiting = max(16, 2 * limits.max_concurrent)
        trials = work.trials
        looks_up = early is None and elsewhere is None and not budget.bounded and are_recorded(work)
        if looks_up:
            trials = iter(())
        self._queue = TrialQueue(
            trials, most_waiting=most_waiting, on_due=self._start_more, early=early
        )
        self._foreign_code = ForeignCode(status, redact=journal.redact)
        self._draining = asyncio.Event()
        failures = FailureLimit(limits, status, stop=partial(self.drain, "max_failures"))
        self._failures = failures
        self._asks_judges = any(not used.info.offline for used in work.scorers)
        run = RunContext(
            journal=journal,
            limits=limits,
            budget=budget,
            foreign_code=self._foreign_code,
            status=status,
            draining=self._draining,
            failures=failures,
        )
        self._run = run
        if looks_up:
            self._pending = chain(work.pending, recorded_answers(work, run))
        self._scoring = Scoring(run)
        self._trials: TrialRunner | TrialsElsewhere = TrialRunner(work, self._scoring, run)
        self._remote: TrialsElsewhere | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # one per trial
        self._most = limits.max_concurrent  # trials at the agent, or sent to workers
        if elsewhere is not None:
            self._remote = elsewhere(
                work, run, local=self._trials, scoring=self._scoring, fail=self._abort
            )
            self._trials = self._remote
            self._most = self._remote.most

        status.begins(limits.max_concurrent if work.agents else 0)
        self._most_tasks = self._most + max(64, 4 * limits.max_concurrent)
        self._reason: EndReason = "done"
        self._problem: BaseException | None = None
        self._cancelled = False
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> EndReason:
        """Runs until everything is answered and scored, or the run is stopped.

        Raises what the disk raised.
        """
        try:
            if self._remote is not None:
                self._remote.start()
            await self._look()
            self._start_more()
            await self._finished
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
        finally:
            self._foreign_code.stopping = True
            if self._remote is not None:
                await self._remote.close()
            await self._foreign_code.close(self._tasks)
            self._scoring.close()

        if self._problem is not None:
            raise self._problem
        return self._reason

    def drain(self, reason: EndReason) -> None:
        """Starts nothing more; trials in flight finish and are scored."""
        if not self._status.draining:
            self._reason = reason
            self._status.draining = reason

        self._draining.set()
        self._finish_if_idle()

    def cancel(self) -> None:
        """Stops now: trials in flight are cancelled, their sessions closed."""
        self._cancelled = self._foreign_code.stopping = True
        self.drain("interrupted")
        self._finished.cancel()

    def _start_more(self) -> None:
        """Starts trials, and after the last of them pending scores, while there is room."""
        # Few until a judge has given a usable judgement.
        few = self._asks_judges and not self._failures.judged
        while not (self._status.draining or self._foreign_code.stopping):
            asking = self._status.in_flight
            if len(self._tasks) >= (self._most if few else self._most_tasks):
                break
            if self._early is not None and (scoring := self._next_pending()) is not None:
                self._start(scoring)  # first: they may decide the run
            elif asking < self._most and self._queue.ready():
                if not self._budget.allows(agents=asking, judges=len(self._tasks) - asking):
                    if not self._tasks:
                        self.drain("budget")
                    return

                self._status.in_flight += 1
                self._start(
                    self._trials.run(self._queue.take(), asked=self._asked, retry=self._queue.again)
                )
            elif self._budget.bounded and len(self._tasks) >= self._limits.max_concurrent:
                break  # each may cost something before the budget is updated
            elif (
                not asking
                and self._queue.exhausted
                and (scoring := self._next_pending()) is not None
            ):
                self._start(scoring)
            elif (
                not self._tasks
                and self._queue.exhausted
                and self._late is not None
                and not self._unfinished
            ):
                # From now on scorers run that had to wait for every answer, within the budget: each
                # may cost something before the budget is updated.
                self._pending = self._late()
                self._late = None
                self._most_tasks = self._limits.max_concurrent
                self._calls = 2
            else:
                break

        if not self._tasks:
            self._finish_if_idle()

    def _next_pending(self) -> Coroutine[object, object, None] | None:
        """What scores the next answers; None: there are none, or what the next one may cost does
        not fit in the budget.
        """
        if not self._unfinished and self._batches < _BATCHES_AT_ONCE:
            try:
                batch = [*islice(self._pending, self._batch)]
            except BaseException as error:  # noqa: BLE001 -- a journal that cannot be read stops the run in order
                self._abort(error)
                return None

            if batch:
                self._batches += 1
                return self._score_batch(batch)

        if not self._unfinished:
            return None
        pending, attempts = self._unfinished[0]
        if any(not used.info.offline for used in pending.scorers):
            judges = self._calls * (len(self._tasks) + 1) - 1
            if not self._budget.allows(agents=0, judges=judges, asks=False):
                if not self._tasks:
                    self.drain("budget")
                return None

        self._unfinished.popleft()
        return self._scoring.score(pending, attempts)

    async def _score_batch(self, batch: Sequence[PendingScore]) -> None:
        self._unfinished += await self._scoring.score_batch(batch)
        self._batches -= 1

    async def _look(self, work: Coroutine[object, object, None] | None = None) -> None:
        """Does the work, if any, and journals the decisions that follow."""
        if work is not None:
            await work
        if self._early is None:
            return
        if decided := self._early.look():
            await self._run.write(*decided)
            for one in decided:
                if one.clusters is None:
                    over = f"{one.questions} questions"
                else:
                    over = f"{one.clusters} clusters"

                self._status.notice(f"decided after {over}: {one.b} against {one.a}: {one.verdict}")

        if self._early.out:
            self._status.spares(self._early.out)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work if self._early is None else self._look(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _asked(self) -> None:
        """A trial releases its slot."""
        self._status.in_flight -= 1
        self._status.scoring = len(self._tasks) - self._status.in_flight
        self._start_more()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._status.scoring = len(self._tasks) - self._status.in_flight
        # A cancelled one: the run was stopped; its answer is with the journal, its scores are made
        # on resume.
        if not task.cancelled() and (error := task.exception()) is not None:
            self._abort(error)
        self._start_more()

    def _abort(self, error: BaseException | None) -> None:
        self._problem = self._problem or error
        self.drain("interrupted" if error is not None else "no_workers")

    def _finish_if_idle(self) -> None:
        idle = not self._tasks and (self._status.draining or self._queue.exhausted)
        if idle and not self._finished.done():
            self._finished.set_result(None)


class TrialQueue:
    """Which trial is next: due retries precede new trials, and a waiting retry holds no slot."""

    def __init__(
        self,
        trials: Iterator[Trial],
        *,
        most_waiting: int,
        on_due: Callable[[], None],
        early: EarlyStop | None = None,
    ) -> None:
        """`most_waiting`: with this many trials waiting for another attempt, no new one is started.

        Otherwise a provider that refuses everything would be asked every question once.
        """
        self._trials = trials
        self._most_waiting = most_waiting
        self._on_due = on_due
        self._due: deque[Job] = deque()
        self._waiting: list[Job] = []
        self._early = early
        self._next: Trial | None = next(trials, None)

    @property
    def exhausted(self) -> bool:
        """Whether no trial is left, and none waits for another attempt."""
        waits = self._waiting
        if self._early is not None:
            self._skip(self._early)
            waits = [job for job in waits if self._early.wants(job.trial)]

        return self._next is None and not self._due and not waits

    def ready(self) -> bool:
        """Whether `take` has a job now."""
        if self._early is not None:
            self._skip(self._early)
        if self._due:
            return True
        if self._next is None or len(self._waiting) >= self._most_waiting:
            return False
        return self._early is None or self._early.may_start(self._next)

    def _skip(self, early: EarlyStop) -> None:
        """Skips trials decided since."""
        while self._due and not early.wants(self._due[0].trial):
            self._due.popleft()
        while self._next is not None and not early.wants(self._next):
            self._next = next(self._trials, None)

    def take(self) -> Job:
        """The next job; only if one is `ready`."""
        if self._due:
            return self._due.popleft()
        assert self._next is not None
        trial = self._next
        self._next = next(self._trials, None)
        return Job(trial)

    def again(self, job: Job, seconds: float) -> None:
        """Puts a job back, due after `seconds`."""
        self._waiting.append(job)
        asyncio.get_running_loop().call_later(seconds, self._came_due, job)

    def _came_due(self, job: Job) -> None:
        self._waiting = [other for other in self._waiting if other is not job]
        self._due.append(job)
        self._on_due()
