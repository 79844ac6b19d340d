"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_NUMBER = r"(\d{1,9}(?:\.\d{0,9})?)"
_DURATION = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
_UNITS = (3600, 60, 1, 0.001)


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds, with or without their unit,
    or a date); None: not given.

    >>> retry_after({"retry-after": "7"}), retry_after({"retry-after": "1m2.5s"})
    (7.0, 62.5)
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

    parts = _DURATION.fullmatch(value.strip())
    if parts is not None and parts[0]:
        seconds = 0.0
        for number, unit in zip(parts.groups(default="0"), _UNITS, strict=True):
            seconds += float(number) * unit

        return seconds

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
