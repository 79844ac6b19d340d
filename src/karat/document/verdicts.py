"""The result of a run in a few lines: who is better than whom, on what, by how much."""

from __future__ import annotations

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import Difference, MetricInfo
from karat.analysis.verdicts import (
    NO_DIFFERENCE,
    ONLY_AHEAD,
    ahead_sentence,
    nothing_scored,
    server_warnings,
)
from karat.kinds import of

_MOST_LINES = 8
_MOST_PAIRS = 3


def verdicts(summary: Summary) -> tuple[str, ...]:
    """The notices, then one line for each comparison that shows a difference; else only the
    headline.

    If there are many, one line for each pair of conditions, with the metrics on which one is
    better.
    """
    shown = [
        pair
        for pair in summary.differences
        if pair.winner is not None or pair.verdict.endswith(" is higher")
    ]
    nothing = nothing_scored(summary.total, summary.failures, summary.status)
    if nothing or not of(summary.kind).compared or not shown:
        return (*summary.notices, summary.headline)
    metrics = {info.key: info for info in summary.metrics}
    unused = server_warnings(summary.server_problems)
    if len(shown) <= _MOST_LINES:
        lines = []
        for pair in shown:
            info = metrics[pair.metric]
            lines.append(
                f"{_better(pair)} {_verb(pair)} {_other(pair)} on {_metric(pair)}: "
                f"{_by(pair, info, interval=True)}"
            )
    else:
        pairs: dict[tuple[str, str], list[Difference]] = {}
        for pair in shown:
            pairs.setdefault((_better(pair), _other(pair)), []).append(pair)
        lines = []
        for (better, other), group in pairs.items():
            listed = ", ".join(
                f"{_metric(pair)} ({_by(pair, metrics[pair.metric], interval=False)})"
                for pair in group
            )
            lines.append(f"{better} {_verb(group[0])} {other} on {listed}")

    if any(pair.offline for pair in shown):
        if all(pair.offline for pair in shown):
            which = ""
        else:
            which = " of " + ", ".join(
                dict.fromkeys(_metric(pair) for pair in shown if pair.offline)
            )

        lines.append(f"Offline scores{which}: given by a rule, not by a model that understands")

    lines += [
        ahead_sentence(pair) for pair in summary.differences if pair.verdict.endswith(ONLY_AHEAD)
    ][:_MOST_PAIRS]

    clear = {(pair.a, pair.b) for pair in shown}
    unclear = dict.fromkeys(
        (pair.a, pair.b)
        for pair in summary.differences
        if pair.verdict == NO_DIFFERENCE and (pair.a, pair.b) not in clear
    )
    named = [f"{b} and {a}" for a, b in unclear][:_MOST_PAIRS]
    if len(unclear) > len(named):
        named.append(formats.plural(len(unclear) - len(named), "further pair"))
    if named:
        lines.append(f"No difference shown between {'; '.join(named)}")

    return (*summary.notices, *unused, *lines)


def _better(pair: Difference) -> str:
    if pair.winner is not None:
        return pair.winner
    return pair.b if (pair.estimate.value or 0.0) > 0 else pair.a


def _other(pair: Difference) -> str:
    return pair.a if _better(pair) == pair.b else pair.b


def _verb(pair: Difference) -> str:
    return "is better than" if pair.winner is not None else "is higher than"


def _metric(pair: Difference) -> str:
    return pair.metric.replace("_", " ")


def _by(pair: Difference, info: MetricInfo, *, interval: bool) -> str:
    """The better condition minus the other: with a sign, since for some metrics less is better."""
    estimate = pair.estimate
    value = estimate.value
    low = estimate.low
    high = estimate.high
    if _better(pair) == pair.a:
        value, low, high = (None if end is None else -end for end in (value, high, low))
    text, span = formats.between(value, low, high, percent=info.percent)
    if (low or 0.0) > 0:
        plain = formats.between(value, low, high, percent=info.percent, plain=True)[1]
    else:
        plain = span

    return f"{text}{' points' if info.percent else ''}{f' {plain}' if interval and plain else ''}"
