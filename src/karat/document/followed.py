"""A metric over runs, as a document."""

from __future__ import annotations

from karat import formats
from karat.analysis.history import History
from karat.blocks import Axis, Chart, Curve, Plane, Row, Section, Table, Text, columns, estimate
from karat.blocks import Point as Place
from karat.document.run import Document

ALPHA = 0.05


def history_document(history: History) -> Document:
    """What changed and when, one line per condition; then every run with its interval."""
    facts = [("Runs", formats.count(history.runs)), ("Dataset", history.dataset)]
    if history.left_out:
        facts.append(
            (
                "Left out",
                f"{formats.plural(history.left_out, 'run')} of other experiments or datasets",
            )
        )

    verdicts = []
    for series in history.series:
        change = series.change
        alarm = series.alarm
        if alarm.index is not None and alarm.since is not None:
            way = "up" if alarm.upwards else "down"
            since = series.points[alarm.since]
            at = series.points[alarm.index]
            verdict = f"went {way} since about run {since.run} (alarm at run {at.run})"
        elif change.index is not None and change.p <= ALPHA:
            at = series.points[change.index]
            write = formats.share if series.percent else formats.number
            verdict = (
                f"changed at run {at.run}, from {write(change.before)} to {write(change.after)} "
                f"({formats.p_value(change.p)})"
            )
        else:
            verdict = change.reason or "no change shown"

        verdicts.append(f"{series.condition}: {verdict}")

    return Document(
        name=(
            f"{history.name}: {history.series[0].metric} over {formats.plural(history.runs, 'run')}"
        ),
        verdicts=tuple(verdicts),
        facts=tuple(facts),
        sections=(Section(id="history", title="History", blocks=(history_chart(history),)),),
    )


def history_chart(history: History) -> Chart:
    """Runs from left to right, one line per condition, with the interval of each mean."""
    runs = {}
    for series in history.series:
        for point in series.points:
            runs[point.run] = point.created

    order = {run: at + 1 for at, run in enumerate(sorted(runs, key=lambda run: runs[run]))}
    percent = any(series.percent for series in history.series)
    curves = tuple(
        Curve(
            points=tuple(
                Place(
                    x=order[p.run],
                    y=p.estimate.value,
                    low=p.estimate.low,
                    high=p.estimate.high,
                    label=p.run,
                )
                for p in series.points
                if p.estimate.value is not None
            ),
            form="lines",
            series=at,
        )
        for at, series in enumerate(history.series)
    )
    means = {}
    for series in history.series:
        for point in series.points:
            means[(series.condition, point.run)] = point.estimate

    conditions = [series.condition for series in history.series]
    rows = []
    for run in order:
        cells = [estimate(means.get((name, run)), percent=percent) for name in conditions]
        rows.append(Row(name=run, cells=(Text(runs[run][:16]), *cells)))

    return Chart(
        name="history",
        title=f"{history.series[0].metric} of {history.name}",
        description="One point a run, the oldest on the left, with the interval of its mean.",
        panels=(
            Plane(
                x=Axis(title="run", whole=True),
                y=Axis(title=history.series[0].metric, percent=percent),
                curves=curves,
                height=220,
            ),
        ),
        table=Table(
            caption=history.series[0].metric,
            columns=columns("run", "made", *conditions, text=("made",)),
            rows=tuple(rows),
            brief=True,
            limit=40,
            rest="with --json",
        ),
        legend=tuple(conditions),
    )
