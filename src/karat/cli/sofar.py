"""Where a run stands, as one value: what the terminal draws, log lines tell, and `--events` streams as `progress`."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Literal

import msgspec

from karat.cli.output import OUTPUT_FORMAT
from karat.cli.pace import Pace, in_all
from karat.cli.running import Running
from karat.execution import RunStatus

if TYPE_CHECKING:
    from karat.analysis.model import Estimate
    from karat.execution.progress import ConditionProgress, Spending

__all__ = ["ConditionSoFar", "LastFailure", "Look", "MeanSoFar", "SoFar"]

_SHARE_OF_TIME = 0.01  # that the means may take
_FIRST_LOOKS = 3


class MeanSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """The main metric of one condition; numbers are null where they cannot be known."""

    value: float | None
    low: float | None  # with `high` the interval at `level`
    high: float | None
    level: float
    n: int  # questions, or conversations


class ConditionSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """One condition. What is neither done nor failed nor in flight waits, or is being scored."""

    planned: int | None  # None: not known, as when answers are scored again
    done: int  # trials with an answer and its scores, of earlier parts too
    failed: int  # trials of this part that ended without an answer or without a score
    in_flight: int  # trials at the agent now
    mean: MeanSoFar | None  # of this part; None: nothing is scored yet


class LastFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The newest failed attempt, or failed trial."""

    seconds_ago: float
    stage: str  # agent, score or preflight
    cls: str = msgspec.field(name="class")
    kind: str
    message: str


class SoFar(msgspec.Struct, frozen=True, kw_only=True, tag="progress", tag_field="event"):
    """The whole run. Money and tokens include earlier parts; a sum that is only a lower bound is `…_unknown`."""

    format: int = OUTPUT_FORMAT
    seconds: float  # since the command began
    planned: int  # 0: nothing has begun yet
    done: int
    failed: int
    in_flight: int
    most_in_flight: int  # 0: nothing is asked, answers are scored
    scoring: int  # answers that wait for their scores
    retries: int
    dollars: float
    dollars_unknown: bool
    dollars_in_all: float | None  # projected; None: too early to say
    tokens: int  # input and output
    tokens_unknown: bool
    tokens_in_all: float | None
    per_second: float | None  # trials that ended, lately
    seconds_left: float | None
    slowed: dict[str, int]  # providers that refused → requests at a time that they get now
    finishing: str | None  # why nothing new is begun
    continued: bool  # the run has earlier parts, of which the means say nothing
    metric: str | None  # what `mean` is of
    metric_kind: Literal["ordinal", "share", "number"] | None
    unit: Literal["question", "turn"]
    conditions: dict[str, ConditionSoFar]
    last_failure: LastFailure | None

    @property
    def ended(self) -> int:
        """Trials that need nothing more."""
        return self.done + self.failed


class Look:
    """`look()`: how things stand now. One thread may look while the run goes on in another."""

    def __init__(
        self,
        watch: RunStatus,
        running: Running,
        *,
        redact: Callable[[str], str] = str,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._watch, self._running, self._redact, self._clock = watch, running, redact, clock
        self._pace = Pace()
        self._means: dict[str, Estimate] = {}
        self._means_of = -1  # at so many settled trials
        self._next_means, self._looks = 0.0, 0

    def __call__(self, *, exact: bool = False) -> SoFar:
        """`exact`: with means of this very moment, whatever they cost."""
        watch, now = self._watch, self._clock()
        planned, settled = watch.planned, watch.settled
        if watch.began is not None:
            self._pace.note(watch.began, 0)
            self._pace.note(now, settled)
        # An earlier part's answer that is scored now counts in both: the sum is never shown above the plan.
        ended = min(planned, watch.before + settled)
        failed = min(watch.failed, ended)
        rate = self._pace.per_second(now, settled, in_flight=watch.in_flight)
        left = None if watch.draining or not rate else (planned - ended) / rate
        dollars, tokens = (None, None) if watch.draining else self._in_all(ended)
        self._look_at_means(now, settled, exact=exact)
        metric = self._running.metric
        return SoFar(
            seconds=round(now - watch.started, 3), planned=planned, done=ended - failed, failed=failed,
            in_flight=watch.in_flight, most_in_flight=watch.most, scoring=watch.scoring, retries=watch.retries,
            dollars=sum(one.dollars for one in self._spent), dollars_in_all=dollars,
            dollars_unknown=any(one.dollars_unknown for one in self._spent),
            tokens=sum(one.tokens for one in self._spent), tokens_in_all=tokens,
            tokens_unknown=any(one.tokens_unknown for one in self._spent),
            per_second=rate and round(rate, 4), seconds_left=left and round(left, 1), finishing=watch.draining,
            slowed={self._redact(name): limit for name, limit in watch.slowed.items()},
            continued=watch.before > 0, metric=None if metric is None else metric.name,
            metric_kind=self._running.kind, unit=self._running.unit,
            conditions={self._redact(name): self._condition(name, one) for name, one in list(watch.conditions.items())},
            last_failure=self._last_failure(now),
        )  # fmt: skip

    @property
    def _spent(self) -> tuple[Spending, ...]:
        return self._watch.past, self._watch.agent, self._watch.judge

    def _in_all(self, ended: int) -> tuple[float | None, float | None]:
        """Dollars and tokens at the end, if what is left costs what was there did, retries included.

        Agent and judge apart: at any moment more answers are paid for than are scored.
        """
        watch = self._watch
        asked = watch.answered + watch.unasked
        to_ask = max(0, watch.planned - watch.before - asked) if watch.most else 0
        judged, to_judge = watch.settled - watch.unasked + watch.scoring / 2, watch.planned - ended - watch.scoring / 2

        def whole(past: float, agent: float, judge: float, *, unknown: bool) -> float | None:
            of_agent, of_judge = in_all(agent, over=asked, left=to_ask), in_all(judge, over=judged, left=to_judge)
            if of_agent is None or of_judge is None or (unknown and not past + agent + judge):
                return None
            return past + of_agent + of_judge

        past, agent, judge = self._spent
        unpriced = any(one.dollars_unknown for one in self._spent)
        uncounted = any(one.tokens_unknown for one in self._spent)
        return (
            whole(past.dollars, agent.dollars, judge.dollars, unknown=unpriced),
            whole(past.tokens, agent.tokens, judge.tokens, unknown=uncounted),
        )

    def _look_at_means(self, now: float, settled: int, *, exact: bool) -> None:
        if settled == self._means_of or (now < self._next_means and not exact):
            return
        started = self._clock()
        self._means, self._means_of = self._running.estimates(), settled
        ended = self._clock()
        self._looks += 1
        # The first times load what computes them, which says nothing of the next time.
        cost = (ended - started) / _SHARE_OF_TIME if self._looks > _FIRST_LOOKS else 0.0
        self._next_means = ended + max(1.0, cost)

    def _condition(self, name: str, one: ConditionProgress) -> ConditionSoFar:
        ended = one.before + one.settled
        ended = ended if one.planned is None else min(ended, one.planned)
        failed = min(one.failed, ended)
        found = self._means.get(name)
        mean = None
        if found is not None and found.value is not None:
            mean = MeanSoFar(value=found.value, low=found.low, high=found.high, level=found.level, n=found.n)
        return ConditionSoFar(
            planned=one.planned, done=ended - failed, failed=failed, in_flight=one.in_flight, mean=mean
        )

    def _last_failure(self, now: float) -> LastFailure | None:
        if self._watch.last_failure is None:
            return None
        at, event = self._watch.last_failure
        return LastFailure(
            seconds_ago=round(max(0.0, now - at), 3),
            stage=event.stage,
            cls=event.cls,
            kind=event.kind,
            message=self._redact(event.message),
        )
