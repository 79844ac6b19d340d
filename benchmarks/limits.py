"""What the benchmarks must reach: limits that hold on any machine, and an exit code when one is missed.

A time is compared with that of a fixed piece of work, done on the same machine directly before and after. It is
given in *reference seconds*: what the measured time would be where that work takes `REFERENCE` seconds, as it did on
the quiet machine on which the limits were set. So a slow or busy machine misses a limit no sooner than a fast one.
"""

from __future__ import annotations

import json
import operator
import statistics
import time
from collections.abc import Callable

import numpy as np

__all__ = ["Limits"]

REFERENCE = 0.08  # seconds
_COMPARE = {"≤": operator.le, "<": operator.lt, "≥": operator.ge}

Clock = Callable[[], float]


class Limits:
    """Checks figures against their limits, and remembers which were missed."""

    def __init__(self) -> None:
        self._missed: list[str] = []

    def check(self, title: str, value: float, comparison: str, limit: float, unit: str = "") -> str:
        """`≤ 1.5 s: ok`, or `MISSED`. `comparison`: ≤, < or ≥. NaN misses every limit."""
        text = f"{comparison} {limit:,g}{unit and ' '}{unit}"
        if _COMPARE[comparison](value, limit):
            return f"{text}: ok"
        self._missed.append(f"{title}: {value:,.4g} {unit}, wanted {text}")
        return f"{text}: MISSED"

    def row(self, title: str, seconds: float, *, at_most: float | None = None, note: str = "") -> None:
        """Prints one row: a time in reference seconds, and its verdict if there is a limit."""
        verdict = "" if at_most is None else self.check(title, seconds, "≤", at_most, "s")
        print(f"{title:52} {seconds:8.3f} s  {verdict}{note}", flush=True)

    def best(self, call: Callable[[], object], *, rounds: int = 3, clock: Clock = time.process_time) -> float:
        """The least of some timings of a call, in reference seconds."""
        return min(self.timed(call, clock=clock) for _ in range(rounds))

    def timed(self, call: Callable[[], object], *, clock: Clock = time.process_time) -> float:
        """One timing of a call, in reference seconds."""
        before = _work_seconds(clock)
        start = clock()
        call()
        taken = clock() - start
        return taken * REFERENCE / statistics.mean((before, _work_seconds(clock)))

    def scaled(self, seconds: float, *, clock: Clock = time.perf_counter) -> float:
        """Seconds that were measured just now by other means, in reference seconds."""
        return seconds * REFERENCE / _work_seconds(clock)

    def exit(self) -> None:
        """Ends the program with 1 and the list of the missed limits, if there are any."""
        if self._missed:
            raise SystemExit("missed:\n" + "\n".join(f"  {line}" for line in self._missed))


def _work_seconds(clock: Clock) -> float:
    """What the fixed work takes now: half of it Python objects, half of it arrays. The median of three."""
    return statistics.median(_one_work(clock) for _ in range(3))


def _one_work(clock: Clock) -> float:
    start = clock()
    rows = [{"id": number, "text": f"row {number}", "value": number / 7} for number in range(22_000)]
    found = json.loads(json.dumps(rows))
    total = sum(len(row["text"]) * row["value"] for row in found)
    array = np.sort(np.sin(np.arange(700_000) * total))
    assert np.isfinite(np.exp(array).sum())
    return clock() - start
