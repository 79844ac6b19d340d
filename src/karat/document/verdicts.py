"""The result of a run in a few lines: who is better than whom, on what, by how much."""

from __future__ import annotations

from collections.abc import Sequence

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import between
from karat.analysis.model import Difference, MetricInfo
from karat.analysis.verdicts import NO_DIFFERENCE, nothing_scored, server_warnings
from karat.kinds import of

__all__ = ["verdicts"]

_MOST_LINES = 8
_MOST_PAIRS = 3


def verdicts(summary: Summary) -> tuple[str, ...]:
    """One line for each comparison that shows something; else the headline alone.

    Where there are many, one line for each pair of conditions, with the metrics on which one is better.
    """
    shown = [one for one in summary.differences if one.winner is not None or one.verdict.endswith(" is higher")]
    nothing = nothing_scored(summary.total, summary.failures, summary.status)
    if nothing or not of(summary.kind).compared or not shown:
        return (summary.headline,)
    metrics = {info.key: info for info in summary.metrics}
    unused = server_warnings(summary.server_problems)
    if len(shown) <= _MOST_LINES:
        lines = [_result(one, metrics[one.metric]) for one in shown]
    else:
        pairs: dict[tuple[str, str], list[Difference]] = {}
        for one in shown:
            pairs.setdefault((_better(one), _other(one)), []).append(one)
        lines = [
            f"{better} {_verb(found[0])} {other} on {_listed(found, metrics)}"
            for (better, other), found in pairs.items()
        ]
    if any(one.offline for one in shown):
        which = (
            ""
            if all(one.offline for one in shown)
            else " of " + ", ".join(dict.fromkeys(_metric(one) for one in shown if one.offline))
        )
        lines.append(f"Offline scores{which}: given by a rule, not by a model that understands")
    rest = _not_shown(summary, shown)
    return (*unused, *lines, *([rest] if rest else []))


def _result(one: Difference, info: MetricInfo) -> str:
    return f"{_better(one)} {_verb(one)} {_other(one)} on {_metric(one)}: {_by(one, info, interval=True)}"


def _better(one: Difference) -> str:
    if one.winner is not None:
        return one.winner
    return one.b if (one.estimate.value or 0.0) > 0 else one.a


def _other(one: Difference) -> str:
    return one.a if _better(one) == one.b else one.b


def _verb(one: Difference) -> str:
    return "is better than" if one.winner is not None else "is higher than"


def _metric(one: Difference) -> str:
    return one.metric.replace("_", " ")


def _by(one: Difference, info: MetricInfo, *, interval: bool) -> str:
    """The better condition minus the other: with a sign, since of some metrics less is better."""
    found = one.estimate
    value, low, high = found.value, found.low, found.high
    if _better(one) == one.a:
        value, low, high = (None if end is None else -end for end in (value, high, low))
    text, span = between(value, low, high, percent=info.percent)
    plain = between(value, low, high, percent=info.percent, plain=True)[1] if (low or 0.0) > 0 else span
    return f"{text}{' points' if info.percent else ''}{f' {plain}' if interval and plain else ''}"


def _listed(shown: Sequence[Difference], metrics: dict[str, MetricInfo]) -> str:
    return ", ".join(f"{_metric(one)} ({_by(one, metrics[one.metric], interval=False)})" for one in shown)


def _not_shown(summary: Summary, shown: Sequence[Difference]) -> str:
    """The pairs of conditions between which no metric shows a difference."""
    clear = {(one.a, one.b) for one in shown}
    pairs = dict.fromkeys(
        (one.a, one.b) for one in summary.differences if one.verdict == NO_DIFFERENCE and (one.a, one.b) not in clear
    )
    named = [f"{b} and {a}" for a, b in pairs][:_MOST_PAIRS]
    if len(pairs) > len(named):
        named.append(formats.plural(len(pairs) - len(named), "further pair"))
    return f"No difference shown between {'; '.join(named)}" if named else ""
