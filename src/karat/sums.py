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


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """The sum; None: one of them is not known, or there are none.

    >>> sum_of_known([1, 2]), sum_of_known([0.1, None]), sum_of_known([])
    (3.0, None, None)
    """
    terms = list(values)
    known = [term for term in terms if term is not None]
    if not terms or len(known) < len(terms):
        return None
    return exact_sum(known)
