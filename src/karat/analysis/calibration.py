"""Drawing answers for people, and what their scores say of the judge and of the run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from karat import formats
from karat.analysis.details import trials
from karat.analysis.estimates import estimated, known
from karat.analysis.model import MetricInfo, Summary
from karat.analysis.numbers import Estimate
from karat.analysis.parts import kind_of
from karat.analysis.people import Calibrated, CorrectedDifference, CorrectedMean, Disagreement, MetricAgreement
from karat.errors import BadOption, did_you_mean
from karat.journal import RunFolder
from karat.journal.calibration import Calibrations, Draw, Stratum, read_calibrations
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

__all__ = ["calibrated", "draw_answers", "metrics_for_people", "steps_of", "with_corrected"]

_SHOWN = 10  # disagreements
_MOST_STEPS = 100
_REMEDY = "draw some with `karat sample RUN --for-labels 50 --out sheet.csv`, have them scored, and give the sheet to "


def steps_of(info: MetricInfo) -> list[float]:
    """What a person can give on a metric; empty: any number of its scale."""
    if info.percent:
        return [0.0, 1.0]
    if info.kind != "ordinal" or info.low is None or info.high is None or info.low != int(info.low):
        return []
    return (
        [float(step) for step in range(int(info.low), int(info.high) + 1)] if info.high - info.low < _MOST_STEPS else []
    )


def metrics_for_people(summary: Summary, names: Sequence[str] = ()) -> list[MetricInfo]:
    """The metrics that people score: those named, else every one of the first metric's scorer.

    Raises BadOption for a run whose answers people cannot score as a whole, and for unknown names.
    """
    kind = kind_of(summary.kind)
    if kind.by_turn or not kind.compared:
        raise BadOption("sample", f"answers of {kind.unit}s are reviewed turn by turn: use `karat view`")
    if not summary.metrics:
        raise BadOption("sample", f"run {summary.run} has no scores: score it first, `karat score RUN --judge MODEL`")
    keys = [info.key for info in summary.metrics]
    for name in names:
        if name not in keys:
            raise BadOption("--metric", f"run {summary.run} has no metric '{name}'{did_you_mean(name, keys)}")
    if names:
        return [summary.metrics[keys.index(name)] for name in dict.fromkeys(names)]
    return [info for info in summary.metrics if info.scorer == summary.metrics[0].scorer]


def draw_answers(run: RunFolder, summary: Summary, size: int, *, metric: MetricInfo, seed: int) -> Draw:
    """Draws answers in proportion to the strata of condition and judge's score. The same seed gives the same draw.

    Raises BadOption where no answer has a score.
    """
    rows = [(one.answer.trial, one.condition, value) for one in trials(run, summary)
            if one.answer is not None and (value := one.value(metric)) is not None]  # fmt: skip
    if not rows:
        raise BadOption("sample", f"no answer of run {summary.run} has a score on '{metric.key}'")
    names, conditions, scores = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
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
    return Draw(
        id=_name(msgspec.json.encode((summary.run, metric.key, seed, strata, drawn))),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        metric=metric.key,
        seed=seed,
        strata=strata,
        drawn=drawn,
    )


def _name(content: bytes) -> str:
    """Six consonants, which no spreadsheet takes for a number, a date or a formula."""
    letters = "bcdfghjklmnpqrstvwxz"
    return "".join(letters[byte % len(letters)] for byte in hashlib.sha256(content).digest()[:6])


class _Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer that could be drawn, in the plan's order."""

    names: list[str] = []  # trial ids
    strata: list[int] = []
    conditions: list[str] = []
    samples: list[str] = []
    repetitions: list[int] = []
    questions: list[str] = []  # excerpts
    judge: dict[str, list[float]]  # metric → scores, NaN where there is none

    def chosen(self, conditions: Iterable[str]) -> list[int]:
        wanted = set(conditions)
        return [row for row, name in enumerate(self.conditions) if name in wanted]


def calibrated(
    run: RunFolder,
    summary: Summary,
    *,
    draw: str | None = None,
    target: Target = "questions",
    half_width: float | None = None,
) -> Calibrated:
    """The judge compared with the people who scored drawn answers, and means and differences corrected by them.

    `draw`: one of the run's draws; default: the newest with a score. `half_width`: also say how many labels an
    interval of ±so much needs. Raises BadOption where the run has no labels of drawn answers.
    """
    kept = read_calibrations(run)
    chosen = _draw(kept, draw, summary.run)
    people = kept.scores.get(chosen.id, {})
    given: dict[str, dict[str, list[float]]] = {}  # metric → trial → scores
    for trial, by_person in people.items():
        for scores in by_person.values():
            for metric, score in scores.items():
                given.setdefault(metric, {}).setdefault(trial, []).append(score)
    infos = [info for info in summary.metrics if info.key in given]
    rows, besides = _rows(run, summary, chosen, infos)
    means, differences, agreement, apart = [], [], [], []
    for info in infos:
        one = _Metric(info, rows, {name: sum(s) / len(s) for name, s in given[info.key].items()}, target, summary.level)
        means += [one.mean(condition, half_width) for condition in summary.conditions if condition in rows.conditions]
        pairs = [(pair.a, pair.b) for pair in summary.differences if pair.metric == info.key]
        differences += [one.difference(a, b, half_width) for a, b in pairs if {a, b} <= set(rows.conditions)]
        agreement.append(one.agreement(people))
        apart += one.disagreements(chosen)
    apart.sort(key=lambda one: -abs(one.judge - one.people))
    return Calibrated(
        draw=chosen.id,
        strata_by=chosen.metric,
        strata=len(chosen.strata),
        target=target,
        level=summary.level,
        people=tuple(sorted({who for by_person in people.values() for who in by_person})),
        drawn=len(chosen.drawn),
        labelled=len(people),
        answers=len(rows.names),
        half_width=half_width,
        means=tuple(means),
        differences=tuple(differences),
        agreement=tuple(agreement),
        disagreements=tuple(apart[:_SHOWN]),
        notes=tuple(_notes(summary, chosen, rows, len(people), besides, sorted(set(given) - {i.key for i in infos}))),
    )


def with_corrected(run: RunFolder, summary: Summary) -> Summary:
    """The summary with what `calibrated` says. Raises as that."""
    return msgspec.structs.replace(summary, calibrated=calibrated(run, summary))


def _draw(kept: Calibrations, name: str | None, run: str) -> Draw:
    if name is not None and name not in kept.draws:
        raise BadOption("--draw", f"run {run} has no draw '{name}'{did_you_mean(name, kept.draws)}")
    usable = [draw for draw in kept.draws.values() if kept.scores.get(draw.id) and name in (None, draw.id)]
    if not usable:
        raise BadOption("labels", f"run {run} has no labels of drawn answers: {_REMEDY}`karat calibrate RUN sheet.csv`")
    return usable[-1]


def _rows(run: RunFolder, summary: Summary, draw: Draw, infos: Sequence[MetricInfo]) -> tuple[_Rows, int]:
    """The answers of a draw, and how many scored answers the run has besides."""
    strata = {trial: at for at, stratum in enumerate(draw.strata) for trial in stratum.trials}
    rows, besides = _Rows(judge={info.key: [] for info in infos}), 0
    for record in trials(run, summary):
        if record.answer is None or record.answer.trial not in strata:
            besides += record.answer is not None and bool(record.scores)
            continue
        rows.names.append(record.answer.trial)
        rows.strata.append(strata[record.answer.trial])
        rows.conditions.append(record.condition)
        rows.samples.append(record.sample.id)
        rows.repetitions.append(record.repetition)
        rows.questions.append(formats.excerpt(record.sample.turns[0].question, 80) if record.sample.turns else "")
        for info in infos:
            value = record.value(info)
            rows.judge[info.key].append(math.nan if value is None else value)
    return rows, besides


def _notes(
    summary: Summary, draw: Draw, rows: _Rows, labelled: int, besides: int, unknown: Sequence[str]
) -> Iterable[str]:
    if labelled < len(draw.drawn):
        yield (
            f"{formats.plural(len(draw.drawn) - labelled, 'drawn answer')} without a label: they are taken as left out "
            "at random within their stratum"
        )
    if besides:
        yield f"{formats.plural(besides, 'answer')} scored after the draw: not in the corrected numbers"
    if unknown:
        yield f"labels on {', '.join(unknown)} are left out: the run shows no such metric"
    lost = sum(len(stratum.trials) for stratum in draw.strata) - len(rows.names)
    if lost:
        yield f"{formats.plural(lost, 'answer')} of the draw no longer in the run"
    for a, b in combinations(summary.conditions, 2):
        asked = [{name for name, where in zip(rows.samples, rows.conditions, strict=True) if where == one}
                 for one in (a, b)]  # fmt: skip
        if asked[0] and asked[1] and asked[0] != asked[1]:
            one_sided = len(asked[0] ^ asked[1])
            yield f"{b} − {a}: {formats.plural(one_sided, 'question')} scored under one of the two only, and counted"


class _Metric:
    """One metric of a draw."""

    def __init__(
        self, info: MetricInfo, rows: _Rows, people: Mapping[str, float], target: Target, level: float
    ) -> None:
        self.info, self._rows, self._target, self._level = info, rows, target, level
        self._people = np.array([people.get(name, math.nan) for name in rows.names])
        self._judge = np.array(rows.judge[info.key])

    def mean(self, condition: str, half_width: float | None) -> CorrectedMean:
        mine = self._rows.chosen([condition])
        people, judge = self._people[mine], self._judge[mine]
        strata, samples = ([column[row] for row in mine] for column in (self._rows.strata, self._rows.samples))

        def found(target: Target, values: np.ndarray) -> Interval:
            return stratified_mean(values, strata, samples, target=target, level=self._level)

        corrected, labelled = found(self._target, people), int(np.isfinite(people).sum())
        return CorrectedMean(
            metric=self.info.key,
            condition=condition,
            judge=known(float(judge.mean())),
            corrected=self._estimate(corrected, self.info.low, self.info.high),
            df=known(corrected.df),
            bias=self._estimate(found(self._target, judge - people)),
            labelled=labelled,
            answers=len(mine),
            labels_needed=self._needed(half_width, corrected, found("answers", people), labelled, len(mine)),
            percent=self.info.percent,
        )

    def difference(self, a: str, b: str, half_width: float | None) -> CorrectedDifference:
        mine = self._rows.chosen([a, b])
        people = self._people[mine]
        strata, samples, named = (
            [column[row] for row in mine] for column in (self._rows.strata, self._rows.samples, self._rows.conditions)
        )

        def found(target: Target) -> Interval:
            return stratified_difference(
                people, strata, samples, groups=named, a=a, b=b, target=target, level=self._level
            )

        first, second = (float(self._judge[self._rows.chosen([one])].mean()) for one in (a, b))
        corrected, labelled = found(self._target), int(np.isfinite(people).sum())
        return CorrectedDifference(
            metric=self.info.key,
            a=a,
            b=b,
            judge=known(second - first),
            corrected=self._estimate(corrected),
            labelled=labelled,
            answers=len(mine),
            labels_needed=self._needed(half_width, corrected, found("answers"), labelled, len(mine)),
            percent=self.info.percent,
        )

    def _estimate(self, found: Interval, low: float | None = None, high: float | None = None) -> Estimate:
        if found.reason is not None and "stratum" in found.reason:
            reason = "a stratum has fewer than two labels: label more rows of the sheet"
            return msgspec.structs.replace(estimated(found, low, high), reason=reason)
        return estimated(found, low, high)

    def _needed(
        self, half_width: float | None, found: Interval, of_answers: Interval, labelled: int, answers: int
    ) -> int | None:
        if half_width is None:
            return None
        now, drawing = ((one.high - one.low) / 2 for one in (found, of_answers))
        floor = math.sqrt(max(now**2 - drawing**2, 0.0)) if self._target == "questions" else 0.0
        if not math.isfinite(floor) or drawing == 0:  # an interval that does not come from the draw
            return labelled if now <= half_width else None
        return labels_needed(half_width, labelled=labelled, answers=answers, drawing=drawing, floor=floor)

    def agreement(self, by_trial: Mapping[str, Mapping[str, Mapping[str, float]]]) -> MetricAgreement:
        """Judge and people on the answers that both scored; each answer once, as it was drawn."""
        both = np.flatnonzero(np.isfinite(self._people) & np.isfinite(self._judge)).tolist()
        samples, steps = [self._rows.samples[row] for row in both], steps_of(self.info)
        judge, people = (_nearest(column[both], steps) for column in (self._judge, self._people))
        names = sorted({who for row in both for who in by_trial[self._rows.names[row]]})
        each = [[by_trial[self._rows.names[row]].get(who, {}).get(self.info.key) for row in both] for who in names]
        shared = any(sum(score is not None for score in scores) > 1 for scores in zip(*each, strict=True))
        kind: Literal["ordinal", "interval"] = "ordinal" if steps else "interval"

        def alpha(*raters: Sequence[float | None]) -> Estimate:
            return estimated(krippendorff_alpha(*raters, clusters=samples, level=kind, confidence=self._level), -1, 1)

        nothing = Interval(
            value=math.nan, level=self._level, n=0, method="", reason="the metric has no steps" if both else "no labels"
        )
        kappa = ac2 = nothing
        if steps and both:
            kappa = cohen_kappa(judge, people, samples, categories=steps, level=self._level)
            ac2 = gwet_ac(judge, people, clusters=samples, categories=steps, level=self._level)
        table = calibrate(judge, people, categories=steps) if steps and both else None
        return MetricAgreement(
            metric=self.info.key,
            labelled=len(both),
            questions=len(set(samples)),
            exact=None if table is None else table.exact,
            kappa=estimated(kappa, -1, 1),
            ac2=estimated(ac2, -1, 1),
            alpha=alpha(judge, people) if both else estimated(nothing, -1, 1),
            people_alpha=alpha(*each) if shared else None,
            steps=tuple(steps),
            confusion=(table.confusion or ()) if table is not None else (),
        )

    def disagreements(self, draw: Draw) -> list[Disagreement]:
        places = {trial: at for at, trial in enumerate(draw.drawn, start=1)}
        gap = np.abs(self._judge - self._people)
        rows = [row for row in np.argsort(-gap, kind="stable").tolist() if gap[row] > 0][:_SHOWN]
        return [
            Disagreement(
                metric=self.info.key,
                row=f"{draw.id}-{places[self._rows.names[row]]}",
                sample=self._rows.samples[row],
                condition=self._rows.conditions[row],
                repetition=self._rows.repetitions[row],
                judge=float(self._judge[row]),
                people=float(self._people[row]),
                question=self._rows.questions[row],
            )
            for row in rows
        ]


def _nearest(values: np.ndarray, steps: Sequence[float]) -> list[float]:
    """Each value at the nearest step, halfway at the upper one."""
    if not steps:
        return [float(value) for value in values]
    return [min(max(math.floor(value + 0.5), steps[0]), steps[-1]) + 0.0 for value in values.tolist()]
