"""What a run counts as it goes – trials, costs, failures – and the limits that end it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from karat.config.model import SHARE_FROM_FAILURES, SHARE_FROM_TRIALS
from karat.errors import BadOption
from karat.execution.retry import AttemptError, RetryPolicy
from karat.journal import Attempt, ScorerInfo
from karat.models import Limiter
from karat.records import Answer, Failure, Reply, Sample, Score, Usage
from karat.sums import exact_sum

if TYPE_CHECKING:
    from karat.config import Execution, Experiment
    from karat.execution.scoring import ScorerInUse
    from karat.execution.setup import Agents


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
        self.conditions = defaultdict[str, ConditionProgress](ConditionProgress)
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
            progress = self.conditions[name]
            progress.planned = count
            progress.before = before.get(name, 0)

        self.before = sum(before.values())
        self.planned = sum(planned.values())

    def spares(self, conditions: Iterable[str]) -> None:
        """Stops counting on trials of these conditions that have not started: they are no longer
        asked.
        """
        for name in conditions:
            progress = self.conditions[name]
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

    def journalled(self, *events: object) -> None:
        """Counts events on disk, and passes them on."""
        for event in events:
            if isinstance(event, Score):
                judge = self.judge
                if event.dollars is not None or event.usage is not None:
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

            if self._listener is not None:
                self._listener(event)

    def settled_trial(
        self, trial: str, condition: str, sample: Sample, *, answered: bool = True, failed: bool
    ) -> None:
        """Counts a finished trial."""
        progress = self.conditions[condition]
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


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """A run's concurrency and limits."""

    max_concurrent: int
    # one attempt of the agent, including its servers; for a group, per member
    timeout_seconds: float
    judge_timeout_seconds: float
    retry: RetryPolicy
    max_failures: float  # a count; when reached: drain
    # the count is a share of the plan: a few failures, or a few trials, do not stop a run
    by_share: bool = False

    @classmethod
    def of(cls, execution: Execution, planned: int) -> Limits:
        """Those of an experiment file, for a run of `planned` trials."""
        return cls(
            max_concurrent=execution.max_concurrent,
            timeout_seconds=execution.timeout_seconds,
            judge_timeout_seconds=execution.judge_timeout_seconds,
            retry=execution.retry,
            max_failures=execution.most_failures(planned),
            by_share=execution.failures_by_share,
        )


class Budget:
    """Dollars and tokens so far (earlier parts of the run, judges and failed attempts included).

    Starting a trial reserves the largest cost seen for everything in flight, so a
    run ends below its budget instead of overshooting by all trials in flight.
    """

    def __init__(
        self,
        *,
        usd: float | None,
        tokens: int | None,
        dollars_before: float = 0.0,
        tokens_before: int = 0,
        unknown: str | None = None,
        largest_trial: tuple[float, int] = (0.0, 0),
        largest_score: tuple[float, int] = (0.0, 0),
    ) -> None:
        self._usd = usd
        self._token_limit = tokens
        self.bounded = usd is not None or tokens is not None
        self.dollars = dollars_before
        self.tokens = tokens_before
        # whether a cost is unknown: a budget then has no effect
        self.unknown = unknown if self.bounded else None
        self._largest = {"agent": (0.0, 0), "judge": largest_score}  # of one call
        self._trial = largest_trial  # of one attempt, with all its turns

    def add_replies(self, replies: Sequence[Reply]) -> None:
        """Counts the replies of an attempt.

        A starting trial may cost as much as all its turns together.
        """
        for reply in replies:
            self.add("agent", reply.dollars, reply.usage)
        if len(replies) > 1:
            dollars = exact_sum(reply.dollars or 0.0 for reply in replies)
            self._trial = larger(
                self._trial, dollars, sum(tokens_of(reply.usage) for reply in replies)
            )

    def add(
        self, who: Literal["agent", "judge"], dollars: float | None, usage: Usage | None
    ) -> None:
        if dollars is None and self._usd is not None:
            self.unknown = "an answer came without its price"
        if usage is None and self._token_limit is not None:
            self.unknown = "an answer came without its tokens"
        if dollars is None and usage is None:
            return
        dollars = dollars or 0.0
        tokens = tokens_of(usage)
        self.dollars += dollars
        self.tokens += tokens
        self._note_largest(who, dollars, tokens)

    def add_failure(
        self, who: Literal["agent", "judge"], dollars: float | None, usage: Usage | None
    ) -> None:
        """Counts a call that failed, at the largest cost seen if its cost is not known."""
        most_dollars, most_tokens = self._largest[who]
        if dollars is None and usage is None:
            self.dollars += most_dollars
            self.tokens += most_tokens
        else:
            self.dollars += dollars or 0.0
            self.tokens += tokens_of(usage)

        self._note_largest(who, dollars or 0.0, tokens_of(usage))

    def _note_largest(self, who: Literal["agent", "judge"], dollars: float, tokens: int) -> None:
        self._largest[who] = larger(self._largest[who], dollars, tokens)
        if who == "agent":
            self._trial = larger(self._trial, dollars, tokens)

    def allows(self, *, agents: int, judges: int, asks: bool = True) -> bool:
        """Whether another trial fits, given the numbers of trials at the agent and answers at the
        judge.

        `asks`: False for an answer that is only scored.
        """
        if self.unknown is not None:
            return False
        (agent_dollars, agent_tokens) = self._trial
        (judge_dollars, judge_tokens) = self._largest["judge"]
        # The new trial needs both, and so does each one at the agent.
        at_agent = agents + asks
        at_judge = agents + 1 + judges
        if self._usd is not None:
            reserved = agent_dollars * at_agent + judge_dollars * at_judge
            if self.dollars >= self._usd or self.dollars + reserved > self._usd:
                return False

        if self._token_limit is not None:
            reserved_tokens = agent_tokens * at_agent + judge_tokens * at_judge
            if (
                self.tokens >= self._token_limit
                or self.tokens + reserved_tokens > self._token_limit
            ):
                return False

        return True


def larger(seen: tuple[float, int], dollars: float, tokens: int) -> tuple[float, int]:
    """The larger of each."""
    return max(seen[0], dollars), max(seen[1], tokens)


_OWN = {"crash", "exit_code", "bad_reply"}
_ACCOUNT = {"unauthorized", "quota"}  # a message may contain the request's number


class SameFailures:
    """Whether the first trials all fail in the same way: then the others would too, at a cost of
    time and money.
    """

    def __init__(self, *, over: bool = False) -> None:
        self.count = 0
        self._first: tuple[str, str, str] | None = None
        self.over = over  # one succeeded, or failed in another way: others need not fail

    def failed(self, error: AttemptError) -> bool:
        """Whether enough have failed in the same way to stop the run."""
        key = (error.cls, error.kind, "" if error.kind in _ACCOUNT else error.message)
        self._first = self._first or key
        self.over = self.over or key != self._first
        self.count += 1
        # the judge has failed with several answers already
        if error.kind == "bad_output" and not error.passes:
            return not self.over
        if not error.passes:
            enough = _ALIKE
        elif error.kind in _OWN:
            enough = _ALIKE_AT_A_GUESS
        else:
            enough = None

        return not self.over and enough is not None and self.count >= enough


_ALIKE = 3
_ALIKE_AT_A_GUESS = 5
"""So many trials that fail alike stop a run: where the reason cannot pass, and where it
hardly can.
"""


class FailureCounter(Protocol):
    """Is notified how trials and their scores end. `FailureLimit` documents each method."""

    def answered(self) -> None: ...
    def unanswered(self, error: AttemptError, *, counts: bool) -> None: ...
    def scored(self, scoring: str) -> None: ...
    def unscored(self, scoring: str, error: AttemptError) -> None: ...
    def count(self) -> None: ...


class FailureLimit:
    """Stops a run after too many failures, or if the first trials all fail in the same way."""

    def __init__(self, limits: Limits, status: RunStatus, *, stop: Callable[[], None]) -> None:
        self._limits = limits
        self._status = status
        self._stop = stop
        self._count = 0
        self._agents = SameFailures()
        self._scorers: dict[str, SameFailures] = {}  # by scoring

    @property
    def judged(self) -> bool:
        """Whether a scorer has scored an answer, and none has only failed so far."""
        return bool(self._scorers) and all(failures.over for failures in self._scorers.values())

    def answered(self) -> None:
        """A trial has an answer."""
        self._agents.over = True

    def unanswered(self, error: AttemptError, *, counts: bool) -> None:
        """A trial finally has no answer.

        `counts`: the agent's failure, and not a limit or a server that is down.
        """
        if not counts:
            self._status.failed += 1
            return

        self.count()
        self._stop_if_same(self._agents, error)

    def scored(self, scoring: str) -> None:
        """A scorer has scored an answer."""
        if (failures := self._scorers.get(scoring)) is not None:
            failures.over = True
        else:
            self._scorers[scoring] = SameFailures(over=True)

    def unscored(self, scoring: str, error: AttemptError) -> None:
        """A scorer has finally failed with an answer."""
        self._stop_if_same(self._scorers.setdefault(scoring, SameFailures()), error)

    def count(self) -> None:
        """Counts a trial without an answer, or without a score."""
        self._count += 1
        self._status.failed += 1
        few = self._count < SHARE_FROM_FAILURES and self._status.settled < SHARE_FROM_TRIALS
        if self._count >= self._limits.max_failures and not (self._limits.by_share and few):
            self._stop()

    def _stop_if_same(self, failures: SameFailures, error: AttemptError) -> None:
        if failures.failed(error) and not self._status.draining:
            if failures.count > 1:
                first = f"the first {failures.count} trials all failed in the same way: "
            else:
                first = ""

            message = f"stopped: {first}{error.message}"
            self._status.notice(message)
            self._stop()


def refuse_unpriced(experiment: Experiment, agents: Agents, scorers: Sequence[ScorerInUse]) -> None:
    """Raises BadOption if there is a budget in dollars and a model without a known price."""
    if experiment.execution.budget.usd is None:
        return
    plugins = [*agents.values(), *(used.scorer for used in scorers)]
    unpriced = dict.fromkeys(
        model for plugin in plugins for model in getattr(plugin, "unpriced", ())
    )
    if unpriced:
        models = ", ".join(f"'{model}'" for model in unpriced)
        example = (
            f'`prices: {{"{next(iter(unpriced))}": {{input: 2.5, output: 10}}}}` (dollars per '
            f"million tokens)"
        )
        message = f"cannot be kept, because no price is known for {models}; give it, e.g. {example}"
        raise BadOption("execution.budget.usd", message)
