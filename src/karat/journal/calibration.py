"""Answers drawn for people and the scores they gave: `calibration.jsonl` in the run folder, only
appended to.

The first line is the head, every other line is a draw or a person's scores of one drawn answer. The
newest score of a person on a metric of an answer counts. Separate from `labels.jsonl`, whose
reviewers see the judge's score.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from karat.journal.folder import RunFolder
from karat.journal.labels import append_events, read_events

CALIBRATION_FILE = "calibration.jsonl"
FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class Stratum(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one condition with the same or neighbouring scores, all with the same chance to be
    drawn.
    """

    condition: str
    low: float  # the judge's lowest and highest score in it
    high: float
    trials: tuple[str, ...]  # all its answers, drawn or not


class Draw(msgspec.Struct, frozen=True, kw_only=True, tag="draw", tag_field="event"):
    """Which answers people should score."""

    id: str
    at: str  # UTC, ISO 8601
    metric: str  # whose scores define the strata, as named in reports
    seed: int
    strata: tuple[Stratum, ...]
    drawn: tuple[str, ...]  # trials in the order of the sheet, with rows ID-1, ID-2, …


class PersonScores(msgspec.Struct, frozen=True, kw_only=True, tag="scores", tag_field="event"):
    """One person's scores of one drawn answer."""

    at: str
    who: str
    draw: str  # Draw.id
    trial: str
    scores: dict[str, float]  # metric, as named in reports → the person's score


Scores = dict[str, dict[str, dict[str, float]]]
"""Trial → person → metric → score."""


class Calibrations(msgspec.Struct, frozen=True, kw_only=True):
    """Every draw of a run, the oldest first, and the scores that count."""

    draws: dict[str, Draw] = {}
    scores: dict[str, Scores] = {}  # by draw
    lines: int = 0


def read_calibrations(run: RunFolder) -> Calibrations:
    """Raises BadRun for a damaged line, and for a file of a newer format, of another run, or larger
    than 64 MB.
    """
    draws: dict[str, Draw] = {}
    scores: dict[str, Scores] = {}
    lines = 0
    remedy = "restore it from a copy, or delete that line and lose the scores in it"
    for event in read_events(
        run,
        CALIBRATION_FILE,
        Draw | PersonScores,
        newest_format=FORMAT_VERSION,
        holds="labels",
        remedy=remedy,
    ):
        lines += 1
        if isinstance(event, Draw):
            draws[event.id] = event
        elif isinstance(event, PersonScores):
            of_trial = scores.setdefault(event.draw, {}).setdefault(event.trial, {})
            of_trial[event.who] = {**of_trial.get(event.who, {}), **event.scores}

    return Calibrations(draws=draws, scores=scores, lines=lines)


def add_calibration(run: RunFolder, events: Sequence[Draw | PersonScores]) -> None:
    """Appends draws and scores; they are on disk when this returns.

    Raises BadRun as `read_calibrations`.
    """
    read_calibrations(run)  # never write to a file of another run
    append_events(run, CALIBRATION_FILE, FORMAT_VERSION, events)
