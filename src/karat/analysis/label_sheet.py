"""The sheet where people score drawn answers: a CSV file without conditions and without the judge's
scores.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from karat import formats
from karat.analysis.details import trials
from karat.analysis.model import MetricInfo, Summary
from karat.errors import BadLabels, BadOption, Fault, did_you_mean, unreadable
from karat.files import open_regular
from karat.journal import RunFolder
from karat.journal.calibration import Calibrations, Draw, PersonScores

_TEXTS = ("question", "golden answer", "answer")
_MOST_BYTES = 256 * 2**20
_LONGEST = 32_000  # characters that fit in a spreadsheet cell

_DECIMAL = re.compile(r"^\s*(-?\d+),(\d+)\s*$")
_NO_ID = (
    "no column 'id', so it is not known how likely each answer was to be drawn, and corrected "
    "means would be biased: draw answers with `karat label RUN --sample 50 --out sheet.csv`, and "
    "keep that column"
)


def scale_of(info: MetricInfo) -> str:
    """A description of the valid values of a metric's cell."""
    steps = info.steps
    if not steps:
        if info.low is None or info.high is None:
            return "a number"
        return f"a number from {info.low:g} to {info.high:g}"

    if info.percent:
        return "0 (no) or 1 (yes)"
    return f"a whole number from {steps[0]:g} to {steps[-1]:g}"


def write_sheet(run: RunFolder, summary: Summary, draw: Draw, metrics: Sequence[MetricInfo]) -> str:
    """A row for each drawn answer, in the order of the draw, with an empty column for each metric.

    Foreign text cannot become a spreadsheet formula.
    """
    wanted = set(draw.drawn)
    texts = {}
    for record in trials(run, summary):
        if record.answer is not None and record.answer.trial in wanted:
            texts[record.answer.trial] = (
                record.sample.turns[0].question,
                record.sample.turns[0].golden or "",
                record.answer.text,
            )

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["id", *_TEXTS, *(formats.csv_cell(info.key) for info in metrics)])
    for at, trial in enumerate(draw.drawn, start=1):
        cells = []
        for text in texts[trial]:
            cell = text
            if len(text) > _LONGEST:
                cell = f"{text[:_LONGEST]} [… cut here; `karat view` shows all]"
            cells.append(formats.csv_cell(cell))

        writer.writerow([f"{draw.id}-{at}", *cells, *("" for _ in metrics)])

    # without the mark, spreadsheets assume the machine's old encoding
    return "\ufeff" + out.getvalue()


def read_sheet(
    path: Path,
    kept: Calibrations,
    metrics: Sequence[MetricInfo],
    *,
    who: str,
) -> tuple[list[PersonScores], list[str]]:
    """The scores of a filled sheet, and what was left out of it. Empty cells are not scores.

    Accepts commas, semicolons or tabs between cells, and a decimal comma if it is not the
    separator. Raises BadLabels with every fault and its line.
    """
    rows = _rows(path)
    line, head = next(rows, (1, []))
    names, faults = [name.strip() for name in head], list[Fault]()

    def fault(place: str, message: str) -> None:
        faults.append(Fault(place=place, message=message, line=line))

    known = {
        f"{draw.id}-{at}": (draw.id, trial)
        for draw in kept.draws.values()
        for at, trial in enumerate(draw.drawn, 1)
    }
    columns = [info for info in metrics if info.key in names]
    if "id" not in names:
        fault("columns", _NO_ID)
        raise BadLabels(str(path), faults)

    for name in {name for name in names if name and names.count(name) > 1}:
        fault(repr(name), "the column appears twice")
    if not columns:
        fault(
            "columns", f"none is named after a metric ({', '.join(info.key for info in metrics)})"
        )

    scores = []
    seen = dict[str, int]()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for line, row in rows:
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        name = cells.get("id", "")
        read = dict[str, float]()
        if not any(cells.values()):
            continue
        if name not in known:
            listed = ", ".join(
                f"{draw.id}-1 to {draw.id}-{len(draw.drawn)}" for draw in kept.draws.values()
            )
            fault(
                name or "row",
                f"no answer of this run was drawn as '{name}' (drawn: {listed or 'none'})",
            )
            continue

        if name in seen:
            fault(name, f"is in line {seen[name]} too; keep one of them")
        seen.setdefault(name, line)
        for info in columns:
            if cell := cells.get(info.key, ""):
                read[info.key] = math.nan
                with suppress(ValueError):
                    read[info.key] = float(cell)
                low = -1e100 if info.low is None else info.low
                high = 1e100 if info.high is None else info.high
                inside = low <= read[info.key] <= high
                if not inside or (info.steps and read[info.key] not in info.steps):
                    fault(
                        name,
                        f"{info.key}: expected {scale_of(info)}, got '{formats.excerpt(cell, 40)}'",
                    )

        if read:
            draw, trial = known[name]
            scores.append(PersonScores(at=now, who=who, draw=draw, trial=trial, scores=read))

    if not faults and not scores:
        faults.append(Fault(place="rows", message="no cell under a metric is filled in"))
    if faults:
        raise BadLabels(str(path), faults)
    keys = [info.key for info in metrics]
    others = [name for name in names if name and name not in ("id", *_TEXTS, *keys)]
    return scores, [
        f"column '{name}' left out: no metric has that name{did_you_mean(name, keys)}"
        for name in others
    ]


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number where the row begins, and cells.

    Raises BadOption, and BadLabels if it is not a table of text.
    """
    try:
        with open_regular(path, at_most=_MOST_BYTES) as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        fault = Fault(
            place="text", message="is not UTF-8: save the sheet as “CSV UTF-8”", line=line
        )
        raise BadLabels(str(path), [fault]) from error
    except (OSError, ValueError) as error:
        raise BadOption("LABELS", f"cannot read {path}: {unreadable(error)}") from error

    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start, width = 1, 0
    try:
        for row in reader:
            width = width or len(row)
            if len(row) > width:
                raise csv.Error(
                    f"{len(row)} cells under {width} columns: put what has commas in quotes"
                )

            yield start, row if delimiter == "," else [_DECIMAL.sub(r"\1.\2", cell) for cell in row]
            start = reader.line_num + 1
    except csv.Error as error:
        raise BadLabels(
            str(path), [Fault(place="table", message=str(error), line=start)]
        ) from error
