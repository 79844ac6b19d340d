"""Krippendorff's alpha: agreement as disagreement that did not happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.stats._groups import Floats, columns, summed_by
from karat.stats._ratings import Agreed, Ratings, interval_of, read_ratings, undefined
from karat.stats._weighting import Spacing, Weights, weight_matrix, weighted
from karat.stats.results import Interval

__all__ = ["krippendorff_alpha"]

Level = Literal["nominal", "ordinal", "interval", "ratio"]
_BLOCK = 2_000_000  # cells of a table of distances at once


def krippendorff_alpha(
    *raters: Iterable[Any],
    level: Level | None = None,
    weights: Weights | None = None,
    spacing: Spacing = "positions",
    clusters: Iterable[Any] | None = None,
    categories: Sequence[Any] | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The agreement of any number of raters, with any number of gaps: 1 − disagreement seen / disagreement by chance.

    `level` says how values differ: `nominal` (or not), `ordinal` (by rank), `interval` (by
    distance), `ratio` (by proportion, of values ≥ 0; its time grows with the square of how many different values
    there are, 10,000 take seconds); `weights` (and `spacing`) instead takes those of the other coefficients. Each
    argument is one rater's list over the same things, None or NaN where they said nothing (one
    argument alone: rows are raters). `categories`: the order, where values have none of their own. What
    only one rated tells nothing. `confidence` is that of the interval, which is normal, or t with
    `clusters` − 1 df; with `rng` it is that of clusters drawn again 2,000 times. NaN with a
    reason where everybody gave one and the same value, or nobody shared a thing.

    >>> found = krippendorff_alpha([1, 2, 3, 3, None], [1, 2, 3, 2, 3], level="ordinal")
    >>> round(found.value, 3), found.n
    (0.79, 4)

    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability; Gwet (2014), chapter 5, for the error.
    """
    if (level is None) == (weights is None):
        raise ValueError("level: is required, or weights in its place")
    ratings = _shared(read_ratings(raters, clusters, categories))
    known = ratings.categories
    if weights is not None:
        distance = _by_weights(weight_matrix(known, weights, spacing))
        method = weighted("Krippendorff's alpha", weights, spacing)
    else:
        distance, method = (
            _by_level(str(level), known, ordered=categories is not None),
            f"Krippendorff's alpha, {level}",
        )

    def coefficient(ratings: Ratings, often: Floats) -> Agreed:
        return _alpha(ratings, often, distance)

    return interval_of(ratings, coefficient, level=confidence, method=method, rng=rng)


class _Distance(NamedTuple):
    """How far categories lie apart, given how often each is used."""

    between: Callable[[Floats, Any, Any], Floats]  # shares, places, places → distances
    to_all: Callable[[Floats], Floats]  # shares → mean distance of each category to a value drawn at random
    by_rank: bool = False  # distances move with the shares


def _by_level(level: str, known: Sequence[Any], *, ordered: bool) -> _Distance:
    if level == "nominal":
        return _Distance(lambda _, a, b: np.asarray(a != b, dtype=np.float64), lambda share: 1 - share)
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
    return _Distance(lambda _, a, b: _proportion(values[a], values[b]), lambda share: _to_all(values, share))


def _by_weights(matrix: Floats) -> _Distance:
    return _Distance(lambda _, a, b: np.asarray(1 - matrix[a, b]), lambda share: np.asarray((1 - matrix) @ share))


def _squared(points: Callable[[Floats], Floats], *, by_rank: bool = False) -> _Distance:
    def to_all(share: Floats) -> Floats:
        at = points(share)
        centre = float(share @ at)
        return np.asarray((at - centre) ** 2 + float(share @ (at - centre) ** 2))

    return _Distance(lambda share, a, b: np.asarray((points(share)[a] - points(share)[b]) ** 2), to_all, by_rank)


def _ranks(share: Floats) -> Floats:
    """Mid-ranks, as shares: distances between them are Krippendorff's sums of the categories between."""
    return np.asarray(np.cumsum(share) - share / 2)


def _proportion(a: Floats, b: Floats) -> Floats:
    total = a + b
    return np.asarray(((a - b) / np.where(total > 0, total, 1.0)) ** 2)


def _to_all(values: Floats, share: Floats) -> Floats:
    rows = max(1, _BLOCK // max(1, values.size))
    starts = range(0, values.size, rows)
    return np.concatenate([_proportion(values[at : at + rows, None], values) @ share for at in starts] or [values])


def _shared(ratings: Ratings) -> Ratings:
    """The same without what only one rated."""
    kept = ratings.counts > 1
    if kept.all():
        return ratings
    clusters, n = None, int(kept.sum())
    if ratings.clusters is not None:
        left, clusters = np.unique(ratings.clusters[kept], return_inverse=True)
        n = left.size
    return replace(
        ratings, codes=ratings.codes[kept], counts=ratings.counts[kept], clusters=clusters, n_clusters=n
    )  # fmt: skip


def _alpha(ratings: Ratings, often: Floats, distance: _Distance) -> Agreed:
    """1 − (N − 1)/N · D_o/D_e over N values; its influence is that of the ratio, as for Scott's pi."""
    codes, counts = ratings.codes, ratings.counts
    total, size = float((often * counts).sum()), len(often)
    if not total > 0:
        return undefined(size)
    seen = codes >= 0
    each = np.broadcast_to(often[:, None], codes.shape)
    share = summed_by(codes[seen], each[seen], len(ratings.categories)) / total
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
    if distance.by_rank:
        along = along - _with_ranks(ratings, often, pairs, share, (total, ratio))
    moved = moved - ratio * (ratings.sum_of(along) * (often.sum() / total) - weight * float(share @ along))
    return Agreed(1 - (total - 1) / total * ratio, -moved / by_chance)


Pairs = list[tuple[Any, Any, Any]]


def _pairs(ratings: Ratings) -> Pairs:
    """For each pair of raters: the things that both rated, and what each said."""
    found = []
    for one in range(ratings.codes.shape[1]):
        for other in range(one):
            rows = np.flatnonzero((ratings.codes[:, one] >= 0) & (ratings.codes[:, other] >= 0))
            found.append((rows, ratings.codes[rows, one], ratings.codes[rows, other]))
    return found


def _with_ranks(ratings: Ratings, often: Floats, pairs: Pairs, share: Floats, known: tuple[float, float]) -> Floats:
    """How (D_o − ratio·D_e)/ratio moves with each category's share by the ranks that it moves."""
    total, ratio = known
    at, size = _ranks(share), share.size
    pull = -ratio * share * (at - float(share @ at))
    for rows, a, b in pairs:
        step = (at[a] - at[b]) * (often / (ratings.counts - 1))[rows] / total
        pull += summed_by(a, step, size) - summed_by(b, step, size)
    above = np.cumsum(pull[::-1])[::-1]
    return np.asarray(4 * (above - pull / 2) / ratio) if ratio > 0 else np.zeros(size)
