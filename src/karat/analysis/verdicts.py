"""The conclusions that the numbers support: verdicts, the headline, warnings.

Hardly a number is computed here, and NumPy is not loaded.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from msgspec import structs

from karat import formats
from karat.analysis.format_metric import estimated
from karat.analysis.model import (
    Account,
    Difference,
    FailureKind,
    Family,
    MetricInfo,
    Result,
    ServerProblem,
)
from karat.journal import ScorerInfo
from karat.sums import exact_sum

ALPHA = 0.05
"""A difference counts as shown if its p-value, adjusted over all comparisons shown, is below
this.
"""

REHEARSED = "a rehearsal: scripts played the models, and no number means anything"
NO_DIFFERENCE = "no difference shown"
NOT_TESTED = "not tested"
"""The verdict on a metric that measures the same answers as another one, which is tested
instead.
"""

NOT_MEASURED = "MCP servers not measured"
"""Instead of `NO_DIFFERENCE` if a condition's MCP calls failed, or none was made."""

CONTEXT_KINDS = {"server": "MCP server", "skill": "skill", "plugin": "plug-in"}
"""Words for what a condition may offer."""

ONLY_AHEAD = "only among the answers it gave"
"""Ends the verdict on a condition that would not win if its lost trials had the metric's worst
value.
"""

NO_VERDICT = "too few clusters for a verdict"
"""The verdict on a comparison whose questions are of too few documents, or other clusters."""

EQUIVALENT = "equivalent within ±"
"""Begins the verdict of a run that stopped because a difference as large as its margin can be ruled
out.
"""

_FEW_CLUSTERS_FACTOR = 5.0
_FEW_DF = 10.0  # of the test; from here on skewed effects of clusters hardly matter
_MOST_ALSO = 3  # metrics of a pair, and pairs, in a headline
UNLIKE = "not comparable"
_HIGHER = " is higher"  # a difference is shown, and no direction is better


def attempts_sentence(account: Account) -> str:
    """The number of attempts, and the cost of those without an answer; empty if every attempt was
    answered.

    "Attempts: 76 = 12 answered + 64 failed. Those without an answer cost $1.20, which the cost
    above includes; 28 of them are of trials that were not run."
    """
    attempts = account.attempts
    without = attempts.failed + attempts.unfinished
    if not without:
        return ""
    parts = [f"{formats.count(attempts.answered)} answered"]
    if attempts.failed:
        parts += [f"{formats.count(attempts.failed)} failed"]
    if attempts.unfinished:
        parts += [f"{formats.count(attempts.unfinished)} unfinished"]
    lost = attempts.lost
    cost = (
        f"cost {formats.dollars(lost.known, unknown=lost.unknown)}, which the cost above includes"
    )
    if lost.unknown and not lost.known:
        cost = "may have cost money: no price is known"
    note = f"; {formats.count(attempts.of_trials_not_run)} of them are of trials that were not run"
    return (
        f"Attempts: {formats.count(attempts.answered + without)} = {' + '.join(parts)}. "
        f"Those without an answer {cost}{note if attempts.of_trials_not_run else ''}."
    )


def least_p(tests: int, units: int) -> float:
    """The smallest p-value that sign flips of so many differences can give after adjustment: m ·
    2^(1 − n).

    >>> round(least_p(39, 10), 3), least_p(39, 11) < 0.05
    (0.076, True)
    """
    return min(1.0, tests * 2.0 ** (1 - units))


def choice_factor(conditions: int) -> float:
    """By how much the p-value of a comparison with the best condition is multiplied, since the same
    answers chose it: (conditions − 1)/2, at least 1.

    Of all pairs that might have been chosen, as many as those shown count (weighted Bonferroni).
    """
    return max(1.0, (conditions - 1) / 2)


def few_clusters_factor(df: float | None) -> float:
    """By how much the p-value of a comparison over few clusters is multiplied: 5 below 10 degrees
    of freedom, where skewed effects of clusters reject a true null hypothesis at 0.05 in up to
    12 % of tests, and at 0.01 in less than 5 % (exponential effects, 5 to 10 equal clusters).
    """
    if df is not None and df < _FEW_DF:
        return _FEW_CLUSTERS_FACTOR
    return 1.0


def few_clusters(differences: Iterable[Difference]) -> str:
    """What comparisons over few clusters pay; "" if there is none."""
    few = []
    for pair in differences:
        if pair.clusters is not None and pair.p is not None and few_clusters_factor(pair.df) > 1:
            few.append(pair.clusters)

    if not few:
        return ""
    return (
        f"few clusters ({formats.plural(min(few), 'cluster')}): p-values are multiplied by "
        f"{_FEW_CLUSTERS_FACTOR:g}, since skewed effects of clusters would give up to 10 % of "
        f"equal conditions a winner"
    )


def winner(info: MetricInfo, a: str, b: str, value: float | None, p: float | None) -> str | None:
    """Who is better; None if no difference is shown or no direction is better."""
    if value is None or p is None or p >= ALPHA or value == 0 or info.direction == "none":
        return None
    return b if (value > 0) == (info.direction == "higher") else a


def probable_flips(differences: Sequence[Difference]) -> tuple[float, int] | None:
    """How many of these verdicts a repeat on new questions would change on average, and their
    number; None: unknown.
    """
    chances = []
    for pair in differences:
        if pair.again and pair.again.new_questions is not None:
            chances.append(pair.again.new_questions)

    if chances:
        return (exact_sum(1 - chance for chance in chances), len(chances))
    return None


def verdict(info: MetricInfo, a: str, b: str, value: float | None, p: float | None) -> str:
    """One comparison in a few words."""
    better = winner(info, a, b, value, p)
    if better is not None:
        return f"{better} is better"
    if value is None:
        return UNLIKE
    if p is not None and p < ALPHA and value:
        return f"{b if value > 0 else a}{_HIGHER}"
    return NO_DIFFERENCE


def ahead(info: MetricInfo, a: str, b: str, value: float | None) -> str:
    """The verdict on a side that wins, but not with its own losses counted."""
    leader = b if ((value or 0.0) > 0) == (info.direction != "lower") else a
    return f"{leader} is ahead {ONLY_AHEAD}"


def nothing_scored(total: Account, failures: Sequence[FailureKind], status: str) -> str:
    """Why there is no result, if every trial failed; "" if there is one, or may still be one."""
    lost = [kind for kind in failures if kind.trials]
    if total.ledger.scored or not lost or status == "running":
        return ""
    worst = max(lost, key=lambda kind: kind.trials)
    count = f"{formats.count(worst.trials)} of {formats.plural(total.ledger.planned, 'trial')}"
    outcome = "could not be scored" if worst.stage == "score" else "failed"
    return f"No result: {count} {outcome}: {formats.excerpt(worst.example, 300)}"


def headline(
    results: Sequence[Result],
    differences: Sequence[Difference],
    metrics: Sequence[MetricInfo],
    total: Account,
    *,
    unit: str = "question",
    unscored: str = "the experiment names no scorer",
) -> str:
    """The answer in one sentence, with its uncertainty.

    `unit`: the paired unit; `unscored`: why nothing was scored.
    """
    if not metrics:
        ledger = total.ledger
        answered = (
            f"{formats.count(ledger.scored)} of {formats.plural(ledger.planned, 'trial')} answered"
        )
        return f"{answered}, none scored: {unscored}"

    if differences:
        return main_finding(differences, metrics, unit=unit)

    metric = metrics[0]
    result = next(result for result in results if result.metric == metric.key)
    if result.mean.value is None:
        return f"{result.condition}: no answer has a score on {metric.key}"
    offline = ", offline scores" if result.offline else ""
    value = estimated(result.mean, percent=metric.percent)
    answers = (
        f"{formats.plural(result.n_questions, unit)}, {formats.plural(result.n_answers, 'answer')}"
    )
    return f"{result.condition}: {metric.key} {value} over {answers}{offline}"


def main_finding(
    differences: Sequence[Difference], metrics: Sequence[MetricInfo], *, unit: str
) -> str:
    """The result of comparisons: the largest difference on the first metric that has one, or that
    there is none.
    """
    tested = [row for row in differences if row.verdict != NOT_TESTED]
    differences = tested or differences
    shown = [row for row in differences if row.winner is not None]
    if not shown:
        shown = [row for row in differences if row.verdict.endswith(_HIGHER)]
    only_ahead = [row for row in differences if row.verdict.endswith(ONLY_AHEAD)]
    if not shown and only_ahead:
        offline = " (offline scores)" if only_ahead[0].offline else ""
        return "; ".join(ahead_sentence(row) for row in only_ahead[:_MOST_ALSO]) + offline

    if not shown:
        measured = [row for row in differences if row.verdict != NOT_MEASURED] or differences
        return _nothing_shown(measured, metrics, unit)

    on_first = [row for row in shown if row.metric == shown[0].metric]
    first = max(on_first, key=lambda row: abs(row.estimate.value or 0.0))
    estimate = first.estimate
    value = estimate.value or 0.0
    low = estimate.low
    high = estimate.high
    if value < 0 and low is not None and high is not None:
        low, high = -high, -low
    percent = any(info.percent for info in metrics if info.key == first.metric)
    by = _by(abs(value), low, high, percent=percent, plain=True)
    over = f"{over_units(first, unit)}, p {_p(first.p_adjusted)}"
    offline = " (offline scores)" if first.offline else ""
    sentence = f"{_pair(first)} on {first.metric} by {by} over {over}{offline}"

    # which condition wins the other comparisons that show a difference, on which metric
    won: dict[str, list[str]] = {_pair(first): []}
    for other in shown:
        if other is not first:
            won.setdefault(_pair(other), []).append(other.metric)

    also = []
    for pair, names in won.items():
        named = ", ".join(names[:_MOST_ALSO])
        if len(names) > _MOST_ALSO:
            named += f" and {formats.plural(len(names) - _MOST_ALSO, 'further metric')}"
        if names:
            also.append(f"also on {named}" if pair == _pair(first) else f"{pair} on {named}")

    parts = [sentence, *also[:_MOST_ALSO]]
    if len(also) > _MOST_ALSO:
        parts.append(formats.plural(len(also) - _MOST_ALSO, "further pair"))
    parts += [ahead_sentence(row) for row in only_ahead[:_MOST_ALSO]]
    return "; ".join(parts)


def ahead_sentence(pair: Difference) -> str:
    """A lead that the losses of the leader may explain.

    "b is ahead of a on quality only among the answers it gave: 21 % of its trials have no score,
    0 % of a's".
    """
    b_leads = pair.verdict == f"{pair.b} is ahead {ONLY_AHEAD}"
    if b_leads:
        leader = pair.b
        other = pair.a
        mine = pair.loss_b
        theirs = pair.loss_a
    else:
        leader = pair.a
        other = pair.b
        mine = pair.loss_a
        theirs = pair.loss_b

    lost = (
        f"{formats.chance(mine)} of its trials have no score, {formats.chance(theirs)} of {other}'s"
    )
    return f"{leader} is ahead of {other} on {pair.metric} {ONLY_AHEAD}: {lost}"


def _pair(pair: Difference) -> str:
    if (pair.estimate.value or 0.0) > 0:
        upper = pair.b
        lower = pair.a
    else:
        upper = pair.a
        lower = pair.b

    if pair.winner is None:
        return f"{upper} is higher than {lower}"
    return f"{pair.winner} beats {pair.a if pair.winner == pair.b else pair.b}"


def over_units(pair: Difference, unit: str) -> str:
    """How many questions a comparison is over, and of how many clusters they are.

    "60 questions in 6 clusters".
    """
    count = formats.plural(pair.n_pairs, unit)
    if pair.clusters is None:
        return count
    return f"{count} in {formats.plural(pair.clusters, 'cluster')}"


def _by(
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    percent: bool,
    plain: bool = False,
) -> str:
    number, span = formats.between(value, low, high, percent=percent, plain=plain)
    return f"{number}{' points' if percent else ''} {span}".rstrip()


def _nothing_shown(
    differences: Sequence[Difference], metrics: Sequence[MetricInfo], unit: str
) -> str:
    infos = {info.key: info for info in metrics}
    tests = [
        row for row in differences if row.p_adjusted is not None and row.estimate.value is not None
    ]
    units = max((row.clusters or row.n_pairs for row in tests), default=0)
    if len(tests) > 1 and (least := least_p(len(tests), units)) >= ALPHA:
        # so few questions cannot show a difference among so many comparisons
        shares = []  # of the metric's scale, if it has one
        for row in tests:
            width = infos[row.metric].width
            if width in (0.0, math.inf):
                width = 1.0
            shares.append(abs(row.estimate.value or 0.0) / width)

        largest = tests[shares.index(max(shares))]
        estimate = largest.estimate
        percent = infos[largest.metric].percent
        by = _by(estimate.value, estimate.low, estimate.high, percent=percent)
        count = formats.plural(units, unit if largest.clusters is None else "cluster")
        return (
            f"{count} cannot show a difference among {formats.plural(len(tests), 'comparison')} "
            f"(by sign flips at best p {_p(least)}); the largest: {largest.b} against "
            f"{largest.a} on {largest.metric}, {by}"
        )

    first = next(
        (difference for difference in differences if difference.estimate.value is not None), None
    )
    if first is None:
        pair = differences[0]
        if pair.n_pairs and pair.reason:
            why = pair.reason
        else:
            why = f"no {unit} has a score under both"

        return f"{pair.a} and {pair.b} cannot be compared on {pair.metric}: {why}"

    estimate = first.estimate
    percent = infos[first.metric].percent
    by = _by(estimate.value, estimate.low, estimate.high, percent=percent)
    offline = ", offline scores" if first.offline else ""
    over = over_units(first, unit)
    if first.verdict == NOT_MEASURED:
        return (
            f"{first.b} against {first.a} on {first.metric}: {by} over {over}, p "
            f"{_p(first.p_adjusted)}{offline}"
        )

    if first.verdict.startswith(EQUIVALENT):
        return (
            f"{first.a} and {first.b} are {first.verdict} on {first.metric}: {by} over "
            f"{over}{offline}"
        )

    if first.verdict == NO_VERDICT:
        return (
            f"No verdict on {first.b} against {first.a} on {first.metric}: {by} over {over}, "
            f"{first.reason}{offline}"
        )

    if len(differences) == 1:
        if first.p_adjusted is not None:
            tested = f"{over}, p {_p(first.p_adjusted)}"
        else:
            tested = f"{over}, not testable"

        return (
            f"No difference shown between {first.a} and {first.b} on {first.metric}: {by} over "
            f"{tested}{offline}"
        )

    return (
        f"No difference shown in any of {formats.plural(len(differences), 'comparison')}; "
        f"{first.b} against {first.a} on {first.metric}: {by} over {over}{offline}"
    )


def _p(value: float | None) -> str:
    text = formats.p_value(value)
    if text.startswith("<"):
        return text.replace("<", "< ")
    return f"= {text}"


def family_words(family: Family | None) -> str:
    """Which comparisons are shown, if some are not; empty if all are."""
    if family is None or not family.left_out:
        return ""
    left = formats.plural(family.left_out, "comparison")
    return (
        f"Each condition is compared with {formats.clean(family.baseline)}, and with the best on "
        f"the metric; --pairs all shows {left} more."
    )


def unmeasured(pair: Difference, conditions: Container[str]) -> Difference:
    """A comparison; "no difference" is not claimed for `conditions`, whose servers were not
    used.
    """
    shown = pair.winner is not None or pair.verdict.endswith((_HIGHER, ONLY_AHEAD))
    shown |= pair.verdict in (NOT_TESTED, UNLIKE)
    if shown or (pair.a not in conditions and pair.b not in conditions):
        return pair
    return structs.replace(pair, verdict=NOT_MEASURED)


def server_warnings(problems: Iterable[ServerProblem]) -> list[str]:
    """The start of the headline: the conditions whose scores do not show what their MCP
    servers do.
    """
    warnings = []
    for problem in problems:
        so = "so its scores do not show what its MCP servers do"
        fault = (
            f"{formats.count(problem.errors)} of {formats.plural(problem.calls, 'MCP call')} failed"
        )
        if not problem.answers:
            so = "and it has no answers" if problem.calls else "see Failures"
        if not problem.calls:
            fault = "no answer"
            if problem.answers:
                answers = formats.plural(problem.answers, "answer")
                fault = f"no MCP call in {answers}"
                so = "so its scores show the effect of offering its MCP servers, not of using them"
                if not problem.reported:
                    fault = f"no MCP call was reported in {answers}"
                    so = "so whether its MCP servers were used is not known"

        warnings.append(f"{problem.condition}: {fault}, {so}")

    return warnings


def judge_name(judge: ScorerInfo) -> str:
    """The models that judge."""
    models = judge.provenance.get("judges") or [judge.options.get("model") or judge.type]
    return ", ".join(map(str, models))
