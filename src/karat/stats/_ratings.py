"""Several raters' ratings of the same things, and the interval of a coefficient of their
agreement.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from karat.stats._bootstrap import check_replicates, resampled_counts
from karat.stats._groups import (
    Codes,
    Floats,
    check_level,
    columns,
    group,
    summed_by,
    t_quantile,
    z_quantile,
)
from karat.stats.results import Interval

Weights = Literal["none", "linear", "quadratic", "ordinal"] | Sequence[Sequence[float]]


Spacing = Literal["positions", "values"]
"""Whether the distance of two categories is measured by their positions in the list, or by their
values.
"""


def weight_matrix(
    categories: Sequence[object], weights: Weights, spacing: Spacing = "positions"
) -> Floats:
    """One row and column per category, 1 on the diagonal.

    `linear` and `quadratic`: 1 − |x_i − x_j|/(largest difference), or with its square. x is the
    category's index in the list (`spacing="positions"`) or its number (`"values"`, as R's irrCAC);
    equally spaced numbers give the same. `ordinal` (Gwet 2014, section 3.5) always uses positions:
    1 − C(|i − j| + 1, 2)/C(q, 2). Raises ValueError for other names, for categories that are not
    numbers if `spacing` needs numbers, and for a matrix without one row and column per category,
    not symmetric, or with anything but 1 on its diagonal.
    """
    if spacing not in ("positions", "values"):
        raise ValueError(f"spacing: must be positions or values, got {spacing!r}")
    size = len(categories)
    if not isinstance(weights, str):
        try:
            matrix = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"weights: must be numbers: {error}") from error

        if matrix.shape != (size, size):
            raise ValueError(
                f"weights: expected one row and column per category ({size}), "
                f"got shape {matrix.shape}"
            )

        if not (
            np.isfinite(matrix).all()
            and (matrix == matrix.T).all()
            and (np.diag(matrix) == 1).all()
        ):
            raise ValueError("weights: must be symmetric, with 1 for full agreement")

        if (matrix > 1).any():
            raise ValueError("weights: nothing agrees more than full agreement, which is 1")
        return matrix

    places = np.arange(size, dtype=np.float64)
    apart = np.abs(np.subtract.outer(places, places))
    if weights == "none":
        return np.asarray(apart == 0, dtype=np.float64)
    if weights == "ordinal":
        return np.asarray(1 - apart * (apart + 1) / max(1, (size - 1) * size))
    if weights not in ("linear", "quadratic"):
        raise ValueError(
            f"weights: must be none, linear, quadratic, ordinal or a matrix, got {weights!r}"
        )

    if spacing == "values":
        numbers = columns("categories", categories)
        if (
            any(isinstance(category, (bool, str)) for category in categories)
            or not np.isfinite(numbers).all()
        ):
            raise ValueError("categories: must be finite numbers for spacing='values'")

        apart = np.abs(np.subtract.outer(numbers, numbers))

    share = apart / (float(apart.max(initial=0.0)) or 1.0)
    return np.asarray(1 - (share if weights == "linear" else share**2))


def weighted(name: str, weights: Weights, spacing: Spacing = "positions") -> str:
    """The coefficient's name, including its weights."""
    if not isinstance(weights, str):
        return f"{name}, own weights"
    by = " by value" if spacing == "values" and weights in ("linear", "quadratic") else ""
    if weights == "none":
        return name
    return f"{name}, {weights} weights{by}"


REPLICATES = 2_000
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

    def mean_of(self, by_category: Floats) -> Floats:
        """The mean over the ratings of each thing, given a number for each category."""
        return np.asarray(self.sum_of(by_category) / self.counts)

    def sum_of(self, by_category: Floats) -> Floats:
        """The sum over the ratings of each thing, given a number for each category."""
        return np.asarray(np.where(self.codes >= 0, by_category[self.codes], 0.0).sum(axis=1))

    def shares(self, weights: Floats) -> Floats:
        """How often each category is given, counting each thing once, by its weight."""
        seen = self.codes >= 0
        cell_weights = np.broadcast_to((weights / self.counts)[:, None], self.codes.shape)
        return summed_by(self.codes[seen], cell_weights[seen], len(self.categories)) / float(
            weights.sum()
        )


class Agreed(NamedTuple):
    """A coefficient, and each thing's influence on it, which has mean 0."""

    value: float
    influence: Floats


class Coefficient(Protocol):
    """Any coefficient, given how often each thing counts. Undefined: NaN."""

    def __call__(self, ratings: Ratings, often: Floats, /) -> Agreed: ...


def read_ratings(
    raters: Sequence[Iterable[Any]],
    clusters: Iterable[object] | None,
    categories: Sequence[object] | None,
) -> Ratings:
    """Raises ValueError for values outside the categories and for raters of unequal lengths.

    A single argument has the raters as its rows. None and NaN: not rated; things nobody
    rated are left out. Without categories, those that occur, in order.
    """
    try:
        listed = []
        for rater in list(raters[0]) if len(raters) == 1 else raters:
            listed.append(list(rater))
    except TypeError as error:
        raise ValueError(
            "raters: must be a list for each rater, or one table with a row for each"
        ) from error

    if not listed:
        raise ValueError("raters: must be at least one")
    if len({len(rater) for rater in listed}) > 1:
        raise ValueError(
            f"raters: must be as long as each other, got "
            f"{', '.join(str(len(rater)) for rater in listed)}"
        )

    if categories is None:
        values = set()
        for rater in listed:
            for value in rater:
                if not _missing(value):
                    values.add(value)

        try:
            known = tuple(sorted(values))
        except TypeError as error:
            raise ValueError(
                f"categories: must be given where values have no order: {error}"
            ) from error
    else:
        known = tuple(categories)

    places = {value: place for place, value in enumerate(known)}
    if len(places) < len(known):
        raise ValueError("categories: a value appears twice")
    rows = []
    for rater in listed:
        row = []
        for value in rater:
            if _missing(value):
                row.append(-1)
            else:
                row.append(place_of(value, places, what="raters"))

        rows.append(row)

    codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(rows[0])).T
    kept = np.asarray((codes >= 0).any(axis=1))
    if clusters is None:
        labels = None
    else:
        labels = list(clusters)

    if labels is not None and len(labels) != len(codes):
        raise ValueError(
            f"clusters: expected one per rated thing ({len(codes)}), got {len(labels)}"
        )

    codes = codes[kept]
    grouped = None
    n_clusters = len(codes)
    if labels is not None:
        grouped = group(
            np.zeros(len(codes)),
            [label for label, keep in zip(labels, kept.tolist(), strict=True) if keep],
        )

        n_clusters = len(grouped.labels)

    return Ratings(
        codes=codes,
        categories=known,
        counts=(codes >= 0).sum(axis=1).astype(np.float64),
        clusters=None if grouped is None else grouped.codes,
        n_clusters=n_clusters,
    )


def interval_of(
    ratings: Ratings,
    coefficient: Coefficient,
    *,
    level: float,
    method: str,
    rng: np.random.Generator | None,
) -> Interval:
    """The coefficient with its error, from the influences or by resampling clusters.

    `n`: clusters with a pair.
    """
    check_level(level)
    size = len(ratings.codes)
    shared = ratings.counts > 1
    if ratings.clusters is None:
        n = int(shared.sum())
        name = method
    else:
        n = np.unique(ratings.clusters[shared]).size
        name = f"{method}, clustered"

    bare = Interval(value=math.nan, level=level, n=n, method=name, observations=size)
    if not n:
        return replace(bare, reason=NO_PAIR)
    point = coefficient(ratings, np.ones(size))
    if math.isnan(point.value):
        return replace(bare, reason=NO_VARIATION)
    bare = replace(bare, value=point.value)
    if n < 2:
        return replace(bare, reason="fewer than two clusters")
    if rng is not None:
        return _drawn(bare, ratings, coefficient, rng)
    if ratings.clusters is None:
        se = math.sqrt(float((point.influence**2).sum())) / size
        df = math.nan
        quantile = z_quantile(0.5 + level / 2)
    else:
        sums = summed_by(ratings.clusters, point.influence, ratings.n_clusters)
        se = math.sqrt(n / (n - 1) * float((sums**2).sum())) / size
        df = n - 1.0
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


def undefined(size: int) -> Agreed:
    """An undefined coefficient."""
    return Agreed(math.nan, np.full(size, math.nan))


def _drawn(
    bare: Interval,
    ratings: Ratings,
    coefficient: Coefficient,
    rng: np.random.Generator,
) -> Interval:
    """Percentiles over clusters drawn with replacement."""
    draws = check_replicates(REPLICATES, bare.level)
    n = ratings.n_clusters
    if ratings.clusters is None:
        places = np.arange(n)
    else:
        places = ratings.clusters

    values = np.array(
        [
            coefficient(ratings, row[places]).value
            for counts in resampled_counts(n, rng=rng, replicates=draws)
            for row in counts
        ]
    )
    kept = values[~np.isnan(values)]
    lost = draws - kept.size
    method = f"{bare.method}, {draws} resamples"
    if kept.size < draws / 2:
        return replace(bare, method=method, reason=f"not defined in {lost} of {draws} resamples")
    low, high = np.quantile(kept, [0.5 - bare.level / 2, 0.5 + bare.level / 2])
    if lost:
        note = f"not defined in {lost} of {draws} resamples, which are left out"
    else:
        note = None

    if note is None and high - low < ROUNDING:
        note = POINT
    return replace(
        bare,
        se=float(kept.std(ddof=1)),
        low=float(low),
        high=float(high),
        method=method,
        reason=note,
    )


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def place_of(value: object, places: dict[object, int], *, what: str) -> int:
    """The place of a category. Raises ValueError, which begins with `what`, if it is none."""
    try:
        return places[value]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{what}: {value!r} is not one of the categories") from error
