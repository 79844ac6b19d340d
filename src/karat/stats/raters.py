"""How far two or more raters agree beyond chance, also where not everybody rated everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from karat.stats._groups import Floats, whole
from karat.stats._ratings import Agreed, Ratings, interval_of, read_ratings, undefined
from karat.stats._weighting import Spacing, Weights, weight_matrix, weighted
from karat.stats.results import Interval

__all__ = ["brennan_prediger", "conger_kappa", "fleiss_kappa", "gwet_ac", "percent_agreement", "raters_of_table"]

Chance = Callable[[Ratings, Floats, Floats], tuple[float, Floats]]
"""Ratings, how often each thing counts, weights → the agreement of chance, and how far each thing moves it."""


def gwet_ac(
    *raters: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of raters beyond chance, by Gwet's AC2; AC1 with `weights="none"`.

    Unlike kappa it does not fall to 0 where nearly everything gets one and the same step. Each
    argument is one rater's list over the same things, None or NaN where they said nothing (one
    argument alone: rows are raters). `categories`: every step that could have been given, in order,
    used or not. `weights`, `spacing`: as those of `cohen_kappa`. `clusters`: what does not vary independently, such as
    answers to one question; t with clusters − 1 df. Without clusters the interval is the normal one, narrow below about
    20 things. With `rng` it is that of clusters drawn again 2,000 times. All are of large samples: with twenty clusters
    a little too narrow. Where nobody shared a thing: NaN with a reason.

    >>> found = gwet_ac([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.818, 4)

    Gwet (2008), Br. J. Math. Stat. Psychol. 61:29; Gwet (2014), Handbook of Inter-Rater Reliability, chapter 4.
    """
    name = "Gwet's AC1" if isinstance(weights, str) and weights == "none" else weighted("Gwet's AC2", weights, spacing)
    if len(tuple(categories)) < 2:
        raise ValueError("categories: must be at least two, used or not")
    return _interval(raters, clusters, categories, (weights, spacing), _gwet, name, level, rng)


def brennan_prediger(
    *raters: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of raters beyond that of raters who give every step equally often.

    Arguments and interval as those of `gwet_ac`.

    >>> round(brennan_prediger([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.8125

    Brennan and Prediger (1981), Educ. Psychol. Meas. 41:687.
    """
    name = weighted("Brennan–Prediger", weights, spacing)
    return _interval(raters, clusters, categories, (weights, spacing), _even, name, level, rng)


def fleiss_kappa(
    *raters: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of raters who are taken as exchangeable: chance is how often a step is given by all together.

    Arguments and interval as those of `gwet_ac`; with two raters it is Scott's pi. NaN where
    everybody gave one and the same step.

    >>> round(fleiss_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.7949

    Fleiss (1971), Psychol. Bull. 76:378; Scott (1955), Public Opin. Q. 19:321.
    """
    name = weighted("Fleiss' kappa", weights, spacing)
    return _interval(raters, clusters, categories, (weights, spacing), _pooled, name, level, rng)


def conger_kappa(
    *raters: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Cohen's kappa for more than two raters: chance is that of each one's own habits.

    Arguments and interval as those of `gwet_ac`. NaN where everybody gave one and the same step.

    >>> round(conger_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value, 4)
    0.8

    Conger (1980), Psychol. Bull. 88:322.
    """
    name = weighted("Conger's kappa", weights, spacing)
    return _interval(raters, clusters, categories, (weights, spacing), _own_habits, name, level, rng)


def percent_agreement(
    *raters: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any],
    weights: Weights = "none",
    spacing: Spacing = "positions",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """How often two raters of one thing agree, chance and all; near misses count by their weights.

    Arguments as those of `gwet_ac`. The interval is of large samples and may pass 1.

    >>> percent_agreement([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3]).value
    0.75
    """
    name = weighted("percent agreement", weights, spacing)
    return _interval(raters, clusters, categories, (weights, spacing), _none, name, level, rng)


def raters_of_table(table: Any) -> tuple[list[int], list[int]]:
    """Two raters' lists from a table of how often the first gave step i and the second step j.

    The steps are 0, 1, …: `gwet_ac(*raters_of_table(table), categories=range(len(table)))`.
    Raises ValueError for a table that is not square or holds anything but counts.

    >>> raters_of_table([[2, 1], [0, 1]])
    ([0, 0, 0, 1], [0, 0, 1, 1])
    """
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not len(counts):
        raise ValueError(f"table: must be square, got shape {counts.shape}")
    times = [whole("table", float(count)) for count in counts.reshape(-1)]
    rows, columns = (np.repeat(place.reshape(-1), times) for place in np.indices(counts.shape))
    return rows.tolist(), columns.tolist()


def _interval(  # noqa: PLR0913 – the arguments of every coefficient here, and what tells them apart
    raters: Sequence[Iterable[Any]],
    clusters: Iterable[Any] | None,
    categories: Sequence[Any],
    weights: tuple[Weights, Spacing],
    chance: Chance,
    method: str,
    level: float,
    rng: np.random.Generator | None,
) -> Interval:
    ratings = read_ratings(raters, clusters, categories)
    matrix = weight_matrix(ratings.categories, *weights)
    agreeing = _agreeing(ratings, matrix)

    def coefficient(ratings: Ratings, often: Floats) -> Agreed:
        return _beyond_chance(ratings, often, agreeing, chance(ratings, often, matrix))

    return interval_of(ratings, coefficient, level=level, method=method, rng=rng)


def _agreeing(ratings: Ratings, matrix: Floats) -> Floats:
    """The mean weight over the pairs of raters of each thing; 0 where there is no pair."""
    total = np.zeros(len(ratings.codes))
    for one in range(ratings.codes.shape[1]):
        for other in range(one):
            a, b = ratings.codes[:, one], ratings.codes[:, other]
            total += np.where((a >= 0) & (b >= 0), matrix[a, b], 0.0)
    return np.asarray(2 * total / np.maximum(1.0, ratings.counts * (ratings.counts - 1)))


def _beyond_chance(ratings: Ratings, often: Floats, agreeing: Floats, expected: tuple[float, Floats]) -> Agreed:
    """(pa − pe)/(1 − pe), with Gwet's influence (2014, chapter 5), but for what only one rated.

    He takes the number of shared things as known, which makes the error far too large where most have one
    rating only, such as a judge's. Where everything is shared it is the same.
    """
    chance, moved = expected
    paired = ratings.counts > 1
    shared = float(often[paired].sum())
    if not shared > 0 or not 1 - chance > 1e-12:
        return undefined(len(often))
    observed = float((often * agreeing)[paired].sum()) / shared
    value = (observed - chance) / (1 - chance)
    reached = np.where(paired, often.sum() / shared * (agreeing - observed), 0.0)
    return Agreed(value, (reached - (1 - value) * moved) / (1 - chance))


def _none(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:  # noqa: ARG001 – a Chance
    return 0.0, np.zeros(len(often))


def _even(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:  # noqa: ARG001 – a Chance
    return float(matrix.mean()), np.zeros(len(often))


def _gwet(ratings: Ratings, often: Floats, matrix: Floats) -> tuple[float, Floats]:
    size, share = len(matrix), ratings.shares(often)
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
    rated = [np.flatnonzero((codes[:, rater] >= 0) & (often > 0)) for rater in range(codes.shape[1])]
    raters = [(rater, rows) for rater, rows in enumerate(rated) if rows.size]
    if len(raters) < 2:
        return 1.0, np.zeros(len(often))
    habits = np.array([np.bincount(codes[rows, rater], often[rows], len(matrix)) for rater, rows in raters])
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
