"""Drawing answers for people, and evaluating the judge and the run by their scores."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import msgspec
import numpy as np

from karat import formats
from karat.analysis.details import trials
from karat.analysis.estimates import estimated
from karat.analysis.model import MetricInfo, Summary, metric_of
from karat.analysis.numbers import Estimate, known
from karat.analysis.panels import nearest_steps
from karat.analysis.parts import kind_of
from karat.analysis.people import Calibrated, Corrected, Disagreement, MetricAgreement
from karat.analysis.verdicts import NO_DIFFERENCE, verdict, winner
from karat.errors import BadOption, did_you_mean
from karat.journal import RunFolder
from karat.journal.calibration import Draw, Scores, Stratum, read_calibrations
from karat.stats import (
    Interval,
    calibrate,
    cohen_kappa,
    draw_for_labels,
    gwet_ac,
    krippendorff_alpha,
    labels_needed,
    stratified_difference,
    stratified_mean,
)
from karat.stats.labels import Target

_SHOWN = 10  # disagreements, at most
_REMEDY = (
    "draw some with `karat label RUN --sample 50 --out sheet.csv`, have them scored, and give the "
    "sheet to `karat label RUN sheet.csv`"
)


def metrics_for_people(summary: Summary, names: Sequence[str]) -> list[MetricInfo]:
    """The metrics that people score: those named, else all metrics of the first metric's scorer.

    Raises BadOption for a run whose answers people cannot score as a whole, and for unknown names.
    """
    kind = kind_of(summary.kind)
    if kind.by_turn or not kind.compared:
        raise BadOption(
            "label --sample",
            f"answers to a {summary.kind} dataset are reviewed turn by turn: use `karat view`",
        )

    if not summary.metrics:
        raise BadOption(
            "label --sample",
            f"run {summary.run} has no scores: score it first, `karat score RUN --judge MODEL`",
        )

    if names:
        return [metric_of(summary, name) for name in dict.fromkeys(names)]
    return [info for info in summary.metrics if info.scorer == summary.metrics[0].scorer]


def draw_answers(
    run: RunFolder,
    summary: Summary,
    size: int,
    *,
    metric: MetricInfo,
    seed: int,
) -> Draw:
    """Draws answers in proportion to the strata of condition and judge's score. The same seed gives
    the same draw.

    Raises BadOption if no answer has a score.
    """
    rows = [
        (trial.answer.trial, trial.condition, value)
        for trial in trials(run, summary)
        if trial.answer is not None
        and len(trial.sample.turns) == 1
        and (value := trial.value(metric)) is not None
    ]
    if not rows:
        raise BadOption(
            "label --sample",
            f"no answer of run {summary.run} to a single question has a score on '{metric.key}'",
        )

    names = [row[0] for row in rows]
    conditions = [row[1] for row in rows]
    scores = [row[2] for row in rows]
    draw = draw_for_labels(scores, conditions, size, rng=np.random.default_rng(seed))
    members: list[list[int]] = [[] for _ in draw.sizes]
    for row, stratum in enumerate(draw.strata):
        members[stratum].append(row)
    strata = tuple(
        Stratum(
            condition=conditions[mine[0]],
            low=min(scores[row] for row in mine),
            high=max(scores[row] for row in mine),
            trials=tuple(names[row] for row in mine),
        )
        for mine in members
    )
    drawn = tuple(names[row] for row in draw.rows)

    # Six consonants, which no spreadsheet mistakes for a number, a date or a formula
    content = msgspec.json.encode((summary.run, metric.key, seed, strata, drawn))
    letters = "bcdfghjklmnpqrstvwxz"
    name = "".join(letters[byte % len(letters)] for byte in hashlib.sha256(content).digest()[:6])

    return Draw(
        id=name,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        metric=metric.key,
        seed=seed,
        strata=strata,
        drawn=drawn,
    )


class _Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer eligible for the draw, in the plan's order, as columns."""

    names: list[str] = []  # trial ids
    strata: list[int] = []
    conditions: list[str] = []
    samples: list[str] = []
    repetitions: list[int] = []
    questions: list[str] = []  # excerpts
    judge: dict[str, list[float]]  # metric → scores, NaN if there is none
    people: dict[str, dict[str, list[float]]]  # metric → person → scores, NaN if there is none


def calibrated(
    run: RunFolder,
    summary: Summary,
    *,
    draw: str | None = None,
    target: Target = "questions",
    half_width: float | None = None,
) -> Calibrated:
    """The judge compared with the people who scored drawn answers, and means and differences
    corrected by them.

    `draw`: one of the run's draws; default: the newest with a score. `half_width`: also give the
    number of labels for an interval of ±`half_width`. Raises BadOption if the run has no labels of
    drawn answers.
    """
    kept = read_calibrations(run)
    if draw is not None and draw not in kept.draws:
        raise BadOption(
            "--draw", f"run {summary.run} has no draw '{draw}'{did_you_mean(draw, kept.draws)}"
        )
    usable = []
    for taken in kept.draws.values():
        if kept.scores.get(taken.id) and draw in (None, taken.id):
            usable.append(taken)

    if not usable:
        raise BadOption("labels", f"run {summary.run} has no labels of drawn answers: {_REMEDY}")
    chosen = usable[-1]
    scores = kept.scores[chosen.id]
    given = {
        metric
        for by_person in scores.values()
        for labels in by_person.values()
        for metric in labels
    }
    infos = [info for info in summary.metrics if info.key in given]
    rows, besides = _rows(run, summary, chosen, infos, scores)
    corrected: list[Corrected] = []
    disagreements: list[Disagreement] = []
    for info in infos:
        pairs: list[tuple[str, str | None]] = [(name, None) for name in summary.conditions]
        pairs += [(pair.b, pair.a) for pair in summary.differences if pair.metric == info.key]
        corrected += [
            _corrected(rows, info, b, a, target, summary.level, half_width)
            for b, a in pairs
            if {b, a or b} <= set(rows.conditions)
        ]
        places = {trial: at for at, trial in enumerate(chosen.drawn, start=1)}
        people = _people(rows, info)
        judge = np.array(rows.judge[info.key])
        gap = np.abs(judge - people)
        for row in np.argsort(-gap, kind="stable").tolist()[:_SHOWN]:
            if gap[row] > 0:
                disagreements.append(
                    Disagreement(
                        metric=info.key,
                        row=f"{chosen.id}-{places[rows.names[row]]}",
                        sample=rows.samples[row],
                        condition=rows.conditions[row],
                        repetition=rows.repetitions[row],
                        judge=float(judge[row]),
                        people=float(people[row]),
                        question=rows.questions[row],
                    )
                )

    disagreements.sort(key=lambda disagreement: -abs(disagreement.judge - disagreement.people))
    unknown = sorted(given - {info.key for info in infos})
    return Calibrated(
        draw=chosen.id,
        strata_by=chosen.metric,
        strata=len(chosen.strata),
        target=target,
        level=summary.level,
        by=tuple(sorted({who for by_person in scores.values() for who in by_person})),
        drawn=len(chosen.drawn),
        labelled=len(scores),
        answers=len(rows.names),
        half_width=half_width,
        corrected=tuple(corrected),
        agreement=tuple(_agreement(rows, info, summary.level) for info in infos),
        disagreements=tuple(disagreements[:_SHOWN]),
        notes=tuple(_notes(rows, corrected, len(chosen.drawn) - len(scores), besides, unknown)),
    )


def with_corrected(run: RunFolder, summary: Summary) -> Summary:
    """The summary with the result of `calibrated`, which also says what is raised.

    The verdicts on differences that people's labels correct are those of the corrected ones.
    """
    people = calibrated(run, summary)
    rows = {
        (row.metric, row.condition, row.against): row
        for row in people.corrected
        if row.against is not None
    }
    infos = {info.key: info for info in summary.metrics}
    differences = []
    for pair in summary.differences:
        row = rows.get((pair.metric, pair.b, pair.a)) or rows.get((pair.metric, pair.a, pair.b))
        if row is None:
            differences.append(pair)
        else:
            # The comparison with the verdict of the corrected difference: shown if its interval
            # excludes 0
            info = infos[pair.metric]
            low = row.people.low
            high = row.people.high
            value = row.people.value or 0.0
            shown = low is not None and high is not None and (low > 0 or high < 0)
            if row.condition != pair.b:
                value = -value
            p = 0.0 if shown else 1.0
            differences.append(
                msgspec.structs.replace(
                    pair,
                    winner=winner(info, pair.a, pair.b, value, p),
                    verdict=verdict(info, pair.a, pair.b, value, p),
                    reason="verdict as people would score",
                    again=None,
                )
            )

    changed = [
        pair
        for before, pair in zip(summary.differences, differences, strict=True)
        if pair is not before
    ]
    if changed:
        pair = changed[0]
        if pair.verdict == NO_DIFFERENCE:
            found = f"{pair.verdict} between {pair.b} and {pair.a}"
        else:
            found = pair.verdict

        headline = f"{found} on {pair.metric}, as people would score"
    else:
        headline = summary.headline

    return msgspec.structs.replace(
        summary,
        calibrated=people,
        differences=tuple(differences),
        headline=headline,
    )


def _rows(
    run: RunFolder,
    summary: Summary,
    draw: Draw,
    infos: Sequence[MetricInfo],
    scores: Scores,
) -> tuple[_Rows, int]:
    """The answers of a draw, and how many other scored answers the run has."""
    strata = {}
    for at, stratum in enumerate(draw.strata):
        for trial in stratum.trials:
            strata[trial] = at

    names = sorted({who for by_person in scores.values() for who in by_person})
    rows = _Rows(
        judge={info.key: [] for info in infos},
        people={info.key: {who: [] for who in names} for info in infos},
    )
    besides = 0
    for record in trials(run, summary):
        if record.answer is None or record.answer.trial not in strata:
            besides += record.answer is not None and bool(record.scores)
            continue

        rows.names.append(record.answer.trial)
        rows.strata.append(strata[record.answer.trial])
        rows.conditions.append(record.condition)
        rows.samples.append(record.sample.id)
        rows.repetitions.append(record.repetition)
        rows.questions.append(formats.excerpt(record.sample.turns[0].question, 80))
        by_person = scores.get(record.answer.trial, {})
        for info in infos:
            value = record.value(info)
            rows.judge[info.key].append(math.nan if value is None else value)
            for who, column in rows.people[info.key].items():
                column.append(by_person.get(who, {}).get(info.key, math.nan))

    return rows, besides


def _people(rows: _Rows, info: MetricInfo) -> np.ndarray:
    """Each answer's mean over the people who scored it."""
    by_person = np.array(list(rows.people[info.key].values()))
    seen = np.isfinite(by_person)
    count = seen.sum(axis=0)
    return np.where(
        count > 0, np.where(seen, by_person, 0.0).sum(axis=0) / np.maximum(count, 1), math.nan
    )


def _notes(
    rows: _Rows,
    corrected: Sequence[Corrected],
    unlabelled: int,
    besides: int,
    unknown: Sequence[str],
) -> Iterable[str]:
    if unlabelled:
        yield (
            f"{formats.plural(unlabelled, 'drawn answer')} without a label: taken as left out at "
            f"random within their stratum"
        )

    if besides:
        yield (
            f"{formats.plural(besides, 'answer')} scored after the draw: not in the corrected "
            f"numbers"
        )

    if unknown:
        yield f"labels on {', '.join(unknown)} are left out: the run shows no such metric"
    asked: dict[str, set[str]] = {}
    for condition, sample in zip(rows.conditions, rows.samples, strict=True):
        asked.setdefault(condition, set()).add(sample)
    for a, b in dict.fromkeys(
        (pair.against, pair.condition) for pair in corrected if pair.against is not None
    ):
        if apart := asked[a] ^ asked[b]:
            yield (
                f"{b} − {a}: {formats.plural(len(apart), 'question')} scored under one of the two "
                f"only, and counted"
            )


def _corrected(
    rows: _Rows,
    info: MetricInfo,
    b: str,
    a: str | None,
    target: Target,
    level: float,
    half_width: float | None,
) -> Corrected:
    mine = [row for row, name in enumerate(rows.conditions) if name in (a, b)]
    strata, samples, groups = (
        [column[row] for row in mine] for column in (rows.strata, rows.samples, rows.conditions)
    )
    people = _people(rows, info)[mine]
    judge = np.array(rows.judge[info.key])[mine]

    def found(values: np.ndarray, target: Target, beside: np.ndarray | None = None) -> Interval:
        if a is None:
            return stratified_mean(
                values, strata, samples, judge=beside, target=target, level=level
            )
        return stratified_difference(
            values,
            strata,
            samples,
            groups=groups,
            a=a,
            b=b,
            judge=beside,
            target=target,
            level=level,
        )

    average = known(found(judge, "answers").value)
    scores = np.nan_to_num(judge, nan=average or 0.0)  # where the judge gave none
    estimate = found(people, target, scores)
    labelled = int(np.isfinite(people).sum())
    needed = None
    if half_width is not None:
        of_these = found(people, "answers", scores)
        now, drawing = ((one.high - one.low) / 2 for one in (estimate, of_these))
        if drawing > 0:
            if target == "questions":
                floor = math.sqrt(max(now**2 - drawing**2, 0.0))
            else:
                floor = 0.0

            needed = labels_needed(
                half_width,
                labelled=labelled,
                answers=len(mine),
                drawing=drawing,
                floor=floor,
            )
        elif now <= half_width:  # an interval that does not come from the draw
            needed = labelled

    if estimate.reason is not None and "stratum" in estimate.reason:
        estimate = replace(
            estimate, reason="a stratum has fewer than two labels: label more rows of the sheet"
        )

    if a is None:
        ends = (info.low, info.high)
    else:
        ends = (-info.width, info.width)

    return Corrected(
        metric=info.key,
        condition=b,
        against=a,
        judge=average,
        people=estimated(estimate, *ends),
        df=known(estimate.df),
        bias=estimated(found(judge - people, target), None, None),
        labelled=labelled,
        answers=len(mine),
        labels_needed=needed,
        percent=info.percent,
    )


def _agreement(rows: _Rows, info: MetricInfo, level: float) -> MetricAgreement:
    """Judge and people on the answers that both scored; each answer once, as drawn."""
    people = _people(rows, info)
    judge = np.array(rows.judge[info.key])
    both = np.flatnonzero(np.isfinite(people) & np.isfinite(judge)).tolist()
    samples = [rows.samples[row] for row in both]
    steps = info.steps
    scores, labels = (nearest_steps(column[both], steps) for column in (judge, people))
    by_person = []
    for column in rows.people[info.key].values():
        by_person.append([column[row] for row in both])
    shared = any(sum(map(math.isfinite, answer)) > 1 for answer in zip(*by_person, strict=True))
    kind: Literal["ordinal", "interval"] = "ordinal" if steps else "interval"

    def alpha(raters: Sequence[Sequence[float]]) -> Estimate:
        return estimated(
            krippendorff_alpha(*raters, clusters=samples, level=kind, confidence=level), -1, 1
        )

    kappa = ac2 = Interval(
        value=math.nan,
        level=level,
        n=0,
        method="",
        reason="the metric has no steps",
    )
    exact, confusion = None, None
    if steps:
        kappa = cohen_kappa(scores, labels, samples, categories=steps, level=level)
        ac2 = gwet_ac(scores, labels, clusters=samples, categories=steps, level=level)
        table = calibrate(scores, labels, categories=steps)
        exact = known(table.exact)
        confusion = table.confusion

    if shared:
        people_alpha = alpha(by_person)
    else:
        people_alpha = None

    return MetricAgreement(
        metric=info.key,
        labelled=len(both),
        questions=len(set(samples)),
        exact=exact,
        kappa=estimated(kappa, -1, 1),
        ac2=estimated(ac2, -1, 1),
        alpha=alpha([scores, labels]),
        people_alpha=people_alpha,
        steps=tuple(steps),
        confusion=confusion or (),
    )
