"""Every number that any report shows, as frozen values that survive JSON unchanged.

An unknown number is None and comes with a `reason`; None is never 0.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from karat.analysis import means_columns, shapes
from karat.analysis.numbers import Estimate, Quantity
from karat.analysis.parts import PartHolder
from karat.analysis.people import Calibrated
from karat.errors import BadOption, did_you_mean
from karat.journal import ServerInfo
from karat.records import JsonObject

_MOST_STEPS = 100  # a table of all by all is made of them


class Ledger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the planned trials ended: the classes sum to `planned`."""

    planned: int
    scored: int
    agent: int
    infrastructure: int
    judge: int
    limit: int
    not_run: int
    decided: int = 0  # not run, because it was decided without them: `execution.stop`

    @property
    def failed(self) -> int:
        """Trials that ended with a fault or at a limit."""
        return self.agent + self.infrastructure + self.judge + self.limit


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars. `unknown` calls have no known price and are not in `known`."""

    known: float
    unknown: int


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent, including failed attempts and superseded answers."""

    agent: Money
    judge: Money


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of agent and judge together.

    None: not reported. `unknown`: calls that did not report them.
    """

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None
    unknown: int


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from question to answer, for successful attempts.

    The start of MCP servers and waits for a rate limit, or after a refusal, are left out. Other
    quantiles are declared where they are shown: `means_columns`.
    """

    median: float | None
    p95: float | None
    n: int


class ServerUse(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's use of one MCP server, in the answers that count and in failed attempts."""

    server: str
    calls: int
    errors: int
    trials: int  # answers with at least one call
    median_ms: float | None
    p95_ms: float | None
    # estimated tokens of its results, each read once: characters / 4
    result_tokens_estimate: int = 0


class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """How attempts to answer ended: `answered`, `failed` and `unfinished` sum to the total."""

    answered: int
    failed: int
    unfinished: int  # interrupted after a turn was answered
    of_trials_not_run: int  # from trials that have not ended; only counted for the whole run
    lost: Money  # spent on failed and unfinished attempts; `Account.cost` includes it


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the scores, of one condition or of the run."""

    ledger: Ledger
    cost: Cost
    tokens: Tokens
    latency: Latency
    attempts: Attempts
    failed_attempts: int  # of the agent
    retried: int  # answered trials that took more than one attempt
    cut: int  # answered trials with a reply that was cut at a limit of tokens
    servers: tuple[ServerUse, ...] = ()
    # by column: `means_columns`
    more: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET


class MetricInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A metric and its scorer."""

    key: str  # the metric's name; "scorer.name" if two scorers share the metric's name
    name: str
    scorer: str
    scoring: str
    low: float | None
    high: float | None
    direction: Literal["higher", "lower", "none"]
    kind: Literal["ordinal", "share", "number"]
    offline: bool  # scored by a rule, not by a model that understands
    judges: tuple[str, ...] = ()
    repeats: int = 1  # the maximum number of times a judge scored one answer
    threshold: float | None = None  # the minimum for an answer to count as reliable
    description: str = ""
    # False: about the scoring itself, conditions are not compared
    compared: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def percent(self) -> bool:
        """Whether its means are shares, which people read in percent."""
        return self.kind == "share" and self.low == 0 and self.high == 1

    @property
    def width(self) -> float:
        """The largest possible difference of two values; infinite without both ends."""
        if self.low is None or self.high is None:
            return math.inf
        return self.high - self.low

    @property
    def steps(self) -> list[float]:
        """The possible values of one answer; empty: any number of the scale."""
        if self.percent:
            return [0.0, 1.0]
        low = self.low
        high = self.high
        if self.kind != "ordinal" or low is None or high is None or low != int(low):
            return []
        if high - low >= _MOST_STEPS:
            return []
        return [float(step) for step in range(int(low), int(high) + 1)]


class JudgeMean(msgspec.Struct, frozen=True, kw_only=True):
    """One panel judge's scores, averaged over questions."""

    judge: str
    mean: float | None
    answers: int


class JudgePair(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of two panel judges on one metric, over the answers of all conditions."""

    metric: str  # MetricInfo.key
    a: str
    b: str
    exact: float | None  # share of the answers that both put on the same step; None without any
    within_one: float | None  # … at most one step apart
    answers: int  # that both scored
    ac2: Estimate | msgspec.UnsetType = msgspec.UNSET  # Gwet's, quadratic weights, over questions


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over some answers; None without any."""

    mean: float | None
    answers: int


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """The share of questions whose every repetition reached the threshold (pass^k).

    Questions with an unscored repetition are left out and counted: a fault is not a wrong answer.
    """

    value: float | None
    low: float | None
    high: float | None
    k: int
    threshold: float | None
    questions: int  # with all k repetitions scored
    incomplete: int
    level: float
    method: str
    reason: str | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One metric under one condition."""

    condition: str
    metric: str  # MetricInfo.key
    mean: Estimate  # over the questions' means
    within_sd: Quantity  # pooled over questions: the agent's noise
    between_sd: Quantity  # of the questions' means
    judge_sd: Quantity  # between repeats of one judge on one answer
    top_share: Quantity  # share of answers with the best value of the scale
    distribution: dict[str, int] | None  # ordinal and share metrics: value → answers
    reliability: Reliability
    n_questions: int
    n_answers: int
    n_missing: int  # planned trials without this number
    worst: Quantity  # the mean if every missing number were the scale's worst
    best: Quantity  # … the best
    first_attempt: Group  # answers given at the first attempt
    retried: Group  # answers that took several attempts; shows whether retries change the result
    by_judge: tuple[JudgeMean, ...] = ()
    offline: bool = False
    # of its questions; None: they are independent, or nothing is declared
    clusters: int | None = None
    # the variance of the mean, relative to that of independent questions
    design_effect: float | None = None
    more: dict[str, Quantity] | msgspec.UnsetType = msgspec.UNSET  # by column: `means_columns`


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One way to settle a verdict."""

    what: str  # "question", "repetition" or "judge repeat"
    more: int  # than the run has
    cost: float | None  # of these, in dollars


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the verdict of a comparison would come out the same again; see
    `karat.stats.same_verdict`.
    """

    shown: bool  # the verdict: a difference is shown, after adjusting for multiple comparisons
    new_questions: float | None
    same_questions: float | None  # None: each question was answered once
    # for 80 % power if the difference is as large as it looks, the cheapest first
    settle: tuple[Step, ...] = ()
    reason: str | None = None  # why one is None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Condition `b` minus condition `a` on one metric, over the questions answered under both."""

    metric: str
    a: str
    b: str
    estimate: Estimate
    p: float | None
    # Holm, over every p-value of the summary; first times `choice_factor` if the pair was chosen
    # for its best condition, and `few_clusters_factor`
    p_adjusted: float | None
    effect: float | None  # d_z: mean difference / sd of the differences
    n_pairs: int
    lost_a: int  # questions scored only under b
    lost_b: int  # questions scored only under a
    lost_both: int  # questions scored under neither
    winner: str | None  # None: no difference shown, or no direction is better
    verdict: str
    offline: bool = False
    reason: str | None = None  # why there is no p-value
    again: Repeat | None = None
    # if every missing value were the lowest under b and the highest under a; None: no range
    least: float | None = None
    most: float | None = None  # … the reverse
    loss_a: float = 0.0  # share of a's planned trials that have no value because of a failure
    loss_b: float = 0.0
    # of the compared questions; None: they are independent, or nothing is declared
    clusters: int | None = None
    df: float | None = None  # of the t test
    # the variance, relative to that of independent questions; None: no clusters
    design_effect: float | None = None


class StopLook(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of a run that may stop early, as of the look that decided it, or else as of
    now.
    """

    a: str
    b: str
    # of b; None: not decided
    verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"] | None
    questions: int  # the first so many of the order, at this look
    n: int  # questions among them that were answered under both
    estimate: Estimate  # b - a; the interval is valid at all looks at once
    p: float  # the smallest sequential p-value of the looks
    p_adjusted: float  # Holm, over these comparisons
    clusters: int | None = None  # of the `questions`; None: looks count questions


class Stopping(msgspec.Struct, frozen=True, kw_only=True):
    """The looks of a run that may stop early: `execution.stop`."""

    metric: str
    scorer: str
    scoring: str
    alpha: float
    margin: float | None
    futility: bool
    horizon: int  # questions of the plan
    comparisons: tuple[StopLook, ...]
    out: tuple[str, ...]  # conditions that are no longer asked
    clusters: int | None = None  # of the plan: looks count these, each as the mean of its questions

    @property
    def measured(self) -> tuple[str, str, str]:
        """The metric, its scorer and the scoring."""
        return self.metric, self.scorer, self.scoring


class LowCell(msgspec.Struct, frozen=True, kw_only=True):
    """One question under one condition, on the first metric."""

    condition: str
    mean: float | None
    sd: float | None  # n−1; None for one repetition
    n: int
    reason: str | None = None  # the scorer's reason for the lowest repetition
    answer: str | None = None  # excerpt of that repetition's answer
    claims: tuple[str, ...] = ()  # unverified, each once


class LowSample(msgspec.Struct, frozen=True, kw_only=True):
    """A question with low scores."""

    sample: str
    position: int
    question: str  # excerpt
    metric: str
    mean: float  # over the conditions
    gap: float | None  # between the best and the worst condition; None for one condition
    cells: tuple[LowCell, ...]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Which comparisons of conditions are shown; Holm's adjustment is over their p-values."""

    # baseline: each condition against the baseline, and against the best
    pairs: Literal["baseline", "all"]
    baseline: str
    tests: int  # p-values adjusted together
    left_out: int  # comparisons of two conditions on a metric, not shown


class FailureKind(msgspec.Struct, frozen=True, kw_only=True):
    """A group of similar failures."""

    cls: str = msgspec.field(name="class")
    stage: str
    kind: str
    error: str | None = None  # of a crash: the exception's class
    scorer: str | None = None  # of the stage "score"; None: not known
    trials: int  # that ended this way
    attempts: int  # that failed this way, whether or not a later one succeeded
    # failed MCP calls (`kind`: the server); the trials continued. None: no such failure
    calls: int | None = None
    # the newest message of a trial's final failure; if all were followed by a success, the newest
    # of all
    example: str


class ServerProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition with MCP servers whose answers do not show what the servers do.

    No call was made (`calls` is 0), or half of the calls or more failed. If there are no answers
    (`answers` is 0), its trials ended with infrastructure faults, such as a server that could not
    be started.
    """

    condition: str
    answers: int
    calls: int  # in the answers and in failed attempts
    errors: int  # calls that failed
    reported: bool = True  # False: the agent may have made calls that it does not report


class ScoreByUse(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the answers that used something, and over those that did not.

    `Estimate.n` counts questions.
    """

    metric: str  # MetricInfo.key
    used: Estimate
    answers_used: int  # with a score
    not_used: Estimate
    answers_not_used: int


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a condition offers, and how many answers used it (with a successful call).

    None: not known, because no answer reports a call and the agent does not claim to report every
    call.
    """

    condition: str
    kind: Literal["server", "skill", "plugin"]
    name: str
    answers: int
    used: int | None
    only_failed: int | None  # answers whose calls of it all failed: not in `used`
    share: Estimate  # used / answers
    scores: tuple[ScoreByUse, ...]  # for each compared metric; empty if `used` is None


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One tool under one condition, for the answers with tools that a scorer expects.

    Each tool counts once per answer, however often it is called.
    """

    scorer: str
    condition: str
    tool: str
    expected: int  # answers that should call it
    called: int  # answers that do
    matched: int  # both
    precision: Estimate  # matched / called
    recall: Estimate  # matched / expected


class ToolConfusion(msgspec.Struct, frozen=True, kw_only=True):
    """Answers that lack an expected tool and called an unexpected one."""

    scorer: str
    condition: str
    expected: str
    called: str | None  # None: no unexpected tool
    answers: int


class SampleColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric under one condition, question by question, in the order of `SampleTable.ids`."""

    condition: str
    metric: str
    mean: list[float | None]
    sd: list[float | None]  # n−1; None for fewer than two repetitions
    n: list[int]
    turns: list[float] | None = None  # over conversations: the number of turns of each mean
    not_needed: list[int] | None = None  # repetitions not run because it was decided; None: none
    # repetitions without a value, by the class of the failure that ended them
    lost: dict[str, list[int]] = {}
    # the least and the greatest value, for a metric without a range
    ends: tuple[float, float] | None = None


class SampleTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Means per question, condition and metric."""

    ids: list[str]
    positions: list[int]
    digests: list[str]
    columns: tuple[SampleColumn, ...]
    weights: list[float] | None = None  # over conversations: how many each represents
    # what each question shares with others; None: nothing is declared
    clusters: list[str | None] | None = None


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what was run."""

    dataset_kind: str
    dataset: str  # path
    sha256: str
    samples_in_file: int
    agent: str
    model: str | None
    agents: dict[str, str]  # condition → agent digest
    conditions: dict[str, str]  # condition → digest
    prompts: dict[str, str]  # condition → sha256 of the system prompt
    judge: str | None  # models of the first scorer that uses one
    scorers: dict[str, str]  # name → scoring digest, as shown
    rubric: str | None
    rubric_digest: str | None
    servers: tuple[ServerInfo, ...]
    condition_servers: dict[str, tuple[str, ...]]
    versions: dict[str, str]
    host: str
    source: dict[str, str]
    settings: JsonObject  # dotted key → value, as resolved
    # what the first row of the dataset was read as: role → text and its columns
    first_row: dict[str, str] = {}
    # scorer → its models, parameters, digests of rubric and prompt, prices
    judges: dict[str, JsonObject] = {}


class Summary(PartHolder, frozen=True, kw_only=True):
    """A run, in numbers. Made by `summarize`; reports only format it."""

    format: int
    run: str
    name: str
    version: str
    created: str
    kind: str
    status: str
    level: float
    headline: str  # the answer in one sentence, with its uncertainty
    conditions: tuple[str, ...]  # in the order of the file
    samples: int
    repetitions: int
    metrics: tuple[MetricInfo, ...]
    accounts: dict[str, Account]  # by condition
    total: Account
    results: tuple[Result, ...]  # metrics in order, conditions in the order of the file within
    differences: tuple[Difference, ...]
    lowest: tuple[LowSample, ...]
    failures: tuple[FailureKind, ...]
    duplicates: int  # answers after the one that counts
    warnings: tuple[str, ...]
    provenance: Provenance
    table_of_samples: SampleTable | None = None  # None: nothing was scored
    family: Family | None = None  # None: fewer than two conditions, or nothing was scored
    # conditions whose MCP calls failed, or that made none
    server_problems: tuple[ServerProblem, ...] = ()
    panel: tuple[JudgePair, ...] = ()  # every pair of panel judges, metric by metric
    calibrated: Calibrated | msgspec.UnsetType = msgspec.UNSET  # by people's labels, if requested
    stopping: Stopping | msgspec.UnsetType = msgspec.UNSET  # unset: every question is asked
    contexts: tuple[ContextUse, ...] = ()  # conditions in the order of the file
    tools: tuple[ToolUse, ...] = ()  # empty: no scorer expects certain tools, or no calls are known
    confusions: tuple[ToolConfusion, ...] = ()  # the most frequent first, at most 100 per scorer
    notices: tuple[str, ...] = ()  # what to know before reading the result; shown above it

    @property
    def offline(self) -> bool:
        """Whether any score was given by a rule."""
        return any(metric.offline for metric in self.metrics)

    def result(self, condition: str, metric: str) -> Result | None:
        """One metric under one condition; None if it was not scored.

        Raises BadOption for a condition or a metric that the run does not have.
        """
        swapped = (
            " (the condition comes first, then the metric)" if metric in self.conditions else ""
        )
        check_condition(self, condition, hint=swapped)
        metric_of(self, metric, option="metric")
        return next(
            (row for row in self.results if row.condition == condition and row.metric == metric),
            None,
        )

    def table(self) -> list[JsonObject]:
        """One row per condition and metric, raw numbers."""
        return means_columns.rows(self)

    def to_frame(self) -> Any:
        """`table()` as a pandas (or polars) DataFrame. Raises BadOption without either."""
        return shapes.frame(self.table())

    def __str__(self) -> str:
        return shapes.text(self)

    def _repr_html_(self) -> str:
        from karat.document.render.notebook import summary_html  # it imports this module

        return summary_html(self)


def check_condition(
    summary: Summary,
    name: str,
    *,
    option: str = "condition",
    hint: str = "",
) -> None:
    """Raises BadOption for a condition that the run does not have."""
    if name not in summary.conditions:
        hint = hint or did_you_mean(name, summary.conditions)
        raise BadOption(option, f"run {summary.run} has no condition '{name}'{hint}")


def metric_of(summary: Summary, name: str, *, option: str = "--metric") -> MetricInfo:
    """The metric with this key. Raises BadOption if the run has none."""
    metrics = {info.key: info for info in summary.metrics}
    if name not in metrics:
        raise BadOption(
            option, f"run {summary.run} has no metric '{name}'{did_you_mean(name, list(metrics))}"
        )

    return metrics[name]
