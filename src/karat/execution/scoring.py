"""An answer and its scorers: score, retry, append the scores."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

import msgspec

from karat.context import RebuiltWorkspaces
from karat.errors import OperatorError
from karat.execution.foreign_code import ForeignCode
from karat.execution.limits import Budget, FailureCounter, Limits, RunStatus
from karat.execution.retry import AttemptError, bounded, classify, delay
from karat.index import RunIndex
from karat.journal import Attempt, Event, RunFolder, ScorerInfo
from karat.records import Answer, Failure, Metric, Sample, Score
from karat.redact import Redactor
from karat.scorers import Row, Verdict, as_verdicts
from karat.threads import Threads

_SECONDS_A_STEP = 0.05  # that scorers hold the event loop
Unfinished = AttemptError | Awaitable[Any]
"""What became of a scorer that has no score yet: it failed, or it returned an awaitable."""


class ScorerInUse(msgspec.Struct, frozen=True, kw_only=True):
    """A scorer, and its names in the journal."""

    info: ScorerInfo
    scorer: Any
    metrics: Sequence[Metric] = ()  # those it announces; (): it may return any
    flag: str | None = None  # the metric of a bare bool; None: not known beforehand
    waits: bool = False  # its `score` is async or blocking: it uses one of the judge's slots
    blocking: bool = False  # its sync `score` waits for something: it runs on a thread
    late: bool = False  # it compares answers: it is asked when all of them are in
    # its `score` yields verdicts one by one, and each is journalled as it comes
    streams: bool = False


class PendingScore(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and the scorers that have not scored it yet."""

    answer: Answer
    sample: Sample
    scorers: Sequence[ScorerInUse]
    present: Mapping[str, Collection[Row]] = {}  # scoring → its rows on disk, if some are missing
    again: bool = False  # its trial has been counted as settled
    is_new: bool = False  # the answer is not in the journal yet


class EventLog(Protocol):
    """The journal, or its substitute elsewhere."""

    redact: Redactor

    def append(self, *events: Event) -> asyncio.Future[None]:
        """A future that is done when the events are on disk."""


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials of a run share."""

    journal: EventLog
    limits: Limits
    budget: Budget
    failures: FailureCounter
    foreign_code: ForeignCode
    status: RunStatus
    draining: asyncio.Event  # set: nothing new is started

    async def write(self, *events: Event) -> None:
        """Returns when the events are on disk."""
        await self.journal.append(*events)
        self.status.journalled(*events)


class Scoring:
    """Scores answers. One scorer's failure leaves the others' scores alone."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._slots = asyncio.Semaphore(run.limits.max_concurrent)
        self._random = random.Random()
        self._threads = Threads()
        self._last: tuple[Sample, Sample] | None = None  # as it is, and masked

    def close(self) -> None:
        """Ends the threads of blocking scorers."""
        self._threads.close()

    def _masked(self, pending: PendingScore) -> PendingScore:
        """With the sample as in the run folder, so it holds no more secrets than the answer."""
        # a sample's trials are consecutive
        if self._last is None or self._last[0] is not pending.sample:
            masked = self._run.journal.redact.struct(pending.sample)
            self._last = pending.sample, msgspec.structs.replace(masked, id=pending.sample.id)

        return msgspec.structs.replace(pending, sample=self._last[1])

    def score_at_once(
        self, pending: PendingScore, *, only_offline: bool = False
    ) -> tuple[list[Score], dict[str, Unfinished]]:
        """The scores of scorers that do not wait, not yet in the journal; by scoring, those without
        a score.

        `only_offline`: leaves those out that may cost something.
        """
        if self._run.journal.redact.active:
            pending = self._masked(pending)
        scores: list[Score] = []
        unfinished: dict[str, Unfinished] = {}
        for used in pending.scorers:
            if not used.waits and (used.info.offline or not only_offline):
                result = self._score_now(used, pending)
                if isinstance(result, list):
                    scores += result
                    self._run.failures.scored(used.info.scoring)
                else:
                    unfinished[used.info.scoring] = result

        return scores, unfinished

    def _score_now(self, used: ScorerInUse, pending: PendingScore) -> list[Score] | Unfinished:
        clock = monotonic()
        try:
            result = used.scorer.score(pending.sample, pending.answer)
            if type(result) is bool and used.flag is not None and used.info.offline:
                return [  # as nearly every rule does
                    Score(
                        trial=pending.answer.trial,
                        scorer=used.info.name,
                        scoring=used.info.scoring,
                        values={used.flag: result},
                        offline=True,
                        seconds=round(monotonic() - clock, 6),
                    )
                ]

            if inspect.isawaitable(result):
                return result
            verdicts = as_verdicts(result, name=used.info.name, metrics=used.metrics)
        except (OperatorError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 -- a scorer is foreign code, and its failure is data
            return classify(error, stage="score", redact=self._run.journal.redact)

        return self._scores(used, pending, verdicts, monotonic() - clock)

    async def score_batch(
        self, batch: Sequence[PendingScore]
    ) -> list[tuple[PendingScore, Mapping[str, Unfinished]]]:
        """Writes new answers, and the scores of scorers that neither wait nor cost anything.

        Returns what is left for `score`: the answers with the other scorers, and their attempts.
        """
        answers = [pending.answer for pending in batch if pending.is_new]
        if answers:
            await self._run.write(*answers)  # before a scorer can end the process
        scores: list[Score] = []
        done: list[PendingScore] = []
        left: list[tuple[PendingScore, Mapping[str, Unfinished]]] = []
        pause = monotonic() + _SECONDS_A_STEP
        for pending in batch:
            of_answer, unfinished = self.score_at_once(pending, only_offline=True)
            scores += of_answer
            others = []
            for used in pending.scorers:
                by_rule = used.info.offline and not used.waits
                if not by_rule or used.info.scoring in unfinished:
                    others.append(used)

            if others:
                left.append((msgspec.structs.replace(pending, scorers=others), unfinished))
            else:
                done.append(pending)

            if monotonic() > pause:  # Ctrl-C must be heard
                await asyncio.sleep(0)
                pause = monotonic() + _SECONDS_A_STEP

        if scores:
            await self._run.write(*scores)
        for pending in done:
            self._settled(pending, missed=False)
        return left

    async def score(self, pending: PendingScore, unfinished: Mapping[str, Unfinished]) -> None:
        """Every scorer's rows in the journal, or why there are none.

        `unfinished`: the attempts of `score_at_once`.
        """
        if self._run.journal.redact.active:
            pending = self._masked(pending)
        missed = False
        for used in pending.scorers:
            tried = unfinished.get(used.info.scoring)
            scored = await self._score_until_done(used, pending, tried)
            if scored is None:
                return  # the run is stopping: the next --resume asks the judge again
            missed = missed or not scored

        self._settled(pending, missed=missed)

    def _settled(self, pending: PendingScore, *, missed: bool) -> None:
        answer = pending.answer
        if not pending.again:
            self._run.status.settled_trial(
                answer.trial, answer.condition, pending.sample, failed=missed
            )

        if missed:
            self._run.failures.count()

    async def _score_until_done(
        self, used: ScorerInUse, pending: PendingScore, tried: Unfinished | None
    ) -> bool | None:
        """Whether one scorer's rows are on disk, after all allowed attempts.

        None: the run is stopping.
        """
        present = set(pending.present.get(used.info.scoring, ()))
        scoring = used.info.scoring
        attempt = 1
        known = len(present)
        while (error := await self._attempt(used, pending, present, tried)) is not None:
            tried = None
            error = bounded(self._run.limits.retry, error)
            if len(present) > known:  # rows came in between: a later row has its own attempts
                attempt = 1
                known = len(present)

            if not used.info.offline:
                self._run.budget.add_failure("judge", error.dollars, error.usage)
            wait = delay(self._run.limits.retry, attempt, error, self._random)
            failed = Attempt(
                trial=pending.answer.trial,
                n=attempt,
                stage="score",
                dollars=error.dollars,
                usage=error.usage,
                **error.fields(),
            )
            await self._run.write(failed)
            if wait is None:
                answer = pending.answer
                failure = Failure(
                    trial=answer.trial,
                    stage="score",
                    sample=answer.sample,
                    condition=answer.condition,
                    repetition=answer.repetition,
                    scorer=used.info.name,
                    scoring=scoring,
                    **error.fields(),
                )
                await self._run.write(failure)
                self._run.failures.unscored(scoring, error)
                return False

            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._run.draining.wait()

            if self._run.draining.is_set():
                return None
            attempt += 1

        self._run.failures.scored(scoring)
        return True

    async def _attempt(
        self, used: ScorerInUse, pending: PendingScore, present: set[Row], tried: Unfinished | None
    ) -> AttemptError | None:
        """One attempt at the missing rows: None, with every row on disk, or why one is missing."""
        if used.streams:
            return await self._stream(used, pending, present)
        result = tried or (None if used.waits else self._score_now(used, pending))
        if not isinstance(result, (list, AttemptError)):
            started = result
            result = await self._judge(used, lambda: self._wait_for_scores(used, pending, started))

        if isinstance(result, AttemptError):
            return result
        await self._run.write(*result)
        return None

    async def _stream(
        self, used: ScorerInUse, pending: PendingScore, present: set[Row]
    ) -> AttemptError | None:
        """Each row is on disk before the next is requested: nothing is paid for twice."""
        verdicts: AsyncGenerator[Verdict] = used.scorer.score(
            pending.sample, pending.answer, done=frozenset(present)
        )

        async def next_scores() -> list[Score]:
            clock = monotonic()
            verdict = await anext(verdicts, None)
            if verdict is None:
                return []
            (verdict,) = as_verdicts(verdict, name=used.info.name, metrics=used.metrics)
            return self._scores(used, pending, (verdict,), monotonic() - clock, rows=verdict.rows)

        try:
            while scores := await self._judge(used, next_scores):
                if isinstance(scores, AttemptError):
                    return scores
                await self._run.write(*scores)
                present.update((score.turn, score.judge, score.repeat) for score in scores)
        finally:
            with suppress(RuntimeError):  # an abandoned call may still run in it
                await verdicts.aclose()

        return None

    async def _judge(
        self, used: ScorerInUse, work: Callable[[], Coroutine[object, object, list[Score]]]
    ) -> list[Score] | AttemptError:
        async with self._slots:
            return await self._run.foreign_code.call(
                work, self._run.limits.judge_timeout_seconds, "score"
            )

    async def _wait_for_scores(
        self, used: ScorerInUse, pending: PendingScore, result: Awaitable[Any] | None
    ) -> list[Score]:
        clock = monotonic()
        if used.blocking:
            result = await self._threads.call(used.scorer.score, pending.sample, pending.answer)
        elif result is None:
            result = used.scorer.score(pending.sample, pending.answer)

        if inspect.isawaitable(result):
            verdicts = await result
        else:
            verdicts = result

        verdicts = as_verdicts(verdicts, name=used.info.name, metrics=used.metrics)
        return self._scores(used, pending, verdicts, monotonic() - clock)

    def _scores(
        self,
        used: ScorerInUse,
        pending: PendingScore,
        verdicts: Sequence[Verdict],
        seconds: float,
        *,
        rows: int | None = None,
    ) -> list[Score]:
        """Rows of the journal, their cost counted. `rows`: the total number; None: these."""
        info = used.info
        if rows is None:
            rows = len(verdicts)
        if not info.offline:
            for verdict in verdicts:
                self._run.budget.add("judge", verdict.dollars, verdict.usage)

        return [
            Score(
                trial=pending.answer.trial,
                scorer=info.name,
                scoring=info.scoring,
                offline=info.offline,
                seconds=round(seconds, 6),
                **msgspec.structs.asdict(verdict) | {"rows": rows},
            )
            for verdict in verdicts
        ]


class ScorerMemory:
    """A run's memory for scorers: answers, and score rows by the key in their `detail`.

    The rows are those on disk when the run was opened, not later ones: otherwise, of two equal
    answers, the one judged first would determine which costs something. The journal itself is the
    cache, so nothing is stored twice, and masked values stay masked.
    """

    def __init__(self) -> None:
        self._folder: RunFolder | None = None
        self._stop = 0
        self.answers: RunIndex | None = None  # the data of `answer_of`
        self.workspaces = RebuiltWorkspaces()
        # key, or key and trial → offset in the journal; None: not read yet
        self._places: dict[str, int] | None = None

    def open(self, folder: RunFolder) -> None:
        """Serves the current content of `folder`.

        The journal is read at the first request for a score.
        """
        self._folder = folder
        self._stop = folder.journal_size
        self._places = None
        self.workspaces.run = folder.path

    def close(self) -> None:
        """Removes temporary files."""
        self.workspaces.close()

    def answer_of(self, sample: str, condition: str, repetition: int) -> Answer | None:
        """The answer that counts, read from the journal; None if `answers` has none."""
        index = self.answers
        if index is None:
            return None
        cell = index.cell(sample, condition, repetition)
        if cell is None or not index.answered[cell]:
            return None
        (line,) = index.lines([index.answers[cell]])
        return msgspec.json.decode(line, type=Answer)

    def recall(self, key: str, trial: str) -> Score | None:
        """A score with this key: of the trial if there is one, else of any; the last of several."""
        if self._folder is None or not self._stop:
            return None
        if self._places is None:
            places: dict[str, int] = {}
            decoder = msgspec.json.Decoder(_Keyed)
            for _, start, line in self._folder.numbered_lines(stop=self._stop):
                if line.startswith(b'{"event":"score"') and b'"key":' in line:
                    row = decoder.decode(line)
                    if row.detail.key is not None:
                        places[row.detail.key] = places[f"{row.detail.key} {row.trial}"] = start

            self._places = places

        place = self._places.get(f"{key} {trial}", self._places.get(key))
        if place is None:
            return None
        return msgspec.json.decode(next(self._folder.lines(start=place)), type=Score)


class _Detail(msgspec.Struct, frozen=True):
    key: str | None = None


class _Keyed(msgspec.Struct):
    trial: str
    detail: _Detail = _Detail()
