"""Two runs, or two conditions of one, question by question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, structs
from numpy.typing import NDArray

from karat import formats
from karat.analysis.cached import summarize_cached
from karat.analysis.comparison import Comparison, Flip, Pairing, Side
from karat.analysis.estimates import difference, holds, p_to_adjust
from karat.analysis.model import Difference, MetricInfo, SampleTable, ServerProblem, Summary
from karat.analysis.parts import kind_of
from karat.analysis.planning import would_repeat
from karat.analysis.units import Compared, shared, units_of
from karat.analysis.units import difference as compared_units
from karat.analysis.verdicts import (
    NOT_TESTED,
    REHEARSED,
    few_clusters,
    main_finding,
    server_warnings,
    unmeasured,
)
from karat.errors import BadOption, did_you_mean
from karat.index import plan_of
from karat.journal import RunFolder, lacks_plan
from karat.records import JsonObject
from karat.stats import adjust

FLIPS = 10  # questions listed, at most
NOISE = 1e-12  # rounding errors: thirds do not subtract exactly

Floats = NDArray[np.float64]


def compare(
    a: RunFolder,
    b: RunFolder,
    *,
    condition_a: str | None = None,
    condition_b: str | None = None,
    scorings: Mapping[str, str] | None = None,
    level: float = 0.95,
    **asked: Any,
) -> Comparison:
    """What changed from `a` to `b`, over the questions that both have, by id and content.

    Runs over human studies are compared by participant and test, whatever the wording shown.

    Without conditions each condition of the same name is compared; two runs of one
    condition each are compared whatever its name. Raises BadOption if there is
    nothing to compare, and what `summarize` raises.
    """
    # fails early, before anything large is read
    pairs = _conditions(a, b, condition_a, condition_b)
    first = summarize_cached(a, scorings=scorings, level=level, **asked)
    if b.path == a.path:
        second = first
    else:
        if b.info.kind == a.info.kind:
            # What to ask of another run, so that its answers are read by the same rule
            asked |= {
                name: value
                for part in first.parts.values()
                for name, value in part.read_by().items()
            }

        second = summarize_cached(b, scorings=scorings, level=level, **asked)

    if first.run == second.run:
        labels = condition_a or first.conditions[0], condition_b or second.conditions[0]
    else:
        names = (first.name, second.name)
        if first.name == second.name:
            names = _files(first, second) or (
                f"{first.name} {first.run}",
                f"{second.name} {second.run}",
            )

        left, right = (
            f"{name}:{condition}" if condition else name
            for name, condition in zip(names, (condition_a, condition_b), strict=True)
        )
        labels = left, right

    sides = (_side(first, labels[0], condition_a), _side(second, labels[1], condition_b))
    comparison = None
    if first.parts.keys() & second.parts.keys():
        comparison = kind_of(first.kind).compare((a, b), (first, second), pairs, sides, asked=asked)

    if comparison is None:
        comparison = _compared(first, second, pairs, sides, level=level)
    problems = _problems(first, second, pairs)
    unused = server_warnings(problems)
    gaps = dict.fromkeys([*a.gap_notices(), *b.gap_notices()])
    return structs.replace(
        comparison,
        conditions=tuple(pairs),
        server_problems=problems,
        headline=". ".join([*gaps, *unused, comparison.headline]),
        warnings=(*unused, *comparison.warnings),
    )


def _compared(
    first: Summary,
    second: Summary,
    pairs: Sequence[tuple[str, str]],
    sides: tuple[Side, Side],
    *,
    level: float,
) -> Comparison:
    theirs = {metric.key: metric for metric in second.metrics}
    both = [
        metric for metric in first.metrics if metric.key in theirs and metric.compared is not False
    ]
    if not both:
        listed = " | ".join(
            ", ".join(metric.key for metric in summary.metrics) or "none"
            for summary in (first, second)
        )
        raise BadOption(
            "runs",
            f"the two share no metric (they have: {listed}); score both alike with `karat score`",
        )

    metrics = []
    for metric in both:
        if _scale(metric) == _scale(theirs[metric.key]):
            metrics.append(metric)
        else:  # no direction is better, no share is in percent
            metrics.append(structs.replace(metric, **_NO_SCALE))

    left = _table(first)
    right = _table(second)
    digests = dict(zip(right.ids, right.digests, strict=True))
    ours = zip(left.ids, left.digests, strict=True)
    same = [digests[name] == digest for name, digest in ours if name in digests]
    alike, changed = same.count(True), same.count(False)  # content of questions with one id
    contests = _contests(first, second, pairs, metrics, level=level)

    compared = list(dict.fromkeys((contest.left, contest.right) for contest in contests))
    labels = _unlike(first, second, compared)
    unused = {problem.condition for problem in _problems(first, second, compared)}
    tested = [p_to_adjust(contest.found) if contest.tested else math.nan for contest in contests]
    pairings = []
    for at, (contest, p) in enumerate(zip(contests, adjust(tested).tolist(), strict=True)):
        found = contest.found
        both_sides = ((first, contest.left), (second, contest.right))
        effect = difference(
            labels[contest.left, contest.right], found, p, holds=holds(found, tested, at)
        )
        if contest.tested:
            effect = structs.replace(
                effect, again=would_repeat(effect, (found.a, found.b), both_sides)
            )

        effect = unmeasured(effect, unused)
        if not contest.tested:
            effect = structs.replace(effect, verdict=NOT_TESTED)
        pairings.append(_pairing(effect, found))

    unit = _unit(first)
    return Comparison(
        format=formats.OUTPUT_FORMAT,
        unit=unit,
        right=next((part.rule for part in first.parts.values()), None),
        a=sides[0],
        b=sides[1],
        level=level,
        headline=main_finding([pairing.difference for pairing in pairings], metrics, unit=unit),
        metrics=tuple(metrics),
        pairings=tuple(pairings),
        pairs=math.comb(len(first.conditions), 2) if first.run == second.run else None,
        only_a=first.samples - alike - changed,
        only_b=second.samples - alike - changed,
        changed=changed,
        warnings=tuple(
            _warnings(
                first,
                second,
                metrics,
                (changed, any(contest.reweighted for contest in contests)),
                pairings,
            )
        ),
    )


def _unit(summary: Summary) -> str:
    """The unit that is paired."""
    if summary.parts:
        return kind_of(summary.kind).unit
    return "question"


def _conditions(
    a: RunFolder,
    b: RunFolder,
    first: str | None,
    second: str | None,
) -> list[tuple[str, str]]:
    """Which conditions are compared: the ones named, else those of the same name, else the only one
    of each run.
    """
    ours = plan_of(a).conditions
    theirs = plan_of(b).conditions
    same_run = a.path == b.path or a.info.run == b.info.run
    for run, name, known in ((a, first, ours), (b, second, theirs)):
        if name is not None and name not in known:
            raise BadOption(
                "condition",
                f"run {run.info.run} has no condition '{name}'{did_you_mean(name, known)}",
            )

    if first is None and second is None and not same_run:
        same = [(name, name) for name in ours if name in theirs]
        if same:
            return same

    left = first or (
        second if second in ours and not same_run else ours[0] if len(ours) == 1 else None
    )
    right = second or (
        first if first in theirs and not same_run else theirs[0] if len(theirs) == 1 else None
    )
    if left is None or right is None:
        both = f"{', '.join(ours)} | {', '.join(theirs)}"
        why = (
            "the runs have no condition in common; "
            if first is None and second is None and not same_run
            else ""
        )
        raise BadOption(
            "condition", f"{why}say which conditions to compare, as RUN:CONDITION (known: {both})"
        )

    if same_run and left == right:
        raise BadOption("condition", f"'{left}' of run {a.info.run} cannot be compared with itself")
    return [(left, right)]


_NO_SCALE: JsonObject = {
    "direction": "none",
    "kind": "number",
    "low": None,
    "high": None,
    "threshold": None,
}


def _scale(metric: MetricInfo) -> tuple[object, ...]:
    """What must be equal for two values to be on one scale."""
    return metric.direction, metric.percent, metric.low if metric.percent else None


def _table(summary: Summary) -> SampleTable:
    if summary.table_of_samples is None:
        raise BadOption("runs", f"run {summary.run} has no scores; `karat score` makes some")
    return summary.table_of_samples


class _Contest(NamedTuple):
    """One metric, a condition of each run."""

    metric: MetricInfo
    left: str
    right: str
    found: Compared
    reweighted: bool  # the runs drew their samples with other weights
    tested: bool


def _contests(
    a: Summary,
    b: Summary,
    pairs: Sequence[tuple[str, str]],
    metrics: Sequence[MetricInfo],
    *,
    level: float,
) -> list[_Contest]:
    contests = []
    for metric in metrics:
        for left, right in pairs:
            sides = shared([units_of(a, left, metric.key), units_of(b, right, metric.key)])

            # The weight of each shared question, the same on both sides, and whether the runs'
            # own weights differed
            first = sides[0].weights
            second = sides[1].weights
            like = bool(
                np.allclose(first * second.sum(), second * first.sum(), rtol=1e-9, atol=0.0)
            )
            if like:
                weights = first
            else:
                weights = np.ones(first.size)

            ours, theirs = (
                structs.replace(side.with_weights(weights), metric=metric) for side in sides
            )
            found = compared_units(ours, theirs, level=level)
            # Whether a metric is tested; most of those of `numeric` measure the same answers
            # again in another way
            tested = all(part.is_tested(metric) for part in a.parts.values())
            contests.append(_Contest(metric, left, right, found, not like, tested))

    return contests


def _problems(
    a: Summary, b: Summary, pairs: Sequence[tuple[str, str]]
) -> tuple[ServerProblem, ...]:
    """Labels of the compared conditions; with the run if two have the same name."""
    problems = []
    for labels, pair in zip(_unlike(a, b, pairs).values(), pairs, strict=True):
        for side, summary in enumerate((a, b)):
            for problem in summary.server_problems:
                if problem.condition == pair[side]:
                    problems.append(structs.replace(problem, condition=labels[side]))

    return tuple(dict.fromkeys(problems))


def _unlike(
    a: Summary, b: Summary, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Labels that distinguish two conditions of the same name."""
    runs = _files(a, b) or (a.run, b.run)
    found = {}
    for left, right in pairs:
        apart = f"{left} ({runs[0]})", f"{right} ({runs[1]})"
        found[left, right] = (left, right) if left != right else apart

    return found


def _pairing(effect: Difference, found: Compared) -> Pairing:
    a = found.a
    b = found.b
    both = a.there & b.there
    change = np.where(both, b.means - a.means, 0.0)
    if a.metric.direction == "lower":
        gain = -change
    else:
        gain = change

    mean_a, mean_b = (side.only(both).plain_mean if both.any() else None for side in (a, b))

    # The questions that moved most: first those in the direction of the mean, then those
    # against it
    if gain.sum() >= 0:
        forward = gain
    else:
        forward = -gain

    order = np.lexsort((np.arange(len(gain)), -np.abs(forward))).tolist()
    along = [row for row in order if forward[row] > NOISE]
    against = [row for row in order if forward[row] < -NOISE]
    n_against = min(len(against), max(FLIPS // 3, FLIPS - len(along)))
    flips = tuple(
        Flip(
            sample=a.keys[row][0],
            a=float(a.means[row]),
            b=float(b.means[row]),
            difference=float(change[row]),
        )
        for row in [*along[: FLIPS - n_against], *against[:n_against]]
    )

    return Pairing(
        difference=effect,
        mean_a=mean_a,
        mean_b=mean_b,
        better=int((gain > NOISE).sum()),
        worse=int((gain < -NOISE).sum()),
        equal=int((both & (np.abs(gain) <= NOISE)).sum()),
        flips=flips,
    )


def _files(a: Summary, b: Summary) -> tuple[str, str] | None:
    """The files that two imported runs were read from; None if these do not tell them apart."""
    sources = a.provenance.source, b.provenance.source
    # answers that karat replayed: the runs have names
    if not all("format" in source for source in sources):
        return None
    first, second = (source.get("file") for source in sources)
    if first is None or second is None or first == second:
        return None
    return (first, second)


def _side(summary: Summary, label: str, condition: str | None) -> Side:
    return Side(
        label=label,
        run=summary.run,
        name=summary.name,
        condition=condition,
        sha256=summary.provenance.sha256,
    )


def _warnings(
    a: Summary,
    b: Summary,
    metrics: Sequence[MetricInfo],
    unlike: tuple[int, bool],
    pairings: Sequence[Pairing],
) -> list[str]:
    changed, drawn_otherwise = unlike
    unit = _unit(a)
    if REHEARSED in (*a.warnings, *b.warnings):
        caveats = [REHEARSED]
    else:
        caveats = []

    if changed:
        text = formats.plural(changed, f"{unit} has", f"{unit}s have")
        caveats.append(f"{text} the same id but another content in the two runs: left out")

    if drawn_otherwise:
        caveats.append(
            "the two runs drew their samples with other weights: what both have is compared "
            "without weights"
        )

    ours, theirs = ({metric.key: metric for metric in summary.metrics} for summary in (a, b))
    caveats += [
        f"{key} is {_meaning(ours[key])} in run {a.run}, and {_meaning(theirs[key])} in run "
        f"{b.run}: no side is called better on it"
        for key in (metric.key for metric in metrics)
        if _scale(ours[key]) != _scale(theirs[key])
    ]
    caveats += [
        f"{metric.key} was scored differently in the two runs: score both alike with `karat score`"
        for metric in metrics
        if theirs[metric.key].scoring != metric.scoring
    ]
    for summary in {a.run: a, b.run: b}.values():
        if summary.status != "done":
            caveats.append(f"run {summary.run} is not complete (status: {summary.status})")
        if summary.stopping is not UNSET and summary.stopping.out:
            caveats.append(
                f"run {summary.run} ended early, once it was decided: intervals and p-values here "
                f"do not allow for that; `karat report` shows those that do"
            )

    alike: dict[tuple[str, str, int], list[str]] = {}
    for pair in (pairing.difference for pairing in pairings):
        if pair.lost_a != pair.lost_b:
            alike.setdefault((pair.a, pair.b, pair.lost_a + pair.lost_b), []).append(pair.metric)

    for (left, right, count), lost_on in alike.items():
        lost = formats.plural(count, unit)
        if len(lost_on) == 1:
            on = lost_on[0]
        else:
            on = f"{len(lost_on)} metrics"

        so = "the compared parts may differ"
        if any(lacks_plan(summary.provenance.source) for summary in (a, b)):
            so = "a row that a table lacks counts as lost: compare tables of the same questions"
        caveats.append(f"{right} against {left} on {on}: {lost} scored on one side only; {so}")

    few = few_clusters([pairing.difference for pairing in pairings])
    if few:
        caveats.append(few)
    return list(dict.fromkeys(caveats))


def _meaning(metric: MetricInfo) -> str:
    better = {
        "higher": "better when higher",
        "lower": "better when lower",
        "none": "better in no direction",
    }
    return f"{'a share' if metric.percent else 'a number'}, {better[metric.direction]}"
