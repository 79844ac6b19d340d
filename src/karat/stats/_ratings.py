"""Several raters' ratings of the same things, and the interval of a coefficient of their
agreement.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.stats._groups import (
    Codes,
    Floats,
    check_level,
    group,
    summed_by,
    t_quantile,
    z_quantile,
)
from karat.stats.results import Interval

Weights = Literal["none", "linear", "quadratic", "ordinal"]


def weight_matrix(size: int, weights: Weights) -> Floats:
    """One row and column per category, 1 on the diagonal.

    `linear` and `quadratic`: 1 − |i − j|/(size − 1), or with its square. `ordinal` (Gwet 2014,
    section 3.5): 1 − C(|i − j| + 1, 2)/C(size, 2). Raises ValueError for other names.
    """
    places = np.arange(size, dtype=np.float64)
    apart = np.abs(np.subtract.outer(places, places))
    share = apart / max(1, size - 1)
    disagreement = {
        "none": apart != 0,
        "linear": share,
        "quadratic": share**2,
        "ordinal": apart * (apart + 1) / max(1, (size - 1) * size),
    }
    if weights not in disagreement:
        raise ValueError(f"weights: must be one of {', '.join(disagreement)}, got {weights!r}")
    return np.asarray(1.0 - disagreement[weights])


def weighted(name: str, weights: Weights) -> str:
    """The coefficient's name, including its weights."""
    if weights == "none":
        return name
    return f"{name}, {weights} weights"


ROUNDING = 1e-12  # of a coefficient: a smaller error counts as 0
NO_PAIR = "nothing was rated by two"
POINT = "agreement is the same everywhere: the interval is a point"
NO_VARIATION = "all used only one step: no variation, so the coefficient is not defined"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratings:
    """Rated things, one per row, and their ratings, one column per rater."""

    codes: Codes  # the category's index; −1: not rated
    categories: tuple[Hashable, ...]
    counts: Floats  # raters per thing, at least 1
    clusters: Codes | None  # None: each thing is its own cluster
    n_clusters: int

    def sum_of(self, by_category: Floats) -> Floats:
        """The sum over the ratings of each thing, given a number for each category."""
        return np.asarray(np.where(self.codes >= 0, by_category[self.codes], 0.0).sum(axis=1))

    def shares(self, weights: Floats) -> Floats:
        """How often each category is given, by the weight of each thing's ratings."""
        seen = self.codes >= 0
        cell_weights = np.broadcast_to(weights[:, None], self.codes.shape)[seen]
        given = summed_by(self.codes[seen], cell_weights, len(self.categories))
        return given / float(cell_weights.sum())

    def pairs(self) -> list[tuple[Codes, Codes, Codes]]:
        """For each pair of raters: the things that both rated, and both ratings."""
        pairs = []
        for rater in range(self.codes.shape[1]):
            for other in range(rater):
                first, second = self.codes[:, rater], self.codes[:, other]
                rows = np.flatnonzero((first >= 0) & (second >= 0))
                pairs.append((rows, first[rows], second[rows]))

        return pairs


class Agreed(NamedTuple):
    """A coefficient, and each thing's influence on it, which has mean 0. Undefined: NaN."""

    value: float
    influence: Floats


UNDEFINED = Agreed(math.nan, np.zeros(0))


def read_ratings(
    raters: Sequence[Iterable[object]],
    clusters: Iterable[object] | None,
    categories: Sequence[object] | None,
) -> Ratings:
    """Raises ValueError for values outside the categories and for raters of unequal lengths.

    None and NaN: not rated; things nobody rated are left out. Without categories, those that
    occur, in order.
    """
    listed = [list(rater) for rater in raters]
    if not listed:
        raise ValueError("raters: must be at least one")
    if len({len(rater) for rater in listed}) > 1:
        raise ValueError(
            f"raters: must be as long as each other, got "
            f"{', '.join(str(len(rater)) for rater in listed)}"
        )

    if categories is None:
        known = _occurring(listed)
    else:
        known = tuple(categories)

    places = {value: place for place, value in enumerate(known)}
    if len(places) < len(known):
        raise ValueError("categories: a value appears twice")
    rows = []
    for rater in listed:
        rows.append([_place(value, places) for value in rater])
    codes = np.array(rows, dtype=np.int64).T
    kept = np.asarray((codes >= 0).any(axis=1))
    grouped = None
    if clusters is not None:
        labels = list(clusters)
        if len(labels) != len(codes):
            raise ValueError(
                f"clusters: expected one per rated thing ({len(codes)}), got {len(labels)}"
            )
        rated = [label for label, keep in zip(labels, kept.tolist(), strict=True) if keep]
        grouped = group(np.zeros(len(rated)), rated)

    codes = codes[kept]
    return Ratings(
        codes=codes,
        categories=known,
        counts=(codes >= 0).sum(axis=1).astype(np.float64),
        clusters=None if grouped is None else grouped.codes,
        n_clusters=len(codes) if grouped is None else len(grouped.labels),
    )


def interval_of(ratings: Ratings, point: Agreed, *, level: float, method: str) -> Interval:
    """The coefficient with its error, from the influences. `n`: clusters with a pair."""
    check_level(level)
    size, shared = len(ratings.codes), ratings.counts > 1
    if ratings.clusters is None:
        n = int(shared.sum())
        name = method
    else:
        n = np.unique(ratings.clusters[shared]).size
        name = f"{method}, clustered"

    bare = Interval(value=point.value, level=level, n=n, method=name, observations=size)
    if not n:
        return replace(bare, reason=NO_PAIR)
    if math.isnan(point.value):
        return replace(bare, reason=NO_VARIATION)
    if n < 2:
        return replace(bare, reason="fewer than two clusters")
    if ratings.clusters is None:
        se, df = math.sqrt(float((point.influence**2).sum())) / size, math.nan
        quantile = z_quantile(0.5 + level / 2)
    else:
        sums = summed_by(ratings.clusters, point.influence, ratings.n_clusters)
        se, df = math.sqrt(n / (n - 1) * float((sums**2).sum())) / size, n - 1.0
        quantile = t_quantile(0.5 + level / 2, df)

    reason = POINT if se < ROUNDING else None
    return replace(
        bare,
        se=se,
        low=point.value - quantile * se,
        high=point.value + quantile * se,
        df=df,
        reason=reason,
    )


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def _place(value: object, places: dict[object, int]) -> int:
    if _missing(value):
        return -1
    try:
        return places[value]
    except (KeyError, TypeError) as error:
        raise ValueError(f"raters: {value!r} is not one of the categories") from error


def _occurring(listed: Sequence[Sequence[object]]) -> tuple[Hashable, ...]:
    values: set[Any] = set()
    for rater in listed:
        values.update(value for value in rater if not _missing(value))
    try:
        return tuple(sorted(values))
    except TypeError as error:
        raise ValueError(f"raters: must be values that have an order: {error}") from error
