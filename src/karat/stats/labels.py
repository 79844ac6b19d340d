"""Which answers people should read, and estimates from their scores: stratified sampling."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from msgspec import Struct

from karat.stats._groups import Floats, check_level, columns, group, t_quantile
from karat.stats.bounds import OneSided
from karat.stats.results import Interval

Target = Literal["questions", "answers"]

SMALLEST = 20  # answers per stratum; smaller ones are merged with their neighbour
FEWEST = 4  # labels per stratum
MOST_SCORES = 12  # different scores per group; above, scores are binned by rank


class LabelDraw(Struct, frozen=True, kw_only=True):
    """Answers drawn for people."""

    rows: tuple[int, ...]  # of the answers, in random order
    strata: tuple[int, ...]  # of every answer; -1: no score, so it cannot be drawn
    sizes: tuple[int, ...]  # answers of each stratum
    drawn: tuple[int, ...]  # of each stratum


def strata_of_scores(scores: Iterable[object], groups: Iterable[Hashable]) -> list[int]:
    """The stratum of each answer: its group (a condition) and its exact score; -1 if it has no
    score.

    Within a group strata of fewer than 20 answers are merged with the neighbouring score; more than
    12 different scores are first binned by rank. Depends only on the arguments, so it can be
    recomputed later.
    """
    values = columns("scores", scores)
    named = list(groups)
    if len(named) != values.size:
        raise ValueError(f"groups: must be as many as scores ({values.size}), got {len(named)}")
    strata = np.full(values.size, -1, dtype=np.int64)
    members = group(values, named).codes
    start = 0
    for member in range(int(members.max(initial=-1)) + 1):
        rows = np.flatnonzero((members == member) & np.isfinite(values))
        if not rows.size:
            continue
        distinct, codes = np.unique(values[rows], return_inverse=True)
        if distinct.size > MOST_SCORES:
            edges = np.quantile(values[rows], np.linspace(0, 1, MOST_SCORES + 1)[1:-1])
            codes = np.unique(
                np.searchsorted(edges, values[rows], side="right"), return_inverse=True
            )[1]

        # Step of the scale -> stratum: the smallest is merged with its smaller neighbour until
        # all are large enough
        sizes = np.bincount(codes)
        parts = [[step] for step in range(sizes.size)]
        counts = sizes.tolist()
        while len(parts) > 1 and min(counts) < SMALLEST:
            at = counts.index(min(counts))
            beside = [place for place in (at - 1, at + 1) if 0 <= place < len(parts)]
            to = min(beside, key=lambda place: counts[place])
            first, second = sorted((at, to))
            parts[first] += parts.pop(second)
            counts[first] += counts.pop(second)

        merged = np.empty(sizes.size, dtype=np.int64)
        for stratum, steps in enumerate(parts):
            merged[steps] = stratum

        strata[rows] = start + merged[codes]
        start += int(merged.max()) + 1

    return strata.tolist()


def draw_for_labels(
    scores: Iterable[object],
    groups: Iterable[Hashable],
    size: int,
    *,
    rng: np.random.Generator,
) -> LabelDraw:
    """Draws `size` answers in proportion to the strata of `strata_of_scores`, at least 4 from each.

    Equal numbers per score instead would bias an unweighted mean by .11 to .19 on a scale of 1 to
    5. A few more than `size` are drawn if 4 from each stratum are more, and all if there are fewer.
    Raises ValueError for a size below 1.

    >>> import numpy as np
    >>> draw = draw_for_labels([5] * 60 + [1] * 40, ["a"] * 100, 20, rng=np.random.default_rng(1))
    >>> draw.sizes, draw.drawn
    ((40, 60), (8, 12))

    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.7.
    """
    if size < 1:
        raise ValueError(f"size: must be at least 1, got {size}")
    strata = np.array(strata_of_scores(scores, groups), dtype=np.int64)
    sizes = np.bincount(strata[strata >= 0])
    total = int(sizes.sum())
    share = np.minimum(sizes, np.maximum(FEWEST, size * sizes / max(total, 1)))
    drawn = np.floor(share).astype(np.int64)
    spare = min(size, total) - int(drawn.sum())
    for stratum in np.argsort(drawn - share, kind="stable")[: max(spare, 0)].tolist():
        drawn[stratum] = min(drawn[stratum] + 1, sizes[stratum])
    rows = [
        rng.choice(np.flatnonzero(strata == stratum), count, replace=False)
        for stratum, count in enumerate(drawn.tolist())
    ]
    if rows:
        chosen = rng.permutation(np.concatenate(rows))
    else:
        chosen = np.zeros(0, dtype=np.int64)

    return LabelDraw(
        rows=tuple(chosen.tolist()),
        strata=tuple(strata.tolist()),
        sizes=tuple(sizes.tolist()),
        drawn=tuple(drawn.tolist()),
    )


def stratified_mean(
    values: Iterable[object],
    strata: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    judge: Iterable[object] | None = None,
    target: Target = "questions",
    level: float = 0.95,
) -> Interval:
    """The mean over all answers, from the values of those that were drawn from each stratum: Σ
    W_h·ȳ_h.

    One entry per answer; `values`: NaN or None if it was not drawn. Within a stratum every answer
    must have had the same chance. `judge`: a score of every answer, drawn or not. The estimate is
    then the judge's mean, less how much higher the judge scored the drawn answers. It is the same
    where the strata are the judge's scores, and nearer to the truth where a stratum holds several.
    `clusters`: questions. `target`: whether the interval is for
    `"questions"` like these, or just these `"answers"`, which is narrower (over repeated
    experiments it covers the value for such questions in 38 to 92 % of cases). NaN with a reason if
    a stratum has no value, or one value for several answers.

    Särndal et al. (1992), Model Assisted Survey Sampling, 3.7 and 5; Cochran (1977), Sampling
    Techniques, chapter 5.
    """
    drawn = columns("values", values)
    weights = np.full(drawn.size, 1 / max(drawn.size, 1))
    return _expanded(drawn, list(strata), clusters, weights, _scores(judge, drawn), target, level)


def stratified_difference(  # noqa: PLR0913 - the design, and which groups are compared
    values: Iterable[object],
    strata: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    groups: Iterable[object],
    a: object,
    b: object,
    judge: Iterable[object] | None = None,
    target: Target = "questions",
    level: float = 0.95,
) -> Interval:
    """The mean of group `b` minus that of group `a`, from a stratified draw; as `stratified_mean`.

    Answers to one question under both groups are combined, so that effects of the question cancel.
    Raises ValueError if a stratum has answers of both groups, or a group has none.
    """
    drawn = columns("values", values)
    named = list(groups)
    listed = list(strata)
    if clusters is not None:
        asked = list(clusters)
    else:
        asked = list(range(drawn.size))
    if len({drawn.size, len(named), len(listed), len(asked)}) != 1:
        raise ValueError(
            f"groups: strata, clusters and groups must be as many as values ({drawn.size})"
        )

    if {stratum for stratum, name in zip(listed, named, strict=True) if name == a} & {
        stratum for stratum, name in zip(listed, named, strict=True) if name == b
    }:
        raise ValueError("strata: a stratum must hold answers of one group only")

    size = named.count(a), named.count(b)
    if not all(size):
        raise ValueError(f"groups: no answers of {(a if not size[0] else b)!r}")
    rows = [row for row, name in enumerate(named) if name in (a, b)]
    weights = np.array([-1 / size[0] if named[row] == a else 1 / size[1] for row in rows])
    return _expanded(
        drawn[rows],
        [listed[row] for row in rows],
        [asked[row] for row in rows],
        weights,
        _scores(judge, drawn)[rows],
        target,
        level,
    )


def _scores(judge: Iterable[object] | None, values: Floats) -> Floats:
    if judge is None:
        return np.zeros(values.size)
    scores = columns("judge", judge)
    if scores.size != values.size or np.isnan(scores).any():
        raise ValueError(f"judge: expected {values.size} scores, one of every answer")
    return scores


def _expanded(
    values: Floats,
    strata: Sequence[object],
    clusters: Iterable[object] | None,
    weights: Floats,
    judge: Floats,
    target: Target,
    level: float,
) -> Interval:
    """Σ c_i·(j_i + ȳ_h − j̄_h) over all answers, the means of a stratum over its drawn answers;
    `weights`, the c_i, are equal within a stratum. `judge`: the j_i.
    """
    check_level(level)
    if target not in ("questions", "answers"):
        raise ValueError(f"target: must be questions or answers, got {target!r}")
    codes = group(np.zeros(values.size), strata).codes
    questions = group(np.zeros(values.size), clusters)
    seen = np.isfinite(values)
    size = np.bincount(codes)
    count = len(questions.labels)
    n = np.bincount(codes[seen], minlength=size.size)
    method = (
        f"stratified mean, of "
        f"{'questions like these' if target == 'questions' else 'these answers'}"
    )
    bare = Interval(
        value=math.nan,
        level=level,
        n=count,
        method=method,
        observations=int(values.size),
    )
    if not values.size or (n == 0).any():
        return replace(bare, reason="people scored nothing of a stratum: merge it with another")
    means, judged = (
        np.bincount(codes[seen], weights=scores[seen], minlength=size.size) / n
        for scores in (values, judge)
    )
    expected = means[codes] + np.where((n < size)[codes], judge - judged[codes], 0.0)
    bare = replace(bare, value=float(weights @ expected))
    if ((n < 2) & (n < size)).any():
        return replace(bare, reason="people scored only one answer of a stratum, so no interval")

    off = np.where(seen, values - expected, 0.0)
    degrees = np.maximum(n - 1, 1)
    if target == "answers":
        share = np.bincount(codes, weights=weights)
        variance = np.bincount(codes, weights=off**2)
        parts = share**2 * (1 - n / size) * variance / degrees / n
        total = float(parts.sum())
        if total > 0:
            df = total**2 / float((parts**2 / degrees).sum())
        else:
            df = 1.0

        return around(bare, math.sqrt(total), df)

    if count < 2:
        return replace(bare, reason="only one question, so no interval")
    grown = np.sqrt(n / degrees) * size / n
    moved = expected + off * grown[codes]
    sums = count * np.bincount(questions.codes, weights=weights * moved, minlength=count)
    return around(bare, float(sums.std(ddof=1)) / math.sqrt(count), count - 1.0)


def around(bare: Interval, se: float, df: float) -> Interval:
    """The estimate with the interval of its error; a point if the error is 0."""
    if not se > 1e-15 * max(1.0, abs(bare.value)):
        return replace(
            bare,
            se=0.0,
            low=bare.value,
            high=bare.value,
            reason="nothing varies: the interval is a point",
        )

    return bare.with_error(se, df)


def corrected_bounds(
    value: float,
    se: float,
    df: float,
    *,
    labels: int,
    scale: tuple[float, float],
    level: float = 0.95,
) -> OneSided:
    """One-sided bounds of a corrected mean, for a decision against a threshold.

    Each bound is computed with one more label at its own end of the scale: without it, few labels
    that nearly all have the best score pass falsely in 4 to 13 % of cases, with it in at most 3.5 %
    (`benchmarks/decisions.py`).

    >>> bounds = corrected_bounds(4.6, 0.1, 99, labels=50, scale=(1, 5))
    >>> round(bounds.low, 2), round(bounds.high, 2)
    (4.33, 4.77)
    """
    ends = []
    for end, way in zip(scale, (-1, 1), strict=True):
        error = math.sqrt(((labels - 1) * se**2 + (value - end) ** 2 / (labels + 1)) / (labels + 1))
        bound = (labels * value + end) / (labels + 1) + way * t_quantile(level, df + 1) * error
        ends.append(min(max(bound, scale[0]), scale[1]))

    return OneSided(
        value=value,
        low=ends[0],
        high=ends[1],
        level=level,
        n=labels,
        method="t with one pseudo-value",
        reason=None if math.isfinite(se) else "the corrected mean has no interval",
    )


def labels_needed(
    half_width: float,
    *,
    labelled: int,
    answers: int,
    drawing: float,
    floor: float = 0.0,
) -> int | None:
    """Labels for an interval of ±`half_width`.

    `drawing`: the half width due to drawing `labelled` of `answers`, with the target "answers";
    `floor`: the half width with every answer labelled. None if the floor is not narrower than
    `half_width` (then only more questions help), or if nothing is known yet.

    >>> labels_needed(0.1, labelled=50, answers=10**9, drawing=0.2)
    200

    Cochran (1977), Sampling Techniques, section 4.6: n₀/(1 + n₀/N).
    """
    room = half_width**2 - floor**2
    if not (room > 0 and 0 < labelled < answers and drawing > 0 and math.isfinite(drawing)):
        return None
    inverse = room / drawing**2 * (1 / labelled - 1 / answers) + 1 / answers
    return min(answers, math.ceil(1 / inverse - 1e-6))
