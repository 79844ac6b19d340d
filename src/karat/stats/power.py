"""How likely a t test finds an effect of a given size, and the sample size it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from karat.stats import special
from karat.stats._groups import t_quantile

Alternative = Literal["two-sided", "greater"]
_MOST = 1e9  # questions: an experiment of more cannot be run


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """One number of a plan, with its assumptions. NaN: there is none, and `reason` explains why."""

    value: float  # the result
    n: int | None  # rounded up: questions, or members per group. None: none is enough
    power: float  # the chance to find the effect, at `n` if n is the result
    alpha: float  # of the test; two-sided by default
    method: str
    reason: str | None = None


def noncentral_t_cdf(t: float, df: float, ncp: float) -> float:
    """P(T ≤ t) of the noncentral t, to about 1e-13.

    >>> round(noncentral_t_cdf(5, 30, 4), 12)
    0.789609424789

    Johnson, Kotz and Balakrishnan (1995), Continuous Univariate Distributions 2, chapter 31.
    """
    chance = float(special.nctdtr(df, ncp, t))
    if math.isnan(chance) and math.isfinite(df + ncp + t):  # SciPy's, less than 1e-15 from 0 or 1
        return 0.0 if t < ncp else 1.0
    return chance


def power_ttest(
    d: float, n: float, *, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> Planned:
    """The chance that a paired t test finds an effect of d standard deviations of the differences.

    By the noncentral t. `n` counts pairs. Both tails count in a two-sided test; `greater` tests
    for d > 0. Too few for a t: NaN.

    >>> round(power_ttest(0.5, 30).value, 6)
    0.753965

    Cohen (1988), Statistical Power Analysis, chapter 2.
    """
    check_share("alpha", alpha)
    method = f"paired t, {alternative}"
    if not n > 1:
        few = "too few for a t test"
        return Planned(
            value=math.nan, n=None, power=math.nan, alpha=alpha, method=method, reason=few
        )
    power = _power(d * math.sqrt(n), n - 1, alpha, alternative)
    return Planned(value=power, n=math.floor(n), power=power, alpha=alpha, method=method)


def sample_size_ttest(d: float, *, power: float = 0.8, alpha: float = 0.05) -> Planned:
    """How many pairs a two-sided t test needs to find an effect of d with this power.

    `value` solves the equation and is not a whole number; `n` is the smallest whole number that
    reaches the power, and `power` is the power at `n`. An effect of 0 has no such number: NaN with
    a reason.

    >>> found = sample_size_ttest(0.5)
    >>> round(found.value, 4), found.n
    (33.3671, 34)

    Cohen (1988), Statistical Power Analysis, chapter 2.
    """
    check_power(power, alpha)
    method = "paired t, two-sided"

    def reached(n: float) -> float:
        return _power(d * math.sqrt(n), n - 1, alpha)

    if not reached(_MOST) >= power:
        why = f"no number up to {_MOST:g} is enough to find an effect of {d:g}"
        return Planned(value=math.nan, n=None, power=power, alpha=alpha, method=method, reason=why)

    if reached(2.0) >= power:
        fewest = "two are enough, and the fewest there can be"
        return Planned(
            value=2.0, n=2, power=reached(2.0), alpha=alpha, method=method, reason=fewest
        )

    low, high = 2.0, 4.0
    while reached(high) < power:
        low, high = high, high * 2
    value = _rising_root(lambda n: reached(n) - power, low, high)
    n = max(2, math.ceil(value) - 1)  # at or next to the root: rounding must not add one
    while reached(float(n)) < power:
        n += 1
    return Planned(value=value, n=n, power=reached(float(n)), alpha=alpha, method=method)


def effect_size_ttest(
    n: float, *, n2: float | None = None, power: float = 0.8, alpha: float = 0.05
) -> Planned:
    """The smallest effect d > 0 that a two-sided t test finds with this power.

    `n` pairs; with `n2`, two groups of n and n2.

    >>> round(effect_size_ttest(50).value, 4)
    0.4042

    With `power=1/3` it is the d33 of Simonsohn (2015), Psychol. Sci. 26:559.
    """
    check_power(power, alpha)
    if n2 is None:
        size, df, method = n, n - 1, "paired t, two-sided"
    else:
        size, df, method = n * n2 / (n + n2), n + n2 - 2, "two-sample t, two-sided"

    if not (size > 0 and df > 0):
        few = "too few for a t test"
        return Planned(value=math.nan, n=None, power=power, alpha=alpha, method=method, reason=few)

    def short(d: float) -> float:
        return _power(d * math.sqrt(size), df, alpha) - power

    high = 1.0
    while short(high) < 0:
        high *= 2
    value = _rising_root(short, 0.0, high)
    return Planned(value=value, n=math.floor(n), power=power, alpha=alpha, method=method)


def check_share(name: str, share: float) -> None:
    """Raises ValueError unless it is between 0 and 1."""
    if not 0 < share < 1:
        raise ValueError(f"{name}: must lie between 0 and 1, got {share:g}")


def check_power(power: float, alpha: float) -> None:
    """Raises ValueError unless both are shares, and the power is above alpha."""
    check_share("alpha", alpha)
    check_share("power", power)
    if power <= alpha:
        raise ValueError(f"power: must be above alpha ({alpha:g}), got {power:g}")


def _rising_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function passes 0 between two points, by bisection."""
    for _ in range(100):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle

        if high - low <= 4e-13 * high:
            break

    return (low + high) / 2


def _power(ncp: float, df: float, alpha: float, alternative: Alternative = "two-sided") -> float:
    if alternative == "greater":
        return noncentral_t_cdf(t_quantile(alpha, df), df, -ncp)
    bar = t_quantile(alpha / 2, df)  # below 0: 1 − alpha/2 rounds to 1 for a tiny alpha
    return min(1.0, noncentral_t_cdf(bar, df, -ncp) + noncentral_t_cdf(bar, df, ncp))
