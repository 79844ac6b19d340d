"""`--to convfinqa`: conversations, turns, errors and statistics as files for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from karat import formats
from karat.analysis import Summary, TrialRecord, trials
from karat.files import Streamed
from karat.journal import RunFolder
from karat.kinds.conversation.analysis.model import ConversationSummary
from karat.kinds.conversation.analysis.replies import matcher_of
from karat.kinds.conversation.exports._convfinqa_rows import (
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
from karat.kinds.conversation.exports._convfinqa_statistics import Totals, statistics
from karat.kinds.conversation.exports._convfinqa_traces import trace_of

__all__ = ["Convfinqa"]

_TABLES = {"summary.csv": SUMMARY, "turns.csv": TURNS, "errors.csv": ERRORS}
MOST_CHARACTERS = 32_000
"""Of a cell: a spreadsheet takes 32,767. The traces hold everything."""


class Convfinqa:
    """Tables of conversations, turns and errors, `statistics.json`, and each conversation whole, as JSON.

    For a folder: `--out FOLDER`. Written while the run is read. Readers of the original system's files can read
    these: its columns come first, in its order, and its fields have its types. What is not known is empty in a
    table. In JSON it is null where the original allows that, else 0, an empty list, or true for
    `validator_valid`, and `unknown` lists such fields. `validation.csv` is there where an agent
    reports a validator. A cell that a spreadsheet would take for a formula begins with an apostrophe. Trials
    that were not run have no rows. For runs over conversations.
    """

    kinds = ("conversation",)

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        return Streamed(lambda: _pieces(summary, run))


def _pieces(summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
    part = summary.part(ConversationSummary)
    shown = Shown("", "", None)
    if part is not None:
        shown = Shown(part.scorer, part.scoring, matcher_of(run, part.scorer, part.scoring), part.right)
    for name, columns in _TABLES.items():
        yield name, _line(columns)
    totals, validated = Totals(), False
    for trial in trials(run, summary):
        trace = _trace_id(trial)
        if trace is None:
            continue
        turns = turn_rows(trial, trace, shown)
        row = summary_row(trial, trace, turns)
        errors = list(error_rows(trial, turns, shown))
        totals.add(trial, row, turns)
        yield "summary.csv", _written(SUMMARY, [row])
        yield "turns.csv", _written(TURNS, turns)
        yield "errors.csv", _written(ERRORS, errors)
        validations = list(validation_rows(trial, trace))
        if validations:
            yield "validation.csv", ("" if validated else _line(VALIDATION)) + _written(VALIDATION, validations)
            validated = True
        yield f"traces/{trace}.json", _json(trace_of(trial, row, turns, errors, began=summary.created))
    yield "statistics.json", _json(statistics(summary, totals))


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
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (dict, list)):
        value = msgspec.json.encode(value, order="sorted").decode()
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        value = f"{value[:MOST_CHARACTERS]}…"
    return formats.csv_cell(value)


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace") + "\n"
