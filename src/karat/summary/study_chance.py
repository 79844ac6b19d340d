"""Which differences chance does not explain, where several are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from karat import stats
from karat.summary.numbers import Estimate

__all__ = ["beyond_chance", "leaves_out_0"]


def leaves_out_0(found: Estimate) -> bool:
    """Whether the interval leaves out no difference, the comparison taken alone."""
    return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


def beyond_chance(differences: Sequence[Estimate]) -> list[bool]:
    """Whether each difference is shown though all of them were looked at: of equal conditions one in 20 runs has any
    (at 95 %).

    The interval must leave out 0, and so must p, from the standard error, adjusted over all (Holm).

    >>> one = Estimate(value=0.2, low=0.01, high=0.39, se=0.097, n=6, level=0.95, method="", reason=None)
    >>> beyond_chance([one]), beyond_chance([one, one])
    ([True], [False, False])
    """
    adjusted = stats.adjust([_p(one) for one in differences])
    return [
        leaves_out_0(one) and bool(p < round(1 - one.level, 15)) for one, p in zip(differences, adjusted, strict=True)
    ]


def _p(found: Estimate) -> float:
    """Two-sided; NaN where there is no difference, or no error of it."""
    if found.value is None or found.se is None:
        return math.nan
    if found.se == 0:
        return 1.0 if found.value == 0 else 0.0
    return math.erfc(abs(found.value) / found.se / math.sqrt(2))
