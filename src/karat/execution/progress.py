"""Events → the progress of a run, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, Protocol

import msgspec

from karat.journal import Attempt, ScorerInfo
from karat.models import Limiter
from karat.records import Answer, Failure, Reply, Sample, Score, Usage

Listener = Callable[[Any], None]


class Follower(Protocol):
    """Sums scores during a run. Called in the event loop, so it must be quick."""

    def expects(self, scorer: ScorerInfo, kind: str) -> None:
        """Called before the first event: the scorer that a report shows first, and the dataset
        kind.
        """

    def scored(self, score: Score) -> None:
        """A row is on disk."""

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        """A trial has all the scores it will get, or finally no answer."""


def tokens_of(usage: Usage | None) -> int:
    """Input and output tokens together; cached and reasoning tokens are part of these."""
    if usage is None:
        return 0
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


class ConditionProgress(msgspec.Struct):
    """The progress of one condition."""

    planned: int | None = None  # None: not known
    before: int = 0  # answered by earlier parts of the run
    settled: int = 0  # in this part: answered and scored, or finally failed
    failed: int = 0  # of these
    in_flight: int = 0


class Spending(msgspec.Struct):
    """Money and tokens."""

    dollars: float = 0.0
    tokens: int = 0
    dollars_unknown: bool = False
    tokens_unknown: bool = False

    def add(self, dollars: float | None, usage: Usage | None) -> None:
        """Adds the cost of one call. An unreported price or count adds nothing."""
        if dollars is not None:
            self.dollars += dollars
        if usage is not None:
            self.tokens += tokens_of(usage)

    def answered(self, replies: Iterable[Reply]) -> None:
        """As `add`, for replies, which should have both."""
        for reply in replies:
            if reply.dollars is None:
                self.dollars_unknown = True
            else:
                self.dollars += reply.dollars

            if reply.usage is None:
                self.tokens_unknown = True
            else:
                self.tokens += tokens_of(reply.usage)


class RunStatus:
    """Running counts for display. Reports never read them: their totals come from the journal.

    `listener` gets every journalled event, and notices as text; `follower` the events needed to sum
    scores; `on_notice` only notices.
    """

    def __init__(
        self,
        listener: Listener | None = None,
        follower: Follower | None = None,
        *,
        on_notice: Callable[[str], object] | None = None,
    ) -> None:
        self.planned = 0
        self.before = 0  # answered by earlier parts of the run
        self.answered = 0
        self.settled = 0  # answered and scored, or finally failed
        self.failed = 0  # trials
        self.unasked = 0  # trials that failed without an answer
        self.retries = 0
        self.in_flight = 0
        self.scoring = 0  # answers waiting for the disk or a score
        self.most = 0  # concurrent trials at the agent; 0: nothing is asked
        self.conditions: dict[str, ConditionProgress] = {}
        # in earlier parts; in this one
        self.past, self.agent, self.judge = Spending(), Spending(), Spending()
        # when, by the clock of `monotonic`
        self.last_failure: tuple[float, Attempt | Failure] | None = None
        self.notices: list[str] = []
        self.limiters: Mapping[str, Limiter] = {}  # the providers that were asked, by name
        self.draining: str | None = None  # the reason, once the run is draining
        self.started = monotonic()
        self.began: float | None = None  # when everything was ready for the first trial
        self._listener = listener
        self._follower = follower
        self._on_notice = on_notice or listener
        self.on_remark: Callable[[str], object] | None = None  # lines for people that are no notice

    def expects(self, planned: Mapping[str, int], before: Mapping[str, int]) -> None:
        """How many trials each condition has in this part of the run, and how many of them are
        answered.
        """
        for name, count in planned.items():
            progress = self.condition(name)
            progress.planned = count
            progress.before = before.get(name, 0)

        self.before = sum(before.values())
        self.planned = sum(planned.values())

    def spares(self, conditions: Iterable[str]) -> None:
        """Stops counting on trials of these conditions that have not started: they are no longer
        asked.
        """
        for name in conditions:
            progress = self.condition(name)
            progress.planned = progress.before + progress.settled + progress.in_flight
        self.planned = sum(progress.planned or 0 for progress in self.conditions.values())

    def scores_with(self, scorers: Iterable[ScorerInfo], kind: str) -> None:
        """The scorers, in the order of the reports."""
        first = next(iter(scorers), None)
        if self._follower is not None and first is not None:
            self._follower.expects(first, kind)

    def begins(self, most: int) -> None:
        """From now on trials are asked, `most` at a time, or only scored."""
        self.most = most
        self.began = monotonic()

    def condition(self, condition: str) -> ConditionProgress:
        """The counts of one condition."""
        return self.conditions.setdefault(condition, ConditionProgress())

    def journalled(self, *events: Any) -> None:
        """Counts events on disk, and passes them on."""
        for event in events:
            self._count(event)
            if self._listener is not None:
                self._listener(event)

    def _count(self, event: Any) -> None:
        if isinstance(event, Score):
            judge = self.judge
            judge.add(event.dollars, event.usage)
            if not event.offline:
                judge.dollars_unknown |= event.dollars is None
                judge.tokens_unknown |= event.usage is None
            if self._follower is not None:
                self._follower.scored(event)
        elif isinstance(event, Answer):
            self.answered += 1
            self.agent.answered(event.replies[event.kept :])
        elif isinstance(event, Attempt):
            self.retries += event.retriable
            spent = self.judge if event.stage == "score" else self.agent
            spent.add(event.dollars, event.usage)
            for reply in event.replies:
                spent.add(reply.dollars, reply.usage)
            self.last_failure = monotonic(), event
        elif isinstance(event, Failure):
            self.last_failure = monotonic(), event

    def settled_trial(
        self, trial: str, condition: str, sample: Sample, *, answered: bool = True, failed: bool
    ) -> None:
        """Counts a finished trial."""
        progress = self.condition(condition)
        progress.settled += 1
        progress.failed += failed
        self.settled += 1
        self.unasked += not answered
        if self._follower is not None:
            self._follower.settled(trial, condition, sample, answered=answered)

    def notice(self, text: str) -> None:
        """A notice for people, shown once."""
        if text not in self.notices:
            self.notices.append(text)
            if self._on_notice is not None:
                self._on_notice(text)

    def remark(self, text: str) -> None:
        """Shows a text to people that belongs neither to the events nor to the notices."""
        if self.on_remark is not None:
            self.on_remark(text)

    @property
    def dollars(self) -> float:
        """The reported cost of this part of the run."""
        return self.agent.dollars + self.judge.dollars

    @property
    def slowed(self) -> dict[str, int]:
        """Providers that refused requests, and how many each gets at a time now."""
        found = {}
        for name, limiter in list(self.limiters.items()):
            if limiter.limit is not None:
                found[name] = limiter.limit
        return found

    @property
    def seconds(self) -> float:
        return monotonic() - self.started
