"""What gates decided about a run: `gate.jsonl` in the run folder, only appended to.

The first line is the head, every other line is a threshold under one condition. Its newest line counts, so a second
gate with other thresholds does not hide what an earlier one failed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from karat.errors import BadRun
from karat.journal.codec import LineDamaged, checked_lines
from karat.journal.folder import RunFolder
from karat.journal.labels import append_events

GATE_FILE = "gate.jsonl"
FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_MOST_BYTES = 64 * 2**20


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag="outcome", tag_field="event"):
    """One threshold under one condition."""

    at: str  # UTC, ISO 8601
    bound: str  # min, max or max_drop
    name: str  # [CONDITION.]METRIC
    limit: float
    condition: str | None  # None: for the whole run
    verdict: str  # passed, failed or undecided
    baseline: str | None = None  # the run it was compared with


class _Head(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="event"):
    format: int
    run: str


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The newest outcome of each threshold and condition."""

    newest: tuple[Outcome, ...] = ()
    lines: int = 0

    @property
    def held_back(self) -> bool:
        """Whether the run is no baseline for `latest`: a threshold failed, or a drop is undecided.

        Else a job that did not pass would pass when it is run again, compared with the very run that did not.
        """
        return any(
            outcome.verdict == "failed" or (outcome.verdict == "undecided" and outcome.baseline is not None)
            for outcome in self.newest
        )


_decode = msgspec.json.Decoder(_Head | Outcome).decode


def read_outcomes(run: RunFolder) -> Outcomes:
    """Raises BadRun for a damaged line, and for a file of a newer format, of another run, or larger than 64 MB."""
    file, where = run.open_file(GATE_FILE, at_most=_MOST_BYTES), str(run.path / GATE_FILE)
    if file is None:
        return Outcomes()
    newest: dict[tuple[str, str, str | None], Outcome] = {}
    lines = 0
    with file:
        try:
            for _, _, line in checked_lines(file, required=True):
                lines += 1
                event = _decode(line)
                if isinstance(event, Outcome):
                    newest[event.bound, event.name, event.condition] = event
                elif event.format > FORMAT_VERSION:
                    newer = f"has format {event.format}, this karat reads up to {FORMAT_VERSION}: update karat"
                    raise BadRun(where, newer)
                elif event.run != run.info.run:
                    raise BadRun(where, f"holds outcomes of run {event.run}, this is run {run.info.run}")
        except (LineDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            number = error.number if isinstance(error, LineDamaged) else lines
            raise BadRun(
                where, f"line {number} is not as karat wrote it; delete the file and gate the run again"
            ) from error
    return Outcomes(newest=tuple(newest.values()), lines=lines)


def add_outcomes(run: RunFolder, outcomes: Iterable[Outcome]) -> None:
    """Appends outcomes. Raises BadRun as `read_outcomes`, and where the run folder cannot be written."""
    read_outcomes(run)  # never write to a file of another run
    append_events(run, GATE_FILE, _Head(format=FORMAT_VERSION, run=run.info.run), outcomes)
