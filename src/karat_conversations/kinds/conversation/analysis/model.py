"""The numbers of a conversation run, as frozen values: `Summary.conversation`.

Every rate is over declared turns (all of them, unless its field says over which): a turn that was
never reached is wrong, and counted. Intervals are clustered by conversation. None is "not
known" and comes with a reason where it could surprise; it is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from karat import formats
from karat.analysis.format_metric import share_estimate
from karat.analysis.model import MetricInfo
from karat.analysis.numbers import Estimate
from karat.analysis.parts import ConditionScore, Part
from karat.records import JsonObject

Counts = dict[str, int]
"""Kind → how many."""


Shares = dict[str, float | None]
"""What it is of → a share; None: not known."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share of turns (or of conversations), or a mean over turns, with its interval clustered by
    conversation.

    `estimate.n` counts conversations, `n` the units of the rate. Design effect: the variance
    relative to that of independent turns; its root is the relative width of the interval.
    """

    name: str  # as in `statistics.json`: numerical_accuracy, …
    metric: str  # as in the score rows: numerical, …
    estimate: Estimate
    n: int  # turns; of conversation_accuracy: conversations × repetitions
    total: float | None  # the unweighted sum: the right ones, if it is a share; None without any
    naive_se: float | None  # as if turns were independent
    design_effect: float | None  # estimate.se² / naive_se²; None if either is 0 or unknown
    nulls: Shares = {}  # trivial answerer → its rate by the same rule on the same turns


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One of the matches, ordered from the strictest to the most lenient."""

    metric: str  # exact, numerical, declared, unit_agnostic, sign_agnostic, scale_and_sign
    forgives: str  # a description of what it ignores
    rate: float | None
    right: int  # turns
    # turns that are right here and not numerical; negative: numerical, and not right here
    forgiven: int
    n: int  # turns


class Stratum(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy, by the match that makes a turn right, of some of the turns."""

    # the zero-based turn, the number of golden operations, or the feature's value, as text
    key: str
    estimate: Estimate
    n: int  # turns
    right: int  # turns, without weights
    golden_operations: float | None  # of the golden program, mean over the turns that have one
    # attempted by the agent's program, mean over the turns with a readable one
    agent_operations: float | None = None


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy, by the match that makes a turn right, by a feature of the dataset."""

    name: str
    strata: tuple[Stratum, ...]  # false before true; numbers and texts in order
    # Pearson's, over turns, of the feature and being right; None: one of them is constant
    correlation: float | None
    difference: Estimate | None = None  # with it minus without it; None if it is not a yes or no


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One failed turn, in short."""

    trial: str
    conversation: str
    repetition: int
    turn: int  # from 0
    question: str  # excerpts, all four
    expected: str | None
    actual: str | None
    evidence: str


class Diagnosed(msgspec.Struct, frozen=True, kw_only=True):
    """Failed turns with one diagnosis."""

    label: str
    turns: int
    share: float | None  # of all failed but answered turns
    examples: tuple[Example, ...] = ()


class Propagation(msgspec.Struct, frozen=True, kw_only=True):
    """How errors propagate from turn to turn, by the match that makes a turn right."""

    first_wrong: Counts  # zero-based turn → conversations whose first wrong turn it is
    never_wrong: int  # conversations
    after_right: Rate  # accuracy of turns whose turn before was right
    after_wrong: Rate
    cascades: int  # wrong turns right after a wrong one
    # turns with this diagnosis: proved to be right except for an earlier wrong answer
    propagated: int
    # accuracy if every turn that is proved so counted as right, whatever its diagnosis
    had_earlier_been_right: Rate


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of right answers: everything spent on all conversations, divided by the right ones.

    None: none.
    """

    right_conversations: int
    right_turns: int
    tokens: int | None  # in and out, of the agent, failed attempts included; None: not reported
    tokens_unknown: int  # calls that did not report them
    dollars: float | None  # None: no price is known
    dollars_unknown: int  # calls without a known price, not in `dollars`
    tokens_per_right_conversation: float | None  # `cost_per_correct_answer`
    tokens_per_right_turn: float | None
    dollars_per_right_conversation: float | None
    dollars_per_right_turn: float | None


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """One turn's time and tokens, over the answered turns that reported them. None: no turn did."""

    milliseconds_mean: float | None
    milliseconds_median: float | None
    milliseconds_p95: float | None
    tokens_mean: float | None  # in and out
    prompt_tokens_mean: float | None
    completion_tokens_mean: float | None
    timed: int  # turns with a time
    metered: int  # turns with tokens


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracies without the turns whose golden data contradicts itself."""

    turns: int  # quarantined, of the turns that count
    reasons: Counts  # reason → turns
    accuracies: tuple[Rate, ...]  # in the order of `ConversationResult.accuracies`
    conversation_accuracy: Rate  # over the conversations that have turns left


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts in the file itself compared with ours."""

    n: int  # turns with a verdict of the file
    right: int  # by the file
    agreement: Shares  # our metric → share of these turns on which both agree
    only_theirs: Counts  # our metric → turns right only according to the file
    only_ours: Counts


class ConversationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One condition."""

    condition: str
    conversations: int  # × repetitions: those that ended, with an answer or without
    turns: int  # declared in them
    unreached: int  # of `turns`: without an answer, and counted as wrong
    # turns of conversations that have not started or are not scored; they do not count
    not_run: int
    accuracies: tuple[Rate, ...]  # numerical first
    conversation_accuracy: Rate  # every turn right
    # avg_logic_recall, …, then the same as step_…, over the turns where it exists
    reasoning: tuple[Rate, ...]
    ladder: tuple[Rung, ...]
    by_turn: tuple[Stratum, ...]
    by_operations: tuple[Stratum, ...]
    features: tuple[Feature, ...]
    diagnoses: tuple[Diagnosed, ...]  # most frequent first
    unreadable: Counts  # expected, actual, both → turns that could not be read on that side
    propagation: Propagation
    cost: Cost
    pace: Pace
    failures: Counts  # "class: kind" → conversations without an answer
    extraction: dict[
        str, int
    ] = {}  # final, json, last_number, regex, whole, reply (given apart), none → turns answered so
    quarantine: Quarantine | None = None  # None: no quarantine file was given
    # right (a golden sentinel), over_refusal, unsupported (answered all the same)
    abstentions: Counts = {}
    verdicts: Verdicts | None = None  # None: the file has none
    # turns whose predicted program cannot be read: they are in no rate of `reasoning`
    unreadable_programs: int = 0

    @property
    def rates(self) -> tuple[Rate, ...]:
        return (*self.accuracies, self.conversation_accuracy, *self.reasoning)

    def rate(self, name: str) -> Rate | None:
        """By its name or its metric; None if there is none."""
        for rate in self.rates:
            if name in (rate.name, rate.metric):
                return rate

        return None


class NullAnswerer(msgspec.Struct, frozen=True, kw_only=True):
    """A trivial answerer without knowledge: its score shows how much a rule gives away for free."""

    name: str  # as in `Rate.nulls`
    meaning: str


class ConversationSummary(Part, frozen=True, kw_only=True):
    """The part of `Summary` for a run over conversations."""

    scorer: str
    scoring: str  # digest
    rules: tuple[str, ...]  # versions of the rules in the score rows: one, unless a run was merged
    conversations: int  # planned
    turns: int  # their declared turns (one repetition) whose golden answer is a number, yes or no
    texts: int = 0  # further turns, whose golden answer is text: not scored as numbers
    # the match that counts as right; for yes or no every match requires the same word
    right: str = "numerical"
    tested: tuple[str, ...] = ()  # the metrics that two conditions are tested on
    # whether samples represent unequal numbers of others, and rates are weighted accordingly
    weighted: bool
    level: float
    nulls: tuple[NullAnswerer, ...]
    conditions: tuple[ConversationResult, ...]  # in the order of the file

    def unreadable_programs(self) -> str:
        """A sentence with each condition's number of unreadable predicted programs; empty if there
        are none.
        """
        counts = []
        for result in self.conditions:
            if result.unreadable_programs:
                rate = result.rate("logic_recall")
                given = result.unreadable_programs + (0 if rate is None else rate.n)
                if len(self.conditions) > 1:
                    name = f" ({result.condition})"
                else:
                    name = ""

                counts.append(f"{result.unreadable_programs} of {given}{name}")

        if counts:
            return f"Programs that cannot be read, so not available here: {', '.join(counts)}."
        return ""

    def of(self, condition: str) -> ConversationResult | None:
        """One condition; None if there is none."""
        return next((result for result in self.conditions if result.condition == condition), None)

    @property
    def rule(self) -> str:
        return self.right

    def read_by(self) -> Mapping[str, object]:
        return {"right": self.right}

    def is_tested(self, metric: MetricInfo) -> bool:
        return metric.scorer != self.scorer or metric.name in self.tested

    def condition_scores(self) -> Iterator[ConditionScore]:
        for condition in self.conditions:
            rate = condition.conversation_accuracy
            yield ConditionScore(
                condition=condition.condition,
                key=f"{self.scorer}.{rate.name}",
                meaning="conversations with every turn right",
                estimate=rate.estimate,
                low=0.0,
                high=1.0,
                unit="conversations",
                scorer=self.scorer,
                scoring=self.scoring,
                kind="share",
                details={"conversations": str(condition.conversations)},
            )

    def show(self, tree: JsonObject) -> None:
        for condition in tree["conditions"]:
            for rate in (
                *condition["accuracies"],
                condition["conversation_accuracy"],
                *condition["reasoning"],
            ):
                estimate = rate["estimate"]
                rate["shown"] = {
                    name: formats.share(estimate[name]) for name in ("value", "low", "high")
                }
                rate["shown"]["design_effect"] = formats.number(rate["design_effect"])

    def tables(self) -> dict[str, tuple[tuple[str, ...], Iterable[JsonObject]]]:
        rows = []
        for condition in self.conditions:
            for rate in condition.rates:
                rows.append(
                    {
                        "condition": condition.condition,
                        **msgspec.structs.asdict(rate.estimate),
                        **msgspec.structs.asdict(rate),
                        "conversations": rate.estimate.n,
                        **rate.nulls,
                    }
                )

        return {"rates": (_RATES, rows)}

    def headline(self) -> str:
        """The answer of a run under one condition; empty for several."""
        if len(self.conditions) != 1:
            return ""
        only = self.conditions[0]
        right = only.rate("right")
        other = only.rate("numerical" if self.right == "declared" else "declared")
        if right is None or other is None or right.estimate.value is None:
            return ""
        estimate = right.estimate
        shown = share_estimate(estimate.value, estimate.low, estimate.high)
        size = (
            f"{formats.plural(right.n, 'turn')} in "
            f"{formats.plural(self.conversations, 'conversation')}"
        )
        if only.conversations > self.conversations:
            size += ", each asked several times,"
        return (
            f"{only.condition}: {shown} of {size} {right_in_words(self.right)}, "
            f"{formats.share(other.estimate.value)} {_RIGHT[other.metric].removeprefix('right ')} "
            f"(offline scores)"
        )

    def extraction(self) -> str:
        """How the answers were found in the agents' replies, as one sentence; "" if unknown."""
        turns: Counts = {}
        for condition in self.conditions:
            for how, count in condition.extraction.items():
                turns[how] = turns.get(how, 0) + count

        listed = sorted(turns.items(), key=lambda item: -item[1])
        counts = (f"{formats.count(count)} {_FOUND.get(how, f'by {how}')}" for how, count in listed)
        if turns:
            return f"Answers: {', '.join(counts)}."
        return ""

    def warning_lines(self) -> list[str]:
        """Turns that count as wrong without an answer, and numbers that are not comparable."""
        warnings = []
        if self.texts:
            turns = formats.plural(self.texts, "turn")
            warnings.append(
                f"{turns} with a golden text, not scored as numbers: judge them, e.g. with "
                f"`overlap`; their conversation counts as right only if the answer is the golden "
                f"text"
            )

        for result in self.conditions:
            if result.unreached:
                counts = (
                    f"{formats.count(result.unreached)} of {formats.plural(result.turns, 'turn')}"
                )
                why = ", ".join(
                    f"{kind} {formats.count(count)}" for kind, count in result.failures.items()
                )
                warnings.append(
                    f"{result.condition}: {counts} never reached, so "
                    f"wrong{f' ({why})' if why else ''}"
                )

        if len(self.rules) > 1:
            warnings.append(
                f"scores by several versions of the rules ({', '.join(self.rules)}): score "
                f"the run again"
            )

        return warnings


_RIGHT = {
    "numerical": "numerically right",
    "soft": "right within 1 %",
    "unit_agnostic": "right up to a factor 100",
    "sign_agnostic": "right up to the sign",
    "general": "right as number, word or percentage",
    "exact": "right to five decimals",
    "declared": "right in the unit the agent declared",
}


def right_in_words(rule: str) -> str:
    """The description of a turn that is right by this match.

    >>> right_in_words("declared")
    'right in the unit the agent declared'
    """
    return _RIGHT.get(rule, f"right by {rule}")


_FOUND = {"reply": "as given", "whole": "the whole reply", "none": "without one"}

_RATES = (
    "condition",
    "name",
    "metric",
    "value",
    "low",
    "high",
    "level",
    "method",
    "n",
    "conversations",
    "total",
    "naive_se",
    "se",
    "design_effect",
    "zero",
    "one",
    "sign_flipped",
    "times_100",
    "another_turn",
)
