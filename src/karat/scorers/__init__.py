"""What a scorer is. One file per plug-in, with the plug-in's name.

The smallest scorer is a class with one method that returns what it has: a bool, a
number, text (a label), a mapping of metrics, or a `Verdict` with reasons. A scorer that
announces `metrics` returns these and no others, within their bounds. `score`
may be `async`. A scorer that raises is a result too: the journal holds the failure,
and scoring again costs no agent call.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from karat.context import RebuiltWorkspaces, Workspace
from karat.errors import BadPlugin, JudgeFault, did_you_mean
from karat.models import Price
from karat.records import (
    MOST_VALUE,
    NOT_ASKED,
    Answer,
    JsonObject,
    Metric,
    Sample,
    Score,
    Turn,
    Usage,
    absurd_dollars,
    absurd_usage,
    checked,
)

__all__ = [
    "Row",
    "Scorer",
    "ScorerSetting",
    "StreamingScorer",
    "Verdict",
    "announced",
    "as_verdicts",
    "golden_turns",
]

Row = tuple[int | None, str | None, int]
"""Turn, judge and repeat of a verdict: which row of a scoring it is."""


Values = dict[str, float | bool | None]
"""Metric → value; None: it could not be scored."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A scorer's result for one answer, or for the turn it names.

    No score, with its reason: `Verdict(values={name: None}, reasons={name: why})`.
    """

    values: Values
    turn: int | None = None
    judge: str | None = None
    repeat: int = 0
    labels: dict[str, str] = {}
    reasons: dict[str, str] = {}
    claims: tuple[str, ...] = ()
    detail: JsonObject = {}
    usage: Usage | None = None
    dollars: float | None = None
    rows: int = 1  # if verdicts come one by one: how many this answer has


Scored = Verdict | bool | float | str | Mapping[str, float | bool | None] | Sequence[Verdict] | None


class Scorer(Protocol):
    """Scores one answer at a time; each verdict is journalled.

    Optional attributes: `metrics` names what is measured, with range and direction; `golden`
    (default True) is False for a scorer that uses no golden answer; `scores_criteria` (default
    False) is True for one that scores the sample's criteria; `offline` (default True) is False for
    a scorer that asks a model; `blocking` (default False) is True for a sync `score` that waits for
    something: it then runs on a thread, so agents and their timeouts continue.
    `compared_with` names a condition whose answer to the same question each score needs, see
    `ScorerSetting.answer_of`: such a scorer is asked when all answers are in, and gives no score
    while that answer is missing. `fingerprint` covers what the options only point at;
    `runs_programs` (default False) is True if options name a program: a run folder alone never
    starts it. `provenance` is kept in `run.json` and shown. `check_samples(samples)` raises
    OperatorError for samples that its options do not suffice for. `open()` is called before the
    first trial and raises OperatorError if something is missing (a key), `await aclose()` ends the
    run.
    """

    def score(self, sample: Sample, answer: Answer) -> Scored | Awaitable[Scored]: ...


class StreamingScorer(Protocol):
    """Scores one answer by several verdicts with a cost: a scorer whose `score` is an async
    generator.

    Each verdict is journalled before the next one is requested: if a later one fails, paid verdicts
    are neither lost nor requested again. `done`: the rows that are on disk; they are left out. Each
    verdict gives in `rows` the number of all verdicts, those included. The timeout and the retries
    of a scorer apply to each verdict separately.
    """

    def score(
        self, sample: Sample, answer: Answer, *, done: Collection[Row]
    ) -> AsyncGenerator[Verdict]: ...


def golden_turns(sample: Sample, answer: Answer) -> list[tuple[int | None, Turn, str]]:
    """The turns that have a golden answer, each with its number and its reply ("": none).

    A conversation is judged turn by turn. Where only the last turn has a golden answer, it is that
    of the whole answer: its number is None. Turns that were not asked are left out.
    """
    last = len(sample.turns) - 1
    numbers = []
    for number, turn in enumerate(sample.turns):
        if turn.golden is not None and turn.golden.strip():
            numbers.append(number)

    if numbers == [last]:
        return [(None, sample.turns[last], answer.text)]
    replies = answer.replies
    return [
        (number, sample.turns[number], replies[number].text if number < len(replies) else "")
        for number in numbers
        if number >= len(replies) or replies[number].stop_reason != NOT_ASKED.stop_reason
    ]


def accepted(turn: Turn) -> tuple[str, ...]:
    """Every text that is right in a turn: the golden answer first, then others of its dataset."""
    others = turn.detail.get("answers", ())
    texts = [text for text in others if isinstance(text, str)]
    return tuple(dict.fromkeys([turn.golden or "", *texts]))


def golden_text(turn: Turn) -> str:
    """The golden answer for a judge; if several are right, each on a line of its own."""
    first, *others = accepted(turn)
    return "\n".join([first, *(f"or: {text}" for text in others)])


class ScorerSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer's constructor gets in addition to its options, if it has a parameter
    `setting`.
    """

    folder: Path  # the experiment's: relative paths start here
    name: str  # the scorer's name in this run
    # An earlier result of this run: a score whose `detail` holds the key, of this trial if there is
    # one.
    recall: Callable[[str, str], Score | None] = lambda _key, _trial: None
    # the environment that the experiment was read with; None: the process's
    env: Mapping[str, str] | None = None
    prices: Mapping[str, Price] = {}  # the experiment file's, by model
    conditions: Sequence[str] = ()  # the experiment's, its baseline first
    # The answer to a sample under a condition in a repetition; None: there is none. Useful only
    # with `compared_with`.
    answer_of: Callable[[str, str, int], Answer | None] = lambda _sample, _condition, _number: None
    # A copy of the workspace as the answer's trial left it, for one block. Raises JudgeFault if
    # there is none.
    workspace_of: Callable[[Answer], AbstractContextManager[Workspace]] = RebuiltWorkspaces().of


def announced(scorer: object, target: str) -> tuple[Metric, ...]:
    """The metrics a scorer announces in `metrics`; () if there are none.

    Raises BadPlugin, starting with `target`, if `metrics` is not a sequence of distinct `Metric`s
    whose `low` is at most their `high`.
    """
    metrics: Any = getattr(scorer, "metrics", ())
    if isinstance(metrics, Metric):
        raise BadPlugin(
            target, "`metrics` is a Metric, expected a tuple of them: metrics = (Metric(…),)"
        )

    if not isinstance(metrics, Sequence) or not all(
        isinstance(metric, Metric) for metric in metrics
    ):
        raise BadPlugin(target, f"`metrics` must be a tuple of karat.Metric, got {metrics!r:.80}")

    for place, metric in enumerate(metrics):
        try:
            checked(metric)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadPlugin(target, f"metrics[{place}] is not a valid Metric: {error}") from error

        if metric.low is not None and metric.high is not None and not metric.low <= metric.high:
            raise BadPlugin(
                target,
                f"metric '{metric.name}': low ({metric.low:g}) is above high ({metric.high:g})",
            )

    names = [metric.name for metric in metrics]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadPlugin(target, f"announces the metric '{twice}' twice")
    return tuple(metrics)


def as_verdicts(
    scored: Scored, *, name: str, metrics: Sequence[Metric] = ()
) -> tuple[Verdict, ...]:
    """Anything a scorer returned, as verdicts.

    `metrics`: what the scorer announces. A bool or number is the only announced metric, else the
    metric `name`; None says that no metric could be scored; text is a label. NaN and infinities
    become None: a mean cannot hold them. Raises JudgeFault("bad_verdict") for another type, and for
    a scorer that announces metrics: "unannounced_metric" for any other name, "out_of_bounds" for a
    value below `low` or above `high`.
    """
    bare = isinstance(scored, (bool, int, float)) or getattr(scored, "shape", None) == ()
    if isinstance(scored, Verdict):
        verdicts = [scored]
    elif scored is None:
        verdicts = [Verdict(values=dict.fromkeys([metric.name for metric in metrics] or [name]))]
    elif bare:
        only = metrics[0].name if len(metrics) == 1 else name
        verdicts = [Verdict(values={only: scored})]  # type: ignore[dict-item]  # NumPy's scalars, checked there
    elif isinstance(scored, str):
        verdicts = [Verdict(values={}, labels={name: scored})]
    elif isinstance(scored, Mapping):
        verdicts = [Verdict(values=dict(scored))]
    elif isinstance(scored, Sequence) and all(isinstance(verdict, Verdict) for verdict in scored):
        verdicts = [*scored]
    else:
        raise JudgeFault(
            "bad_verdict",
            (
                f"scorer '{name}' returned a {type(scored).__name__}: expected a number, bool, "
                f"text, mapping or Verdict"
            ),
        )

    cleaned = tuple(_clean(verdict) for verdict in verdicts)
    for verdict in cleaned if metrics else ():
        _check_announced(verdict, name, {metric.name: metric for metric in metrics}, bare=bare)
    return cleaned


def _check_announced(
    verdict: Verdict, scorer: str, metrics: Mapping[str, Metric], *, bare: bool
) -> None:
    for name, value in verdict.values.items():
        metric = metrics.get(name)
        if metric is None:
            known = ", ".join(metrics)
            if bare:
                given = "a bare number"
            else:
                given = f"'{name}'{did_you_mean(name, metrics)}"

            message = f"scorer '{scorer}' announces {known}, but returned {given}"
            remedy = "return a mapping of metric to number" if bare else "name it in `metrics` too"
            raise JudgeFault(
                "unannounced_metric",
                f"{message}: {remedy}",
                dollars=verdict.dollars,
                usage=verdict.usage,
            )

        low, high = metric.bounds
        if value is not None and not (_at_most(low, value) and _at_most(value, high)):
            ends = (
                f"{'−∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"
            )
            message = (
                f"scorer '{scorer}' returned {value:g} for '{name}', which it announces as {ends}"
            )
            raise JudgeFault("out_of_bounds", message, dollars=verdict.dollars, usage=verdict.usage)


def _at_most(low: float | None, high: float | None) -> bool:
    """Whether `low` is not above `high`; the rounding of a sum (1.0000000000000002) does not
    count.
    """
    return (
        low is None
        or high is None
        or low <= high
        or math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12)
    )


def _clean(verdict: Verdict) -> Verdict:
    try:
        verdict = checked(verdict)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise JudgeFault("bad_verdict", f"the verdict is not a valid Verdict: {error}") from error

    wrong = absurd_dollars(verdict.dollars) or absurd_usage(verdict.usage)
    large = []
    for metric, value in verdict.values.items():
        if value is not None and MOST_VALUE < abs(value) < math.inf:
            large.append(metric)

    if large:
        wrong = (
            f"{large[0]} is {verdict.values[large[0]]!r}, expected at most {MOST_VALUE:g} "
            f"either way"
        )

    if wrong is not None:
        raise JudgeFault("bad_verdict", f"the verdict cannot be right: {wrong}")
    values = {}
    for metric, value in verdict.values.items():
        values[metric] = (
            value if value is None or isinstance(value, bool) or math.isfinite(value) else None
        )

    if values == verdict.values:
        return verdict
    return msgspec.structs.replace(verdict, values=values)
