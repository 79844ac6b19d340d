"""A single number of a summary, of which all other parts are made.

An unknown number is None and comes with a `reason`; None is never 0.
"""

from __future__ import annotations

import msgspec


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number, or the reason why there is none."""

    value: float | None
    reason: str | None = None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its uncertainty. `n` counts questions (conversations), the independent units."""

    value: float | None
    low: float | None
    high: float | None
    se: float | None
    n: int
    level: float  # e.g. 0.95
    method: str
    reason: str | None = None  # why the value or its interval is None
