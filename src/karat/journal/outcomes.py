"""What gates decided about a run: `gate.jsonl` in the run folder, only appended to.

The first line is the head, every other line is a threshold under one condition. Its newest line
counts, so a second gate with other thresholds does not hide what an earlier one failed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from karat.journal.folder import RunFolder
from karat.journal.labels import append_events, read_events

GATE_FILE = "gate.jsonl"
FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag="outcome", tag_field="event"):
    """One threshold under one condition."""

    at: str  # UTC, ISO 8601
    bound: str  # min, max or max_drop
    name: str  # [CONDITION.]METRIC
    limit: float
    condition: str | None  # None: for the whole run
    verdict: str  # passed, failed or undecided
    baseline: str | None = None  # the run it was compared with


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The newest outcome of each threshold and condition."""

    newest: tuple[Outcome, ...] = ()
    lines: int = 0

    @property
    def held_back(self) -> bool:
        """Whether the run is no baseline for `latest`: a threshold failed, or a drop is undecided.

        Else a job that did not pass would pass when it is run again, compared with the very run
        that did not.
        """
        return any(
            outcome.verdict == "failed"
            or (outcome.verdict == "undecided" and outcome.baseline is not None)
            for outcome in self.newest
        )


def read_outcomes(run: RunFolder) -> Outcomes:
    """Raises BadRun for a damaged line, and for a file of a newer format, of another run, or larger
    than 64 MB.
    """
    newest: dict[tuple[str, str, str | None], Outcome] = {}
    lines = 0
    remedy = "delete the file and gate the run again"
    for event in read_events(
        run, GATE_FILE, Outcome, newest_format=FORMAT_VERSION, holds="outcomes", remedy=remedy
    ):
        lines += 1
        if isinstance(event, Outcome):
            newest[event.bound, event.name, event.condition] = event

    return Outcomes(newest=tuple(newest.values()), lines=lines)


def add_outcomes(run: RunFolder, outcomes: Iterable[Outcome]) -> None:
    """Appends outcomes.

    Raises BadRun as `read_outcomes`, and where the run folder cannot be written.
    """
    read_outcomes(run)  # never write to a file of another run
    append_events(run, GATE_FILE, FORMAT_VERSION, outcomes)
