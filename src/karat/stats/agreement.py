"""How far raters agree beyond chance: kappas, Gwet's AC, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from karat.stats._groups import Codes, Floats, check_level, columns, summed_by, z_quantile
from karat.stats._ratings import (
    POINT,
    ROUNDING,
    Agreed,
    Ratings,
    Spacing,
    Weights,
    interval_of,
    place_of,
    read_ratings,
    undefined,
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
    spacing: Spacing = "positions",
    level: float = 0.95,
) -> Interval:
    """The agreement of two raters of the same things beyond chance, given how often each uses each
    category.

    `categories`: every possible step, in order, used or not: weights depend
    on their number. `weights`: the partial credit for a near miss: `none` (the
    unweighted kappa), `linear`, `quadratic`, `ordinal`, or your own symmetric matrix.
    `spacing`: whether `linear` and `quadratic` measure distance by the positions in `categories`
    (`positions`, the default, as scikit-learn does) or by their numbers (`values`, as R's irrCAC
    does): they differ if steps are unequal, such as 1, 2, 5. 1 is full agreement, 0 is chance; the
    interval assumes large samples and may exceed 1. `clusters`: groups that do not vary
    independently within, such as answers to one question; `n` then counts clusters, and the
    interval is Student's; without, it is the normal one, too narrow below about 20 pairs. NaN with
    a reason
    if both used only one category: there is no variation. Raises ValueError for values outside the
    categories, including None (leave out what one of the two did not rate; `gwet_ac` takes gaps),
    and for unequal lengths.

    >>> found = cohen_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.8, 4)

    Cohen (1968), Psychol. Bull. 70:213; Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72:323.
    """
    places = {value: place for place, value in enumerate(categories)}
    if len(places) < len(categories):
        raise ValueError("categories: a value appears twice")
    pairs = []
    for x, y in zip(a, b, strict=True):
        pairs.append((place_of(x, places, what="a, b"), place_of(y, places, what="a, b")))

    table = np.zeros((len(places), len(places)))
    for pair in pairs:
        table[pair] += 1
    interval = kappa_of_table(
        table,
        categories=list(categories),
        weights=weights,
        spacing=spacing,
        level=level,
    )
    if clusters is None:
        return interval

    # an error that is first summed within clusters
    within = list(clusters)
    if len(within) != len(pairs):
        raise ValueError(f"clusters: expected one per pair ({len(pairs)}), got {len(within)}")
    n = len(pairs)
    size = len(set(within))
    method = f"{interval.method}, clustered"
    if math.isnan(interval.value) or size < 2:
        reason = interval.reason if math.isnan(interval.value) else "fewer than two clusters"
        return replace(
            interval,
            se=math.nan,
            low=math.nan,
            high=math.nan,
            n=size,
            method=method,
            reason=reason,
        )

    shares = table / n
    weighed = weight_matrix(list(places), weights, spacing)
    expected = float((np.outer(shares.sum(axis=1), shares.sum(axis=0)) * weighed).sum())
    inner = _influence(shares, weighed, interval.value)
    centre = interval.value - expected * (1 - interval.value)
    sums: dict[object, float] = {}
    for pair, cluster in zip(pairs, within, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + float(inner[pair]) - centre
    spread = size / (size - 1) * math.fsum(part * part for part in sums.values())
    se = math.sqrt(spread) / n / (1 - expected)
    clustered = replace(interval, n=size, method=method)
    return clustered.with_error(se, float(size - 1), POINT if se < ROUNDING else None)


def kappa_of_table(
    table: npt.ArrayLike,
    *,
    categories: Sequence[object] | None = None,
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
) -> Interval:
    """The same from the table of counts: how often the first gave row i and the second column j.

    `categories`: those of the rows and columns; 0, 1, … without them.
    """
    check_level(level)
    counts = _square(table)
    steps: Sequence[object] = range(len(counts))
    if categories is not None:
        steps = categories
    if len(steps) != len(counts):
        raise ValueError(
            f"categories: expected one per row of the table ({len(counts)}), got {len(steps)}"
        )

    n = int(counts.sum())
    weighed = weight_matrix(steps, weights, spacing)
    method = weighted("cohen's kappa", weights, spacing)
    if n == 0:
        return Interval(
            value=math.nan,
            level=level,
            n=0,
            method=method,
            reason="nothing was rated by both",
        )

    shares = counts / n
    rows = shares.sum(axis=1)
    columns = shares.sum(axis=0)
    observed = float((shares * weighed).sum())
    expected = float((np.outer(rows, columns) * weighed).sum())
    if math.isclose(expected, 1.0, rel_tol=0.0, abs_tol=1e-12):
        return Interval(
            value=math.nan,
            level=level,
            n=n,
            method=method,
            observations=n,
            reason="both used only one step: no variation, so kappa is not defined",
        )

    value = (observed - expected) / (1 - expected)
    inner = _influence(shares, weighed, value)
    spread = float((shares * (inner - (value - expected * (1 - value))) ** 2).sum())
    se = math.sqrt(spread / n) / (1 - expected)
    reach = z_quantile(0.5 + level / 2) * se
    return Interval(
        value=value,
        se=se,
        low=value - reach,
        high=value + reach,
        level=level,
        n=n,
        method=method,
        observations=n,
        reason=POINT if se < ROUNDING else None,
    )


def _influence(shares: Floats, weighed: Floats, kappa: float) -> Floats:
    """The contribution of one pair, by its cell; its variance is that of kappa (Fleiss, Cohen and
    Everitt, eq. 8).
    """
    rows = shares.sum(axis=1)
    columns = shares.sum(axis=0)
    inner: Floats = weighed - np.add.outer(weighed @ columns, weighed.T @ rows) * (1 - kappa)
    return inner


Chance = Callable[[Ratings, Floats, Floats], tuple[float, Floats]]
"""Ratings, how often each thing counts, weights → the agreement expected by chance, and each
thing's influence.
"""


def gwet_ac(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of raters beyond chance, by Gwet's AC2; AC1 with `weights="none"`.

    Unlike kappa it does not fall to 0 if nearly everything gets the same step. Each argument is one
    rater's list over the same things, with None or NaN if not rated (a single argument: rows are
    raters). `categories`: every possible step, in order, used or not. `weights`, `spacing`: as in
    `cohen_kappa`. `clusters`: groups not independent within, such as answers to one question; t
    with clusters − 1 df. Without clusters the interval is the normal one, narrow below about 20
    things. With `rng` clusters are resampled 2,000 times. All intervals assume large samples: with
    twenty clusters they are a little too narrow. If no thing was rated twice: NaN with a reason.

    >>> found = gwet_ac([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.818, 4)

    Gwet (2008), Br. J. Math. Stat. Psychol. 61:29; Gwet (2014), Handbook of Inter-Rater
    Reliability, chapter 4.
    """
    if isinstance(weights, str) and weights == "none":
        name = "Gwet's AC1"
    else:
        name = weighted("Gwet's AC2", weights, spacing)

    if len(tuple(categories)) < 2:
        raise ValueError("categories: must be at least two, used or not")
    return _interval(raters, clusters, categories, (weights, spacing), _gwet, name, level, rng)


def brennan_prediger(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of raters beyond that of raters who give every step equally often.

    Arguments and interval as in `gwet_ac`.

    >>> round(brennan_prediger([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.8125

    Brennan and Prediger (1981), Educ. Psychol. Meas. 41:687.
    """
    name = weighted("Brennan–Prediger", weights, spacing)

    def chance(_: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:
        return float(matrix.mean()), np.zeros(len(often))

    return _interval(raters, clusters, categories, (weights, spacing), chance, name, level, rng)


def fleiss_kappa(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of exchangeable raters: chance is how often all of them together give each
    step.

    Arguments and interval as in `gwet_ac`; with two raters it is Scott's pi. NaN if
    everybody gave the same step.

    >>> round(fleiss_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.7949

    Fleiss (1971), Psychol. Bull. 76:378; Scott (1955), Public Opin. Q. 19:321.
    """
    name = weighted("Fleiss' kappa", weights, spacing)
    return _interval(raters, clusters, categories, (weights, spacing), _pooled, name, level, rng)


def conger_kappa(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Cohen's kappa for more than two raters: chance uses each rater's own frequencies.

    Arguments and interval as in `gwet_ac`. NaN if everybody gave the same step.

    >>> round(conger_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.8

    Conger (1980), Psychol. Bull. 88:322.
    """
    name = weighted("Conger's kappa", weights, spacing)
    return _interval(
        raters,
        clusters,
        categories,
        (weights, spacing),
        _own_habits,
        name,
        level,
        rng,
    )


def percent_agreement(
    *raters: Iterable[object],
    clusters: Iterable[object] | None = None,
    categories: Sequence[object],
    weights: Weights = "none",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """How often two raters of one thing agree, including by chance; near misses count by their
    weights.

    Arguments as in `gwet_ac`. The interval assumes large samples and may exceed 1.

    >>> percent_agreement([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value
    0.75
    """
    name = weighted("percent agreement", weights, spacing)

    def chance(_: Ratings, often: Floats, __: Floats) -> tuple[float, Floats]:
        return 0.0, np.zeros(len(often))

    return _interval(raters, clusters, categories, (weights, spacing), chance, name, level, rng)


def raters_of_table(table: npt.ArrayLike) -> tuple[list[int], list[int]]:
    """Two raters' lists from a table of how often the first gave step i and the second step j.

    The steps are 0, 1, …: `gwet_ac(*raters_of_table(table), categories=range(len(table)))`.
    Raises ValueError if the table is not square or contains anything but counts.

    >>> raters_of_table([[2, 1], [0, 1]])
    ([0, 0, 0, 1], [0, 0, 1, 1])
    """
    counts = _square(table)
    times = counts.reshape(-1).astype(np.int64)
    rows, columns = (np.repeat(place.reshape(-1), times) for place in np.indices(counts.shape))
    return rows.tolist(), columns.tolist()


def _square(table: npt.ArrayLike) -> Floats:
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not len(counts):
        raise ValueError(f"table: must be square, got shape {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("table: must hold counts")
    return counts


def _interval(  # noqa: PLR0913 – the arguments of every coefficient here, and its differences
    raters: Sequence[Iterable[object]],
    clusters: Iterable[object] | None,
    categories: Sequence[object],
    weights: tuple[Weights, Spacing],
    chance: Chance,
    method: str,
    level: float,
    rng: np.random.Generator | None,
) -> Interval:
    ratings = read_ratings(raters, clusters, categories)
    matrix = weight_matrix(ratings.categories, *weights)
    # The mean weight over the pairs of raters of each thing; 0 where there is no pair.
    total = np.zeros(len(ratings.codes))
    for rows, a, b in _pairs(ratings):
        total[rows] += matrix[a, b]
    agreeing = np.asarray(2 * total / np.maximum(1.0, ratings.counts * (ratings.counts - 1)))

    def coefficient(ratings: Ratings, often: Floats) -> Agreed:
        # (pa − pe)/(1 − pe), with Gwet's influence (2014, chapter 5), except for things with one
        # rating. He takes the number of shared things as known, which makes the error far too
        # large if most have only one rating, such as a judge's. If everything is shared it is the
        # same.
        expected, moved = chance(ratings, often, matrix)
        paired = ratings.counts > 1
        shared = float(often[paired].sum())
        if not shared > 0 or not 1 - expected > 1e-12:
            return undefined(len(often))
        observed = float((often * agreeing)[paired].sum()) / shared
        value = (observed - expected) / (1 - expected)
        reached = np.where(paired, often.sum() / shared * (agreeing - observed), 0.0)
        return Agreed(value, (reached - (1 - value) * moved) / (1 - expected))

    return interval_of(ratings, coefficient, level=level, method=method, rng=rng)


def _gwet(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:
    size = len(matrix)
    share = ratings.shares(often)
    scale = float(matrix.sum()) / (size * (size - 1))
    again = float((share * share).sum())
    return scale * (1 - again), -2 * scale * (ratings.mean_of(share) - again)


def _pooled(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:
    share = ratings.shares(often)
    met = matrix @ share
    chance = float(share @ met)
    return chance, 2 * (ratings.mean_of(met) - chance)


def _own_habits(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:
    codes = ratings.codes
    rated = [
        np.flatnonzero((codes[:, rater] >= 0) & (often > 0)) for rater in range(codes.shape[1])
    ]
    raters = [(rater, rows) for rater, rows in enumerate(rated) if rows.size]
    if len(raters) < 2:
        return 1.0, np.zeros(len(often))
    habits = np.array(
        [np.bincount(codes[rows, rater], often[rows], len(matrix)) for rater, rows in raters]
    )
    counts = habits.sum(axis=1)
    habits = habits / counts[:, None]
    pairs = len(raters) * (len(raters) - 1)
    met = 2 * (habits.sum(axis=0) - habits) @ matrix / pairs
    chance = float((habits * met).sum()) / 2
    moved = np.zeros(len(often))
    for place, (rater, rows) in enumerate(raters):
        own = met[place, codes[rows, rater]] - float(met[place] @ habits[place])
        moved[rows] += float(often.sum()) / counts[place] * own

    return chance, moved


Level = Literal["nominal", "ordinal", "interval", "ratio"]
_BLOCK = 2_000_000  # cells of a table of distances at once


def krippendorff_alpha(
    *raters: Iterable[object],
    level: Level | None = None,
    weights: Weights | None = None,
    spacing: Spacing = "positions",
    clusters: Iterable[object] | None = None,
    categories: Sequence[object] | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of any number of raters, with any number of gaps: 1 − observed / chance
    disagreement.

    `level` defines how values differ: `nominal` (or not), `ordinal` (by rank), `interval` (by
    distance), `ratio` (by proportion, of values ≥ 0; its time grows with the square of the number
    of different values, 10,000 take seconds); `weights` (and `spacing`) instead takes those of the
    other coefficients. Each argument is one rater's list over the same things, with None or NaN if
    not rated (a
    single argument: rows are raters). `categories`: the order, if values have no natural one.
    Things with one rating do not count. `confidence` is that of the interval, which is normal, or t
    with `clusters` − 1 df; with `rng` clusters are resampled 2,000 times. NaN with a reason if
    everybody gave the same value, or no thing was rated twice.

    >>> found = krippendorff_alpha([1, 2, 3, 3, None], [1, 2, 3, 2, 3], level="ordinal")
    >>> round(found.value, 3), found.n
    (0.79, 4)

    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability; Gwet (2014), chapter 5, for the
    error.
    """
    if (level is None) == (weights is None):
        raise ValueError("level: is required, or weights in its place")
    ratings = read_ratings(raters, clusters, categories)
    paired = ratings.counts > 1
    if not paired.all():  # things with only one rating are left out
        size = int(paired.sum())
        left = None
        if ratings.clusters is not None:
            labels, left = np.unique(ratings.clusters[paired], return_inverse=True)
            size = labels.size

        ratings = replace(
            ratings,
            codes=ratings.codes[paired],
            counts=ratings.counts[paired],
            clusters=left,
            n_clusters=size,
        )

    known = ratings.categories
    if weights is not None:
        matrix = weight_matrix(known, weights, spacing)
        distance = _Distance(
            lambda _, a, b: np.asarray(1 - matrix[a, b]),
            lambda share: np.asarray((1 - matrix) @ share),
        )
        method = weighted("Krippendorff's alpha", weights, spacing)
    else:
        distance = _by_level(str(level), known, ordered=categories is not None)
        method = f"Krippendorff's alpha, {level}"

    def coefficient(ratings: Ratings, often: Floats) -> Agreed:
        return _alpha(ratings, often, distance)

    return interval_of(ratings, coefficient, level=confidence, method=method, rng=rng)


class _Distance(NamedTuple):
    """The distances between categories, given how often each is used."""

    between: Callable[[Floats, Codes, Codes], Floats]  # shares, places, places → distances
    # shares → mean distance of each category to a value drawn at random
    to_all: Callable[[Floats], Floats]
    by_rank: bool = False  # distances depend on the shares


def _by_level(level: str, known: Sequence[object], *, ordered: bool) -> _Distance:
    if level == "nominal":
        return _Distance(
            lambda _, a, b: np.asarray(a != b, dtype=np.float64), lambda share: 1 - share
        )

    if level == "ordinal":
        if not ordered and any(isinstance(value, str) for value in known):
            raise ValueError("categories: must be given in their order for the level ordinal")
        return _squared(_ranks, by_rank=True)

    if level not in ("interval", "ratio"):
        raise ValueError(f"level: must be nominal, ordinal, interval or ratio, got {level!r}")
    values = columns("raters", known)
    if not np.isfinite(values).all():
        raise ValueError("raters: must be finite numbers")
    if level == "interval":
        centred = values - (values.mean() if values.size else 0.0)
        return _squared(lambda _: centred)

    if (values < 0).any():
        raise ValueError(f"raters: proportions need values of at least 0, got {values.min():g}")
    return _Distance(
        lambda _, a, b: _proportion(values[a], values[b]), lambda share: _to_all(values, share)
    )


def _squared(points: Callable[[Floats], Floats], *, by_rank: bool = False) -> _Distance:
    def to_all(share: Floats) -> Floats:
        at = points(share)
        centre = float(share @ at)
        return np.asarray((at - centre) ** 2 + float(share @ (at - centre) ** 2))

    return _Distance(
        lambda share, a, b: np.asarray((points(share)[a] - points(share)[b]) ** 2), to_all, by_rank
    )


def _ranks(share: Floats) -> Floats:
    """Mid-ranks, as shares: distances between them are Krippendorff's sums of the categories
    between.
    """
    return np.asarray(np.cumsum(share) - share / 2)


def _proportion(a: Floats, b: Floats) -> Floats:
    total = a + b
    return np.asarray(((a - b) / np.where(total > 0, total, 1.0)) ** 2)


def _to_all(values: Floats, share: Floats) -> Floats:
    rows = max(1, _BLOCK // max(1, values.size))
    starts = range(0, values.size, rows)
    return np.concatenate(
        [_proportion(values[at : at + rows, None], values) @ share for at in starts] or [values]
    )


def _alpha(ratings: Ratings, often: Floats, distance: _Distance) -> Agreed:
    """1 − (N − 1)/N · D_o/D_e over N values; its influence is that of the ratio, as for
    Scott's pi.
    """
    codes = ratings.codes
    counts = ratings.counts
    total = float((often * counts).sum())
    size = len(often)
    if not total > 0:
        return undefined(size)
    seen = codes >= 0
    weights = np.broadcast_to(often[:, None], codes.shape)
    share = summed_by(codes[seen], weights[seen], len(ratings.categories)) / total
    apart = distance.to_all(share)
    by_chance = float(share @ apart)
    if not by_chance > 1e-300:
        return undefined(size)
    pairs = _pairs(ratings)
    within = np.zeros(size)
    for rows, a, b in pairs:
        within[rows] += 2 * distance.between(share, a, b) / (counts[rows] - 1)
    seen_apart = float((often * within).sum()) / total
    ratio = seen_apart / by_chance
    weight = counts * often.sum() / total
    moved = within * (often.sum() / total) - weight * seen_apart
    along = 2 * apart
    if distance.by_rank and ratio > 0:
        # how (D_o − ratio·D_e)/ratio changes with each category's share through the ranks
        at = _ranks(share)
        pull = -ratio * share * (at - float(share @ at))
        for rows, a, b in pairs:
            step = (at[a] - at[b]) * (often / (counts - 1))[rows] / total
            pull += summed_by(a, step, share.size) - summed_by(b, step, share.size)

        above = np.cumsum(pull[::-1])[::-1]
        along = along - 4 * (above - pull / 2) / ratio
    moved = moved - ratio * (
        ratings.sum_of(along) * (often.sum() / total) - weight * float(share @ along)
    )
    return Agreed(1 - (total - 1) / total * ratio, -moved / by_chance)


Pairs = list[tuple[npt.NDArray[np.intp], Codes, Codes]]
"""For each pair of raters: the things that both rated, and both ratings."""


def _pairs(ratings: Ratings) -> Pairs:
    pairs = []
    for rater in range(ratings.codes.shape[1]):
        for other in range(rater):
            rows = np.flatnonzero((ratings.codes[:, rater] >= 0) & (ratings.codes[:, other] >= 0))
            pairs.append((rows, ratings.codes[rows, rater], ratings.codes[rows, other]))

    return pairs
