"""Trials run by workers elsewhere: what is sent and received, over any transport.

A worker runs whole trials, including scorers, and returns their journal lines. Only the driver,
here, writes the journal, and it keeps the plan, the retries, the budget, the rates and the stop
rule. A worker continues with an answer (to its judge, to the next turn) when its line is on the
driver's disk, as in a run on one machine. Undelivered trials of a lost worker are asked again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec

from karat.context import FOLDER as WORKSPACES
from karat.context import is_plain_name
from karat.errors import BadOption
from karat.execution.retry import AttemptError
from karat.execution.scoring import PendingScore, RunContext, Scoring
from karat.execution.trial import Job, TrialRunner, Work
from karat.files import write_durably
from karat.formats import duration, plural
from karat.journal import Attempt, Event, Journal, ReplyEvent, checksum_fault
from karat.journal.codec import decode
from karat.models import parse_model, rate_limit
from karat.records import Answer, Failure, Reply, Score, Usage
from karat.scorers import Row

_AHEAD_SECONDS = 1.0
_MOST_LOSSES = 3  # of workers with the same trial: it is probably the cause
_MOST_DEATHS = 5  # of workers in one place without a finished trial
_CLOSING_SECONDS = 20.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A message from the driver to a worker."""

    jobs: list[Job] = []
    workspaces: dict[str, int] = {}  # trial → how many it has had
    admitted: list[int] = []  # requests to models that may be sent now
    draining: bool = False  # nothing more is started


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt and all its consequences are finished."""

    trial: str
    seconds: float  # with the agent
    # the trial is settled, with or without an answer; None: it is not settled
    answered: bool | None = None
    # the next attempt, its `kept`, seconds until it
    retry: tuple[int, tuple[Reply, ...], float] | None = None


class Finished(msgspec.Struct, kw_only=True):
    """A message from a worker to the driver."""

    lines: list[bytes] = []  # of the journal, whole
    files: dict[str, bytes] = {}  # archives of workspaces, by name
    asked: list[str] = []  # trials finished by the agent
    ended: list[Ended] = []
    returned: list[str] = []  # trials not started, because the run is stopping
    # calls of a `FailureCounter`
    failures: list[tuple[str, tuple[object, ...], dict[str, object]]] = []
    notices: list[str] = []
    # requests that wait for their model's rate: number, model, tokens
    wanted: list[tuple[int, str, float]] = []
    used: list[tuple[int, Usage | None]] = []  # requests that are over
    problem: str | None = None  # why no trial can continue


class WorkerLost(Exception):
    """A worker is lost, with everything it had not delivered."""


class Worker(Protocol):
    """One worker, seen from the driver. All methods raise WorkerLost."""

    name: str  # for people

    async def send(self, request: Request) -> None:
        """Sends a message while a `take` is waiting."""

    async def take(self, request: Request) -> Finished:
        """The pending message, as soon as there is one. Confirms that earlier ones are on disk."""

    async def close(self) -> Finished:
        """Stops the worker; returns its last message."""


class Workers(Protocol):
    """The source of workers."""

    concurrency: tuple[int, ...]  # concurrent attempts, per worker
    batch_size: int  # trials that may wait at a worker
    patience: float  # seconds until a worker that does not start is named
    needs: str  # what a worker needs, for people

    async def open(self, number: int) -> Worker:
        """A new worker, once there is room for it.

        Raises WorkerLost, and OperatorError if none can do the work.
        """

    def kill(self, worker: Worker) -> None:
        """Kills it, whatever it is doing."""


class _Handed:
    """An attempt at a trial, due or under way elsewhere."""

    def __init__(self, job: Job, kept: tuple[Reply, ...], agent_done: Callable[[], None]) -> None:
        self.job = job
        self.kept = kept
        # None: look at `answer`
        self.over: asyncio.Future[Ended | None] = asyncio.get_running_loop().create_future()
        self.answer: Answer | None = None
        self.replies: list[Reply] = []  # on disk, of a conversation without an answer
        self.rows: dict[str, set[Row]] = {}  # scoring → rows on disk
        self.complete: set[str] = set()  # scorings with all rows on disk, or that failed
        self.missed = False  # whether it failed, or a score did
        self.failed = False  # finally
        self.losses = 0
        self._agent_done: Callable[[], None] | None = agent_done

    @property
    def asking(self) -> bool:
        return self._agent_done is not None

    def asked(self) -> None:
        """The agent has finished it."""
        if self._agent_done is not None:
            callback = self._agent_done
            self._agent_done = None
            callback()

    def end(self, ended: Ended | None) -> None:
        if not self.over.done():
            self.over.set_result(ended)

    def note(self, event: Event) -> None:
        """One of its events is on disk."""
        if isinstance(event, Answer):
            self.answer = event
        elif isinstance(event, ReplyEvent):
            self.replies.append(event.reply)
        elif isinstance(event, Attempt) and event.stage == "agent":
            self.replies.clear()  # they are in the attempt
        elif isinstance(event, Score):
            rows = self.rows.setdefault(event.scoring, set())
            rows.add((event.turn, event.judge, event.repeat))
            if len(rows) >= event.rows:
                self.complete.add(event.scoring)
        elif isinstance(event, Failure):
            self.missed = True
            self.failed = event.stage != "score"
            if event.scoring is not None:
                self.complete.add(event.scoring)


class _Link:
    """One place for a worker, and its state."""

    def __init__(self, number: int, concurrency: int) -> None:
        self.number = number
        self.concurrency = concurrency
        self.worker: Worker | None = None
        self.taking = False  # whether a `take` is waiting
        self.handed: dict[str, _Handed] = {}
        self.admitted: list[int] = []
        self.used: dict[int, asyncio.Future[Usage | None]] = {}
        self.admissions: dict[int, asyncio.Task[None]] = {}
        self.deaths = 0  # since a trial ended here
        self.out = False  # apparently no worker can run here


class RemoteTrials:
    """Runs trials on workers. The runner uses it like a `TrialRunner`."""

    def __init__(
        self,
        workers: Workers,
        work: Work,
        run: RunContext,
        *,
        local: TrialRunner,
        scoring: Scoring,
        fail: Callable[[BaseException | None], None],
    ) -> None:
        """`local`, `scoring`: for work without a worker.

        `fail`: ends the run, in order if there is no error.
        """
        assert isinstance(run.journal, Journal)
        self._workers = workers
        self._work = work
        self._run = run
        self._journal = run.journal
        self._local = local
        self._scoring = scoring
        self._fail = fail
        self._links = [_Link(number, most) for number, most in enumerate(workers.concurrency)]
        self._queue: deque[_Handed] = deque()
        # waiting trials cannot be counted yet
        self._batch_size = 0 if run.budget.bounded else workers.batch_size
        self._seconds: float | None = None  # of a trial with its agent, approximately
        self._asked_again = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._pushing = False

    @property
    def most(self) -> int:
        """Trials sent out at a time: running and waiting ones."""
        return sum(link.concurrency + self._batch_size for link in self._links)

    def start(self) -> None:
        """Starts the workers."""
        for link in self._links:
            self._spawn(self._serve(link))
        self._spawn(self._drain())

    async def run(
        self, job: Job, *, asked: Callable[[], None], retry: Callable[[Job, float], None]
    ) -> None:
        """As `TrialRunner.run`."""
        trial = job.trial
        workspaces = self._work.workspaces
        stored = (
            workspaces is not None
            and job.attempt == 1
            and await workspaces.stored_answer(trial.id) is not None
        )
        if stored or trial.condition.name in self._work.broken:
            await self._local.run(job, asked=asked, retry=retry)
            return

        progress = self._run.status.conditions[trial.condition.name]
        progress.in_flight += 1

        def agent_done() -> None:
            progress.in_flight -= 1
            asked()

        several = len(trial.sample.turns) > 1 and trial.condition.context.workspace is None
        if several and job.attempt == 1:
            kept = self._work.saved_replies(trial.id)
        else:
            kept = job.kept

        handed = _Handed(job, kept, agent_done)
        self._queue.append(handed)
        self._push_soon()
        try:
            ended = await handed.over
        finally:
            handed.asked()

        if ended is None:
            # The state of a trial whose worker was lost
            if handed.answer is None:
                message = (
                    f"its worker was lost {handed.losses} times while it ran: most likely the "
                    f"trial ends it"
                )
                error = AttemptError(
                    cls="infrastructure", kind="worker_lost", message=message, retriable=True
                )
                await self._local.fail(handed.job.trial, "agent", error)
                return

            scorers = []
            for used in self._work.scorers:
                if used.info.scoring not in handed.complete:
                    scorers.append(used)

            pending = PendingScore(
                answer=handed.answer,
                sample=handed.job.trial.sample,
                scorers=scorers,
                present=handed.rows,
            )
            await self._scoring.score(pending, {})
        elif ended.retry is not None:
            attempt, replies, wait = ended.retry
            retry(Job(trial, attempt, replies), wait)
        elif ended.answered is not None:
            self._run.status.settled_trial(
                trial.id,
                trial.condition.name,
                trial.sample,
                answered=ended.answered,
                failed=handed.missed,
            )

    async def close(self) -> None:
        """Ends the workers, and journals what they still deliver."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._close(link) for link in self._links))

    async def _close(self, link: _Link) -> None:
        self._forget_admissions(link)
        if link.worker is None:
            return
        try:
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._receive(link, await link.worker.close())
        except (WorkerLost, TimeoutError):
            self._run.status.notice(f"{link.worker.name} did not close well")
        finally:
            self._workers.kill(link.worker)

    # Sending

    def _push_soon(self) -> None:
        """Everything sent in this turn of the event loop travels together."""
        if not self._pushing:
            self._pushing = True
            asyncio.get_running_loop().call_soon(self._push)

    def _push(self) -> None:
        self._pushing = False
        for link in sorted(self._links, key=self._room, reverse=True):
            if (
                link.taking
                and link.worker is not None
                and ((self._queue and self._room(link) > 0) or link.admitted)
            ):
                self._spawn(self._send(link, link.worker))

    async def _send(self, link: _Link, worker: Worker) -> None:
        with suppress(WorkerLost):  # the waiting `take` gets the error, too
            await worker.send(self._request(link))

    def _room(self, link: _Link) -> int:
        ahead = 0
        if self._seconds is not None:
            ahead = int(
                min(self._batch_size, link.concurrency * _AHEAD_SECONDS / max(self._seconds, 1e-6))
            )

        return link.concurrency + ahead - sum(handed.asking for handed in link.handed.values())

    def _request(self, link: _Link) -> Request:
        jobs = list[Job]()
        numbers = dict[str, int]()
        workspaces = self._work.workspaces
        for _ in range(min(self._room(link), len(self._queue))):
            handed = self._queue.popleft()
            trial = handed.job.trial
            link.handed[trial.id] = handed
            jobs.append(msgspec.structs.replace(handed.job, kept=handed.kept))
            if workspaces is not None:
                numbers[trial.id] = workspaces.last_number(trial.id)

        admitted = link.admitted
        link.admitted = []
        return Request(
            jobs=jobs, workspaces=numbers, admitted=admitted, draining=self._run.draining.is_set()
        )

    # Receiving

    async def _serve(self, link: _Link) -> None:
        """Keeps a worker in its place, and a `take` waiting there."""
        try:
            while link.deaths < _MOST_DEATHS:
                try:
                    await self._exchange(link, await self._opened(link))
                except WorkerLost as error:
                    self._lost(link, error)
        finally:
            for trial, handed in link.handed.items():
                handed.end(Ended(trial=trial, seconds=0.0))

        link.out = True
        self._run.status.notice(
            f"worker {link.number + 1} is not started again: it was lost {link.deaths} times"
        )
        self._give_up()

    async def _exchange(self, link: _Link, worker: Worker) -> None:
        """Until the worker is lost."""
        link.worker = worker
        while True:
            link.taking = True
            finished = await worker.take(self._request(link))
            link.taking = False
            await self._receive(link, finished)
            for _ in range(3):  # following trials are then queued, and travel with the next `take`
                await asyncio.sleep(0)

    async def _opened(self, link: _Link) -> Worker:
        opening = asyncio.ensure_future(self._workers.open(link.number))
        try:
            await asyncio.wait([opening], timeout=self._workers.patience)
            if not opening.done():
                link.out = True
                waited = duration(self._workers.patience)
                self._run.status.notice(
                    f"worker {link.number + 1} did not start within {waited}: no node has room for "
                    f"it (it needs {self._workers.needs}), or its node is slow"
                )
                self._give_up()

            worker = await opening
        finally:
            opening.cancel()

        link.out = False
        return worker

    def _give_up(self) -> None:
        """Ends the run if no worker is left and none can be started."""
        if all(link.out for link in self._links):
            self._run.status.notice(
                "the run ends here, because it has no worker; --resume continues it"
            )
            self._fail(None)

    async def _receive(self, link: _Link, finished: Finished) -> None:
        for text in finished.notices:
            self._run.status.notice(text)
        # An archive of a workspace goes to the run folder before the answer that names it
        for name, data in finished.files.items():
            trial, _, number = name.removesuffix(".tar.gz").rpartition("-")
            if (
                not is_plain_name(name)
                or "/" in name
                or not number.isdecimal()
                or self._work.workspaces is None
            ):
                raise BadOption(
                    "execution.executor", f"a worker sent a file with the name {name!r:.60}"
                )

            write_durably(self._journal.path.parent / WORKSPACES / name, [data])
            self._work.workspaces.continue_after(trial, int(number))

        events: list[Event] = []
        for line in finished.lines:
            if not line.endswith(b"\n") or checksum_fault(line[:-1], required=True) is not None:
                raise BadOption("execution.executor", f"a line from {_named(link)} is damaged")
            events.append(decode(line[:-1], path=_named(link), number=1))

        if events:
            await self._journal.append(lines=b"".join(finished.lines))
            self._run.status.journalled(*events)

        for event in events:
            self._count(event)
            if (handed := link.handed.get(getattr(event, "trial", ""))) is not None:
                handed.note(event)

        for method, arguments, named in finished.failures:
            getattr(self._run.failures, method)(*arguments, **named)
        self._heard_of_requests(link, finished)
        for trial in finished.asked:
            if trial in link.handed:
                link.handed[trial].asked()

        for ended in finished.ended:
            link.deaths = 0
            if self._seconds is None:
                self._seconds = ended.seconds
            else:
                self._seconds = 0.95 * self._seconds + 0.05 * ended.seconds

            if (handed := link.handed.pop(ended.trial, None)) is not None:
                handed.end(ended)

        for trial in finished.returned:
            if (handed := link.handed.pop(trial, None)) is not None:
                handed.end(Ended(trial=trial, seconds=0.0))

        if finished.problem is not None:
            raise BadOption(
                "execution.executor", f"{_named(link)} cannot go on: {finished.problem}"
            )

    def _count(self, event: Event) -> None:
        """Adds to the budget what the trial would have added here."""
        budget = self._run.budget
        if isinstance(event, Answer):
            budget.add_replies(event.replies[event.kept :])
        elif isinstance(event, Score) and not event.offline:
            budget.add("judge", event.dollars, event.usage)
        elif isinstance(event, Attempt) and event.stage == "agent":
            budget.add_replies(event.replies)
            if event.dollars is not None or event.usage is not None or not event.replies:
                budget.add_failure("agent", event.dollars, event.usage)
        elif isinstance(event, Attempt) and not all(
            used.info.offline for used in self._work.scorers
        ):
            budget.add_failure("judge", event.dollars, event.usage)

    # Rates: one limit for all workers, kept here

    def _heard_of_requests(self, link: _Link, finished: Finished) -> None:
        for number, model, tokens in finished.wanted:
            link.used[number] = asyncio.get_running_loop().create_future()
            link.admissions[number] = task = asyncio.create_task(
                self._admit(link, number, model, tokens)
            )
            task.add_done_callback(partial(_forget, link, number))

        for number, usage in finished.used:
            if (used := link.used.get(number)) is not None and not used.done():
                used.set_result(usage)

    async def _admit(self, link: _Link, number: int, model: str, tokens: float) -> None:
        """Waits for a model's rate on behalf of a request, and gets the request's usage."""
        limit = rate_limit(parse_model(model, place="limits"))
        assert limit is not None
        async with limit.admitted(tokens) as used:
            link.admitted.append(number)
            self._push_soon()
            used(await link.used[number])

    def _forget_admissions(self, link: _Link) -> None:
        for task in list(link.admissions.values()):
            task.cancel()
        link.admitted.clear()

    # Losses and the end

    def _lost(self, link: _Link, error: WorkerLost) -> None:
        """Asks again what the worker had not delivered."""
        name = _named(link)
        link.worker = None
        link.taking = False
        link.deaths += 1
        self._forget_admissions(link)
        handed = list(link.handed.values())
        link.handed = {}
        again = [entry for entry in handed if entry.answer is None and not entry.failed]
        for entry in handed:
            if entry.failed:
                entry.end(Ended(trial=entry.job.trial.id, seconds=0.0, answered=False))
            elif entry.answer is not None:
                entry.end(None)

        for position, entry in enumerate(again):
            if position < link.concurrency:
                self._run.budget.add_failure("agent", None, None)  # it may have cost something
            entry.losses += 1
            if entry.replies:
                self._run.budget.add_replies(entry.replies)
                self._run.status.agent.answered(entry.replies)
                entry.kept = (*entry.kept, *entry.replies)
                entry.replies = []

            if self._run.draining.is_set():
                entry.end(Ended(trial=entry.job.trial.id, seconds=0.0))
            elif entry.losses >= _MOST_LOSSES:
                entry.end(None)

        again = [entry for entry in again if not entry.over.done()]
        self._queue.extendleft(reversed(again))
        self._asked_again += len(again)
        asked = (
            f"; {plural(len(again), 'trial')} asked again because of it, {self._asked_again} in all"
        )
        self._run.status.notice(f"{name} was lost ({error}){asked if again else ''}")
        self._push_soon()

    async def _drain(self) -> None:
        """When the run drains: trials not yet started are not started any more."""
        await self._run.draining.wait()
        waiting = self._queue
        self._queue = deque()
        for handed in waiting:
            handed.end(Ended(trial=handed.job.trial.id, seconds=0.0))
        for link in self._links:
            if link.worker is not None:
                self._spawn(self._send(link, link.worker))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)


def _forget(link: _Link, number: int, _: asyncio.Task[None]) -> None:
    link.admissions.pop(number, None)
    link.used.pop(number, None)


def _named(link: _Link) -> str:
    if link.worker is not None:
        return link.worker.name
    return f"worker {link.number + 1}"
