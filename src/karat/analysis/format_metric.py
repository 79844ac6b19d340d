"""Numbers of a metric formatted for people: shares in percent, their differences in points, others
unchanged.
"""

from __future__ import annotations

from functools import partial

from karat import formats
from karat.analysis.numbers import Estimate

POINT_LEGEND = f"{formats.POINT}: every question scored the same; the interval cannot be estimated."


def is_point(estimate: Estimate) -> bool:
    """Whether an interval has no width: every question gave the same value."""
    return estimate.low is not None and estimate.low == estimate.high


def measured(value: float | None, *, percent: bool = False) -> str:
    """One value of a metric; a share is shown as 100.0 % only if it is exactly 1.

    >>> measured(0.9975, percent=True), measured(4.5), measured(None, percent=True)
    ('99.8 %', '4.50', '–')
    """
    if percent:
        return formats.share(value)
    return formats.number(value)


def estimated(estimate: Estimate, *, percent: bool = False) -> str:
    """A mean with its interval."""
    return (
        f"{measured(estimate.value, percent=percent)} {interval_of(estimate, percent=percent)}"
    ).rstrip()


def interval_of(estimate: Estimate, *, percent: bool = False) -> str:
    """The interval of a mean; empty if there is none."""
    return formats.bracketed(estimate.low, estimate.high, partial(measured, percent=percent))


def share_estimate(value: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, in percent.

    >>> share_estimate(0.669, 0.625, 0.71), share_estimate(0.5, None, None)
    ('66.9 % [62.5 %, 71.0 %]', '50.0 %')
    """
    return f"{formats.share(value)} {formats.bracketed(low, high, formats.share)}".rstrip()


def signed_estimate(estimate: Estimate, *, percent: bool) -> str:
    """A difference with its interval; for shares in percentage points."""
    value, span = formats.between(estimate.value, estimate.low, estimate.high, percent=percent)
    return f"{value}{' points' if percent and estimate.value is not None else ''} {span}".rstrip()
