"""What a scorer is. One file a plug-in; each name is the file's name.

The smallest scorer is a class with one method that returns what it has: a bool, a
number, a text (a label), a mapping of metrics, or a `Verdict` with reasons. `score`
may be `async`. A scorer that raises is a result too: the journal holds the failure,
and scoring again costs no agent call.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from karat.errors import JudgeFault
from karat.records import Answer, Metric, Sample, Usage, checked

__all__ = ["Scorer", "ScorerSetting", "Verdict", "as_verdicts", "metrics_of"]


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


Scored = Verdict | bool | float | str | Mapping[str, float | bool | None] | Sequence[Verdict] | None


class Scorer(Protocol):
    """Scores one answer at a time; each verdict is journalled.

    Optional attributes: `metrics` names what is measured, with range and direction;
    `offline` (default True) is False for a scorer that asks a model; `blocking` (default
    False) is True for a sync `score` that waits for something: it then runs on a thread, so
    that agents and their timeouts go on. `fingerprint` covers what the options only point at.
    """

    def score(self, sample: Sample, answer: Answer) -> Scored | Awaitable[Scored]: ...


class ScorerSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer's constructor may ask for besides its options, by the name `setting`."""

    folder: Path  # the experiment's: relative paths start here
    name: str  # the scorer's name in this run


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
