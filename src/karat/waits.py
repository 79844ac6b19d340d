"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
from collections.abc import Mapping


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); None: not given.

    >>> retry_after({"retry-after": "7"})
    7.0
    """
    if headers is None:
        return None
    try:
        if "retry-after-ms" in headers:
            return _seconds(float(headers["retry-after-ms"]) / 1000)
        value = headers["retry-after"]
    except (KeyError, ValueError):
        return None

    try:
        return _seconds(float(value))
    except ValueError:
        pass

    # loaded here: few answers hold a date
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None

    return _seconds((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _seconds(wait: float) -> float | None:
    if math.isfinite(wait):
        return max(0.0, wait)
    return None
