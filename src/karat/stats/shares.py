"""Intervals of shares: inside [0, 1], and never a point at 0 of n or n of n."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from karat.stats import special
from karat.stats._groups import (
    Counts,
    Floats,
    check_level,
    counts_of,
    group,
    labels_of,
    plain,
    t_quantile,
    whole,
    z_quantile,
)
from karat.stats.intervals import clustered_mean, t_interval
from karat.stats.results import HypothesisTest, Interval

_NOISE = 1e-12  # of an error of a share: only rounding, as between 1/3 and 1 − 2/3

ShareMethod = Literal[
    "wilson",
    "wilsoncc",
    "jeffreys",
    "beta_posterior_uniform",
    "clopper-pearson",
    "agresti-coull",
    "wald",
]


def proportion_interval(
    k: Counts,
    n: Counts,
    *,
    method: ShareMethod = "wilson",
    level: float = 0.95,
) -> Interval:
    """The share k of n, with an interval that stays inside [0, 1].

    Never a point at 0 of n or n of n, except for `wald`. `wilson` is the score interval, `wilsoncc`
    the same with continuity correction; `jeffreys` has low = 0 at k = 0 and high = 1 at k = n;
    `beta_posterior_uniform` is the central interval of the posterior with a flat prior, which
    excludes 0 and 1 themselves; `clopper-pearson` is exact and wide; `agresti-coull` and `wald` are
    cut at 0 and 1, and `wald` is only for comparison: its coverage is too low. With n = 0 all is
    NaN.

    Answers that repeat a question are not independent: give `k` and `n` as sequences, with a number
    for each question. Each question then counts once, and the interval is that of the effective n:
    see `share_interval`. Questions without an answer are left out, and `reason` counts them. Raises
    ValueError unless 0 ≤ k ≤ n are whole.

    >>> found = proportion_interval(81, 263)
    >>> round(found.low, 4), round(found.high, 4)
    (0.2553, 0.3662)
    >>> found = proportion_interval([3, 2, 0, 3], [3, 3, 3, 3])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.6667, 0.1594, 0.9547)

    Wilson (1927), J. Am. Stat. Assoc. 22:209; Newcombe (1998), Stat. Med. 17:857; Brown, Cai and
    DasGupta (2001), Stat. Sci. 16:101.
    """
    check_level(level)
    _check_method(method)
    right, tries = counts_of(("k", "n"), k, n)
    if not isinstance(plain(k), (int, float, np.number)):
        asked = []
        for won, tried in zip(right, tries, strict=True):
            if tried:
                asked.append((won, tried))

        means = np.array([won / tried for won, tried in asked], dtype=np.float64)
        interval = share_of_means(means, observations=sum(tries), level=level, method=method)
        left_out = len(tries) - len(asked)
        if not left_out:
            return interval
        missing = f"{left_out} of {len(tries)} questions have no answer"
        if interval.reason:
            reason = f"{missing}; {interval.reason}"
        else:
            reason = missing

        return replace(interval, reason=reason)

    successes = right[0]
    size = tries[0]
    if size == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="no trials")
    share = successes / size
    low, high = _SHARE[method](share, size, level)
    se = math.sqrt(share * (1 - share) / size)
    return Interval(
        value=share,
        se=se,
        low=low,
        high=high,
        level=level,
        n=size,
        method=method,
        observations=size,
    )


def _check_method(method: str) -> None:
    if method not in _SHARE:
        raise ValueError(f"method: must be one of {', '.join(_SHARE)}, got {method!r}")


def wilson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share at a real-valued n > 0; exactly 0 and 1 at the ends."""
    z = z_quantile(0.5 + level / 2)
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    if share <= 0:
        low = 0.0
    else:
        low = max(0.0, (centre - reach) / scale)

    if share >= 1:
        high = 1.0
    else:
        high = min(1.0, (centre + reach) / scale)

    return low, high


def _wilson_corrected(share: float, n: float, level: float) -> tuple[float, float]:
    z = z_quantile(0.5 + level / 2)
    complement = 1 - share

    def bound(towards: int) -> float:
        inner = z * z + towards * 2 - 1 / n + 4 * share * (n * complement - towards)
        return (2 * n * share + z * z + towards * (1 + z * math.sqrt(max(0.0, inner)))) / (
            2 * (n + z * z)
        )

    if share <= 0:
        low = 0.0
    else:
        low = max(0.0, bound(-1))

    if share >= 1:
        high = 1.0
    else:
        high = min(1.0, bound(1))

    return low, high


def _wald(share: float, n: float, level: float) -> tuple[float, float]:
    reach = z_quantile(0.5 + level / 2) * math.sqrt(share * (1 - share) / n)
    return max(0.0, share - reach), min(1.0, share + reach)


def _jeffreys(share: float, n: float, level: float) -> tuple[float, float]:
    low, high = _beta(n * share + 0.5, n * (1 - share) + 0.5, level)
    return (0.0 if share <= 0 else low), (1.0 if share >= 1 else high)


def clopper_pearson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """The exact interval of a share at a real-valued n > 0."""
    k = n * share
    failures = n * (1 - share)
    if share <= 0:
        low = 0.0
    else:
        low = _beta(k, failures + 1, level)[0]

    if share >= 1:
        high = 1.0
    else:
        high = _beta(k + 1, failures, level)[1]

    return low, high


def _beta(a: float, b: float, level: float) -> tuple[float, float]:
    return float(special.betaincinv(a, b, 0.5 - level / 2)), float(
        special.betaincinv(a, b, 0.5 + level / 2)
    )


def _agresti_coull(share: float, n: float, level: float) -> tuple[float, float]:
    z = z_quantile(0.5 + level / 2)
    padded = n + z * z
    centre = (n * share + z * z / 2) / padded
    reach = z * math.sqrt(centre * (1 - centre) / padded)
    return max(0.0, centre - reach), min(1.0, centre + reach)


_SHARE = {
    "wilson": wilson_bounds,
    "wilsoncc": _wilson_corrected,
    "jeffreys": _jeffreys,
    "beta_posterior_uniform": lambda share, n, level: _beta(
        n * share + 1, n * (1 - share) + 1, level
    ),
    "clopper-pearson": clopper_pearson_bounds,
    "agresti-coull": _agresti_coull,
    "wald": _wald,
}


def share_interval(
    values: Iterable[object],
    clusters: Iterable[object] | None = None,
    *,
    sources: Iterable[object] | None = None,
    method: ShareMethod = "wilson",
    level: float = 0.95,
) -> Interval:
    """The share of true answers, counting each question once, with the interval of a share at the
    effective n.

    `values` are 0/1 or bool, `clusters` the questions. The effective n is the number of independent
    answers that would give the error seen between questions, reduced by (z/t)² for its few degrees
    of freedom, and kept between half the questions and all answers; if questions do not differ,
    each counts once. So the width never collapses at 0 or 1. `method` as for `proportion_interval`.
    `sources`: the document or other origin of each value; the error is then that between sources,
    as in `clustered_mean`, and sources take the place of questions. A NaN makes everything NaN; a
    value other than 0 and 1 raises ValueError.

    >>> found = share_interval([1, 1, 1, 0, 1, 1, 0, 0], ["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.625, 0.142, 0.944)

    Korn and Graubard (1998), Survey Methodology 24:193; Miller (2024), arXiv:2411.00640.
    """
    _check_method(method)
    groups = group(values, clusters)
    wrong = groups.values[np.isfinite(groups.values) & (groups.values != 0) & (groups.values != 1)]
    if wrong.size:
        raise ValueError(f"values: must be 0 or 1, got {wrong[0]:g}")
    size = groups.values.size
    missing = groups.missing
    if sources is None:
        origins = None
    else:
        origins = labels_of(groups, sources)

    means = groups.means
    return share_of_means(
        means,
        origins,
        observations=size,
        missing=missing,
        level=level,
        method=method,
    )


def share_of_means(
    means: Floats,
    clusters: Iterable[object] | None = None,
    *,
    observations: int,
    missing: int = 0,
    level: float = 0.95,
    method: ShareMethod = "wilson",
) -> Interval:
    """As `share_interval`, from the share of each question, its source, and the total number of
    answers.
    """
    if missing or clusters is None:
        over = t_interval(
            means,
            level=check_level(level),
            observations=observations,
            missing=missing,
        )
    else:
        over = replace(clustered_mean(means, clusters, level=level), observations=observations)

    named = f"{method} at effective n"
    if math.isnan(over.value):
        return replace(over, method=named)
    share = min(1.0, max(0.0, over.value))
    if over.n == 1 and means.size > 1:
        return replace(over, value=share, method=named)
    low, high = _SHARE[method](share, effective_n(over, 0.5 + level / 2), level)
    note = "only one question: repeated answers count once" if over.n == 1 else None
    return replace(over, value=share, low=low, high=high, method=named, reason=note)


_MEDIAN = 0.5 + 1e-6
"""Of a quantile: at the median itself both quantiles are 0, and so is their ratio's denominator."""


def effective_n(over: Interval, quantile: float) -> float:
    """The number of independent answers with this error of a share, less what its degrees of
    freedom cost.

    `quantile`: of the interval's end, 0.975 for 95 % on both sides.
    """
    if over.n < 2 or not over.se > _NOISE:
        return float(over.n)
    beyond = max(quantile, _MEDIAN)
    shrink = z_quantile(beyond) / t_quantile(beyond, over.df)
    independent = over.value * (1 - over.value) / over.se**2 * shrink**2
    return min(max(independent, over.n / 2), float(over.observations))


def binomial_test(k: int, n: int, p0: float = 0.5) -> HypothesisTest:
    """Whether k successes in n independent trials fit a share of p0: exact, two-sided.

    p is the probability of all outcomes that are no likelier than k. n = 0: p is 1. Raises
    ValueError unless 0 ≤ k ≤ n are whole and 0 < p0 < 1.

    >>> round(binomial_test(3, 20, 0.3).p, 4)
    0.2204

    Clopper and Pearson (1934), Biometrika 26:404.
    """
    k, n = whole("k", k), whole("n", n)
    if k > n:
        raise ValueError(f"k: must be at most n ({n}), got {k}")
    if not 0 < p0 < 1:
        raise ValueError(f"p0: must lie between 0 and 1, got {p0}")
    method = f"binomial, exact, p0 = {p0:g}"
    if n == 0:
        return HypothesisTest(statistic=0.0, p=1.0, n=0, method=method, reason="no trials")

    def log_chance(j: int) -> float:
        ways = float(special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1))
        return ways + j * math.log(p0) + (n - j) * math.log1p(-p0)

    bar = log_chance(k) + 1e-7  # equal up to rounding counts as equal
    if k == n * p0:
        p = 1.0
    elif k < n * p0:
        # the likeliest outcome is above k: find the equally unlikely ones on the other side
        high = _first(lambda j: log_chance(j) <= bar, math.ceil(n * p0), n + 1)
        p = float(special.bdtr(k, n, p0)) + (
            float(special.bdtrc(high - 1, n, p0)) if high <= n else 0.0
        )
    else:
        above = _first(lambda j: log_chance(j) > bar, 0, math.floor(n * p0) + 1)
        p = float(special.bdtrc(k - 1, n, p0)) + (
            float(special.bdtr(above - 1, n, p0)) if above > 0 else 0.0
        )

    return HypothesisTest(
        statistic=float(k),
        p=min(1.0, max(p, math.ulp(0.0))),
        n=n,
        method=method,
        value=k / n,
    )


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first whole number in [low, high) for which the condition holds; high if there is
    none.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1

    return low


DifferenceMethod = Literal["score", "scorecc", "miettinen-nurminen"]


def newcombe(
    k1: Counts,
    n1: Counts,
    k2: Counts,
    n2: Counts,
    *,
    method: DifferenceMethod = "score",
    level: float = 0.95,
) -> Interval:
    """The difference k1/n1 − k2/n2 of two independent shares, with an interval that stays inside
    [−1, 1].

    `score` is Newcombe's hybrid of two Wilson intervals (his method 10), `scorecc` that of the
    continuity-corrected ones (method 11); `miettinen-nurminen` inverts the score test of the
    difference. If questions are answered several times, give sequences with a number for each
    question, as for `proportion_interval`: `score` and `scorecc` then take each share at its
    effective n. For the same questions under two conditions see `newcombe_paired` and
    `paired_difference`.

    >>> found = newcombe(9, 10, 3, 10)
    >>> round(found.value, 3), round(found.low, 4), round(found.high, 4)
    (0.6, 0.1705, 0.809)

    Newcombe (1998), Stat. Med. 17:873, methods 10 and 11; Miettinen and Nurminen (1985), Stat. Med.
    4:213.
    """
    if method not in ("score", "scorecc", "miettinen-nurminen"):
        raise ValueError(f"method: must be score, scorecc or miettinen-nurminen, got {method!r}")
    of_each: Literal["wilson", "wilsoncc"] = "wilsoncc" if method == "scorecc" else "wilson"
    first, second = (
        proportion_interval(k, n, method=of_each, level=level) for k, n in ((k1, n1), (k2, n2))
    )
    clustered = [part for part in (first, second) if "effective" in part.method]
    named = {"score": "newcombe hybrid score", "scorecc": "newcombe hybrid score, corrected"}.get(
        method, method
    )
    named += ", at effective n" if clustered else ""
    size = first.n + second.n
    seen = first.observations + second.observations
    if math.isnan(first.value) or math.isnan(second.value):
        return Interval(
            value=math.nan,
            level=level,
            n=size,
            method=named,
            observations=seen,
            reason="no trials",
        )

    value = first.value - second.value
    if method != "miettinen-nurminen":
        low = value - math.hypot(first.value - first.low, second.high - second.value)
        high = value + math.hypot(first.high - first.value, second.value - second.low)
    elif clustered:
        raise ValueError("method: miettinen-nurminen takes one count a side, not one a question")
    else:
        low, high = _score_bounds((first.value, first.n), (second.value, second.n), level)

    se = math.hypot(first.se, second.se)
    reason = next((part.reason for part in clustered if part.reason), None)
    return Interval(
        value=value,
        se=se,
        low=low,
        high=high,
        level=level,
        n=size,
        method=named,
        observations=seen,
        reason=reason,
    )


def newcombe_paired(
    both: int,
    first: int,
    second: int,
    neither: int,
    *,
    level: float = 0.95,
) -> Interval:
    """How much higher the first share is than the second, when the same questions were asked under
    both.

    Counts of questions: right under both, under the first only, the second only, neither. Two
    Wilson intervals, combined with the correlation φ of the answers (0 if a margin is empty). Its
    test is `mcnemar_exact(first, second)`. One answer per question: with repetitions, use
    `paired_difference`, which takes all of them. No questions: NaN.

    >>> found = newcombe_paired(36, 12, 2, 0)
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (0.2, 0.0569, 0.3404)

    Newcombe (1998), Stat. Med. 17:2635, method 8.
    """
    check_level(level)
    named = ("both", "first", "second", "neither")
    a, b, c, d = (
        whole(name, count)
        for name, count in zip(named, (both, first, second, neither), strict=True)
    )
    n = a + b + c + d
    method = "newcombe paired score"
    if n == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="no questions")
    left = proportion_interval(a + b, n, level=level)
    right = proportion_interval(a + c, n, level=level)
    margins = float(a + b) * (c + d) * (a + c) * (b + d)
    if margins > 0:
        phi = (a * d - b * c) / math.sqrt(margins)
    else:
        phi = 0.0

    value = (b - c) / n

    def reach(of_one: float, of_two: float) -> float:
        return math.sqrt(max(0.0, (of_one - of_two) ** 2 + 2 * (1 - phi) * of_one * of_two))

    low = max(-1.0, value - reach(left.value - left.low, right.high - right.value))
    high = min(1.0, value + reach(left.high - left.value, right.value - right.low))
    return Interval(
        value=value,
        se=math.sqrt(max(0.0, (b + c) / n - value**2) / n),
        low=low,
        high=high,
        level=level,
        n=n,
        method=method,
        observations=2 * n,
        reason="no question differs: the interval is a point" if high - low < 1e-12 else None,
    )


Share = tuple[float, int]


def _score_bounds(first: Share, second: Share, level: float) -> tuple[float, float]:
    """The differences at which the score reaches the quantile, on either side of the observed
    one.
    """
    value, bar = first[0] - second[0], z_quantile(0.5 + level / 2)

    def end(limit: float) -> float:
        inside, outside = value, limit
        for _ in range(60):
            middle = (inside + outside) / 2
            if abs(_score(first, second, middle)) <= bar:
                inside = middle
            else:
                outside = middle

        return (inside + outside) / 2

    return end(-1.0), end(1.0)


def _score(first: Share, second: Share, supposed: float) -> float:
    """The standardised difference, at the likeliest shares that differ by `supposed`: the root of a
    cubic.

    Farrington and Manning (1990), Stat. Med. 9:1447.
    """
    (p1, n1), (p2, n2) = first, second
    ratio = n2 / n1
    a = 1 + ratio
    b = -(a + p1 + ratio * p2 + supposed * (ratio + 2)) / a
    c = (supposed**2 + supposed * (2 * p1 + a) + p1 + ratio * p2) / a
    d = -p1 * supposed * (1 + supposed) / a
    half = b**3 / 27 - b * c / 6 + d / 2
    third = math.copysign(math.sqrt(max(0.0, b * b / 9 - c / 3)), half)
    if third:
        turn = math.acos(min(1.0, max(-1.0, half / third**3)))
    else:
        turn = 0.0

    root = 2 * third * math.cos((math.pi + turn) / 3) - b / 3
    q1 = min(1.0, 1.0 + supposed, max(0.0, supposed, root))
    q2 = min(1.0, max(0.0, q1 - supposed))
    variance = (q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2) * (n1 + n2) / (n1 + n2 - 1)
    off = p1 - p2 - supposed
    if variance > 0:
        return off / math.sqrt(variance)
    if off:
        return math.copysign(math.inf, off)
    return 0.0
