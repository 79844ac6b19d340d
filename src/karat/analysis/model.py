"""Every number that any report shows, as frozen values that survive JSON unchanged.

A number that cannot be known is None and has a `reason` beside it; None is never 0.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from karat import plugins
from karat.analysis.numbers import Estimate, Quantity
from karat.analysis.parts import PartHolder
from karat.analysis.people import Calibrated
from karat.errors import BadOption, did_you_mean
from karat.journal import ServerInfo

__all__ = [
    "Account",
    "Attempts",
    "ContextUse",
    "Cost",
    "Difference",
    "Estimate",
    "FailureKind",
    "Family",
    "Group",
    "JudgeMean",
    "JudgePair",
    "Latency",
    "Ledger",
    "LowCell",
    "LowSample",
    "MetricInfo",
    "Money",
    "Provenance",
    "Quantity",
    "Reliability",
    "Result",
    "SampleColumn",
    "SampleTable",
    "ScoreByUse",
    "ServerProblem",
    "ServerUse",
    "StopLook",
    "Stopping",
    "Summary",
    "Tokens",
    "ToolConfusion",
    "ToolUse",
]


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
        """Trials that ended in a fault or at a limit."""
        return self.agent + self.infrastructure + self.judge + self.limit


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars. `unknown` calls have no known price and are not in `known`."""

    known: float
    unknown: int


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent, failed attempts and answers that were superseded included."""

    agent: Money
    judge: Money


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of agent and judge together. None: not reported. `unknown`: calls that did not report them."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None
    unknown: int


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from question to answer, of the attempts that succeeded."""

    median: float | None
    p95: float | None
    n: int


class ServerUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent did with one MCP server, in the answers that count and in failed attempts."""

    server: str
    calls: int
    errors: int
    trials: int  # answers with at least one call
    median_ms: float | None
    p95_ms: float | None
    result_tokens_estimate: int = 0  # an estimate of what its results come to, each read once: characters / 4


class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """How attempts to answer ended: `answered`, `failed` and `unfinished` sum to all that were made."""

    answered: int
    failed: int
    unfinished: int  # broken off after a turn was answered
    of_trials_not_run: int  # those of trials that have not ended; counted for the whole run only
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
    servers: tuple[ServerUse, ...] = ()


class MetricInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, by whom."""

    key: str  # the metric's name; "scorer.name" where two scorers measure a metric of that name
    name: str
    scorer: str
    scoring: str
    low: float | None
    high: float | None
    direction: Literal["higher", "lower", "none"]
    kind: Literal["ordinal", "share", "number"]
    offline: bool  # scored by a rule, not by a model that understands
    judges: tuple[str, ...] = ()
    repeats: int = 1  # the most times that one judge scored one answer
    threshold: float | None = None  # what an answer must reach to count as reliable
    description: str = ""
    compared: bool | msgspec.UnsetType = msgspec.UNSET  # False: about the scoring itself, conditions are not compared

    @property
    def percent(self) -> bool:
        """Whether its means are shares, which people read in percent."""
        return self.kind == "share" and self.low == 0 and self.high == 1


class JudgeMean(msgspec.Struct, frozen=True, kw_only=True):
    """What one judge of a panel gave, averaged over questions."""

    judge: str
    mean: float | None
    answers: int


class JudgePair(msgspec.Struct, frozen=True, kw_only=True):
    """How far two judges of a panel agree on one metric, over the answers of all conditions."""

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

    Questions with a repetition that has no score are left out and counted: a fault is no wrong answer.
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
    within_sd: Quantity  # pooled over questions: the agent's unreliability
    between_sd: Quantity  # of the questions' means
    judge_sd: Quantity  # between repeats of one judge on one answer
    top_share: Quantity  # share of answers with the best value of the scale
    distribution: dict[str, int] | None  # ordinal and share metrics: value → answers
    reliability: Reliability
    n_questions: int
    n_answers: int
    n_missing: int  # planned trials without this number
    worst: Quantity  # the mean if every missing number were the worst of the scale
    best: Quantity  # … the best
    first_attempt: Group  # answers that came at the first attempt
    retried: Group  # answers that took several: do retries change the result?
    by_judge: tuple[JudgeMean, ...] = ()
    offline: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One way to settle a verdict."""

    what: str  # "question", "repetition" or "judge repeat"
    more: int  # than the run has
    cost: float | None  # of these, in dollars


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the verdict of a comparison would come out the same again; see `karat.stats.same_verdict`."""

    shown: bool  # the verdict: a difference is shown, after the adjustment for several comparisons
    new_questions: float | None
    same_questions: float | None  # None: each question was answered once
    settle: tuple[Step, ...] = ()  # for 80 % power if the difference is as large as it looks, the cheapest first
    reason: str | None = None  # why one is None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Condition `b` minus condition `a` on one metric, over the questions answered under both."""

    metric: str
    a: str
    b: str
    estimate: Estimate
    p: float | None
    p_adjusted: float | None  # Holm, over every p-value of the summary
    effect: float | None  # d_z: mean difference / sd of the differences
    n_pairs: int
    lost_a: int  # questions scored under b alone
    lost_b: int  # questions scored under a alone
    lost_both: int  # questions scored under neither
    winner: str | None  # None: no difference shown, or no direction is better
    verdict: str
    offline: bool = False
    reason: str | None = None  # why there is no p-value
    again: Repeat | None = None


class StopLook(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of a run that may stop early, as of the look that decided it, else as of now."""

    a: str
    b: str
    verdict: Literal["better", "worse", "higher", "lower", "equivalent", "futile"] | None  # of b; None: not decided
    questions: int  # of the order, that the look is at
    n: int  # of them: answered under both
    estimate: Estimate  # b - a; the interval holds at every look at once
    p: float  # the least sequential p-value of the looks
    p_adjusted: float  # Holm, over these comparisons


class Stopping(msgspec.Struct, frozen=True, kw_only=True):
    """What the looks of a run show that may stop early: `execution.stop`."""

    metric: str
    scorer: str
    scoring: str
    alpha: float
    margin: float | None
    futility: bool
    horizon: int  # questions of the plan
    comparisons: tuple[StopLook, ...]
    out: tuple[str, ...]  # conditions that are not asked any more

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
    reason: str | None = None  # the scorer's words on the lowest repetition
    answer: str | None = None  # excerpt of that repetition's answer
    claims: tuple[str, ...] = ()  # unverified, each once


class LowSample(msgspec.Struct, frozen=True, kw_only=True):
    """A question that went badly."""

    sample: str
    position: int
    question: str  # excerpt
    metric: str
    mean: float  # over the conditions
    gap: float | None  # between the best and the worst condition; None for one condition
    cells: tuple[LowCell, ...]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Which comparisons of conditions are shown; Holm's adjustment is over their p-values."""

    pairs: Literal["baseline", "all"]  # baseline: each condition against the baseline, and against the best
    baseline: str
    tests: int  # p-values adjusted together
    left_out: int  # comparisons of two conditions on a metric that are not shown


class FailureKind(msgspec.Struct, frozen=True, kw_only=True):
    """Failures that are alike."""

    cls: str = msgspec.field(name="class")
    stage: str
    kind: str
    error: str | None = None  # of a crash: the exception's class
    scorer: str | None = None  # of the stage "score"; None: not known
    trials: int  # that ended so
    attempts: int  # that failed so, later ones that succeeded or not
    calls: int | None = None  # MCP calls that failed so (`kind`: the server); the trials went on. None: no such failure
    example: str  # the newest message among those that stand; where all were followed by a success, the newest of all


class ServerProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition with MCP servers whose answers do not show what the servers do.

    No call was made (`calls` is 0), or half of the calls or more failed. Without answers either (`answers` is 0), its
    trials ended with faults of the infrastructure, such as a server that could not be started.
    """

    condition: str
    answers: int
    calls: int  # in the answers and in failed attempts
    errors: int  # calls that failed
    reported: bool = True  # False: the agent may have made calls that it does not report


class ScoreByUse(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the answers that used something and over those that did not. `Estimate.n` counts questions."""

    metric: str  # MetricInfo.key
    used: Estimate
    answers_used: int  # with a score
    not_used: Estimate
    answers_not_used: int


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a condition offers, and how many of the answers used it: a call of it succeeded.

    None: not known, because no answer reports a call and the agent does not say that it reports every call.
    """

    condition: str
    kind: Literal["server", "skill", "plugin"]
    name: str
    answers: int
    used: int | None
    only_failed: int | None  # answers that called it and whose every such call failed: not among `used`
    share: Estimate  # used / answers
    scores: tuple[ScoreByUse, ...]  # of each metric on which conditions are compared; empty where `used` is None


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One tool under one condition, of the answers for which a scorer says which tools it expects.

    A tool is called in an answer or not; how often does not matter.
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
    """Answers that lack an expected tool and called one that they should not have."""

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
    turns: list[float] | None = None  # over conversations: how many turns each mean is over
    not_needed: list[int] | None = None  # repetitions that were not run because it was decided; None: none


class SampleTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Means per question, condition and metric."""

    ids: list[str]
    positions: list[int]
    digests: list[str]
    columns: tuple[SampleColumn, ...]
    weights: list[float] | None = None  # over conversations: how many each stands for


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What was run, exactly."""

    dataset_kind: str
    dataset: str  # path
    sha256: str
    samples_in_file: int
    agent: str
    model: str | None
    agents: dict[str, str]  # condition → agent digest
    conditions: dict[str, str]  # condition → digest
    prompts: dict[str, str]  # condition → sha256 of the system prompt
    judge: str | None  # models of the first scorer that asks one
    scorers: dict[str, str]  # name → scoring digest, as shown
    rubric: str | None
    rubric_digest: str | None
    servers: tuple[ServerInfo, ...]
    condition_servers: dict[str, tuple[str, ...]]
    versions: dict[str, str]
    host: str
    source: dict[str, str]
    settings: dict[str, Any]  # dotted key → value, as resolved
    judges: dict[str, dict[str, Any]] = {}  # scorer → its models, parameters, digests of rubric and prompt, prices


class Summary(PartHolder, frozen=True, kw_only=True):
    """A run, in numbers. Made by `summarize`; every report only gives it a shape."""

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
    duplicates: int  # answers that came after the one that counts
    warnings: tuple[str, ...]
    provenance: Provenance
    table_of_samples: SampleTable | None = None  # None: nothing was scored
    family: Family | None = None  # None: fewer than two conditions, or nothing was scored
    server_problems: tuple[ServerProblem, ...] = ()  # conditions whose MCP calls failed, or that made none
    panel: tuple[JudgePair, ...] = ()  # every two judges of a panel, metric by metric
    calibrated: Calibrated | msgspec.UnsetType = msgspec.UNSET  # by people's labels, where that was asked for
    stopping: Stopping | msgspec.UnsetType = msgspec.UNSET  # unset: every question is asked
    contexts: tuple[ContextUse, ...] = ()  # conditions in the order of the file
    tools: tuple[ToolUse, ...] = ()  # empty: no scorer says which tools it expects, or no calls are known
    confusions: tuple[ToolConfusion, ...] = ()  # the most frequent first, at most 100 of each scorer

    @property
    def offline(self) -> bool:
        """Whether any score was given by a rule."""
        return any(metric.offline for metric in self.metrics)

    def result(self, condition: str, metric: str) -> Result | None:
        """One metric under one condition; None where it was not scored.

        Raises BadOption for a condition or a metric that the run does not have.
        """
        if condition not in self.conditions:
            swapped = " (the condition comes first, then the metric)" if metric in self.conditions else ""
            hint = swapped or did_you_mean(condition, self.conditions)
            raise BadOption("condition", f"run {self.run} has no condition '{condition}'{hint}")
        if all(one.key != metric for one in self.metrics):
            hint = did_you_mean(metric, [one.key for one in self.metrics])
            raise BadOption("metric", f"run {self.run} has no metric '{metric}'{hint}")
        return next((one for one in self.results if one.condition == condition and one.metric == metric), None)

    def table(self) -> list[dict[str, Any]]:
        """One row per condition and metric, raw numbers."""
        from karat.analysis.shapes import rows

        return rows(self)

    def to_frame(self) -> Any:
        """`table()` as a pandas (or polars) DataFrame. Raises BadOption without either."""
        from karat.analysis.shapes import frame

        return frame(self.table())

    def __str__(self) -> str:
        from karat.analysis.shapes import text

        return text(self)

    def _repr_html_(self) -> str:
        html: str = plugins.load("karat.document.render.notebook:summary_html")(self)  # it imports this module
        return html
