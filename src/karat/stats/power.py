"""How likely a test finds an effect of a given size, and the sample size it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from karat.stats import special
from karat.stats._groups import t_quantile, z_quantile
from karat.stats.noncentral import noncentral_f_above, noncentral_t_above, noncentral_t_cdf

Type = Literal["paired", "one-sample", "two-sample"]
Alternative = Literal["two-sided", "one-sided", "greater", "less"]
_MOST = 1e9  # questions: an experiment of more cannot be run


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """One number of a plan, with its assumptions. NaN: there is none, and `reason` explains why."""

    value: float  # the result; also `float(planned)`
    # rounded up: questions, pairs, or members per group; also `int(planned)`. None: none is enough
    n: int | None
    power: float  # the chance to find the effect, at `n` if n is the result
    alpha: float  # of the test; two-sided by default
    method: str
    reason: str | None = None

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        if self.n is None:
            raise ValueError(f"n: not known: {self.reason}")
        return self.n


def power_ttest(
    d: float,
    n: float,
    *,
    n2: float | None = None,
    type: Type = "paired",  # noqa: A002 – what R's power.t.test calls it
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> Planned:
    """The chance that a t test finds an effect of d standard deviations, by the noncentral t.

    `n` counts pairs, or members per group (`n2` of the second, if it differs; two-sample only). For
    pairs, d is in standard deviations of the *differences*. Both tails count in a two-sided test.
    `greater` and `less` test that sign; `one-sided` tests in the direction of d. Too few for a t:
    NaN.

    >>> round(power_ttest(0.5, 30).value, 6)
    0.753965

    Cohen (1988), Statistical Power Analysis, chapter 2.
    """
    design = _design(type)
    check_share("alpha", alpha)
    power = _power(d, design(n, n2), alpha, _sided(alternative, d))
    reason = (
        "too few for a t test"
        if math.isnan(power) and not (math.isnan(d) or math.isnan(n))
        else None
    )
    if math.isnan(n):
        size = None
    else:
        size = math.floor(n)

    return Planned(
        value=power,
        n=size,
        power=power,
        alpha=alpha,
        method=f"{type} t, {alternative}",
        reason=reason,
    )


def sample_size_ttest(
    d: float,
    *,
    power: float = 0.8,
    type: Type = "paired",  # noqa: A002 – what R's power.t.test calls it
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> Planned:
    """How many pairs, or members of each of two groups, a t test needs to find an effect of d with
    this power.

    `value` solves the equation and is not a whole number; `n` is the smallest whole number that
    reaches the power, and `power` is the power at `n`. An effect of 0, or in the other direction,
    has no such number: NaN with a reason.

    >>> found = sample_size_ttest(0.5)
    >>> round(found.value, 4), found.n
    (33.3671, 34)

    Cohen (1988), Statistical Power Analysis, chapter 2.
    """
    check_power(power, alpha)
    design, sided, method = _design(type), _sided(alternative, d), f"{type} t, {alternative}"

    def reached(n: float) -> float:
        return _power(d, design(n, None), alpha, sided)

    if not reached(_MOST) >= power:
        if math.isnan(d):
            why = "d is not known"
        else:
            why = f"no number up to {_MOST:g} is enough to find an effect of {d:g}"

        return Planned(value=math.nan, n=None, power=power, alpha=alpha, method=method, reason=why)

    if reached(2.0) >= power:
        fewest = "two are enough, and the fewest there can be"
        return Planned(
            value=2.0,
            n=2,
            power=reached(2.0),
            alpha=alpha,
            method=method,
            reason=fewest,
        )

    low, high = 2.0, 4.0
    while reached(high) < power:
        low = high
        high = high * 2
    value = rising_root(lambda n: reached(n) - power, low, high)
    n = max(2, math.ceil(value) - 1)  # at or next to the root: rounding must not add one
    while reached(float(n)) < power:
        n += 1
    return Planned(value=value, n=n, power=reached(float(n)), alpha=alpha, method=method)


def effect_size_ttest(
    n: float,
    *,
    n2: float | None = None,
    power: float = 0.8,
    type: Type = "paired",  # noqa: A002 – what R's power.t.test calls it
    alpha: float = 0.05,
) -> Planned:
    """The smallest effect d > 0 that a two-sided t test of this size finds with this power.

    >>> round(effect_size_ttest(50).value, 4)
    0.4042

    With `power=1/3` it is the d33 of Simonsohn (2015), Psychol. Sci. 26:559.
    """
    check_power(power, alpha)
    design = _design(type)(n, n2)
    method = f"{type} t, two-sided"
    if not design[1] > 0:
        few = "too few for a t test"
        return Planned(value=math.nan, n=None, power=power, alpha=alpha, method=method, reason=few)

    high = 1.0
    while _power(high, design, alpha, 0) < power:
        high *= 2
    value = rising_root(lambda d: _power(d, design, alpha, 0) - power, 0.0, high)
    return Planned(value=value, n=math.floor(n), power=power, alpha=alpha, method=method)


def power_anova(f: float, n: float, *, k: int, alpha: float = 0.05) -> Planned:
    """The chance that an F test of k groups of n finds them different; f is Cohen's: sd of means /
    sd within.

    >>> round(power_anova(0.25, 20, k=3).value, 6)
    0.374431

    Cohen (1988), Statistical Power Analysis, chapter 8.
    """
    check_share("alpha", alpha)
    if k < 2:
        raise ValueError(f"k: must be at least 2 groups, got {k}")
    df1 = float(k - 1)
    df2 = k * (n - 1.0)
    if math.isnan(f) or not df2 > 0:
        reason = "f is not known" if math.isnan(f) else "too few for an F test"
        return Planned(
            value=math.nan,
            n=None,
            power=math.nan,
            alpha=alpha,
            method="one-way F",
            reason=reason,
        )

    power = noncentral_f_above(float(special.fdtri(df1, df2, 1 - alpha)), df1, df2, k * n * f * f)
    return Planned(value=power, n=math.floor(n), power=power, alpha=alpha, method="one-way F")


def power_correlation(r: float, n: float, *, alpha: float = 0.05) -> Planned:
    """The chance that a two-sided test finds a correlation of r in n pairs, by Fisher's z with its
    small bias.

    >>> round(power_correlation(0.3, 84).value, 4)
    0.7996

    Cohen (1988), Statistical Power Analysis, chapter 3; Fisher (1921), Metron 1:3.
    """
    check_share("alpha", alpha)
    if abs(r) >= 1:
        raise ValueError(f"r: must lie between -1 and 1, got {r:g}")
    if math.isnan(r) or not n > 3:
        reason = "r is not known" if math.isnan(r) else "needs four pairs"
        return Planned(
            value=math.nan,
            n=None,
            power=math.nan,
            alpha=alpha,
            method="Fisher's z",
            reason=reason,
        )

    bar = -t_quantile(alpha / 2, n - 2)
    bar = math.atanh(bar / math.sqrt(bar * bar + n - 2))
    z = math.atanh(abs(r)) + abs(r) / (2 * (n - 1))
    power = float(
        special.ndtr((z - bar) * math.sqrt(n - 3)) + special.ndtr((-z - bar) * math.sqrt(n - 3))
    )
    return Planned(value=power, n=math.floor(n), power=power, alpha=alpha, method="Fisher's z")


def check_share(name: str, share: float) -> None:
    """Raises ValueError unless it is between 0 and 1."""
    if not 0 < share < 1:
        raise ValueError(f"{name}: must lie between 0 and 1, got {share:g}")


def rising_root(function: Callable[[float], float], low: float, high: float) -> float:
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


def normal_sum(power: float, alpha: float) -> float:
    """A two-sided alpha and the power, as normal quantiles: the standard errors that an effect must
    be away from 0.
    """
    return z_quantile(power) - z_quantile(alpha / 2)


def check_power(power: float, alpha: float) -> None:
    """Raises ValueError unless both are shares, and the power is above alpha."""
    check_share("alpha", alpha)
    check_share("power", power)
    if power <= alpha:
        raise ValueError(f"power: must be above alpha ({alpha:g}), got {power:g}")


def _sided(alternative: Alternative, d: float) -> int:
    if alternative not in ("two-sided", "one-sided", "greater", "less"):
        raise ValueError(
            f"alternative: must be two-sided, one-sided, greater or less, got {alternative!r}"
        )

    if alternative == "one-sided":
        return -1 if d < 0 else 1
    return {"two-sided": 0, "greater": 1, "less": -1}[alternative]


def _design(type: Type) -> Callable[[float, float | None], tuple[float, float]]:  # noqa: A002 – as above
    """The function from n (and n2) to (√n of the noncentrality, degrees of freedom)."""

    def one(n: float, n2: float | None) -> tuple[float, float]:
        if n2 is not None:
            raise ValueError(f"n2: must be left out of a {type} test, got {n2:g}")
        return math.sqrt(n) if n > 0 else math.nan, n - 1.0

    if type in ("paired", "one-sample"):
        return one
    if type != "two-sample":
        raise ValueError(f"type: must be paired, one-sample or two-sample, got {type!r}")

    def two(n: float, n2: float | None) -> tuple[float, float]:
        other = n if n2 is None else n2
        return math.sqrt(
            n * other / (n + other)
        ) if n > 0 and other > 0 else math.nan, n + other - 2.0

    return two


def _power(d: float, design: tuple[float, float], alpha: float, sided: int) -> float:
    root, df = design
    if math.isnan(d) or math.isnan(root) or not df > 0:
        return math.nan
    ncp = d * root
    if sided:
        return noncentral_t_above(-t_quantile(alpha, df), df, ncp * sided)
    bar = -t_quantile(alpha / 2, df)  # 1 − alpha/2 rounds to 1 for a tiny alpha
    return min(1.0, noncentral_t_above(bar, df, ncp) + noncentral_t_cdf(-bar, df, ncp))
