"""Two conditions over the same questions: how much they differ, and whether chance could do it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from karat.stats._groups import Floats, Groups, check_level, columns, group, t_two_sided, whole
from karat.stats.intervals import centred_mean, sample_sd, t_interval
from karat.stats.results import HypothesisTest, PairedDifference

__all__ = ["cliffs_delta", "mcnemar_exact", "paired_difference", "sign_flip_test", "wilcoxon"]

EXACT_FLIPS = 20  # 2²⁰ sums take 10 ms
_BLOCK = 2_000  # draws a block: fixed, so that a seed gives one result


def paired_difference(
    a: Iterable[Any],
    b: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    clusters_b: Iterable[Any] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """How much higher b is than a: paired t on differences of question means.

    `clusters` names the question of each value of `a`, and of `b` too unless `clusters_b`
    does; without clusters the i-th values belong together. Only questions with a value
    under both count; how many were lost on either side is said, with a warning where the
    losses differ. None and NaN are failed trials: left out and counted. Equal to the
    balanced mixed model. Where every difference is the same, t is infinite or NaN; p is
    then that of the sign-flip test, never 0.

    >>> found = paired_difference([3, 4, 2, 5], [4, 4, 3, 5], ["q1", "q2", "q3", "q4"])
    >>> found.value, round(found.p, 3), found.better, found.equal
    (0.5, 0.182, 2, 2)

    Miller (2024), arXiv:2411.00640, section 4; Cliff (1993), Psychol. Bull. 114:494.
    """
    check_level(level)
    first, second = _sides(a, b, clusters, clusters_b)
    means_a, means_b = answered_means(first), answered_means(second)
    asked = {**dict.fromkeys(first.labels), **dict.fromkeys(second.labels)}
    shared = [question for question in asked if question in means_a and question in means_b]
    lost_a, lost_b = (sum(question not in means for question in asked) for means in (means_a, means_b))
    compared = _compare(
        np.array([means_a[question] for question in shared], dtype=np.float64),
        np.array([means_b[question] for question in shared], dtype=np.float64),
        level,
    )
    return replace(
        compared,
        lost_a=lost_a,
        lost_b=lost_b,
        missing_a=first.missing,
        missing_b=second.missing,
        warnings=_loss_warnings(lost_a, lost_b, first.missing, second.missing),
    )


def _compare(a: Floats, b: Floats, level: float) -> PairedDifference:
    d = b - a
    interval = t_interval(d, level=level, observations=d.size)
    statistic, p, reason = _t_test(d, interval.se, interval.reason)
    sd = sample_sd(d)
    return PairedDifference(
        value=interval.value,
        se=interval.se,
        low=interval.low,
        high=interval.high,
        level=level,
        n=d.size,
        method="paired t on question means",
        statistic=statistic,
        df=interval.df,
        p=p,
        mean_a=centred_mean(a),
        mean_b=centred_mean(b),
        d_z=interval.value / sd if sd > 0 else math.nan,
        cliffs_delta=cliffs_delta(a, b),
        correlation=_correlation(a, b),
        better=int(np.count_nonzero(d > 0)),
        worse=int(np.count_nonzero(d < 0)),
        equal=int(np.count_nonzero(d == 0)),
        reason=reason,
    )


def _sides(
    a: Iterable[Any], b: Iterable[Any], clusters: Iterable[Any] | None, clusters_b: Iterable[Any] | None
) -> tuple[Groups, Groups]:
    if clusters is None and clusters_b is not None:
        raise ValueError("clusters: must be given where clusters_b is")
    values_a, values_b = columns("a", a), columns("b", b)
    if clusters_b is None and values_a.size != values_b.size:
        raise ValueError(f"b: must be as long as a ({values_a.size}), got {values_b.size}; or give clusters_b")
    if clusters is None:
        return group(values_a, None), group(values_b, None)
    questions = clusters.tolist() if isinstance(clusters, np.ndarray) else list(clusters)
    return group(values_a, questions), group(values_b, questions if clusters_b is None else clusters_b)


def answered_means(side: Groups) -> dict[Any, float]:
    """The mean of each question that has a value; NaN and infinities are none."""
    kept = np.isfinite(side.values)
    if kept.all():
        return dict(zip(side.labels, side.means.tolist(), strict=True))
    labels = [side.labels[code] for code in side.codes[kept]]
    left = group(side.values[kept], labels)
    return dict(zip(left.labels, left.means.tolist(), strict=True))


def _t_test(d: Floats, se: float, reason: str | None) -> tuple[float, float, str | None]:
    if d.size < 2:
        return math.nan, math.nan, reason if d.size else "no question has a value under both"
    value = centred_mean(d)
    if se > 0:
        return value / se, t_two_sided(value / se, d.size - 1), None
    if value == 0:
        return math.nan, 1.0, f"all {d.size} differences are 0"
    p = max(2.0 ** (1 - d.size), math.ulp(0.0))
    return math.copysign(math.inf, value), p, f"all {d.size} differences are equal: p by sign flips"


def _correlation(a: Floats, b: Floats) -> float:
    if a.size < 2:
        return math.nan
    one, two = a - centred_mean(a), b - centred_mean(b)
    scale = math.sqrt(float(one @ one) * float(two @ two))
    return max(-1.0, min(1.0, float(one @ two) / scale)) if scale > 0 else math.nan


def _loss_warnings(lost_a: int, lost_b: int, missing_a: int, missing_b: int) -> tuple[str, ...]:
    found = []
    if lost_a != lost_b:
        found.append(f"questions lost under a: {lost_a}, under b: {lost_b}; what is compared may not be like")
    elif missing_a != missing_b:
        found.append(f"answers missing under a: {missing_a}, under b: {missing_b}; what is compared may not be like")
    return tuple(found)


def cliffs_delta(a: Iterable[Any], b: Iterable[Any]) -> float:
    """P(b > a) − P(b < a) over all pairs of one value of each: −1 to 1, 0 where neither tends to be higher.

    NaN where either is empty or holds a NaN. n log n time.

    >>> cliffs_delta([1, 2, 3], [2, 3, 4])
    0.5555555555555556

    Cliff (1993), Psychol. Bull. 114:494.
    """
    one, two = np.sort(columns("a", a)), columns("b", b)
    if not one.size or not two.size or np.isnan(one).any() or np.isnan(two).any():
        return math.nan
    below = np.searchsorted(one, two, side="left")
    above = one.size - np.searchsorted(one, two, side="right")
    return float((below - above).sum() / (one.size * two.size))


def sign_flip_test(d: Iterable[Any], *, rng: np.random.Generator | None = None, draws: int = 20_000) -> HypothesisTest:
    """Whether differences are symmetric about 0, by flipping their signs; assumes nothing else.

    Every combination of signs for up to 20 differences that are not 0 (zeros change
    nothing); beyond that `draws` random ones from `rng`, which is then required, and p
    counts the data as one more draw. Fewer than six differences cannot reach 0.05, which
    `reason` says. A NaN difference makes p NaN. Conservative where values tie.

    >>> sign_flip_test([0.5, 0.2, -0.1, 0.7, 0.4, 0.3]).p
    0.0625

    Fisher (1935), The Design of Experiments, section 21.
    """
    differences = columns("d", d)
    total, n = float(differences.sum()), differences.size
    if n == 0 or not math.isfinite(total):
        lacking = "no differences" if n == 0 else "a difference is missing"
        return HypothesisTest(statistic=math.nan, p=math.nan, n=n, method="sign flip", reason=lacking)
    moving = np.abs(differences[differences != 0])
    reason = "fewer than 6 differences that are not 0 cannot reach p = 0.05" if moving.size < 6 else None
    bar = abs(total) - 1e-12 * max(1.0, float(moving.sum()))
    if moving.size <= EXACT_FLIPS:
        p, method = _exact_flips(moving, bar), "sign flip, exact"
    elif rng is None:
        raise ValueError(f"rng: is required for more than {EXACT_FLIPS} differences that are not 0")
    else:
        if draws < 1:
            raise ValueError(f"draws: must be at least 1, got {draws}")
        p, method = _drawn_flips(moving, bar, rng, draws), f"sign flip, {draws} draws"
    return HypothesisTest(statistic=total, p=p, n=n, method=method, value=centred_mean(differences), reason=reason)


def _exact_flips(moving: Floats, bar: float) -> float:
    sums = np.zeros(1)
    for size in moving[1:]:  # the first sign is fixed: flipping all signs gives the same |sum|
        sums = np.concatenate([sums + size, sums - size])
    if moving.size:
        sums = sums + moving[0]
    return float(np.mean(np.abs(sums) >= bar))


def _drawn_flips(moving: Floats, bar: float, rng: np.random.Generator, draws: int) -> float:
    total, width = float(moving.sum()), -(-moving.size // 8)
    reached = 0
    for start in range(0, draws, _BLOCK):
        rows = min(_BLOCK, draws - start)
        packed = np.frombuffer(rng.bytes(_BLOCK * width), dtype=np.uint8).reshape(_BLOCK, width)[:rows]
        kept = np.unpackbits(packed, axis=1, count=moving.size).astype(np.float64)
        reached += int(np.count_nonzero(np.abs(2 * (kept @ moving) - total) >= bar))
    return (reached + 1) / (draws + 1)


def mcnemar_exact(b: int, c: int) -> HypothesisTest:
    """Whether two conditions differ on 0/1 answers, from the two discordant counts.

    `b` questions were right under the first only, `c` under the second only. The exact
    binomial p, with mid-p beside it; `statistic` is the continuity-corrected chi-squared.
    No discordant question: p is 1.

    >>> round(mcnemar_exact(12, 5).p, 4)
    0.1435

    McNemar (1947), Psychometrika 12:153.
    """
    from karat.stats.special import bdtr, gammaln

    b, c = whole("b", b), whole("c", c)
    n, fewer = b + c, min(b, c)
    if n == 0:
        return HypothesisTest(
            statistic=math.nan, p=1.0, p_mid=1.0, n=0, method="mcnemar, exact", reason="no question differs"
        )
    p = max(min(1.0, 2 * float(bdtr(fewer, n, 0.5))), math.ulp(0.0))
    point = math.exp(float(gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1)) - n * math.log(2))
    p_mid = max(min(1.0, 2 * float(bdtr(fewer, n, 0.5)) - point), math.ulp(0.0))
    chi2 = max(0, abs(b - c) - 1) ** 2 / n
    return HypothesisTest(statistic=chi2, p=p, p_mid=p_mid, n=n, df=1, value=(c - b) / n, method="mcnemar, exact")


def wilcoxon(d: Iterable[Any]) -> HypothesisTest:
    """Wilcoxon's signed-rank test of differences; zeros are left out, ties share their rank.

    Exact for up to 50 differences that are not 0, ties included (the distribution of the
    shared ranks is counted out); beyond that normal with tie and continuity correction.
    `statistic` is the sum of the ranks of positive differences. A NaN makes p NaN.

    >>> wilcoxon([1, -2, 3, -4, 5, 6, -7, 8]).p
    0.546875

    Wilcoxon (1945), Biometrics Bull. 1:80; Pratt and Gibbons (1981), Concepts of Nonparametric Theory.
    """
    differences = columns("d", d)
    moving = differences[differences != 0]
    n = moving.size
    if n == 0 or not np.isfinite(moving).all():
        nothing = n == 0 and differences.size > 0
        reason = "all differences are 0" if nothing else "no differences" if n == 0 else "a difference is missing"
        return HypothesisTest(
            statistic=math.nan, p=1.0 if nothing else math.nan, n=differences.size, method="wilcoxon", reason=reason
        )
    _, inverse, counts = np.unique(np.abs(moving), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[inverse]  # twice the mid-rank: whole
    positive = int(doubled[moving > 0].sum())
    exact = n <= 50
    p = _exact_ranks(doubled, positive) if exact else _normal_ranks(n, counts, positive / 2)
    method = "wilcoxon, exact" if exact else "wilcoxon, normal"
    return HypothesisTest(
        statistic=positive / 2, p=p, n=differences.size, method=method, value=float(np.median(differences))
    )


def _exact_ranks(doubled: np.ndarray[Any, Any], positive: int) -> float:
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    smaller = min(positive, ways.size - 1 - positive)
    return float(min(1.0, 2 * ways[: smaller + 1].sum() / ways.sum()))


def _normal_ranks(n: int, ties: np.ndarray[Any, Any], statistic: float) -> float:
    from karat.stats.special import ndtr

    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(ties.astype(float) ** 3 - ties)) / 48
    off = max(0.0, abs(statistic - n * (n + 1) / 4) - 0.5)
    return max(min(1.0, 2 * float(ndtr(-off / math.sqrt(variance)))), math.ulp(0.0))
