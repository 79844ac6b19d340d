"""Sums of floats that are the same on every Python: from Python 3.12 on, the built-in `sum` rounds
differently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def exact_sum(values: Iterable[float]) -> float:
    """The sum, rounded once; ±inf or NaN where float arithmetic overflows to it.

    >>> exact_sum([0.1] * 10), exact_sum([1e308, 1e308]), exact_sum([])
    (1.0, inf, 0.0)
    """
    terms = list(values)
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return sum(terms)
