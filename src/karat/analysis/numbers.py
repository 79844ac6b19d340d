"""A single number of a summary, of which all other parts are made.

An unknown number is None and comes with a `reason`; None is never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

Result = TypeVar("Result", bound=msgspec.Struct)


def known(value: float | None) -> float | None:
    """The number, or None if it is unknown or not finite."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """Of the known values; None without any."""
    kept = [value for raw in values if (value := known(raw)) is not None]
    if kept:
        return math.fsum(kept) / len(kept)
    return None


def from_fields(kind: type[Result], /, *sources: object, **own: Any) -> Result:
    """A result of this `kind`: its fields are copied by name from the first source that has them,
    or given in `own`.

    A number that is not finite becomes None, as unknown numbers are None in a summary. Raises
    TypeError for a field without a default that nothing gives.

    >>> from_fields(Quantity, Quantity(value=math.nan, reason="nobody answered"))
    Quantity(value=None, reason='nobody answered')
    """
    for name in kind.__struct_fields__:
        source = next((source for source in sources if hasattr(source, name)), None)
        if name not in own and source is not None:
            value = getattr(source, name)
            if isinstance(value, float):
                own[name] = known(value)
            else:
                own[name] = value

    return kind(**own)


def quantile(ordered: Sequence[float], q: float) -> float | None:
    """The q-quantile of ordered values: for q = 0.5 the median, else the smallest value that a
    share q does not exceed.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5), quantile([1.0, 2.0, 3.0, 4.0], 0.95), quantile([], 0.5)
    (2.5, 4.0, None)
    """
    n = len(ordered)
    if n == 0:
        return None
    if q == 0.5:
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return ordered[max(0, math.ceil(q * n) - 1)]


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number, or the reason why there is none."""

    value: float | None
    reason: str | None = None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its uncertainty.

    `n` counts questions (conversations), the independent units.
    """

    value: float | None
    low: float | None
    high: float | None
    se: float | None
    n: int
    level: float  # e.g. 0.95
    method: str
    reason: str | None = None  # why the value or its interval is None
