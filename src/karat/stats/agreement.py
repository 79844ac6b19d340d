"""How far two raters agree beyond chance: Cohen's kappa, weighted or not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from karat.stats._groups import Floats, check_level, t_quantile, z_quantile
from karat.stats._ratings import POINT, ROUNDING
from karat.stats._weighting import Spacing, Weights, weight_matrix, weighted
from karat.stats.results import Interval

__all__ = ["cohen_kappa", "kappa_of_table"]


def cohen_kappa(
    a: Iterable[Any],
    b: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    categories: Sequence[Any],
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
) -> Interval:
    """The agreement of two raters of the same things beyond what their habits alone would give.

    `categories`: every step that could have been given, in order, used or not: weights depend
    on their number. `weights`: what part of an agreement a near miss counts for: `none` (the
    unweighted kappa), `linear`, `quadratic`, `ordinal`, or a symmetric matrix of your own.
    `spacing`: whether `linear` and `quadratic` count categories apart by their places in `categories` (`positions`, the
    default, as scikit-learn does) or by their numbers (`values`, as R's irrCAC does): they differ where steps are
    unequal, such as 1, 2, 5. 1 is full agreement,
    0 that of chance; the interval is of large samples and may pass 1. `clusters`: what does
    not vary independently, such as answers to one question; `n` then counts clusters, and the interval is Student's;
    without, it is the normal one, narrow below about 20 pairs. NaN with a reason
    where both used one category only: there is no variation, and nothing to agree on. Raises
    ValueError for values outside the categories, None among them (leave out what one of the two did not rate;
    `gwet_ac` takes gaps), and for unequal lengths.

    >>> found = cohen_kappa([1, 2, 3, 3], [1, 2, 3, 2], categories=[1, 2, 3])
    >>> round(found.value, 3), found.n
    (0.8, 4)

    Cohen (1968), Psychol. Bull. 70:213; Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72:323.
    """
    places = {value: place for place, value in enumerate(categories)}
    if len(places) < len(categories):
        raise ValueError("categories: a value stands there twice")
    pairs = [(_place(one, places), _place(two, places)) for one, two in zip(a, b, strict=True)]
    table = np.zeros((len(places), len(places)))
    for pair in pairs:
        table[pair] += 1
    found = kappa_of_table(table, categories=list(categories), weights=weights, spacing=spacing, level=level)
    return (
        found
        if clusters is None
        else _clustered(found, table, pairs, list(clusters), weight_matrix(list(places), weights, spacing))
    )


def _place(value: Any, places: dict[Any, int]) -> int:
    try:
        return places[value]
    except (KeyError, TypeError) as error:
        raise ValueError(f"a, b: {value!r} is none of the categories") from error


def kappa_of_table(
    table: Any,
    *,
    categories: Sequence[Any] | None = None,
    weights: Weights = "quadratic",
    spacing: Spacing = "positions",
    level: float = 0.95,
) -> Interval:
    """The same from the table of counts: how often the first gave row i and the second column j.

    `categories`: those of the rows and columns; 0, 1, … without them.
    """
    check_level(level)
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not len(counts):
        raise ValueError(f"table: must be square, got shape {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("table: must hold counts")
    steps = range(len(counts)) if categories is None else categories
    if len(steps) != len(counts):
        raise ValueError(f"categories: want one a row of the table ({len(counts)}), got {len(steps)}")
    n, weighed = int(counts.sum()), weight_matrix(steps, weights, spacing)
    method = weighted("cohen's kappa", weights, spacing)
    if n == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="nothing was rated by both")
    shares = counts / n
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    observed, expected = float((shares * weighed).sum()), float((np.outer(rows, columns) * weighed).sum())
    if math.isclose(expected, 1.0, rel_tol=0.0, abs_tol=1e-12):
        return Interval(
            value=math.nan, level=level, n=n, method=method, observations=n,
            reason="both gave one and the same step only: no variation, so kappa is not defined",
        )  # fmt: skip
    value = (observed - expected) / (1 - expected)
    inner = _influence(shares, weighed, value)
    spread = float((shares * (inner - (value - expected * (1 - value))) ** 2).sum())
    se = math.sqrt(spread / n) / (1 - expected)
    reach = z_quantile(0.5 + level / 2) * se
    return Interval(
        value=value, se=se, low=value - reach, high=value + reach, level=level, n=n, method=method, observations=n,
        reason=POINT if se < ROUNDING else None,
    )  # fmt: skip


def _clustered(
    found: Interval, table: Floats, pairs: Sequence[tuple[int, int]], clusters: Sequence[Any], weighed: Floats
) -> Interval:
    """The same with an error that adds up within clusters first."""
    if len(clusters) != len(pairs):
        raise ValueError(f"clusters: want one a pair ({len(pairs)}), got {len(clusters)}")
    n, size = len(pairs), len(set(clusters))
    method = f"{found.method}, clustered"
    if math.isnan(found.value) or size < 2:
        reason = found.reason if math.isnan(found.value) else "fewer than two clusters"
        return replace(found, se=math.nan, low=math.nan, high=math.nan, n=size, method=method, reason=reason)
    shares = table / n
    expected = float((np.outer(shares.sum(axis=1), shares.sum(axis=0)) * weighed).sum())
    inner = _influence(shares, weighed, found.value)
    centre = found.value - expected * (1 - found.value)
    sums: dict[Any, float] = {}
    for pair, cluster in zip(pairs, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + float(inner[pair]) - centre
    se = math.sqrt(size / (size - 1) * math.fsum(one * one for one in sums.values())) / n / (1 - expected)
    reach = t_quantile(0.5 + found.level / 2, size - 1) * se
    return replace(
        found, se=se, low=found.value - reach, high=found.value + reach, n=size, method=method, df=float(size - 1),
        reason=POINT if se < ROUNDING else None,
    )  # fmt: skip


def _influence(shares: Floats, weighed: Floats, kappa: float) -> Floats:
    """What one pair adds, by its cell; its variance is that of kappa (Fleiss, Cohen and Everitt, eq. 8)."""
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    inner: Floats = weighed - np.add.outer(weighed @ columns, weighed.T @ rows) * (1 - kappa)
    return inner
