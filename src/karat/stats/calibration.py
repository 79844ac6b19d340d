"""A judge compared with people: its bias, and the scores people would have given overall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from karat.stats import special
from karat.stats._groups import Floats, Groups, check_level, columns, group
from karat.stats.intervals import centred_mean, mean_interval, t_interval
from karat.stats.labels import Target, around, stratified_mean
from karat.stats.results import Interval
from karat.sums import exact_sum

Bools = npt.NDArray[np.bool_]

# if p of equal labelled shares for all scores is below it, the draw was not random
NOT_RANDOM = 1e-4
FEW_SCORES = 20  # most different scores of a judge in that test


class Calibration(Struct, frozen=True, kw_only=True):
    """A judge's scores compared with people's. Each question counts once."""

    bias: Interval  # judge less person, where both scored
    # the judge's mean over everything it scored, as reported if no people scored anything
    judge: Interval
    people: Interval  # the people's mean over what they scored
    # the mean people would have given to everything; for many more unlabelled than labelled
    corrected: Interval
    steps: tuple[float, ...]  # of the rows and columns of `confusion`
    # row: the person's step, column: the judge's. None: no steps given
    confusion: tuple[tuple[int, ...], ...] | None
    exact: float  # share of answers on the same step; NaN: no steps given, or no answers
    labelled: int  # answers that both scored
    unlabelled: int  # answers that only the judge scored
    dropped: int  # answers that a person scored and the judge did not


def calibrate(
    judge: Iterable[object],
    human: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    strata: Iterable[object] | None = None,
    target: Target = "questions",
    categories: Sequence[float] | None = None,
    level: float = 0.95,
) -> Calibration:
    """A judge's bias, step by step and on average, and its mean corrected by people's scores.

    One entry per answer: the judge's score, and the person's, None or NaN if there is none. Answers
    of one cluster (a question) are averaged first. `categories`: the steps of the scale; a mean
    over repeats or people counts at the nearest step, halfway at the upper. Raises ValueError for a
    score beyond them.

    `corrected` is the judge's mean over the answers that people did not score, plus the mean of
    person less judge over those that both scored. It estimates people's mean score of answers like
    these, however bad the judge is, provided that the answers people scored were drawn at random; a
    better judge makes it narrower. `strata`: the stratum each answer was drawn from for people (the
    judge's score, say), if they were not drawn uniformly: `corrected` is then Σ W_h·ȳ_h over the
    strata, W_h their shares of what the judge scored. `target` is what its interval is about:
    `"questions"` like these, or `"answers"`, only these, whose interval is narrower (it covers the
    value for such questions in 38–92 % of cases); see `stratified_mean`. Draws with equal numbers
    per score give means that are off by .11 to .19 on a scale of five steps, so a labelled share
    that differs between the judge's scores beyond chance (p < 0.0001) is refused without strata.
    `people` and `bias` are of the answers that people scored, unweighted.

    Without strata, it is meant for many more unread answers than read ones. With few its interval
    is wider than that of `people`: 100 read and 10 unread have an error of about 0.35 where
    people's own mean has 0.10. With one unread question it has no interval, and `reason` explains
    it; with none it is people's own mean.

    >>> found = calibrate(
    ...     [5, 4, 5, 3, 4, 5, 5, 2],
    ...     [4, 4, 5, 2, None, None, None, None],
    ...     categories=[1, 2, 3, 4, 5],
    ... )
    >>> found.bias.value, found.exact, found.corrected.value
    (0.5, 0.5, 3.5)

    Angelopoulos et al. (2023), Science 382:669; Särndal et al. (1992), Model Assisted Survey
    Sampling, 3.7 and 5.
    """
    check_level(level)

    judged = columns("judge", judge)
    people = columns("human", human)
    if judged.size != people.size:
        raise ValueError(
            f"human: must be one an answer, as judge ({judged.size}), got {people.size}"
        )

    at = list(range(judged.size)) if clusters is None else list(clusters)
    if len(at) != judged.size:
        raise ValueError(f"clusters: expected one per answer ({judged.size}), got {len(at)}")

    draw = _Draw(judged, people, at)
    has_judge = np.isfinite(judged)
    has_human = np.isfinite(people)
    both = has_judge & has_human
    alone = has_judge & ~has_human

    def over(values: Floats, rows: Bools) -> Interval:
        return mean_interval(values[rows], draw.clusters_of(rows), level=level)

    def by_question(values: Floats, rows: Bools) -> Groups:
        return group(values[rows], draw.clusters_of(rows))

    if target not in ("questions", "answers"):
        raise ValueError(f"target: must be questions or answers, got {target!r}")
    if strata is not None:
        known = list(strata)
        if len(known) != judged.size:
            raise ValueError(f"strata: expected one per answer ({judged.size}), got {len(known)}")
        rows = np.flatnonzero(has_judge)
        corrected = stratified_mean(
            people[rows],
            [known[row] for row in rows.tolist()],
            draw.clusters_of(rows),
            target=target,
            level=level,
        )
    else:  # it is not given how the answers were drawn
        _refuse_strata(judged[has_judge], both[has_judge])
        corrected = _corrected(
            by_question(judged, alone), by_question(people - judged, both), over(people, both)
        )

    confusion: tuple[tuple[int, ...], ...] | None = None
    exact = math.nan
    if categories is not None:
        steps = columns("categories", categories)
        if not steps.size or not np.isfinite(steps).all() or (np.diff(steps) <= 0).any():
            raise ValueError("categories: must be numbers that rise")
        for name, scored in (("judge", judged[both]), ("human", people[both])):
            outside = scored[(scored < steps[0]) | (scored > steps[-1])]
            if outside.size:
                span = f"{steps[0]:g} to {steps[-1]:g}"
                raise ValueError(f"{name}: {outside[0]:g} is beyond the categories ({span})")

        borders = (steps[1:] + steps[:-1]) / 2
        table = np.zeros((steps.size, steps.size), dtype=np.int64)
        places = [np.searchsorted(borders, of[both], side="right") for of in (people, judged)]
        np.add.at(table, tuple(places), 1)
        confusion = tuple(tuple(row) for row in table.tolist())
        if both.any():
            exact = float(np.trace(table)) / int(both.sum())

    return Calibration(
        bias=over(judged - people, both),
        judge=over(judged, has_judge),
        people=over(people, has_human),
        corrected=corrected,
        steps=() if categories is None else tuple(float(step) for step in categories),
        confusion=confusion,
        exact=exact,
        labelled=int(both.sum()),
        unlabelled=int(alone.sum()),
        dropped=int((has_human & ~has_judge).sum()),
    )


class _Draw(Struct, frozen=True):
    """Everything a judge scored, and people's scores of some of it."""

    judged: Floats
    people: Floats
    clusters: Sequence[object]

    def clusters_of(self, rows: npt.NDArray[Any]) -> list[object]:
        """The clusters of some answers, given by index or as a mask."""
        return [self.clusters[row] for row in np.arange(self.judged.size)[rows].tolist()]


def _refuse_strata(judged: Floats, labelled: Bools) -> None:
    """Raises ValueError if the share that people scored differs between scores beyond chance."""
    scores, codes = np.unique(judged, return_inverse=True)
    if labelled.size:
        share = float(labelled.mean())
    else:
        share = 0.0

    if not 1 < scores.size <= FEW_SCORES or not 0 < share < 1:
        return
    counts = np.bincount(codes)
    seen = np.bincount(codes, weights=labelled)
    # counts too small for χ² are merged, starting from the rarest score
    order = np.argsort(counts, kind="stable")
    merged: list[list[float]] = []
    for at in order.tolist():
        if merged and merged[-1][0] * min(share, 1 - share) < 5:
            merged[-1] = [merged[-1][0] + counts[at], merged[-1][1] + seen[at]]
        else:
            merged.append([float(counts[at]), float(seen[at])])

    size, hits = np.array(merged).T
    far = float(((hits - size * share) ** 2 / (size * share * (1 - share))).sum())
    if len(merged) > 1 and float(special.chdtrc(len(merged) - 1, far)) < NOT_RANDOM:
        parts = ", ".join(
            f"{score:g}: {int(n)} of {c}" for score, n, c in zip(scores, seen, counts, strict=True)
        )
        raise ValueError(
            f"strata: people scored other shares of some scores than of others ({parts}), so "
            f"their mean is not that of all: say from which stratum each answer was drawn "
            f"(strata=)"
        )


def _corrected(alone: Groups, gap: Groups, people: Interval) -> Interval:
    """The judge's mean where only it scored, plus the mean of person less judge where both did."""
    method = "prediction-powered mean"
    level = people.level
    first = len(alone.labels)
    second = len(gap.labels)
    clusters = len({*alone.labels, *gap.labels})
    size = alone.values.size + gap.values.size
    if not first:
        reason = people.reason or "nothing is left to correct: the people's own mean"
        return replace(people, method=f"{method}, people alone", reason=reason)

    bare = Interval(value=math.nan, level=level, n=clusters, method=method, observations=size)
    if not second:
        return replace(bare, reason="no person scored what the judge scored")
    judged, correction = (
        t_interval(groups.means, level=level, observations=0) for groups in (alone, gap)
    )
    value = judged.value + correction.value
    if first < 2 or second < 2:
        which = "both scored" if second < 2 else "the judge alone scored"
        return replace(bare, value=value, reason=f"{which} only one question, so no interval")

    # Both means are correlated by the questions that are in both.
    moved: dict[object, float] = {}
    for groups in (alone, gap):
        n = len(groups.labels)
        parts = (groups.means - centred_mean(groups.means)) / math.sqrt(n * (n - 1))
        for label, part in zip(groups.labels, parts.tolist(), strict=True):
            moved[label] = moved.get(label, 0.0) + part

    se = math.sqrt(exact_sum(part * part for part in moved.values()))
    widest = max(judged.se, correction.se)
    bare = replace(bare, value=value)
    if se == 0 or not widest > 0:
        return around(bare, 0.0, math.nan)
    shares = (judged.se / widest) ** 2, (correction.se / widest) ** 2
    welch = exact_sum(shares) ** 2 / (shares[0] ** 2 / (first - 1) + shares[1] ** 2 / (second - 1))
    return bare.with_error(se, min(welch, clusters - 1.0))
