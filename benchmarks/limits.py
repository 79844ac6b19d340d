"""Limits for the benchmarks that hold on any machine, and an exit code if one is missed.

A time is compared with that of a fixed piece of work, done on the same machine directly before and after. It is given
in *reference seconds*: what it would be on a machine where that work takes `REFERENCE` seconds, like the idle machine
on which the limits were set. So a slow or busy machine is no more likely to miss a limit than a fast one.
"""

from __future__ import annotations

import json
import math
import operator
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Limits"]

REFERENCE = 0.08  # seconds
_COMPARE = {"≤": operator.le, "<": operator.lt, "≥": operator.ge}

Clock = Callable[[], float]


class Limits:
    """Checks figures against their limits, and remembers which were missed."""

    def __init__(self) -> None:
        self._missed: list[str] = []
        self._rows: list[list[str | float | None]] = []

    def check(self, title: str, value: float, comparison: str, limit: float, unit: str = "") -> str:
        """`≤ 1.5 s: ok`, or `MISSED`. `comparison`: ≤, < or ≥. NaN misses every limit."""
        text = f"{comparison} {limit:,g}{unit and ' '}{unit}"
        verdict = f"{text}: {'ok' if _COMPARE[comparison](value, limit) else 'MISSED'}"
        if verdict.endswith("MISSED"):
            self._missed.append(f"{title}: {value:,.4g} {unit}, wanted {text}")
        self.note(title, value, unit, verdict)
        return verdict

    def note(self, title: str, value: float, unit: str = "", verdict: str | None = None) -> None:
        """Records a figure for `section`; `check` and `row` do this themselves."""
        self._rows.append([title.strip(), None if math.isnan(value) else float(value), unit, verdict])

    def section(self, title: str, about: str = "") -> dict[str, Any]:
        """Every figure so far with its limit, as a section for `results.write`."""
        return {"title": title, "about": about, "columns": ["", "measured", "unit", "limit"], "rows": self._rows}

    def row(self, title: str, seconds: float, *, at_most: float | None = None, note: str = "") -> None:
        """Prints one row: a time in reference seconds, and its verdict if there is a limit."""
        verdict = "" if at_most is None else self.check(title, seconds, "≤", at_most, "s")
        if at_most is None:
            self.note(title, seconds, "s")
        print(f"{title:52} {seconds:8.3f} s  {verdict}{note}", flush=True)

    def best(self, call: Callable[[], object], *, rounds: int = 3, clock: Clock = time.process_time) -> float:
        """The shortest of several timings of a call, in reference seconds."""
        return min(self.timed(call, clock=clock) for _ in range(rounds))

    def timed(self, call: Callable[[], object], *, clock: Clock = time.process_time) -> float:
        """One timing of a call, in reference seconds."""
        before = _work_seconds(clock)
        start = clock()
        call()
        taken = clock() - start
        return taken * REFERENCE / statistics.mean((before, _work_seconds(clock)))

    def scaled(self, seconds: float, *, clock: Clock = time.perf_counter) -> float:
        """Converts seconds that were just measured by other means to reference seconds."""
        return seconds * REFERENCE / _work_seconds(clock)

    def exit(self) -> None:
        """Exits with 1 and a list of the missed limits, if there are any."""
        if self._missed:
            raise SystemExit("missed:\n" + "\n".join(f"  {line}" for line in self._missed))


def _work_seconds(clock: Clock) -> float:
    """The current time of the fixed work, half Python objects, half arrays. The median of three."""
    return statistics.median(_one_work(clock) for _ in range(3))


def _one_work(clock: Clock) -> float:
    start = clock()
    rows = [{"id": number, "text": f"row {number}", "value": number / 7} for number in range(22_000)]
    decoded = json.loads(json.dumps(rows))
    total = sum(len(row["text"]) * row["value"] for row in decoded)
    array = np.sort(np.sin(np.arange(700_000) * total))
    assert np.isfinite(np.exp(array).sum())
    return clock() - start
