"""Intervals of means that treat the question, not the answer, as the unit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from karat.stats._bootstrap import bca_bounds, bootstrap_t_bounds, check_replicates
from karat.stats._groups import Floats, Groups, check_level, columns, group, summed_by
from karat.stats.results import Interval

MeanMethod = Literal["t", "bootstrap-t", "bca"]
_BOOTSTRAPS = {"bootstrap-t": bootstrap_t_bounds, "bca": bca_bounds}
_NOISE = 1e-12  # of a sum of deviations, relative to the sizes of its terms: only rounding
LEAST_CLUSTERS, LEAST_DF = 5, 4.0  # for a verdict


def mean_interval(
    values: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    level: float = 0.95,
    method: MeanMethod = "t",
    scope: Literal["population", "fixed"] = "population",
    rng: np.random.Generator | None = None,
    replicates: int = 10_000,
) -> Interval:
    """The mean of the clusters' means, with an interval over clusters.

    Each question counts once, however often it was answered. `t` is Student's and has the best
    coverage, even with few questions. `bootstrap-t` follows skewed means, as does `bca`, which is
    too narrow below about 50 questions; both resample questions, `replicates` times from `rng`,
    which they require. `scope`: `population` is about questions of this kind, `fixed` about exactly
    these: the error is then that of repetitions alone, with Satterthwaite's degrees of freedom, and
    `t` only. One cluster has a mean and no interval (except with `fixed`); any NaN or None makes
    everything NaN: leave missing values out yourself, and report how many. Raises ValueError for an
    unknown method, a level outside (0, 1), unequal lengths, and a bootstrap without `rng`.

    >>> found = mean_interval([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"])
    >>> found.value, round(found.low, 3), round(found.high, 3), found.n
    (4.0, 1.849, 6.151, 3)

    Miller (2024), arXiv:2411.00640, sections 2 and 3; Efron (1987), J. Am. Stat. Assoc. 82:171
    (bca); Hall (1988), Ann. Stat. 16:927 (bootstrap-t).
    """
    if method not in _BOOTSTRAPS and method != "t":
        raise ValueError(f"method: must be t, {' or '.join(_BOOTSTRAPS)}, got {method!r}")
    if scope not in ("population", "fixed") or (scope == "fixed" and method != "t"):
        raise ValueError(
            f"scope: must be population, or fixed with method t, got {scope!r} with {method}"
        )

    groups = group(values, clusters)
    size = groups.values.size
    missing = groups.missing
    bare = t_interval(groups.means, level=check_level(level), observations=size, missing=missing)
    if scope == "fixed":
        return _of_these(groups, bare)
    if method == "t":
        return bare
    if rng is None:
        raise ValueError(f"rng: is required for {method}")
    interval = replace(
        bare, method=f"{method}, {check_replicates(replicates, level)} resamples", df=math.nan
    )
    if not bare.se > 0:
        return interval
    low, high, reason = _BOOTSTRAPS[method](
        groups.means,
        level=level,
        rng=rng,
        replicates=replicates,
    )
    return replace(interval, low=low, high=high, reason=reason)


def _of_these(groups: Groups, bare: Interval) -> Interval:
    """The mean over exactly these questions: only their repetitions are a sample."""
    method = "t, these questions"
    once = int(np.count_nonzero(groups.counts < 2))
    nothing = replace(bare, se=math.nan, low=math.nan, high=math.nan, df=math.nan, method=method)
    if math.isnan(bare.value):
        return nothing
    if once:
        return replace(
            nothing,
            reason=f"{once} of {bare.n} questions were answered once: their spread is not known",
        )

    # the variance of each question's mean
    spreads = groups.squares / (groups.counts - 1) / groups.counts
    se = math.sqrt(float(spreads.sum())) / bare.n
    if se == 0:
        reason = "answers to one question never differ: the interval is a point"
        return replace(nothing, se=0.0, low=bare.value, high=bare.value, reason=reason)

    relative = spreads / spreads.max()
    return nothing.with_error(
        se, float(relative.sum()) ** 2 / float(np.sum(relative**2 / (groups.counts - 1)))
    )


def t_interval(means: Floats, *, level: float, observations: int, missing: int = 0) -> Interval:
    """Student's t interval of independent values."""
    n = means.size
    if n == 0 or missing:
        if missing:
            reason = f"{missing} of {observations} values are missing"
        else:
            reason = "no values"

        return Interval(
            value=math.nan,
            level=level,
            n=n,
            method="t",
            observations=observations,
            reason=reason,
        )

    bare = Interval(
        value=centred_mean(means),
        level=level,
        n=n,
        method="t",
        observations=observations,
    )
    if n == 1:
        return replace(bare, reason="only one cluster, so no interval")
    se = sample_sd(means) / math.sqrt(n)
    return bare.with_error(
        se, n - 1, None if se > 0 else f"all {n} cluster means are equal: the interval is a point"
    )


def centred_mean(values: Floats) -> float:
    """The mean, exact if all values are equal."""
    if values.size:
        return float(values[0] + np.mean(values - values[0]))
    return math.nan


def sample_sd(values: Floats) -> float:
    """The standard deviation with n − 1; NaN for fewer than two values, exactly 0 for equal
    ones.
    """
    if values.size > 1:
        return float(np.std(values - values[0], ddof=1))
    return math.nan


def clustered_mean(
    values: Iterable[object],
    clusters: Iterable[object] | None,
    *,
    weights: Iterable[object] | None = None,
    level: float = 0.95,
) -> Interval:
    """The mean of question values whose questions come in clusters, such as those of one document.

    Every question counts once, or by its weight; the clusters change the error, not the mean. The
    error is CR2 (Bell and McCaffrey) with Satterthwaite's degrees of freedom, and `n` counts
    clusters. With equal clusters this is Student's t over cluster means; without clusters, or with
    one question each, Student's t over questions. `design_effect` is the variance, relative to that
    of independent questions. The difference of two conditions is the mean of its values. Fewer than
    two clusters: a mean and no interval; see also `too_few_clusters`. None and NaN make everything
    NaN. Raises ValueError for weights that are not finite or below 0, and unequal lengths.

    >>> found = clustered_mean([4, 5, 3, 3, 5, 4], ["a", "a", "b", "b", "c", "c"])
    >>> found.value, round(found.low, 3), round(found.high, 3), found.n, round(found.df, 9)
    (4.0, 1.849, 6.151, 3, 2.0)

    Bell and McCaffrey (2002), Survey Methodology 28:169; Pustejovsky and Tipton (2018), J. Bus.
    Econ. Stat. 36:672.
    """
    groups, weight = _weighted(values, clusters, weights)
    size = groups.values.size
    n = len(groups.labels)
    equal = not size or bool((weight == weight[0]).all())
    if equal and n == size:
        return t_interval(
            groups.values,
            level=check_level(level),
            observations=size,
            missing=groups.missing,
        )

    bare = _bare_mean(groups, level=check_level(level), method="CR2")
    if groups.missing:
        return bare
    shares = weight / weight.sum()
    if equal:
        value = bare.value
    else:
        value = float(groups.values[0] + shares @ (groups.values - groups.values[0]))

    bare = replace(bare, value=value)
    if n < 2:
        return bare
    error = _cr2(groups, shares, groups.values - value)
    alone = _cr2(group(groups.values, None), shares, groups.values - value)
    reason = None
    if error.se == 0:
        reason = f"all {n} cluster means are equal: the interval is a point"
    elif summed_by(groups.codes, shares, n).max() > 0.5:
        reason = "one cluster holds more than half of the values"

    if alone.se > 0:
        effect = (error.se / alone.se) ** 2
    else:
        effect = math.nan

    return replace(bare.with_error(error.se, error.df, reason), design_effect=effect)


def _weighted(
    values: Iterable[object], clusters: Iterable[object] | None, weights: Iterable[object] | None
) -> tuple[Groups, Floats]:
    """The values by cluster, and their weights; values of weight 0 are left out."""
    groups = group(values, clusters)
    if weights is None:
        return groups, np.ones(groups.values.size)
    weight = columns("weights", weights)
    if weight.size != groups.values.size:
        raise ValueError(
            f"weights: must be as many as values ({groups.values.size}), got {weight.size}"
        )

    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("weights: must be finite and at least 0")
    counted = weight > 0
    if counted.all():
        return groups, weight
    return group(groups.values[counted], groups.codes[counted]), weight[counted]


class _Error(NamedTuple):
    se: float
    df: float


def _cr2(groups: Groups, shares: Floats, residuals: Floats) -> _Error:
    """CR2 of a weighted mean, with the working model of independent values of equal variance.

    A cluster's adjustment is the inverse square root of its block of (I − H)(I − H)ᵀ, H = 1 pᵀ, p
    the shares of the weights. The block is the identity except in the plane of the vectors 1 and p,
    so it is a 2 × 2 matrix here: in the directions of 1 and of p less its mean. Satterthwaite's df
    is tr(G)²/‖G‖² with Gⱼₖ the covariances of the clusters' scores, which is a diagonal plus a
    matrix of rank two: no matrix of clusters is needed.
    """
    codes = groups.codes
    n = len(groups.labels)
    sizes = groups.counts.astype(float)
    held = summed_by(codes, shares, n)
    off = shares - (held / sizes)[codes]
    spread = np.sqrt(summed_by(codes, off * off, n))
    squares = float(shares @ shares)
    first, second = (
        1 - 2 * held + squares * sizes,
        -np.sqrt(sizes) * spread,
    )  # the block: [[first, second], [second, 1]]
    root = np.sqrt(np.maximum(first - second**2, np.finfo(float).tiny))
    scale = root * np.sqrt(first + 1 + 2 * root)
    along, across = held / np.sqrt(sizes), spread  # p in these directions
    a1 = ((1 + root) * along - second * across) / scale
    a2 = ((first + root) * across - second * along) / scale
    tilt = np.divide(a2, spread, out=np.zeros(n), where=spread > 0)
    factors = (a1 / np.sqrt(sizes))[codes] + tilt[codes] * off
    scores = summed_by(codes, factors * residuals, n)
    scores[np.abs(scores) <= _NOISE * summed_by(codes, np.abs(factors * residuals), n)] = 0.0
    u = a1 * np.sqrt(sizes)
    v = a1 * along + a2 * across
    c = a1**2 + a2**2
    own = squares * u**2 - 2 * u * v
    uu = float(u @ u)
    uv = float(u @ v)
    vv = float(v @ v)
    norm = (
        float(c @ c + 2 * (c @ own))
        + 2 * uu * vv
        + 2 * uv**2
        + squares**2 * uu**2
        - 4 * squares * uu * uv
    )
    return _Error(se=math.sqrt(float(scores @ scores)), df=float((c + own).sum()) ** 2 / norm)


def too_few_clusters(clusters: int, df: float) -> str | None:
    """Why clusters are too few for a verdict; None if they are enough.

    With fewer than 5 clusters, or fewer than 4 degrees of freedom, the interval rests on too
    little.

    >>> too_few_clusters(4, 3.0), too_few_clusters(12, 11.0)
    ('4 clusters: a verdict needs at least 5', None)
    >>> too_few_clusters(9, 2.6)
    '9 clusters of very unequal size count as few: 2.6 degrees of freedom, a verdict needs 4'
    >>> too_few_clusters(9, 3.99)
    '9 clusters of very unequal size count as few: 3.9 degrees of freedom, a verdict needs 4'
    """
    if clusters < LEAST_CLUSTERS:
        return (
            f"{clusters} cluster{'s' * (clusters != 1)}: a verdict needs at least {LEAST_CLUSTERS}"
        )

    if df < LEAST_DF:
        unequal = f"{clusters} clusters of very unequal size count as few"
        shown = math.floor(10 * df) / 10  # rounded up, 3.99 would be the 4 that it lacks
        return f"{unequal}: {shown:g} degrees of freedom, a verdict needs {LEAST_DF:g}"

    return None


def clustered_se(
    values: Iterable[object],
    clusters: Iterable[object],
    *,
    kind: Literal["CR0", "CR1", "CR2", "CR3"] = "CR2",
    second: Iterable[object] | None = None,
    level: float = 0.95,
) -> Interval:
    """The plain mean of all values, with an error that allows for correlation within clusters.

    CR2 (Bell and McCaffrey) brings Satterthwaite's degrees of freedom; the others use
    clusters − 1. `second` adds another clustering of the same values (question and
    judge): CR0 only, variances added and that of the intersection subtracted; if the result
    is negative the error is NaN. Fewer than two clusters: NaN. `reason` reports if more than
    half of the values are in one cluster.

    >>> found = clustered_se(
    ...     [1, 0, 1, 1, 0, 0, 1, 1, 1, 0], [1, 1, 2, 2, 2, 3, 3, 4, 4, 4], kind="CR1"
    ... )
    >>> round(found.value, 3), round(found.se, 6)
    (0.6, 0.046188)

    Miller (2024), arXiv:2411.00640, appendix A (CR0); Bell and McCaffrey (2002), Survey
    Methodology 28:169; Cameron, Gelbach and Miller (2011), J. Bus. Econ. Stat. 29:238.
    """
    if kind not in ("CR0", "CR1", "CR2", "CR3"):
        raise ValueError(f"kind: must be CR0, CR1, CR2 or CR3, got {kind!r}")
    if second is not None:
        return _two_way(values, clusters, second, level=check_level(level))
    if kind == "CR2":
        return replace(clustered_mean(values, clusters, level=level), method=kind)
    groups = group(values, clusters)
    n = len(groups.labels)
    bare = _bare_mean(groups, level=check_level(level), method=kind)
    if bare.reason is not None:
        return bare
    scores = _cluster_scores(groups, bare.value)
    shares = groups.counts / groups.values.size
    if kind == "CR1":
        scores = scores * math.sqrt(n / (n - 1))
    elif kind == "CR3":
        scores = scores / (1 - shares)

    se = float(np.sqrt(np.sum(scores**2))) / groups.values.size
    reason = "one cluster holds more than half of the values" if shares.max() > 0.5 else None
    return bare.with_error(se, n - 1, reason)


def _bare_mean(groups: Groups, *, level: float, method: str) -> Interval:
    observations = groups.values.size
    n = len(groups.labels)
    value = math.nan
    reason = None
    if observations == 0:
        reason = "no values"
    elif groups.missing:
        reason = f"{groups.missing} of {observations} values are missing"
    else:
        value = centred_mean(groups.values)
        reason = "only one cluster, so no interval" if n < 2 else None

    return Interval(
        value=value,
        level=level,
        n=n,
        method=method,
        observations=observations,
        reason=reason,
    )


def _cluster_scores(groups: Groups, mean: float) -> Floats:
    return summed_by(groups.codes, groups.values - mean, len(groups.labels))


def _two_way(
    values: Iterable[object],
    first: Iterable[object],
    second: Iterable[object],
    *,
    level: float,
) -> Interval:
    listed = columns("values", values)
    one = list(first)
    two = list(second)
    if not len(one) == len(two) == listed.size:
        raise ValueError(
            f"clusters and second: must be as many as values ({listed.size}), got {len(one)}, "
            f"{len(two)}"
        )

    by_first = group(listed, one)
    by_second = group(listed, two)
    by_both = group(listed, list(zip(one, two, strict=True)))
    smaller = min(by_first, by_second, key=lambda groups: len(groups.labels))
    bare = _bare_mean(smaller, level=level, method="two-way CR0")
    if bare.reason is not None:
        return bare
    parts = [
        float(np.sum(_cluster_scores(groups, bare.value) ** 2))
        for groups in (by_first, by_second, by_both)
    ]
    variance = (parts[0] + parts[1] - parts[2]) / listed.size**2
    if variance < 0:
        return bare.with_error(math.nan, bare.n - 1, "the two-way variance estimate is negative")
    return bare.with_error(math.sqrt(variance), bare.n - 1)
