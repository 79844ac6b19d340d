"""The progress of a run as one value, for the terminal, log lines, and the `progress` events of
`--events`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Literal

import msgspec

from karat.cli.running_means import RunningMeans
from karat.execution import RunStatus
from karat.formats import OUTPUT_FORMAT
from karat.sums import exact_sum

if TYPE_CHECKING:
    from karat.analysis.numbers import Estimate

_ENOUGH = 3  # trials: with fewer, the rest cannot be estimated
_SHARE_OF_TIME = 0.01  # spent on the means at most
_FIRST_READINGS = 3  # not timed: they load the code that computes the means


class RunningMean(msgspec.Struct, frozen=True, kw_only=True):
    """The main metric of one condition; unknown numbers are null."""

    value: float | None
    low: float | None  # `low` to `high` is the interval at `level`
    high: float | None
    level: float
    n: int  # questions, or conversations


class ConditionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One condition. Trials neither done, failed nor in flight are waiting or being scored."""

    planned: int | None  # None: not known, as when answers are scored again
    done: int  # trials with an answer and its scores, including earlier parts
    failed: int  # trials of this part that ended without an answer or a score
    in_flight: int  # trials the agent is working on
    mean: RunningMean | None  # of this part; None: nothing scored yet


class LastFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The newest failed attempt, or failed trial."""

    seconds_ago: float
    stage: str  # agent, score or preflight
    cls: str = msgspec.field(name="class")
    kind: str
    message: str


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress", tag_field="event"):
    """The whole run.

    Money and tokens include earlier parts; `…_unknown` marks a sum that is only a lower bound.
    """

    format: int = OUTPUT_FORMAT
    seconds: float  # since the command began
    planned: int  # 0: no trial has started yet
    done: int
    failed: int
    in_flight: int
    most_in_flight: int  # 0: answers are only scored
    scoring: int  # answers waiting for their scores
    retries: int
    dollars: float
    dollars_unknown: bool
    dollars_in_all: float | None  # projected; None: too early to say
    tokens: int  # input and output
    tokens_unknown: bool
    tokens_in_all: float | None
    per_second: float | None  # trials that ended recently
    seconds_left: float | None
    slowed: dict[str, int]  # providers that refused requests → how many they now get at a time
    finishing: str | None  # why no new trial starts
    continued: bool  # the run has earlier parts, which are not in the means
    metric: str | None  # of `mean`
    metric_kind: Literal["ordinal", "share", "number"] | None
    unit: Literal["question", "turn"]
    noun: str  # of what a mean is over, e.g. question
    conditions: dict[str, ConditionCounts]
    last_failure: LastFailure | None

    @property
    def ended(self) -> int:
        """Trials that are finished."""
        return self.done + self.failed


class Pace:
    """The recent rate of settled trials.

    Trials end in bursts, one after each wait for a model, and a provider that refuses requests
    stops them for minutes. So the rate is taken over a stretch of at least half a minute, in which
    at least thirty trials ended and three times as many as are in flight, and which reaches to now
    even if nothing is happening. Attempts do not count: a retried trial has not ended.
    """

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, settled: int) -> None:
        """Records the clock and the count of settled trials; the first call marks the start of the
        run.
        """
        if self._marks and now < self._marks[-1][0] + 1.0:
            return
        self._marks.append((now, settled))
        if len(self._marks) > 1000:
            # Keep every second note: far back, whole seconds make no difference.
            self._marks = deque(mark for index, mark in enumerate(self._marks) if index % 2 == 0)

    def per_second(self, now: float, settled: int, *, in_flight: int) -> float | None:
        """Trials per second; None if too few have ended."""
        if not self._marks:
            return None
        wanted = max(30, 3 * in_flight)
        since, before = self._marks[0]
        enough = False
        for at, count in reversed(self._marks):
            if enough and count != before:
                break  # the stretch begins just after a burst, not just before the next one
            if enough or (settled - count >= wanted and now - at >= 30.0):
                since = at
                before = count
                enough = True

        if settled - before >= _ENOUGH and now > since:
            return (settled - before) / (now - since)
        return None


def projected(spent: float, *, over: float, left: float) -> float | None:
    """The total to expect if each of the `left` costs as much as each of `over` did.

    >>> (
    ...     projected(2.0, over=10, left=30),
    ...     projected(2.0, over=2, left=30),
    ...     projected(2.0, over=2, left=0),
    ... )
    (8.0, None, 2.0)
    """
    if left <= 0:
        return spent
    if over >= _ENOUGH:
        return spent * (over + left) / over
    return None


class ProgressReader:
    """`read()` returns the current progress.

    One thread may read while the run continues in another.
    """

    def __init__(
        self,
        status: RunStatus,
        means: RunningMeans,
        *,
        redact: Callable[[str], str] = str,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._status = status
        self._running = means
        self._redact = redact
        self._clock = clock
        self._pace = Pace()
        self._means: dict[str, Estimate] = {}
        self._means_of = -1  # settled trials when the means were computed
        self._next_means = 0.0
        self._readings = 0

    def read(self, *, exact: bool = False) -> Progress:
        """`exact`: compute the means now, however long it takes."""
        status = self._status
        now = self._clock()
        planned = status.planned
        settled = status.settled
        if status.began is not None:
            self._pace.note(status.began, 0)
            self._pace.note(now, settled)

        # An earlier part's answer that is scored now counts twice, so the sum is capped at the
        # plan.
        ended = min(planned, status.before + settled)
        failed = min(status.failed, ended)
        rate = self._pace.per_second(now, settled, in_flight=status.in_flight)
        if status.draining or not rate:
            left = None
        else:
            left = (planned - ended) / rate

        spent = status.past, status.agent, status.judge
        unpriced = any(part.dollars_unknown for part in spent)
        uncounted = any(part.tokens_unknown for part in spent)
        dollars = self._in_all(ended, [part.dollars for part in spent], unknown=unpriced)
        tokens = self._in_all(ended, [part.tokens for part in spent], unknown=uncounted)
        if settled != self._means_of and (exact or now >= self._next_means):
            began = self._clock()
            self._means = self._running.estimates()
            self._means_of = settled
            done = self._clock()
            self._readings += 1
            self._next_means = done + 1.0
            if self._readings > _FIRST_READINGS:
                self._next_means = done + max(1.0, (done - began) / _SHARE_OF_TIME)

        metric = self._running.metric
        failure = None
        if status.last_failure is not None:
            at, event = status.last_failure
            failure = LastFailure(
                seconds_ago=round(max(0.0, now - at), 3),
                stage=event.stage,
                cls=event.cls,
                kind=event.kind,
                message=self._redact(event.message),
            )

        return Progress(
            seconds=round(now - status.started, 3),
            planned=planned,
            done=ended - failed,
            failed=failed,
            # others wait at a worker
            in_flight=min(status.in_flight, status.most),
            most_in_flight=status.most,
            scoring=status.scoring,
            retries=status.retries,
            dollars=exact_sum(part.dollars for part in spent),
            dollars_in_all=dollars,
            dollars_unknown=unpriced,
            tokens=sum(part.tokens for part in spent),
            tokens_in_all=tokens,
            tokens_unknown=uncounted,
            per_second=rate and round(rate, 4),
            seconds_left=left and round(left, 1),
            finishing=status.draining,
            slowed={self._redact(name): limit for name, limit in status.slowed.items()},
            continued=status.before > 0,
            metric=None if metric is None else metric.name,
            metric_kind=self._running.kind,
            unit=self._running.unit,
            noun=self._running.noun,
            conditions={
                self._redact(name): self._condition(name) for name in list(status.conditions)
            },
            last_failure=failure,
        )

    def _in_all(self, ended: int, spent: list[float], *, unknown: bool) -> float | None:
        """The run's projected cost, if the rest costs as much per trial as before, retries
        included.

        `spent`: by earlier parts, agent and judge. Agent and judge are projected separately,
        because at any moment more answers are paid for than scored.
        """
        status = self._status
        if status.draining:
            return None
        asked = status.answered + status.unasked
        if status.most:
            to_ask = max(0, status.planned - status.before - asked)
        else:
            to_ask = 0

        waiting = status.scoring / 2
        past, agent, judge = spent
        of_agent = projected(agent, over=asked, left=to_ask)
        of_judge = projected(
            judge,
            over=status.settled - status.unasked + waiting,
            left=status.planned - ended - waiting,
        )
        if of_agent is None or of_judge is None or (unknown and not sum(spent)):
            return None
        return past + of_agent + of_judge

    def _condition(self, name: str) -> ConditionCounts:
        counts = self._status.conditions[name]
        estimate = self._means.get(name)
        ended = counts.before + counts.settled
        if counts.planned is not None:
            ended = min(ended, counts.planned)
        failed = min(counts.failed, ended)
        mean = None
        if estimate is not None and estimate.value is not None:
            mean = RunningMean(
                value=estimate.value,
                low=estimate.low,
                high=estimate.high,
                level=estimate.level,
                n=estimate.n,
            )

        return ConditionCounts(
            planned=counts.planned,
            done=ended - failed,
            failed=failed,
            in_flight=counts.in_flight,
            mean=mean,
        )
