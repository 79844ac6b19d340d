"""How far raters agree beyond chance: kappas, Gwet's AC, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from karat.stats._groups import Floats, columns, group, summed_by
from karat.stats._ratings import (
    UNDEFINED,
    Agreed,
    Ratings,
    Weights,
    interval_of,
    read_ratings,
    weight_matrix,
    weighted,
)
from karat.stats.results import Interval


def cohen_kappa(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    level: float = 0.95,
) -> Interval:
    """The agreement of two raters of the same things beyond chance, given how often each uses each
    category.

    `categories`: every possible step, in order, used or not: weights depend on their number.
    `weights`: the partial credit for a near miss: `none` (the unweighted kappa), `linear`,
    `quadratic` or `ordinal`, by positions in `categories`, as scikit-learn does. 1 is full
    agreement, 0 is chance; the interval assumes large samples and may exceed 1. `clusters`: groups
    that do not vary independently within, such as answers to one question; `n` then counts
    clusters, and the interval is Student's; without, it is the normal one, too narrow below about
    20 pairs. NaN with a reason if both used only one category: there is no variation. Raises
    ValueError for values outside the categories, including None (leave out what one of the two did
    not rate; `gwet_ac` takes gaps), and for unequal lengths.

    >>> found = cohen_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.8, 4)

    Cohen (1968), Psychol. Bull. 70:213; Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72:323.
    """
    sides = list(a), list(b)
    ratings = read_ratings(sides, clusters, categories)
    if int(ratings.counts.sum()) < 2 * len(sides[0]):
        raise ValueError("a, b: None is not one of the categories: leave out what one did not rate")
    matrix = weight_matrix(len(categories), weights)
    name = weighted("cohen's kappa", weights)
    found = interval_of(ratings, _kappa(ratings, matrix), level=level, method=name)
    if not found.observations:
        return replace(found, reason="nothing was rated by both")
    if math.isnan(found.value):
        one_step = "both used only one step: no variation, so kappa is not defined"
        return replace(found, reason=one_step)
    return found


def _kappa(ratings: Ratings, matrix: Floats) -> Agreed:
    """(p_o − p_e)/(1 − p_e); the variance of the influence is that of Fleiss, Cohen and Everitt,
    eq. 8.
    """
    n, size = len(ratings.codes), len(matrix)
    if not n:
        return UNDEFINED
    first, second = ratings.codes.T
    rows, columns = (np.bincount(codes, minlength=size) / n for codes in (first, second))
    observed, expected = float(matrix[first, second].mean()), float(rows @ matrix @ columns)
    if math.isclose(expected, 1.0, rel_tol=0.0, abs_tol=1e-12):
        return UNDEFINED
    value = (observed - expected) / (1 - expected)
    by_habit = (matrix @ columns)[first] + (rows @ matrix)[second]
    inner = matrix[first, second] - (1 - value) * by_habit
    centre = value - expected * (1 - value)
    return Agreed(value, (inner - centre) / (1 - expected))


def gwet_ac(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    level: float = 0.95,
) -> Interval:
    """The agreement of raters beyond chance, by Gwet's AC2; AC1 with `weights="none"`.

    Unlike kappa it does not fall to 0 if nearly everything gets the same step. Each argument is one
    rater's list over the same things, with None or NaN if not rated. `categories`: every possible
    step, in order, used or not. `weights`: as in `cohen_kappa`. `clusters`: groups not independent
    within, such as answers to one question; t with clusters − 1 df. Without clusters the interval
    is the normal one, narrow below about 20 things. All intervals assume large samples: with
    twenty clusters they are a little too narrow. If no thing was rated twice: NaN with a reason.

    >>> found = gwet_ac([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.818, 4)

    Gwet (2008), Br. J. Math. Stat. Psychol. 61:29; Gwet (2014), Handbook of Inter-Rater
    Reliability, chapter 4.
    """
    name = "Gwet's AC1" if weights == "none" else weighted("Gwet's AC2", weights)
    if len(categories) < 2:
        raise ValueError("categories: must be at least two, used or not")
    ratings = read_ratings(raters, clusters, categories)
    matrix = weight_matrix(len(categories), weights)
    return interval_of(ratings, _ac(ratings, matrix), level=level, method=name)


def _ac(ratings: Ratings, matrix: Floats) -> Agreed:
    """(pa − pe)/(1 − pe), with Gwet's influence (2014, chapter 5), except for things with one
    rating.

    He takes the number of shared things as known, which makes the error far too large if most have
    only one rating, such as a judge's. If everything is shared it is the same.
    """
    things, steps, counts = len(ratings.codes), len(matrix), ratings.counts
    paired = counts > 1
    shared = int(paired.sum())
    if not shared:
        return UNDEFINED
    # The mean weight over the pairs of raters of each thing; 0 where there is no pair.
    total = np.zeros(things)
    for rows, a, b in ratings.pairs():
        total[rows] += matrix[a, b]
    agreeing = 2 * total / np.maximum(1.0, counts * (counts - 1))
    observed = float(agreeing[paired].sum()) / shared

    share = ratings.shares(1 / counts)
    scale = float(matrix.sum()) / (steps * (steps - 1))
    again = float(share @ share)
    chance = scale * (1 - again)
    moved = -2 * scale * (ratings.sum_of(share) / counts - again)

    value = (observed - chance) / (1 - chance)
    reached = np.where(paired, things / shared * (agreeing - observed), 0.0)
    return Agreed(value, (reached - (1 - value) * moved) / (1 - chance))


Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    *raters: Iterable[object],
    level: Level,
    clusters: Iterable[object] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """The agreement of any number of raters, with any number of gaps: 1 − observed / chance
    disagreement.

    `level` defines how values differ: `nominal` (or not), `ordinal` (by rank), `interval` (by
    distance). Each argument is one rater's list over the same things, with None or NaN if not
    rated. Things with one rating do not count. `confidence` is that of the interval, which is
    normal, or t with `clusters` − 1 df. NaN with a reason if everybody gave the same value, or no
    thing was rated twice.

    >>> found = krippendorff_alpha([1, 2, 3, 3, None], [1, 2, 3, 2, 3], level="ordinal")
    >>> round(found.value, 3), found.n
    (0.79, 4)

    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability; Gwet (2014), chapter 5, for the
    error.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ValueError(f"level: must be nominal, ordinal or interval, got {level!r}")
    ratings = _shared(read_ratings(raters, clusters, None))
    method = f"Krippendorff's alpha, {level}"
    return interval_of(ratings, _alpha(ratings, level), level=confidence, method=method)


def _shared(ratings: Ratings) -> Ratings:
    """The same without things with only one rating."""
    kept = ratings.counts > 1
    clusters, n = None, int(kept.sum())
    if ratings.clusters is not None:
        left = group(np.zeros(n), ratings.clusters[kept])
        clusters, n = left.codes, len(left.labels)
    codes, counts = ratings.codes[kept], ratings.counts[kept]
    return replace(ratings, codes=codes, counts=counts, clusters=clusters, n_clusters=n)


def _alpha(ratings: Ratings, level: Level) -> Agreed:
    """1 − (N − 1)/N · D_o/D_e over N values; its influence is that of the ratio, as for
    Scott's pi.
    """
    things, counts, total = len(ratings.codes), ratings.counts, float(ratings.counts.sum())
    at = _positions(ratings.categories, level)  # before nothing is said to be rated by two
    if not things:
        return UNDEFINED
    share = ratings.shares(np.ones(things))
    if level == "ordinal":
        # Mid-ranks, as shares: distances are Krippendorff's sums of the categories between.
        at = np.cumsum(share) - share / 2
    if level == "nominal":
        apart = 1 - share
    else:
        centred = (at - float(share @ at)) ** 2
        apart = centred + float(share @ centred)  # of each category from a value drawn at random

    by_chance = float(share @ apart)
    if not by_chance > 1e-300:
        return UNDEFINED
    within = np.zeros(things)
    for rows, a, b in ratings.pairs():
        between = a != b if level == "nominal" else (at[a] - at[b]) ** 2
        within[rows] += 2 * between / (counts[rows] - 1)
    ratio = float(within.sum()) / total / by_chance
    along = 2 * apart
    if level == "ordinal":
        along = along - _with_ranks(ratings, at, share, ratio)
    by_thing = within - ratio * ratings.sum_of(along)
    moved = (by_thing - counts * float(by_thing.sum()) / total) * things / total
    return Agreed(1 - (total - 1) / total * ratio, -moved / by_chance)


def _positions(categories: Sequence[object], level: Level) -> Floats:
    """Numbers whose squared differences are distances, if the level is `interval`."""
    if level == "ordinal" and any(isinstance(value, str) for value in categories):
        raise ValueError("raters: must be numbers for the level ordinal")
    if level != "interval":
        return np.zeros(len(categories))
    values = columns("raters", categories)
    if not np.isfinite(values).all():
        raise ValueError("raters: must be finite numbers")
    return values - values[:1]


def _with_ranks(ratings: Ratings, at: Floats, share: Floats, ratio: float) -> Floats:
    """How (D_o − ratio·D_e)/ratio changes with each category's share through the ranks."""
    if not ratio > 0:
        return np.zeros(share.size)
    pull = -ratio * share * (at - float(share @ at))
    for rows, a, b in ratings.pairs():
        step = (at[a] - at[b]) / (ratings.counts[rows] - 1) / float(ratings.counts.sum())
        pull += summed_by(a, step, share.size) - summed_by(b, step, share.size)
    above = np.cumsum(pull[::-1])[::-1]
    return np.asarray(4 * (above - pull / 2) / ratio)
