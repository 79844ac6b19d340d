"""journal → Summary: every number that any report shows, computed once.

`summarize` reads a run, `compare` two of them; both only read, and cost nothing to repeat. Names
are loaded when they are first used: what only reads a summary loads no NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.analysis import calibration, gate, unchanged
    from karat.analysis.compare_runs import compare
    from karat.analysis.comparison import Comparison
    from karat.analysis.details import TrialRecord, trials
    from karat.analysis.model import Summary
    from karat.analysis.summary import summarize

__all__ = [
    "Comparison",
    "Summary",
    "TrialRecord",
    "calibration",
    "compare",
    "gate",
    "summarize",
    "trials",
    "unchanged",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "calibration": "",
        "compare_runs": "compare",
        "comparison": "Comparison",
        "details": "TrialRecord trials",
        "gate": "",
        "model": "Summary",
        "summary": "summarize",
        "unchanged": "",
    },
)
