"""One metric over the runs of an experiment: where it changed, and whether it is changing."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from karat.analysis.model import Summary, check_condition, metric_of
from karat.analysis.numbers import Estimate
from karat.errors import BadOption, did_you_mean
from karat.stats import Alarm, ChangePoint, change_point, cusum_alarm, whitened


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The metric in one run."""

    run: str
    created: str
    estimate: Estimate


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One metric under one condition, oldest run first."""

    condition: str
    metric: str
    points: tuple[Point, ...]
    change: ChangePoint  # one retrospective test
    alarm: Alarm  # as tested after every run
    correlation: float | None  # of neighbouring runs; if it is large, it is removed before testing
    percent: bool = False


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one experiment over one dataset."""

    name: str
    dataset: str  # path
    sha256: str
    runs: int
    left_out: int  # runs of other experiments or datasets
    series: tuple[Series, ...]


def history(
    summaries: Iterable[Summary],
    *,
    name: str | None = None,
    metric: str | None = None,
    condition: str | None = None,
) -> History:
    """Follows each condition of an experiment on one metric, by default the first of the newest
    run.

    Runs over the same dataset, by content, and with the newest's name (or `name`); others are
    counted and left out. Raises BadOption if no run is left, and for names that the newest does not
    have.
    """
    every = sorted(summaries, key=lambda summary: summary.created)
    named = [summary for summary in every if name is None or summary.name == name]
    if not named:
        known = sorted({summary.name for summary in every})
        if name is not None:
            hint = did_you_mean(name, known)
        else:
            hint = ""

        raise BadOption(
            "compare --history",
            f"no run of '{name}'{hint}" if name is not None else "there are no runs",
        )

    newest = named[-1]
    alike = []
    for run in named:
        if run.name == newest.name and run.provenance.sha256 == newest.provenance.sha256:
            alike.append(run)

    if not newest.metrics:
        raise BadOption("compare --history", f"run {newest.run} has no scores")
    if metric is None:
        info = newest.metrics[0]
    else:
        info = metric_of(newest, metric)

    if condition is not None:
        check_condition(newest, condition, option="--condition")
    if condition is None:
        chosen = newest.conditions
    else:
        chosen = (condition,)

    series = []
    for label in chosen:
        points = []
        for summary in alike:
            for result in summary.results:
                shown = (result.condition, result.metric) == (label, info.key)
                if shown and result.mean.value is not None:
                    points.append(
                        Point(run=summary.run, created=summary.created, estimate=result.mean)
                    )

        values, correlation = whitened([point.estimate.value or 0.0 for point in points])
        series.append(
            Series(
                condition=label,
                metric=info.key,
                points=tuple(points),
                # each series gets its own permutations
                change=change_point(values, rng=np.random.default_rng(0)),
                alarm=cusum_alarm(values),
                correlation=None if np.isnan(correlation) else correlation,
                percent=info.percent,
            )
        )

    return History(
        name=newest.name,
        dataset=newest.provenance.dataset,
        sha256=newest.provenance.sha256,
        runs=len(alike),
        left_out=len(every) - len(alike),
        series=tuple(series),
    )
