"""What a scorer is. One file a plug-in; each name is the file's name.

The smallest scorer is a class with one method that returns what it has: a bool, a
number, a text (a label), a mapping of metrics, or a `Verdict` with reasons. `score`
may be `async`. A scorer that raises is a result too: the journal holds the failure,
and scoring again costs no agent call.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from karat.errors import JudgeFault
from karat.models import Price
from karat.records import Answer, Metric, Sample, Score, Usage, checked

__all__ = ["Row", "Scorer", "ScorerSetting", "StreamingScorer", "Verdict", "as_verdicts", "metrics_of"]

Row = tuple[int | None, str | None, int]
"""Turn, judge and repeat of a verdict: which row of a scoring it is."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer says of one answer, or of the turn it names."""

    values: dict[str, float | bool | None]  # metric → value; None: could not be scored
    turn: int | None = None
    judge: str | None = None
    repeat: int = 0
    labels: dict[str, str] = {}
    reasons: dict[str, str] = {}
    claims: tuple[str, ...] = ()
    detail: dict[str, Any] = {}
    usage: Usage | None = None
    dollars: float | None = None
    rows: int = 1  # where verdicts come one by one: how many there are of this answer


Scored = Verdict | bool | float | str | Mapping[str, float | bool | None] | Sequence[Verdict] | None


class Scorer(Protocol):
    """Scores one answer at a time; each verdict is journalled.

    Optional attributes: `metrics` names what is measured, with range and direction;
    `offline` (default True) is False for a scorer that asks a model; `blocking` (default
    False) is True for a sync `score` that waits for something: it then runs on a thread, so
    that agents and their timeouts go on. `fingerprint` covers what the options only point at;
    `provenance` is kept in `run.json` and shown. `open()` is called before the first trial and
    raises OperatorError where something is missing (a key), `await aclose()` ends the run.
    """

    def score(self, sample: Sample, answer: Answer) -> Scored | Awaitable[Scored]: ...


class StreamingScorer(Protocol):
    """Scores one answer by several verdicts that cost something: a scorer whose `score` is an async generator.

    Each verdict is journalled before the next one is asked for, so that what was paid for is
    neither lost nor asked twice when a later one fails. `done`: the rows that are on disk; they
    are left out. Each verdict says in `rows` how many there are in all, those included. The
    timeout and the retries of a scorer count for each verdict anew.
    """

    def score(self, sample: Sample, answer: Answer, *, done: Collection[Row]) -> AsyncGenerator[Verdict]: ...


def _nothing(_key: str, _trial: str) -> Score | None:
    return None


class ScorerSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer's constructor may ask for besides its options, by the name `setting`."""

    folder: Path  # the experiment's: relative paths start here
    name: str  # the scorer's name in this run
    # What an earlier scoring of this run said: a score whose `detail` holds the key, of this trial if there is one.
    recall: Callable[[str, str], Score | None] = _nothing
    env: Mapping[str, str] | None = None  # the variables that the experiment was read with; None: the process's
    prices: Mapping[str, Price] = {}  # the experiment file's, by model


def metrics_of(scorer: Any, name: str) -> tuple[Metric, ...]:
    """The metrics a scorer announces; a scorer that announces none gives one, called as it is."""
    announced: Sequence[Metric] = getattr(scorer, "metrics", ())
    return tuple(announced) or (Metric(name=name),)


def as_verdicts(scored: Scored, *, name: str) -> tuple[Verdict, ...]:
    """Whatever a scorer returned, as verdicts.

    A bool or number is the metric `name`; a text is a label; None is a metric that could
    not be scored. NaN and infinities become None: they are not numbers that a mean can hold.
    """
    if isinstance(scored, Verdict):
        return (_clean(scored),)
    if scored is None or isinstance(scored, (bool, int, float)) or getattr(scored, "shape", None) == ():
        return (_clean(Verdict(values={name: scored})),)  # type: ignore[dict-item]  # NumPy's scalars, checked there
    if isinstance(scored, str):
        return (Verdict(values={}, labels={name: scored}),)
    if isinstance(scored, Mapping):
        return (_clean(Verdict(values=dict(scored))),)
    if isinstance(scored, Sequence):
        verdicts = [one for one in scored if isinstance(one, Verdict)]
        if len(verdicts) == len(scored):
            return tuple(_clean(one) for one in verdicts)
    raise JudgeFault(
        "bad_verdict",
        f"scorer '{name}' returned a {type(scored).__name__}: want a number, bool, text, mapping or Verdict",
    )


def _clean(verdict: Verdict) -> Verdict:
    try:
        verdict = checked(verdict)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise JudgeFault("bad_verdict", f"the verdict is not what a Verdict says: {error}") from error
    values = {metric: _finite(value) for metric, value in verdict.values.items()}
    return verdict if values == verdict.values else msgspec.structs.replace(verdict, values=values)


def _finite(value: float | bool | None) -> float | bool | None:
    return value if value is None or isinstance(value, bool) or math.isfinite(value) else None
