"""How many answers of each condition could not be read, so that wrong numbers are not taken for
wrong answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from karat import formats
from karat.index import RunIndex

OFTEN = 0.05
"""From this share of unreadable answers on, the first line of a report says so."""

_LABEL = "unreadable"
_SIDES = ("actual", "both")
_REMEDY = (
    "ask the agent to end with `Final answer: NUMBER`, or read them otherwise: "
    "`karat score RUN --extract final`, `last_number` or `regex:PATTERN`"
)


def unreadable_counts(index: RunIndex, shown: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Condition → answers that a scorer labels as unreadable, and all that it scored."""
    if not shown:
        return {}
    import numpy as np

    size = len(index.conditions)
    unreadable = np.zeros(size, dtype=np.int64)
    scored = np.zeros(size, dtype=np.int64)
    for scoring in shown.items():
        rows = index.scores.get(scoring)
        if rows:
            positions = []
            for side in _SIDES:
                if (_LABEL, side) in rows.labels:
                    positions.append(rows.labels[_LABEL, side])
        else:
            positions = []

        if rows is None or not positions:
            continue
        counting = rows.counting()
        marked = np.zeros(len(rows.cells), dtype=np.bool_)
        marked[np.concatenate([np.frombuffer(column, dtype=np.int64) for column in positions])] = (
            True
        )
        cells = np.frombuffer(rows.cells, dtype=np.int64)[counting]
        conditions = cells // index.repetitions % size
        scored += np.bincount(conditions, minlength=size)
        unreadable += np.bincount(conditions[marked[counting]], minlength=size)

    counts = zip(unreadable.tolist(), scored.tolist(), strict=True)
    return dict(zip(index.conditions, counts, strict=True))


def unreadable_notices(
    counts: Mapping[str, tuple[int, int]],
    *,
    what: str = "as a number, and count as wrong",
    remedy: str = _REMEDY,
) -> list[str]:
    """One sentence about the conditions with 5 % or more unreadable answers, and `what` follows
    from it; else none.

    >>> unreadable_notices({"a": (3, 20), "b": (0, 20)}, remedy="ask for a number")
    ['3 of 20 answers of a could not be read as a number, and count as wrong: ask for a number']
    """
    listed = []
    for condition, (unreadable, scored) in counts.items():
        if unreadable and unreadable >= OFTEN * scored:
            listed.append(
                f"{formats.count(unreadable)} of {formats.plural(scored, 'answer')} of {condition}"
            )

    if not listed:
        return []
    return [f"{', '.join(listed)} could not be read {what}: {remedy}"]
