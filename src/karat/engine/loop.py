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
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal, TypeVar

import msgspec

from karat.agents import TrialAgent
from karat.engine.retry import Fallen, RetryPolicy, classify, delay
from karat.engine.spend import Spend
from karat.engine.supply import Job, Supply
from karat.engine.watch import Watch
from karat.errors import OperatorError
from karat.journal import Attempt, Event, Journal, ReplyEvent, ScorerInfo
from karat.mcp import gates
from karat.records import Answer, Failure, Reply, Sample, Score, Trial
from karat.scorers import as_verdicts
from karat.threads import Threads

__all__ = ["EndReason", "Limits", "Loop", "Owed", "ScorerInUse", "Work"]

_T = TypeVar("_T")
EndReason = Literal["done", "interrupted", "max_failures", "budget"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How hard a run may push."""

    max_concurrent: int
    timeout_seconds: float  # one attempt of the agent, its servers included
    judge_timeout_seconds: float
    retry: RetryPolicy
    max_failures: float  # a count; reached: drain


class ScorerInUse(msgspec.Struct, frozen=True, kw_only=True):
    """A scorer, and what the journal calls it."""

    info: ScorerInfo
    scorer: Any
    waits: bool = False  # its `score` is async or blocking: it takes one of the judge's slots
    blocking: bool = False  # its sync `score` waits for something: it runs on a thread


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is on disk already, and the scorers that have not seen it."""

    answer: Answer
    sample: Sample
    scorers: Sequence[ScorerInUse]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do, and who does it."""

    trials: Iterator[Trial]  # to be asked
    owed: Iterator[Owed]  # asked before, to be scored
    agents: Mapping[str, TrialAgent]  # by condition
    broken: Mapping[str, Fallen]  # conditions that cannot be asked, because a server is down
    scorers: Sequence[ScorerInUse]


class Loop:
    """Carries out a run: `await Loop(...).run()`; `drain` and `cancel` from outside."""

    def __init__(self, work: Work, *, journal: Journal, limits: Limits, spend: Spend, watch: Watch) -> None:
        self._owed, self._agents, self._broken = work.owed, work.agents, work.broken
        self._scorers, self._journal, self._limits = work.scorers, journal, limits
        self._spend, self._watch = spend, watch
        self._supply = Supply(work.trials)
        self._dice = random.Random()
        self._threads = Threads()
        self._failures = 0
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
            await asyncio.gather(*self._crowd)
            for owed in self._owed:
                if self._watch.draining:
                    break
                await self._room.acquire()
                self._settle(self._score(owed.answer.trial, owed.sample, owed.answer, owed.scorers))
            while self._settling:
                await asyncio.wait(self._settling)
        except asyncio.CancelledError:
            if not self._watch.draining:
                raise
        finally:
            tasks = [*self._crowd, *self._settling]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._problem is not None:
            raise self._problem
        return self._reason

    def drain(self, reason: EndReason) -> None:
        """Starts nothing more; what is in flight finishes and is scored."""
        if not self._watch.draining:
            self._reason = reason
            self._watch.draining = reason
        self._supply.stop()

    def cancel(self) -> None:
        """Stops now: what is in flight is cut off, its sessions are closed."""
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
        while self._spend.bounded and not self._spend.allows(agents=self._watch.in_flight, judges=len(self._settling)):
            if not self._watch.in_flight and not self._settling:
                self.drain("budget")
            elif self._watch.in_flight:
                await self._supply.changed()
            else:
                await asyncio.wait(self._settling, return_when=asyncio.FIRST_COMPLETED)
            if self._watch.draining:
                return False
        return True

    async def _take(self, job: Job) -> None:
        trial = job.trial
        if (fallen := self._broken.get(trial.condition.name)) is not None:
            await self._fail(trial, "preflight", fallen)
            return
        clock = monotonic()
        self._watch.in_flight += 1
        outcome = await self._caught(self._attempt(job), self._limits.timeout_seconds, "agent")
        self._watch.in_flight -= 1
        if isinstance(outcome, Fallen):
            await self._fell(job, outcome, monotonic() - clock)
            return
        for reply in outcome.replies:
            self._spend.paid("agent", reply.dollars, reply.usage)
        await self._room.acquire()
        self._settle(self._commit(trial, outcome))

    async def _attempt(self, job: Job) -> Answer:
        trial, turns = job.trial, job.trial.sample.turns
        started, clock = datetime.now(UTC), monotonic()
        replies: list[Reply] = []
        async with self._agents[trial.condition.name].session(trial) as session:
            for turn in turns:
                replies.append(await session.ask(turn))
                if len(turns) > 1:
                    said = ReplyEvent(trial=trial.id, attempt=job.attempt, turn=len(replies) - 1, reply=replies[-1])
                    await self._write(said)
        gates.check(trial.condition.gate, [call for reply in replies for call in reply.tool_calls])
        return Answer(
            trial=trial.id,
            sample=trial.sample.id,
            condition=trial.condition.name,
            repetition=trial.repetition,
            replies=tuple(replies),
            attempts=job.attempt,
            started=started.isoformat(timespec="milliseconds"),
            seconds=round(monotonic() - clock, 6),
        )

    async def _commit(self, trial: Trial, answer: Answer) -> None:
        await self._write(answer)
        await self._score(trial.id, trial.sample, answer, self._scorers)

    async def _score(self, trial: str, sample: Sample, answer: Answer, scorers: Sequence[ScorerInUse]) -> None:
        for used in scorers:
            attempt = 1
            while isinstance(outcome := await self._judge(used, sample, answer), Fallen):
                self._spend.paid("judge", outcome.dollars if outcome.dollars is not None else 0.0, outcome.usage)
                wait = delay(self._limits.retry, attempt, outcome, self._dice)
                await self._write(_attempt_event(trial, attempt, outcome, "score", None))
                if wait is None or self._watch.draining:
                    await self._unscored(trial, answer, used, outcome)
                    break
                await asyncio.sleep(wait)
                attempt += 1
            else:
                for score in outcome:
                    if score.dollars is not None or score.usage is not None:
                        self._spend.paid("judge", score.dollars, score.usage)
                await self._write(*outcome)
        self._watch.settled += 1

    async def _judge(self, used: ScorerInUse, sample: Sample, answer: Answer) -> tuple[Score, ...] | Fallen:
        async with self._judge_slots if used.waits else nullcontext():
            return await self._caught(self._verdicts(used, sample, answer), self._limits.judge_timeout_seconds, "score")

    async def _verdicts(self, used: ScorerInUse, sample: Sample, answer: Answer) -> tuple[Score, ...]:
        clock = monotonic()
        if used.blocking:
            scored: Any = await self._threads.call(used.scorer.score, sample, answer)
        else:
            scored = used.scorer.score(sample, answer)
        if inspect.isawaitable(scored):
            scored = await scored
        found = as_verdicts(scored, name=used.info.name)
        seconds = monotonic() - clock
        return tuple(_score_event(answer.trial, used.info, one, len(found), seconds) for one in found)

    async def _caught(self, work: Awaitable[_T], seconds: float, stage: Literal["agent", "score"]) -> _T | Fallen:
        """What `work` returns, or why it did not: here, and nowhere else, every exception becomes data."""
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except OperatorError:
            raise  # the disk refuses, or a plug-in is not what the file says: no trial can go on
        except Exception as error:
            if limit.expired():
                message = f"no {'answer' if stage == 'agent' else 'score'} within {seconds:g} s"
                return Fallen(
                    cls="limit" if stage == "agent" else "judge", kind="timeout", message=message, retriable=False
                )
            return classify(error, stage=stage, redact=self._journal.redact)

    async def _fell(self, job: Job, fallen: Fallen, seconds: float) -> None:
        if fallen.dollars is not None or fallen.usage is not None:
            self._spend.paid("agent", fallen.dollars, fallen.usage)
        wait = delay(self._limits.retry, job.attempt, fallen, self._dice)
        await self._write(_attempt_event(job.trial.id, job.attempt, fallen, "agent", seconds))
        if wait is None:
            await self._fail(job.trial, "agent", fallen)
        elif not self._watch.draining:
            self._supply.again(Job(job.trial, job.attempt + 1), wait)

    async def _fail(self, trial: Trial, stage: Literal["preflight", "agent"], fallen: Fallen) -> None:
        failure = Failure(
            trial=trial.id, stage=stage, cls=fallen.cls, kind=fallen.kind, message=fallen.message,
            retriable=fallen.retriable, sample=trial.sample.id, condition=trial.condition.name,
            repetition=trial.repetition,
        )  # fmt: skip
        await self._write(failure)
        self._watch.settled += 1
        if stage != "preflight" and fallen.cls != "limit":
            self._count_failure()

    async def _unscored(self, trial: str, answer: Answer, used: ScorerInUse, fallen: Fallen) -> None:
        failure = Failure(
            trial=trial, stage="score", cls=fallen.cls, kind=fallen.kind, message=fallen.message,
            retriable=fallen.retriable, sample=answer.sample, condition=answer.condition,
            repetition=answer.repetition, scorer=used.info.name, scoring=used.info.scoring,
        )  # fmt: skip
        await self._write(failure)
        self._count_failure()

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures >= self._limits.max_failures:
            self.drain("max_failures")

    async def _write(self, *events: Event) -> None:
        await self._journal.append(*events)
        for event in events:
            self._watch.saw(event)

    def _settle(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        self._problem = self._problem or error
        self.drain("interrupted")


def _attempt_event(
    trial: str, n: int, fallen: Fallen, stage: Literal["agent", "score"], seconds: float | None
) -> Attempt:
    return Attempt(
        trial=trial, n=n, cls=fallen.cls, kind=fallen.kind, message=fallen.message, retriable=fallen.retriable,
        stage=stage, usage=fallen.usage, dollars=fallen.dollars, seconds=seconds and round(seconds, 6),
    )  # fmt: skip


def _score_event(trial: str, info: ScorerInfo, verdict: Any, rows: int, seconds: float) -> Score:
    return Score(
        trial=trial, scorer=info.name, scoring=info.scoring, offline=info.offline, rows=rows,
        values=verdict.values, turn=verdict.turn, judge=verdict.judge, repeat=verdict.repeat,
        labels=verdict.labels, reasons=verdict.reasons, claims=verdict.claims, detail=verdict.detail,
        usage=verdict.usage, dollars=verdict.dollars, seconds=round(seconds, 6),
    )  # fmt: skip
