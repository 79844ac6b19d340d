"""One trial, then the crowd.

A worker holds one of `max_concurrent` agent slots for one attempt at a time. Its answer
is handed on at once: committed to the journal, then scored, while the slot is free
again. Answers that wait for the disk or the judge are bounded, so a slow judge slows
the agents down instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal, TypeVar

import msgspec

from karat.agents import Session, TrialAgent, without_golden
from karat.config.model import SHARE_FROM_FAILURES, SHARE_FROM_TRIALS
from karat.errors import OperatorError, TrialFault
from karat.execution.cutoff import Contained, GivenUpError, ended, undisturbed
from karat.execution.limits import Budget
from karat.execution.progress import RunStatus
from karat.execution.retry import AttemptError, RetryPolicy, SameFailures, classify, delay, timed_out
from karat.execution.rows import attempt_row, checked_reply, score_row
from karat.execution.sessions import Sessions, as_sent, session_count
from karat.execution.trial_queue import Job, TrialQueue
from karat.journal import MISSED_GATE, Event, Journal, ReplyEvent, ScorerInfo
from karat.mcp import attempts, gates
from karat.models import metered
from karat.records import NOT_ASKED, Answer, Failure, Metric, Reply, Sample, Score, Trial, Turn, recorded_seconds
from karat.scorers import Row, Verdict, as_verdicts
from karat.threads import Threads

__all__ = ["EndReason", "Limits", "PendingScore", "Runner", "ScorerInUse", "Work"]

_T = TypeVar("_T")
EndReason = Literal["done", "interrupted", "max_failures", "budget"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How hard a run may push."""

    max_concurrent: int
    timeout_seconds: float  # one attempt of the agent, its servers included; of a group, for each of its members
    judge_timeout_seconds: float
    retry: RetryPolicy
    max_failures: float  # a count; reached: drain
    by_share: bool = False  # the count is a share of the plan: a few failures, or a few trials, do not stop a run


class ScorerInUse(msgspec.Struct, frozen=True, kw_only=True):
    """A scorer, and what the journal calls it."""

    info: ScorerInfo
    scorer: Any
    metrics: Sequence[Metric] = ()  # those that it announces; (): it returns whatever it likes
    waits: bool = False  # its `score` is async or blocking: it takes one of the judge's slots
    blocking: bool = False  # its sync `score` waits for something: it runs on a thread
    streams: bool = False  # its `score` yields verdicts one by one, and each is journalled as it comes


class PendingScore(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is on disk already, and the scorers that have not seen it."""

    answer: Answer
    sample: Sample
    scorers: Sequence[ScorerInUse]
    there: Mapping[str, Collection[Row]] = {}  # scoring → rows of it that are on disk, where some are missing


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do, and who does it."""

    trials: Iterator[Trial]  # to be asked
    owed: Iterator[PendingScore]  # asked before, to be scored
    agents: Mapping[str, TrialAgent]  # by condition
    broken: Mapping[str, AttemptError]  # conditions that cannot be asked, because a server is down
    scorers: Sequence[ScorerInUse]
    begun: Callable[[str], tuple[Reply, ...]] = lambda _: ()  # trial → what an earlier part of the run was told


class _Try:
    """One attempt, as far as it came."""

    def __init__(self) -> None:
        self.kept: Sequence[Reply] = ()  # of earlier attempts: the conversation goes on behind them
        self.replies: list[Reply] = []  # its own
        self.told = 0  # so many of its own, the first, are on disk as turns of the conversation
        self.answer: Answer | None = None
        self.durable: asyncio.Future[None] | None = None  # done when the answer is on disk

    def left(self, fallen: AttemptError) -> tuple[Reply, ...]:
        """What the next attempt goes on behind."""
        return () if fallen.kind.startswith(MISSED_GATE) else (*self.kept, *self.replies[: self.told])


class Runner:
    """Carries out a run: `await Runner(...).run()`; `drain` and `cancel` from outside."""

    def __init__(self, work: Work, *, journal: Journal, limits: Limits, spend: Budget, status: RunStatus) -> None:
        self._owed, self._agents, self._broken = work.owed, work.agents, work.broken
        self._scorers, self._journal, self._limits = work.scorers, journal, limits
        self._begun = work.begun
        self._spend, self._status = spend, status
        status.begins(limits.max_concurrent if work.agents else 0)
        self._supply = TrialQueue(work.trials, most_waiting=max(16, 2 * limits.max_concurrent))
        self._dice = random.Random()
        self._threads = Threads()
        self._failures = 0
        self._alike = SameFailures()  # failures of agents
        self._unscored_alike: dict[str, SameFailures] = {}  # scoring → failures of the scorer
        self._at_agent = 0
        self._cancelled = self._ending = False
        self._draining = asyncio.Event()
        self._reason: EndReason = "done"
        self._problem: BaseException | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(max(64, 4 * limits.max_concurrent))
        self._judge_slots = asyncio.Semaphore(limits.max_concurrent)
        self._crowd: list[asyncio.Task[None]] = []

    async def run(self) -> EndReason:
        """Until everything is answered and scored, or the run was stopped. Raises what the disk raised."""
        self._crowd = [asyncio.create_task(self._work()) for _ in range(self._limits.max_concurrent)]
        try:
            ended_first, _ = await asyncio.wait(self._crowd, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended_first:
                worker.result()
            for owed in self._owed:
                if self._status.draining:
                    break
                await self._room.acquire()
                self._settle(self._score(owed))
            while self._settling:
                await asyncio.wait(self._settling)
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
        finally:
            self._ending = True
            await ended([*self._crowd, *self._settling])
            self._threads.close()
        if self._problem is not None:
            raise self._problem
        return self._reason

    def drain(self, reason: EndReason) -> None:
        """Starts nothing more; what is in flight finishes and is scored."""
        if not self._status.draining:
            self._reason = reason
            self._status.draining = reason
        self._draining.set()
        self._supply.stop()

    def cancel(self) -> None:
        """Stops now: what is in flight is cut off, its sessions are closed."""
        self._cancelled = self._ending = True
        self.drain("interrupted")
        for task in [*self._crowd, *self._settling]:
            task.cancel()

    async def _work(self) -> None:
        while (job := await self._supply.next()) is not None:
            try:
                if await self._may_start():
                    await self._take(job)
            except OperatorError as error:
                self._abort(error)
            finally:
                self._supply.done()

    async def _may_start(self) -> bool:
        while self._spend.bounded and not self._spend.allows(agents=self._status.in_flight, judges=len(self._settling)):
            if not self._status.in_flight and not self._settling:
                self.drain("budget")
            elif self._status.in_flight:
                await self._supply.changed()
            else:
                await asyncio.wait(self._settling, return_when=asyncio.FIRST_COMPLETED)
            if self._status.draining:
                return False
        return True

    async def _take(self, job: Job) -> None:
        trial = job.trial
        if (fallen := self._broken.get(trial.condition.name)) is not None:
            await self._fail(trial, "preflight", fallen)
            return
        clock, attempt = monotonic(), _Try()
        self._at_agent = self._status.in_flight = self._at_agent + 1
        standing = self._status.standing(trial.condition.name)
        standing.in_flight += 1
        try:
            patience = self._limits.timeout_seconds * session_count(trial.sample)
            outcome = await self._caught(self._asked(job, attempt), patience, "agent")
        finally:
            self._at_agent = self._status.in_flight = self._at_agent - 1
            standing.in_flight -= 1
            self._spend.told(attempt.replies)
        if attempt.answer is None or attempt.durable is None:
            assert isinstance(outcome, AttemptError)
            await self._fell(job, outcome.besides(attempt.replies), attempt, monotonic() - clock)
            return
        if isinstance(outcome, AttemptError):
            # The answer was complete and is being written: how its session ended takes nothing from it.
            self._status.notice(f"an agent's session did not close well: {outcome.message}")
        await self._room.acquire()
        self._settle(self._commit(trial, attempt.answer, attempt.durable))

    async def _asked(self, job: Job, attempt: _Try) -> None:
        with attempts.Attempt(f"{job.trial.id}-{job.attempt}") as scope:
            await self._attempt(job, attempt, scope)

    async def _attempt(self, job: Job, attempt: _Try, scope: attempts.Attempt) -> None:
        trial, sample = job.trial, job.trial.sample
        if not getattr(self._agents[trial.condition.name], "allow_golden", False):
            sample = without_golden(sample)
            trial = msgspec.structs.replace(trial, sample=sample)
        started, clock = datetime.now(UTC), monotonic()
        attempt.kept = self._begun(trial.id) if job.attempt == 1 and len(sample.turns) > 1 else job.kept
        scope.goes_on = job.attempt == 1 and bool(attempt.kept)
        async with Sessions(self._agents[trial.condition.name], trial) as sessions:
            attempt.kept = await sessions.take_up(attempt.kept)
            for number in range(len(attempt.kept), len(sample.turns)):
                turn = as_sent(sample, number, (*attempt.kept, *attempt.replies))
                if turn is None:
                    await self._told(job, attempt, number, NOT_ASKED)
                else:
                    await self._ask(job, attempt, scope, await sessions.at(number), number=number, turn=turn)
            self._answered(job, attempt, started, clock)

    async def _ask(
        self, job: Job, attempt: _Try, scope: attempts.Attempt, session: Session, *, number: int, turn: Turn
    ) -> None:
        trial, clock = job.trial, monotonic()
        agent = self._agents[trial.condition.name]
        try:
            reply = checked_reply(await session.ask(turn), bounded=getattr(agent, "bounds_replies", False))
        except TrialFault as fault:
            with suppress(TrialFault):  # a reply that is none, or absurd, is left out
                attempt.replies.append(checked_reply(getattr(fault, "reply", None)))
            raise
        several = len(trial.sample.turns) > 1
        if several and reply.milliseconds is None and not getattr(agent, "source", None):
            reply = msgspec.structs.replace(reply, milliseconds=round((monotonic() - clock) * 1000, 3))
        if scope.fault is not None:
            attempt.replies.append(reply)
            raise scope.fault  # karat met it on the agent's behalf, and the agent did not pass it on
        await self._told(job, attempt, number, reply)

    async def _told(self, job: Job, attempt: _Try, number: int, reply: Reply) -> None:
        attempt.replies.append(reply)
        if len(job.trial.sample.turns) > 1:
            attempt.told += 1  # whether or not this attempt lives to see it on disk
            await self._write(ReplyEvent(trial=job.trial.id, attempt=job.attempt, turn=number, reply=reply))

    def _answered(self, job: Job, attempt: _Try, started: datetime, clock: float) -> None:
        trial, replies = job.trial, (*attempt.kept, *attempt.replies)
        gates.check(trial.condition.gate, [call for reply in replies for call in reply.tool_calls])
        seconds = recorded_seconds(reply.milliseconds for reply in replies)
        if not getattr(self._agents[trial.condition.name], "source", None):  # else reading it is no latency
            kept = sum(reply.milliseconds or 0.0 for reply in attempt.kept) / 1000
            seconds = round(monotonic() - clock + kept, 6)
        attempt.answer = Answer(
            trial=trial.id,
            sample=trial.sample.id,
            condition=trial.condition.name,
            repetition=trial.repetition,
            replies=replies,
            attempts=job.attempt,
            kept=len(attempt.kept),
            started=started.isoformat(timespec="milliseconds"),
            seconds=seconds,
        )
        # Handed to the journal before anything can happen to it: a stop, or a session that hangs while closing.
        attempt.durable = self._journal.append(attempt.answer)

    async def _commit(self, trial: Trial, answer: Answer, durable: asyncio.Future[None]) -> None:
        self._alike.succeeded()
        await durable
        self._status.saw(answer)
        await self._score(PendingScore(answer=answer, sample=trial.sample, scorers=self._scorers))

    async def _score(self, owed: PendingScore) -> None:
        unscored = 0
        for used in owed.scorers:
            done = set(owed.there.get(used.info.scoring, ()))
            attempt, known = 1, len(done)
            alike = self._unscored_alike.setdefault(used.info.scoring, SameFailures())
            while (fallen := await self._scored(used, owed, done)) is not None:
                if len(done) > known:  # something came in between: a later row has its attempts to itself
                    attempt, known = 1, len(done)
                if not used.info.offline:
                    self._spend.failed("judge", fallen.dollars, fallen.usage)
                wait = delay(self._limits.retry, attempt, fallen, self._dice)
                await self._write(attempt_row(owed.answer.trial, attempt, fallen, "score"))
                if wait is None:
                    await self._unscored(owed.answer, used, fallen)
                    self._count_alike(alike, fallen)
                    unscored += 1
                    break
                if await self._stopped_within(wait):
                    return  # still owed: the next --resume asks the judge again
                attempt += 1
            else:
                alike.succeeded()
        answer = owed.answer
        self._status.settles(answer.trial, answer.condition, owed.sample, failed=unscored > 0)
        if unscored:
            self._count_failure()

    async def _stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._draining.wait()
        return self._draining.is_set()

    async def _scored(self, used: ScorerInUse, owed: PendingScore, done: set[Row]) -> AttemptError | None:
        """One attempt at what is missing: None, with every row on disk, or why there is one without."""
        if used.streams:
            return await self._streamed(used, owed, done)
        found = await self._judge(used, lambda: self._verdicts(used, owed))
        if isinstance(found, AttemptError):
            return found
        await self._keep(used, found)
        return None

    async def _streamed(self, used: ScorerInUse, owed: PendingScore, done: set[Row]) -> AttemptError | None:
        """Each row is on disk before the next is asked for: what was paid for is not asked for twice."""
        verdicts: AsyncGenerator[Verdict] = used.scorer.score(owed.sample, owed.answer, done=frozenset(done))
        try:
            while found := await self._judge(used, lambda: _next_score(used, owed, verdicts)):
                if isinstance(found, AttemptError):
                    return found
                await self._keep(used, found)
                done.update((score.turn, score.judge, score.repeat) for score in found)
        finally:
            await verdicts.aclose()
        return None

    async def _keep(self, used: ScorerInUse, scores: Sequence[Score]) -> None:
        for score in scores:
            if not used.info.offline:
                self._spend.paid("judge", score.dollars, score.usage)
        await self._write(*scores)

    async def _judge(
        self, used: ScorerInUse, work: Callable[[], Coroutine[Any, Any, tuple[Score, ...]]]
    ) -> tuple[Score, ...] | AttemptError:
        if not used.waits:
            return await self._caught(work(), None, "score")
        async with self._judge_slots:
            return await self._caught(work(), self._limits.judge_timeout_seconds, "score")

    async def _verdicts(self, used: ScorerInUse, owed: PendingScore) -> tuple[Score, ...]:
        clock = monotonic()
        if used.blocking:
            scored: Any = await self._threads.call(used.scorer.score, owed.sample, owed.answer)
        else:
            scored = used.scorer.score(owed.sample, owed.answer)
        if inspect.isawaitable(scored):
            scored = await scored
        found = as_verdicts(scored, name=used.info.name, metrics=used.metrics)
        seconds = monotonic() - clock
        return tuple(score_row(owed.answer.trial, used.info, one, len(found), seconds) for one in found)

    async def _caught(
        self, work: Coroutine[Any, Any, _T], seconds: float | None, stage: Literal["agent", "score"]
    ) -> _T | AttemptError:
        """What `work` returns, or why it did not: here, and nowhere else, every exception becomes data.

        Unless `seconds` is None, what does not end when it is cut off is given up.
        """
        limit = asyncio.timeout(seconds)
        with metered(limit) as meter:
            try:
                return await (work if seconds is None else Contained(work, limit))
            except OperatorError:
                raise  # the disk refuses, or a plug-in is not what the file says: no trial can go on
            except GivenUpError:
                self._status.notice("something that was cut off does not end by itself; it was given up")
                fallen = timed_out(seconds or 0.0, stage=stage)
            except asyncio.CancelledError as error:
                if self._ending:
                    raise  # else the plug-in let a cancellation of its own escape
                fallen = classify(error, stage=stage)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if isinstance(error, GeneratorExit) and seconds is not None:
                    raise  # this task is closed; that of foreign code comes as a RuntimeError
                fallen = classify(error, stage=stage, redact=self._journal.redact)
                if seconds is not None and limit.expired():
                    fallen = timed_out(seconds, stage=stage, paid=fallen if isinstance(error, TrialFault) else None)
            finally:
                if not self._ending:
                    await undisturbed()
        return fallen.having_spent(meter.usage, meter.dollars)

    async def _fell(self, job: Job, fallen: AttemptError, attempt: _Try, seconds: float) -> None:
        if fallen.dollars is not None or fallen.usage is not None or not attempt.replies:
            self._spend.failed("agent", fallen.dollars, fallen.usage)
        wait = delay(self._limits.retry, job.attempt, fallen, self._dice)
        event = attempt_row(job.trial.id, job.attempt, fallen, "agent", seconds=seconds, replies=attempt.replies)
        await self._write(event)
        if wait is None:
            await self._fail(job.trial, "agent", fallen)
        elif not self._status.draining:
            self._supply.again(Job(job.trial, job.attempt + 1, attempt.left(fallen)), wait)

    async def _fail(self, trial: Trial, stage: Literal["preflight", "agent"], fallen: AttemptError) -> None:
        failure = Failure(
            trial=trial.id, stage=stage, cls=fallen.cls, kind=fallen.kind, message=fallen.message,
            retriable=fallen.retriable, sample=trial.sample.id, condition=trial.condition.name,
            repetition=trial.repetition,
        )  # fmt: skip
        await self._write(failure)
        self._status.settles(trial.id, trial.condition.name, trial.sample, answered=False, failed=True)
        if stage != "preflight" and fallen.cls != "limit":
            self._count_failure()
            self._count_alike(self._alike, fallen)
        else:
            self._status.failed += 1

    async def _unscored(self, answer: Answer, used: ScorerInUse, fallen: AttemptError) -> None:
        failure = Failure(
            trial=answer.trial, stage="score", cls=fallen.cls, kind=fallen.kind, message=fallen.message,
            retriable=fallen.retriable, sample=answer.sample, condition=answer.condition,
            repetition=answer.repetition, scorer=used.info.name, scoring=used.info.scoring,
        )  # fmt: skip
        await self._write(failure)

    def _count_failure(self) -> None:
        self._failures += 1
        self._status.failed += 1
        limits = self._limits
        few = self._failures < SHARE_FROM_FAILURES and self._status.settled < SHARE_FROM_TRIALS
        if self._failures >= limits.max_failures and not (limits.by_share and few):
            self.drain("max_failures")

    def _count_alike(self, alike: SameFailures, fallen: AttemptError) -> None:
        """Stops where the first trials all failed alike, and for a reason that does not pass."""
        if alike.failed(fallen) and not self._status.draining:
            self._status.notice(f"stopped: the first {alike.count} trials all failed in the same way: {fallen.message}")
            self.drain("max_failures")

    async def _write(self, *events: Event) -> None:
        await self._journal.append(*events)
        for event in events:
            self._status.saw(event)

    def _settle(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._settling.add(task)
        self._status.scoring = len(self._settling)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        self._status.scoring = len(self._settling)
        self._room.release()
        if task.cancelled():
            return  # the run was stopped; the answer is in the journal's hands, its scores are still owed
        if (error := task.exception()) is not None:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        self._problem = self._problem or error
        self.drain("interrupted")


async def _next_score(used: ScorerInUse, owed: PendingScore, verdicts: AsyncGenerator[Verdict]) -> tuple[Score, ...]:
    """The next row of a scorer that yields them; () after the last."""
    clock = monotonic()
    verdict = await anext(verdicts, None)
    if verdict is None:
        return ()
    (found,) = as_verdicts(verdict, name=used.info.name, metrics=used.metrics)
    return (score_row(owed.answer.trial, used.info, found, found.rows, monotonic() - clock),)
