"""Sheets that people fill in: which cells are scores, which are faults, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.analysis.test_verdicts import info

from karat.analysis.label_sheet import read_sheet, scale_of
from karat.errors import BadLabels
from karat.journal.calibration import Calibrations, Draw

QUALITY = info()
RIGHT = info("right", low=0, high=1)
LENGTH = structs.replace(info("length", low=None, high=None), kind="number")
RATE = structs.replace(info("rate", low=0, high=10), kind="number")
DRAW = Draw(id="d", at="", metric="quality", seed=0, strata=(), drawn=("t1", "t2", "t3"))
KEPT = Calibrations(draws={"d": DRAW})


def read(tmp_path: Path, text: str, *metrics: Any) -> tuple[list[tuple[str, dict[str, float]]], list[str]]:
    path = tmp_path / "sheet.csv"
    path.write_bytes(text.encode())
    rows, left_out = read_sheet(path, KEPT, metrics or (QUALITY,), who="ann")
    assert {(row.who, row.draw) for row in rows} <= {("ann", "d")}
    return [(row.trial, row.scores) for row in rows], left_out


def faults(tmp_path: Path, text: str, *metrics: Any) -> list[tuple[str, int | None, str]]:
    with pytest.raises(BadLabels) as caught:
        read(tmp_path, text, *metrics)
    return [(fault.place, fault.line, fault.message) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("metric", "scale", "good", "bad"),
    [
        (QUALITY, "a whole number from 1 to 5", ["1", "5", "3.0"], ["0", "6", "2.5", "nan", "x"]),
        (RIGHT, "0 (no) or 1 (yes)", ["0", "1"], ["0.5", "2", "-1", "yes"]),
        (RATE, "a number from 0 to 10", ["0", "10", "2.5"], ["-0.1", "10.1", "inf"]),
        (LENGTH, "a number", ["-5", "1e100", "-1e100", "0.1"], ["inf", "-inf", "nan", "1e101", "-1e101", "long"]),
        (structs.replace(LENGTH, low=0), "a number", ["0", "1e100"], ["-1"]),
        (structs.replace(LENGTH, high=0), "a number", ["0", "-1e100"], ["1"]),
    ],
)
def test_a_cell_holds_a_value_of_its_metrics_scale(tmp_path, metric, scale, good, bad):
    assert scale_of(metric) == scale
    for cell in good:
        assert read(tmp_path, f"id,{metric.key}\nd-2,{cell}\n", metric) == ([("t2", {metric.key: float(cell)})], [])
    for cell in bad:
        expected = [("d-1", 2, f"{metric.key}: expected {scale}, got '{cell}'")]
        assert faults(tmp_path, f"id,{metric.key}\nd-1,{cell}\n", metric) == expected


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("id,quality\nd-1,3\nd-3,\n", [("t1", {"quality": 3.0})]),
        ("\ufeffid,quality\r\nd-3,3\r\n\r\n,\r\nd-1,2\r\n", [("t3", {"quality": 3.0}), ("t1", {"quality": 2.0})]),
        ("quality;id\n2,0;d-1\n", [("t1", {"quality": 2.0})]),
        (" id \tquality\tright\nd-1\t 4 \t1\nd-2\t\t0\n", [
            ("t1", {"quality": 4.0, "right": 1.0}), ("t2", {"right": 0.0}),
        ]),
        ('id,answer,quality\nd-1,"two\nlines, and more",5\n', [("t1", {"quality": 5.0})]),
        ("id,quality,right\nd-1,3\n", [("t1", {"quality": 3.0})]),
    ],
)  # fmt: skip
def test_filled_cells_are_scores_whatever_wrote_the_sheet(tmp_path, text, scores):
    assert read(tmp_path, text, QUALITY, RIGHT) == (scores, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,quality\nd-1,\n", [("rows", None, "no cell under a metric is filled in")]),
        ("id,other\nd-1,3\n", [("columns", 1, "none is named after a metric (quality)")]),
        ("id,quality,quality\nd-1,3,3\n", [("'quality'", 1, "the column appears twice")]),
        ("id,quality\nd-0,3\n", [("d-0", 2, "no answer of this run was drawn as 'd-0' (drawn: d-1 to d-3)")]),
        ("id,quality\n,3\n", [("row", 2, "no answer of this run was drawn as '' (drawn: d-1 to d-3)")]),
        ("id,quality\nd-1,3\n\nd-1,4\nd-1,9\n", [
            ("d-1", 4, "is in line 2 too; keep one of them"),
            ("d-1", 5, "is in line 2 too; keep one of them"),
            ("d-1", 5, "quality: expected a whole number from 1 to 5, got '9'"),
        ]),
        ('id,answer,quality\nd-1,"a\nb",3\nd-2,a,9\n', [
            ("d-2", 4, "quality: expected a whole number from 1 to 5, got '9'"),
        ]),
        ("id,quality\nd-1,3\nd-2,3,4\n", [
            ("table", 3, "3 cells under 2 columns: put what has commas in quotes"),
        ]),
    ],
)  # fmt: skip
def test_every_fault_of_a_sheet_is_told_with_its_line(tmp_path, text, expected):
    assert faults(tmp_path, text) == expected


def test_columns_that_are_no_metrics_are_left_out_aloud_and_those_of_the_sheet_silently(tmp_path):
    text = "id,question,golden answer,answer,qualty,quality,\nd-1,q,g,a,2,3,\n"
    assert read(tmp_path, text) == (
        [("t1", {"quality": 3.0})],
        ["column 'qualty' left out: no metric has that name (did you mean 'quality'?)"],
    )
