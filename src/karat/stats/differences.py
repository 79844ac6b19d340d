"""Two conditions, over the same or different questions: how much they differ, and whether by
chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from karat.stats import special
from karat.stats._groups import (
    Codes,
    Floats,
    Groups,
    check_level,
    columns,
    group,
    labels_of,
    t_quantile,
    t_two_sided,
    unbiased,
    whole,
)
from karat.stats.intervals import centred_mean, clustered_mean, sample_sd, t_interval
from karat.stats.results import (
    Equivalence,
    HypothesisTest,
    Interval,
    MeanDifference,
    PairedDifference,
)
from karat.sums import exact_sum

EXACT_FLIPS = 20  # 2²⁰ sums take 10 ms
_BLOCK = 2_000  # draws per block: fixed, so that a seed gives one result


def paired_difference(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    clusters_b: Iterable[object] | None = None,
    sources: Iterable[object] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """How much higher b is than a: paired t on differences of question means.

    `clusters` names the question of each value of `a`, and of `b` too unless `clusters_b` does;
    without clusters the i-th values belong together. Only questions with a value under both count;
    the result reports how many were lost on either side, with a warning if the losses differ. None
    and NaN are failed trials: left out and counted. Equal to the balanced mixed model. If every
    difference is the same, t is infinite or NaN; p is then that of the sign-flip test, never 0.
    `sources`: the document or other origin of each value of `a`, if questions of one source are not
    independent; error and degrees of freedom are then those of `clustered_mean`.

    >>> found = paired_difference([3, 4, 2, 5], [4, 4, 3, 5], ["q1", "q2", "q3", "q4"])
    >>> found.value, round(found.p, 3), found.better, found.equal
    (0.5, 0.182, 2, 2)

    Miller (2024), arXiv:2411.00640, section 4; Cliff (1993), Psychol. Bull. 114:494.
    """
    check_level(level)
    pairs = _pairs(a, b, clusters, clusters_b, sources)
    lost_a, lost_b = (
        int(np.count_nonzero(np.isnan(means))) for means in (pairs.means_a, pairs.means_b)
    )
    missing_a, missing_b = pairs.missing
    both = ~np.isnan(pairs.means_a) & ~np.isnan(pairs.means_b)
    means_a = pairs.means_a[both]
    means_b = pairs.means_b[both]
    warning = ""
    if lost_a != lost_b:
        warning = f"questions lost under a: {lost_a}, under b: {lost_b}"
    elif missing_a != missing_b:
        warning = f"answers missing under a: {missing_a}, under b: {missing_b}"

    d = means_b - means_a
    if pairs.sources is None:
        kept = None
    else:
        kept = pairs.sources[both]

    interval = clustered_mean(d, kept, level=level)
    units = "differences" if interval.n == interval.observations else "mean differences of clusters"
    statistic, p, reason = t_test(
        interval,
        unknown=interval.reason if interval.observations else "no question has a value under both",
        zero=f"all {interval.n} {units} are 0",
        units=units,
    )
    sd = sample_sd(d)
    if sd > 0:
        d_z = interval.value / sd
    else:
        d_z = math.nan

    return PairedDifference(
        value=interval.value,
        se=interval.se,
        low=interval.low,
        high=interval.high,
        level=level,
        n=d.size,
        method="paired t on question means" if kept is None else "paired CR2 on question means",
        statistic=statistic,
        df=interval.df,
        p=p,
        mean_a=centred_mean(means_a),
        mean_b=centred_mean(means_b),
        d_z=d_z,
        cliffs_delta=cliffs_delta(means_a, means_b),
        correlation=correlation(means_a, means_b),
        better=int(np.count_nonzero(d > 0)),
        worse=int(np.count_nonzero(d < 0)),
        equal=int(np.count_nonzero(d == 0)),
        lost_a=lost_a,
        lost_b=lost_b,
        missing_a=missing_a,
        missing_b=missing_b,
        clusters=None if kept is None else interval.n,
        design_effect=interval.design_effect,
        warnings=(f"{warning}; the compared parts may differ",) if warning else (),
        reason=reason,
    )


class _Pairs(NamedTuple):
    """The question means of both sides in one order, NaN for a question without a value."""

    means_a: Floats
    means_b: Floats
    missing: tuple[int, int]  # values under a and under b
    sources: Codes | None  # of each question; -1 for one that was asked under b alone


def _pairs(
    a: Iterable[object],
    b: Iterable[object],
    clusters: Iterable[object] | None,
    clusters_b: Iterable[object] | None,
    sources: Iterable[object] | None,
) -> _Pairs:
    if clusters is None and clusters_b is not None:
        raise ValueError("clusters: must be given where clusters_b is")
    values_a = columns("a", a)
    values_b = columns("b", b)
    if clusters_b is None and values_a.size != values_b.size:
        raise ValueError(
            f"b: must be as long as a ({values_a.size}), got {values_b.size}; or give clusters_b"
        )

    if isinstance(clusters, np.ndarray):
        questions = clusters.tolist()
    else:
        questions = clusters and list(clusters)

    sides = (
        group(values_a, questions),
        group(values_b, questions if clusters_b is None else clusters_b),
    )
    asked = dict.fromkeys(question for side in sides for question in side.labels)
    answered = [answered_means(side) for side in sides]
    first, second = (
        np.array([means.get(question, math.nan) for question in asked], dtype=np.float64)
        for means in answered
    )
    origins = None
    if sources is not None:
        known = group(np.zeros(len(sides[0].labels)), labels_of(sides[0], sources)).codes
        origins = np.append(known, np.full(len(asked) - known.size, -1))

    return _Pairs(
        means_a=first,
        means_b=second,
        missing=(sides[0].missing, sides[1].missing),
        sources=origins,
    )


def answered_means(side: Groups) -> dict[object, float]:
    """The mean of each question that has a value; NaN and infinities do not count."""
    kept = np.isfinite(side.values)
    if kept.all():
        return dict(zip(side.labels, side.means.tolist(), strict=True))
    labels = [side.labels[code] for code in side.codes[kept]]
    left = group(side.values[kept], labels)
    return dict(zip(left.labels, left.means.tolist(), strict=True))


def t_test(
    d: Interval,
    *,
    unknown: str | None,
    zero: str,
    units: str,
) -> tuple[float, float, str | None]:
    """Statistic, p and reason of "the mean of these differences is 0"; the reasons are in the
    caller's words.
    """
    if math.isnan(d.se):
        return math.nan, math.nan, unknown
    if d.se > 0:
        return d.value / d.se, t_two_sided(d.value / d.se, d.df), None
    if d.value == 0:
        return math.nan, 1.0, zero
    p = max(2.0 ** (1 - d.n), math.ulp(0.0))
    return math.copysign(math.inf, d.value), p, f"all {d.n} {units} are equal: p by sign flips"


def correlation(a: Floats, b: Floats) -> float:
    """Pearson's; NaN where one side does not vary."""
    if a.size < 2:
        return math.nan
    x = a - centred_mean(a)
    y = b - centred_mean(b)
    scale = math.sqrt(float(x @ x) * float(y @ y))
    if scale > 0:
        return max(-1.0, min(1.0, float(x @ y) / scale))
    return math.nan


def cliffs_delta(a: Iterable[object], b: Iterable[object]) -> float:
    """P(b > a) − P(b < a) over all pairs of one value of each: −1 to 1, 0 if neither tends to be
    higher.

    NaN if either is empty or contains a NaN. n log n time.

    >>> cliffs_delta([1, 2, 3], [2, 3, 4])
    0.5555555555555556

    Cliff (1993), Psychol. Bull. 114:494.
    """
    x = np.sort(columns("a", a))
    y = columns("b", b)
    if not x.size or not y.size or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    below = np.searchsorted(x, y, side="left")
    above = x.size - np.searchsorted(x, y, side="right")
    return float((below - above).sum() / (x.size * y.size))


def sign_flip_test(
    d: Iterable[object],
    *,
    clusters: Iterable[object] | None = None,
    rng: np.random.Generator | None = None,
    draws: int = 20_000,
) -> HypothesisTest:
    """Whether differences are symmetric about 0, by flipping their signs; no other assumptions.

    Every combination of signs for up to 20 differences that are not 0 (zeros change nothing);
    beyond that `draws` random ones from `rng`, which is then required, and p counts the data as one
    more draw. Fewer than six differences cannot reach 0.05, as `reason` explains. A NaN difference
    makes p NaN. Conservative for tied values. `clusters`: the document or other origin of each
    difference; all differences of a cluster are then flipped together, and `n` counts clusters.

    >>> sign_flip_test([0.5, 0.2, -0.1, 0.7, 0.4, 0.3]).p
    0.0625

    Fisher (1935), The Design of Experiments, section 21.
    """
    values = columns("d", d)
    groups = group(values, clusters)
    if clusters is None:
        differences = values
    else:
        differences = groups.means * groups.counts

    total = float(differences.sum())
    n = differences.size
    if n == 0 or not math.isfinite(total):
        lacking = "no differences" if n == 0 else "a difference is missing"
        return HypothesisTest(
            statistic=math.nan,
            p=math.nan,
            n=n,
            method="sign flip",
            reason=lacking,
        )

    moving = np.abs(differences[differences != 0])
    reason = (
        "fewer than 6 differences that are not 0 cannot reach p = 0.05" if moving.size < 6 else None
    )
    bar = abs(total) - 1e-12 * max(1.0, float(moving.sum()))
    if moving.size <= EXACT_FLIPS:
        sums = np.zeros(1)
        for size in moving[1:]:  # the first sign is fixed: flipping all signs gives the same |sum|
            sums = np.concatenate([sums + size, sums - size])
        if moving.size:
            sums = sums + moving[0]
        p = float(np.mean(np.abs(sums) >= bar))
        method = "sign flip, exact"
    elif rng is None:
        raise ValueError(f"rng: is required for more than {EXACT_FLIPS} differences that are not 0")
    else:
        if draws < 1:
            raise ValueError(f"draws: must be at least 1, got {draws}")

        moved = float(moving.sum())
        width = -(-moving.size // 8)
        reached = 0
        for start in range(0, draws, _BLOCK):
            rows = min(_BLOCK, draws - start)
            packed = np.frombuffer(rng.bytes(_BLOCK * width), dtype=np.uint8).reshape(
                _BLOCK, width
            )[:rows]
            kept = np.unpackbits(packed, axis=1, count=moving.size).astype(np.float64)
            reached += int(np.count_nonzero(np.abs(2 * (kept @ moving) - moved) >= bar))

        p = (reached + 1) / (draws + 1)
        method = f"sign flip, {draws} draws"

    return HypothesisTest(
        statistic=total,
        p=p,
        n=n,
        method=method,
        value=centred_mean(values),
        reason=reason,
    )


def mcnemar_exact(b: int, c: int) -> HypothesisTest:
    """Whether two conditions differ on 0/1 answers, from the two discordant counts.

    `b` questions were right under the first only, `c` under the second only. The exact
    binomial p, along with mid-p; `statistic` is the continuity-corrected chi-squared.
    No discordant question: p is 1.

    >>> round(mcnemar_exact(12, 5).p, 4)
    0.1435

    McNemar (1947), Psychometrika 12:153.
    """
    b = whole("b", b)
    c = whole("c", c)
    n = b + c
    fewer = min(b, c)
    if n == 0:
        return HypothesisTest(
            statistic=math.nan,
            p=1.0,
            p_mid=1.0,
            n=0,
            method="mcnemar, exact",
            reason="no question differs",
        )

    p = max(min(1.0, 2 * float(special.bdtr(fewer, n, 0.5))), math.ulp(0.0))
    point = math.exp(
        float(special.gammaln(n + 1) - special.gammaln(b + 1) - special.gammaln(c + 1))
        - n * math.log(2)
    )
    p_mid = max(min(1.0, 2 * float(special.bdtr(fewer, n, 0.5)) - point), math.ulp(0.0))
    chi2 = max(0, abs(b - c) - 1) ** 2 / n
    return HypothesisTest(
        statistic=chi2,
        p=p,
        p_mid=p_mid,
        n=n,
        df=1,
        value=(c - b) / n,
        method="mcnemar, exact",
    )


def wilcoxon(d: Iterable[object]) -> HypothesisTest:
    """Wilcoxon's signed-rank test of differences; zeros are left out, ties share their rank.

    Exact for up to 50 differences that are not 0, ties included (the distribution of the
    shared ranks is enumerated); beyond that normal with tie and continuity correction.
    `statistic` is the sum of the ranks of positive differences. A NaN makes p NaN.

    >>> wilcoxon([1, -2, 3, -4, 5, 6, -7, 8]).p
    0.546875

    Wilcoxon (1945), Biometrics Bull. 1:80; Pratt and Gibbons (1981), Concepts of Nonparametric
    Theory.
    """
    differences = columns("d", d)
    moving = differences[differences != 0]
    n = moving.size
    if n == 0 or not np.isfinite(moving).all():
        nothing = n == 0 and differences.size > 0
        if nothing:
            reason = "all differences are 0"
        elif n == 0:
            reason = "no differences"
        else:
            reason = "a difference is missing"

        return HypothesisTest(
            statistic=math.nan,
            p=1.0 if nothing else math.nan,
            n=differences.size,
            method="wilcoxon",
            reason=reason,
        )

    _, inverse, counts = np.unique(np.abs(moving), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[inverse]  # twice the mid-rank: whole
    positive = int(doubled[moving > 0].sum())
    exact = n <= 50
    if exact:
        ways = np.zeros(int(doubled.sum()) + 1)
        ways[0] = 1.0
        for rank in doubled.tolist():
            ways[rank:] += ways[:-rank].copy()
        smaller = min(positive, ways.size - 1 - positive)
        p = float(min(1.0, 2 * ways[: smaller + 1].sum() / ways.sum()))
    else:
        variance = (
            n * (n + 1) * (2 * n + 1) / 24
            - float(np.sum(counts.astype(float) * counts * counts - counts)) / 48
        )
        off = max(0.0, abs((positive / 2) - n * (n + 1) / 4) - 0.5)
        p = max(min(1.0, 2 * float(special.ndtr(-off / math.sqrt(variance)))), math.ulp(0.0))

    method = "wilcoxon, exact" if exact else "wilcoxon, normal"
    return HypothesisTest(
        statistic=positive / 2,
        p=p,
        n=differences.size,
        method=method,
        value=float(np.median(differences)),
    )


def mean_difference(
    a: Iterable[object],
    b: Iterable[object],
    clusters_a: Iterable[object] | None = None,
    clusters_b: Iterable[object] | None = None,
    *,
    equal_variances: bool = False,
    level: float = 0.95,
) -> MeanDifference:
    """How much higher b is than a, if the two have no questions in common: Welch's t on question
    means.

    `equal_variances`: Student's t with the pooled variance instead. Over the same questions use
    `paired_difference`, which detects far smaller differences. Without clusters each value is its
    own question. None and NaN are failed trials: left out and counted, with a warning if their
    shares differ. If no question differs from the others of its group, p is that of a permutation
    test. Welch's t needs two questions per group, Student's three in all; with fewer the error is
    NaN. Raises ValueError if only one group has clusters.

    >>> found = mean_difference([3, 4, 2, 5], [4, 5, 5, 4, 5])
    >>> round(found.value, 3), round(found.p, 3), round(found.hedges_g, 3)
    (1.1, 0.189, 1.038)

    Welch (1947), Biometrika 34:28; Hedges (1981), J. Educ. Stat. 6:107.
    """
    check_level(level)
    if (clusters_a is None) != (clusters_b is None):
        raise ValueError("clusters_b: must be given where clusters_a is, and the other way round")
    first = group(columns("a", a), clusters_a)
    second = group(columns("b", b), clusters_b)
    x = _means(first)
    y = _means(second)
    method = f"{'student' if equal_variances else 'welch'} t on question means"
    value = centred_mean(y) - centred_mean(x)
    error = _error(x, y, equal_variances)
    statistic = p = math.nan
    reason: str | None = None
    if math.isnan(value):
        reason = "a group has no value"
    elif math.isnan(error.se):
        reason = "too few questions for an interval"
    elif error.se > 0:
        statistic = value / error.se
        p = t_two_sided(statistic, error.df)
    elif value == 0:
        p, reason = 1.0, "all question means are equal"
    else:
        statistic = math.copysign(math.inf, value)
        # only groups of equal size can be swapped
        p = share_of_arrangements(x.size, y.size, 2 if x.size == y.size else 1)
        reason = "no spread within either group: p by permutation"

    if error.pooled_sd > 0:
        d = value / error.pooled_sd
    else:
        d = math.nan

    if error.se > 0:
        reach = t_quantile(0.5 + level / 2, error.df) * error.se
    else:
        reach = error.se

    missing = (first.missing, second.missing)
    sizes = (first.values.size, second.values.size)
    if missing[0] * sizes[1] == missing[1] * sizes[0]:
        warnings: tuple[str, ...] = ()
    else:
        lost = " and ".join(
            f"{gone} of {size} under {side}"
            for gone, size, side in zip(missing, sizes, "ab", strict=True)
        )
        warnings = (f"answers missing: {lost}; the compared parts may differ",)

    return MeanDifference(
        value=value,
        se=error.se,
        low=value - reach,
        high=value + reach,
        level=level,
        n_a=x.size,
        n_b=y.size,
        method=method,
        statistic=statistic,
        df=error.df,
        p=p,
        mean_a=centred_mean(x),
        mean_b=centred_mean(y),
        cohens_d=d,
        hedges_g=d * unbiased(x.size + y.size - 2),
        cliffs_delta=cliffs_delta(x, y),
        missing_a=first.missing,
        missing_b=second.missing,
        warnings=warnings,
        reason=reason,
    )


class _Error(NamedTuple):
    se: float
    df: float
    pooled_sd: float


def _error(x: Floats, y: Floats, equal_variances: bool) -> _Error:
    sizes = (x.size, y.size)
    nan = math.nan
    if min(sizes) < 1 or sum(sizes) < 3:
        return _Error(nan, nan, nan)
    spread = []
    for side in (x, y):
        if side.size < 2:
            spread.append(0.0)
        else:
            spread.append(sample_sd(side) ** 2)

    df = sum(sizes) - 2
    pooled = math.sqrt(((sizes[0] - 1) * spread[0] + (sizes[1] - 1) * spread[1]) / df)
    if equal_variances:
        return _Error(pooled * math.sqrt(1 / sizes[0] + 1 / sizes[1]), float(df), pooled)
    if min(sizes) < 2:
        return _Error(nan, nan, pooled)
    parts = [variance / size for variance, size in zip(spread, sizes, strict=True)]
    if not max(parts) > 0:
        return _Error(0.0, float(df), pooled)
    shares = [part / exact_sum(parts) for part in parts]
    welch = 1 / exact_sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    return _Error(math.sqrt(exact_sum(parts)), welch, pooled)


def share_of_arrangements(n_a: int, n_b: int, like: int = 1) -> float:
    """`like` as a share of all ways to put n_a + n_b values into two groups: at most 1, never 0."""
    n = n_a + n_b
    least = math.ulp(0.0)
    # A number of a hundred thousand digits takes seconds, and its inverse is below every float.
    if n > 1_100 and math.lgamma(n + 1) - math.lgamma(n_a + 1) - math.lgamma(n_b + 1) > 750:
        return least
    return max(min(1.0, like / math.comb(n, n_a)), least)


def _means(side: Groups) -> Floats:
    return np.array(list(answered_means(side).values()), dtype=np.float64)


Bounds = float | Sequence[float]


def tost(
    a: Iterable[object],
    b: Iterable[object] | None = None,
    clusters: Iterable[object] | None = None,
    *,
    bounds: Bounds,
    clusters_b: Iterable[object] | None = None,
    design: Literal["paired", "independent", "pooled"] = "paired",
    alpha: float = 0.05,
) -> Equivalence:
    """Whether b − a lies between two bounds: two one-sided t-tests on question means.

    `bounds`: the smallest difference that would matter, on both sides, or two numbers (lower,
    upper); choose them before seeing the data. Without `b`, the mean of `a` itself is tested.
    `design`: `paired` over the questions that both answered, `independent` for different questions
    (Welch), `pooled` the same with one variance (Student); these two need `clusters_b` as well as
    `clusters`. Shares are 0/1 values. A large p shows neither equivalence nor a difference. Missing
    values count as in `paired_difference` and `mean_difference`; in `a` alone they make all NaN.
    Raises ValueError for bounds out of order and alpha outside (0, 0.5).

    >>> found = tost([3, 4, 2, 5, 4, 4], [3, 4, 3, 5, 4, 4], bounds=0.8)
    >>> round(found.value, 3), round(found.p, 4), found.equivalent
    (0.167, 0.0063, True)

    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657.
    """
    if design not in ("paired", "independent", "pooled"):
        raise ValueError(f"design: must be paired, independent or pooled, got {design!r}")
    if b is None:
        groups = group(a, clusters)
        alone = t_interval(
            groups.means,
            level=0.95,
            observations=groups.values.size,
            missing=groups.missing,
        )
        result = tost_of_estimate(
            alone.value,
            alone.se,
            alone.df,
            bounds=bounds,
            alpha=alpha,
            n=alone.n,
        )
        return _flat(
            replace(result, method="tost, one sample", reason=result.reason and alone.reason)
        )

    if design == "paired":
        both = paired_difference(a, b, clusters, clusters_b=clusters_b)
        result = tost_of_estimate(
            both.value,
            both.se,
            both.df,
            bounds=bounds,
            alpha=alpha,
            n=both.n,
        )
        named = replace(
            result,
            method="tost, paired",
            warnings=both.warnings,
            reason=result.reason and both.reason,
        )
        return _flat(named)

    apart = mean_difference(a, b, clusters, clusters_b, equal_variances=design == "pooled")
    result = tost_of_estimate(
        apart.value,
        apart.se,
        apart.df,
        bounds=bounds,
        alpha=alpha,
        n=apart.n,
    )
    named = replace(
        result,
        method=f"tost, {design}",
        warnings=apart.warnings,
        reason=result.reason and apart.reason,
    )
    return _flat(named, sides=(apart.n_a, apart.n_b))


def tost_of_estimate(
    value: float,
    se: float,
    df: float = math.inf,
    *,
    bounds: Bounds,
    alpha: float = 0.05,
    n: int = 0,
) -> Equivalence:
    """The same for any estimate with an error and degrees of freedom (∞: normal), such as a
    published one.

    An error of 0 or NaN: p is NaN, with a reason.

    >>> found = tost_of_estimate(0.4, 1 / 5, 24, bounds=0.5, n=25)
    >>> round(found.t_low, 3), round(found.t_high, 3), round(found.p, 4)
    (4.5, -0.5, 0.3108)

    Lakens (2017), Soc. Psychol. Personal. Sci. 8:355.
    """
    listed = np.asarray(bounds, dtype=np.float64)
    if listed.ndim == 0:
        low = 0.0 - float(listed)
        high = float(listed)
    elif listed.shape != (2,):
        raise ValueError(
            f"bounds: must be one number, or a lower and an upper one, got {listed.size}"
        )
    else:
        low = float(listed[0])
        high = float(listed[1])

    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"bounds: must be finite, the lower below the upper, got {low:g} and {high:g}"
        )

    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha: must lie between 0 and 0.5, got {alpha}")
    if se < 0:
        raise ValueError(f"se: must be at least 0, got {se}")
    nan = math.nan
    reason = None
    if math.isnan(value) or math.isnan(se):
        reason = "the estimate or its error is not known"
    elif se == 0:
        reason = "the error is 0: there is no spread to test with"
    elif not df > 0:
        reason = "the degrees of freedom are not known"

    known = Equivalence(
        value=value,
        se=se,
        low=nan,
        high=nan,
        bounds=(low, high),
        alpha=alpha,
        t_low=nan,
        t_high=nan,
        p_low=nan,
        p_high=nan,
        n=n,
        df=df,
        method="tost",
        reason=reason,
    )
    if reason is not None:
        return known
    t_low = (value - low) / se
    t_high = (value - high) / se
    reach = t_quantile(1 - alpha, df) * se
    return replace(
        known,
        low=value - reach,
        high=value + reach,
        t_low=t_low,
        t_high=t_high,
        p_low=_below(-t_low, df),
        p_high=_below(t_high, df),
    )


def _flat(test: Equivalence, sides: tuple[int, int] | None = None) -> Equivalence:
    """For values that are all equal: p from sign flips about each bound, or from a permutation."""
    if test.se != 0 or test.n < 2:
        return test
    if sides:
        smallest = share_of_arrangements(*sides)
    else:
        smallest = max(2.0**-test.n, math.ulp(0.0))

    over = test.value - test.bounds[0]
    under = test.value - test.bounds[1]
    if over:
        t_low = math.copysign(math.inf, over)
    else:
        t_low = math.nan

    if under:
        t_high = math.copysign(math.inf, under)
    else:
        t_high = math.nan

    return replace(
        test,
        low=test.value,
        high=test.value,
        t_low=t_low,
        t_high=t_high,
        p_low=smallest if over > 0 else 1.0,
        p_high=smallest if under < 0 else 1.0,
        reason=f"all values are equal: p by {'permutation' if sides else 'sign flips'}",
    )


def _below(t: float, df: float) -> float:
    return max(float(special.stdtr(df, t)), math.ulp(0.0))
