"""`--to convfinqa`: conversations, turns, errors and statistics as files for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from karat import formats
from karat.journal import RunFolder
from karat.reports import Streamed
from karat.reports._convfinqa_rows import (
    ERRORS,
    SUMMARY,
    TURNS,
    VALIDATION,
    Shown,
    error_rows,
    summary_row,
    turn_rows,
    validation_rows,
)
from karat.reports._convfinqa_statistics import statistics
from karat.summary import Summary, TrialRecord, trials
from karat.summary.conversation_heard import matcher_of

__all__ = ["Convfinqa"]

_TABLES = {"summary.csv": SUMMARY, "turns.csv": TURNS, "errors.csv": ERRORS, "validation.csv": VALIDATION}
MOST_CHARACTERS = 32_000
"""Of a cell: a spreadsheet takes 32,767. The traces hold everything."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@")


class Convfinqa:
    """Tables of conversations, turns, errors and verdicts, `statistics.json`, and each conversation whole, as JSON.

    For a folder: `--out FOLDER`. Written while the run is read. What is not known is empty in a table and null in
    JSON; a cell that a spreadsheet would take for a formula begins with an apostrophe. Trials that
    were not run have no rows. For runs over conversations.
    """

    kinds = ("conversation",)

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        return Streamed(lambda: _pieces(summary, run))


def _pieces(summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
    part = summary.conversation
    shown = Shown("", "", None)
    if part is not None:
        shown = Shown(part.scorer, part.scoring, matcher_of(run, part.scorer, part.scoring))
    for name, columns in _TABLES.items():
        yield name, _line(columns)
    for trial in trials(run, summary):
        trace = _trace_id(trial)
        if trace is None:
            continue
        turns = turn_rows(trial, trace, shown)
        yield "summary.csv", _written(SUMMARY, [summary_row(trial, trace, turns)])
        yield "turns.csv", _written(TURNS, turns)
        yield "errors.csv", _written(ERRORS, error_rows(trial, turns, shown))
        yield "validation.csv", _written(VALIDATION, validation_rows(trial, trace, shown))
        yield f"traces/{trace}.json", _json(_trace(trial, trace))
    yield "statistics.json", _json(statistics(summary))


def _trace_id(trial: TrialRecord) -> str | None:
    """The trial's id, as a file can be called; None where it was not run."""
    found = trial.answer.trial if trial.answer is not None else trial.failure.trial if trial.failure is not None else ""
    return re.sub(r"[^0-9A-Za-z_-]", "_", found)[:80] or None


def _written(columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(_line([_cell(row.get(column)) for column in columns]) for row in rows)


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, (int, float)):
        return formats.raw(value)
    text = formats.clean(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}…"
    start = text.lstrip()
    return f"'{text}" if start.startswith(_FORMULA) and not _NUMBER.fullmatch(start.rstrip()) else text


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace") + "\n"


def _trace(trial: TrialRecord, trace: str) -> dict[str, Any]:
    """The whole conversation: what was asked, said, and found."""
    replies = trial.answer.replies if trial.answer is not None else trial.heard
    scores: dict[int | None, list[Any]] = {}
    for score in trial.scores:
        scores.setdefault(score.turn, []).append(score)
    turns = [
        {
            "turn_idx": number,
            "question": turn.question,
            "asked": turn.asked,
            "golden": turn.golden,
            "detail": turn.detail,
            "reply": replies[number] if number < len(replies) else None,
            "scores": scores.get(number, []),
        }
        for number, turn in enumerate(trial.sample.turns)
    ]
    return {
        "trace_id": trace,
        "conversation_id": trial.sample.id,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "features": trial.sample.metadata,
        "document": trial.sample.detail,
        "materials": trial.sample.materials,
        "weight": trial.sample.weight,
        "started": trial.answer.started if trial.answer is not None else None,
        "seconds": trial.answer.seconds if trial.answer is not None else None,
        "attempts": trial.answer.attempts if trial.answer is not None else None,
        "turns": turns,
        "scores": scores.get(None, []),
        "failure": trial.failure,
    }
