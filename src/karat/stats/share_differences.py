"""How far two shares differ: two groups of questions, or the same questions under both conditions."""

from __future__ import annotations

import math
from typing import Literal

from karat.stats._groups import Counts, check_level, whole, z_quantile
from karat.stats.results import Interval
from karat.stats.shares import proportion_interval

__all__ = ["newcombe", "newcombe_paired"]

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
    """The difference k1/n1 − k2/n2 of two independent shares, with an interval that stays inside [−1, 1].

    `score` is Newcombe's hybrid of two Wilson intervals (his method 10), `scorecc` that of the
    continuity-corrected ones (method 11); `miettinen-nurminen` inverts the score test of the difference.
    Where questions are answered several times, give sequences with a number for each question, as to
    `proportion_interval`: `score` and `scorecc` then take each share at its effective n. For the
    same questions under two conditions see `newcombe_paired` and `paired_difference`.

    >>> found = newcombe(9, 10, 3, 10)
    >>> round(found.value, 3), round(found.low, 4), round(found.high, 4)
    (0.6, 0.1705, 0.809)

    Newcombe (1998), Stat. Med. 17:873, methods 10 and 11; Miettinen and Nurminen (1985), Stat. Med. 4:213.
    """
    if method not in ("score", "scorecc", "miettinen-nurminen"):
        raise ValueError(f"method: must be score, scorecc or miettinen-nurminen, got {method!r}")
    of_each: Literal["wilson", "wilsoncc"] = "wilsoncc" if method == "scorecc" else "wilson"
    one, two = (proportion_interval(k, n, method=of_each, level=level) for k, n in ((k1, n1), (k2, n2)))
    clustered = [part for part in (one, two) if "effective" in part.method]
    named = {"score": "newcombe hybrid score", "scorecc": "newcombe hybrid score, corrected"}.get(method, method)
    named += ", at effective n" if clustered else ""
    size, seen = one.n + two.n, one.observations + two.observations
    if math.isnan(one.value) or math.isnan(two.value):
        return Interval(value=math.nan, level=level, n=size, method=named, observations=seen, reason="no trials")
    value = one.value - two.value
    if method != "miettinen-nurminen":
        low = value - math.hypot(one.value - one.low, two.high - two.value)
        high = value + math.hypot(one.high - one.value, two.value - two.low)
    elif clustered:
        raise ValueError("method: miettinen-nurminen takes one count a side, not one a question")
    else:
        low, high = _score_bounds((one.value, one.n), (two.value, two.n), level)
    se = math.hypot(one.se, two.se)
    reason = next((part.reason for part in clustered if part.reason), None)
    return Interval(
        value=value, se=se, low=low, high=high, level=level, n=size, method=named, observations=seen, reason=reason
    )


def newcombe_paired(both: int, first: int, second: int, neither: int, *, level: float = 0.95) -> Interval:
    """How much higher the first share is than the second, where the same questions were asked under both.

    Counts of questions: right under both, under the first only, the second only, neither. Two Wilson
    intervals, combined with the correlation φ of the answers (0 where a margin is empty). Its test is
    `mcnemar_exact(first, second)`. One answer a question: with repetitions, `paired_difference` takes
    all of them. No questions: NaN.

    >>> found = newcombe_paired(36, 12, 2, 0)
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (0.2, 0.0569, 0.3404)

    Newcombe (1998), Stat. Med. 17:2635, method 8.
    """
    check_level(level)
    named = ("both", "first", "second", "neither")
    a, b, c, d = (whole(name, count) for name, count in zip(named, (both, first, second, neither), strict=True))
    n, method = a + b + c + d, "newcombe paired score"
    if n == 0:
        return Interval(value=math.nan, level=level, n=0, method=method, reason="no questions")
    one, two = proportion_interval(a + b, n, level=level), proportion_interval(a + c, n, level=level)
    margins = float(a + b) * (c + d) * (a + c) * (b + d)
    phi = (a * d - b * c) / math.sqrt(margins) if margins > 0 else 0.0
    value = (b - c) / n

    def reach(of_one: float, of_two: float) -> float:
        return math.sqrt(max(0.0, (of_one - of_two) ** 2 + 2 * (1 - phi) * of_one * of_two))

    low = max(-1.0, value - reach(one.value - one.low, two.high - two.value))
    high = min(1.0, value + reach(one.high - one.value, two.value - two.low))
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


def _score_bounds(one: Share, two: Share, level: float) -> tuple[float, float]:
    """Where the score of a supposed difference reaches the quantile, on either side of the one seen."""
    value, bar = one[0] - two[0], z_quantile(0.5 + level / 2)

    def end(limit: float) -> float:
        inside, outside = value, limit
        for _ in range(60):
            middle = (inside + outside) / 2
            if abs(_score(one, two, middle)) <= bar:
                inside = middle
            else:
                outside = middle
        return (inside + outside) / 2

    return end(-1.0), end(1.0)


def _score(one: Share, two: Share, supposed: float) -> float:
    (p1, n1), (p2, n2) = one, two
    q1 = _restricted(one, two, supposed)
    q2 = min(1.0, max(0.0, q1 - supposed))
    variance = (q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2) * (n1 + n2) / (n1 + n2 - 1)
    off = p1 - p2 - supposed
    if variance > 0:
        return off / math.sqrt(variance)
    return math.copysign(math.inf, off) if off else 0.0


def _restricted(one: Share, two: Share, supposed: float) -> float:
    """The likeliest first share where it is higher than the second by `supposed`: a root of a cubic.

    Farrington and Manning (1990), Stat. Med. 9:1447.
    """
    (p1, n1), (p2, n2) = one, two
    ratio = n2 / n1
    a = 1 + ratio
    b = -(a + p1 + ratio * p2 + supposed * (ratio + 2)) / a
    c = (supposed**2 + supposed * (2 * p1 + a) + p1 + ratio * p2) / a
    d = -p1 * supposed * (1 + supposed) / a
    half = b**3 / 27 - b * c / 6 + d / 2
    third = math.copysign(math.sqrt(max(0.0, b * b / 9 - c / 3)), half)
    turn = math.acos(min(1.0, max(-1.0, half / third**3))) if third else 0.0
    root = 2 * third * math.cos((math.pi + turn) / 3) - b / 3
    return min(1.0, 1.0 + supposed, max(0.0, supposed, root))
