"""Blocks on a terminal: which columns and rows are shown, how long texts and foreign texts are laid out."""

from __future__ import annotations

import re

import msgspec
import pytest

from karat import formats
from karat.blocks import (
    Column,
    Count,
    Estimate,
    Group,
    Money,
    Number,
    Range,
    Row,
    Share,
    Table,
    Text,
    limited,
    plain,
    without_details,
)
from karat.document.render.terminal import block_lines


def table_lines(table: Table, *, width: int, color: bool = False) -> list[str]:
    """Without its caption."""
    return block_lines([table], width=width, color=color)[2:]


COLUMNS = (
    Column("condition", number=False),
    Column("mean [95 %]", legend="Mean over questions."),
    Column("answers", rank=1, legend="Answers that have a score."),
    Column("method", number=False, rank=2, legend="Method of the interval."),
)
ROWS = (
    Group("completeness", "1 to 5"),
    Row(name="baseline", cells=(Estimate(2.0, 1.5, 2.5), Count(9, of=10), Text("t"))),
    Row(name="with-docs", cells=(Estimate(4.25, 4.0, 4.5), Count(10, of=10), Text("t, cut at the end of the scale"))),
)
TABLE = Table(caption="Means", columns=COLUMNS, rows=ROWS)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Estimate(0.5, 0.4, 0.6), "0.50 [0.40, 0.60]"),
        (Estimate(0.5, 0.5, 0.5), "0.50 [0.50, 0.50]*"),
        (Estimate(0.999, 0.9999, 1.0, percent=True), "99.9 % [>99.9 %, 100.0 %]"),
        (Estimate(-0.05, -0.1, 0.0, percent=True, signed=True), "−5.0 [−10.0, 0.0]"),
        (Estimate(0.2, 0.1, 0.3, signed=True, mark="*"), "+0.20 [+0.10, +0.30]*"),
        (Estimate(None), "–"),
        (Number(None, below="not known"), "– not known"),
        (Share(float("nan")), "–"),
        (Money(1.5, 3), "≥ $1.50"),
        (Range(0.0, 1.0, percent=True), "0.0 % … 100.0 %"),
    ],
)
def test_cells_are_written_as_formats_writes_numbers(cell, text):
    assert plain(cell) == text


def test_a_narrow_terminal_leaves_out_the_columns_of_the_highest_rank_with_their_legends():
    shown = {}
    for width in (90, 56, 40):
        lines = table_lines(TABLE, width=width)
        assert max(map(formats.width, lines)) <= width
        shown[width] = [word for word in ("answers", "method") if word in lines[0]]
        legend = " ".join(" ".join(lines).split())
        assert ("Answers that have" in legend) == ("answers" in shown[width])
        assert ("Method of" in legend) == ("method" in shown[width])
        assert "Mean over questions." in legend
    assert shown == {90: ["answers", "method"], 56: ["answers"], 40: []} or shown[40] in ([], ["answers"])


def test_a_detail_is_left_out_with_its_cells_and_its_legend():
    columns = (*COLUMNS[:3], msgspec.structs.replace(COLUMNS[3], detail=True))
    detailed = msgspec.structs.replace(TABLE, columns=columns)
    rows = (ROWS[0], *(msgspec.structs.replace(row, cells=row.cells[:2]) for row in ROWS[1:]))
    assert without_details(detailed) == msgspec.structs.replace(TABLE, columns=COLUMNS[:3], rows=rows)
    assert without_details(TABLE) is TABLE


def test_numbers_and_intervals_are_aligned_and_rows_stand_below_their_group():
    lines = table_lines(TABLE, width=90)
    assert lines[2] == "  completeness (1 to 5)"
    assert lines[3].startswith("    baseline   2.00 [1.50, 2.50]")
    assert lines[4].startswith("    with-docs  4.25 [4.00, 4.50]")


def test_a_name_that_does_not_fit_gets_a_line_of_its_own():
    row = Row(name="漢字の条件" * 12, cells=(Estimate(2.0, 1.5, 2.5), Count(9), Text("t")))
    lines = table_lines(Table(caption="", columns=COLUMNS, rows=(row,)), width=60)
    assert lines[2].strip().startswith("漢字の条件")
    assert lines[3].strip().startswith("2.00 [1.50, 2.50]")
    assert max(map(formats.width, lines)) <= 60


def test_a_long_text_is_wrapped_in_its_column_and_nothing_of_it_is_lost():
    words = " ".join(f"word{at}" for at in range(40)) + " " + "x" * 100
    columns = (Column("failure", number=False), Column("message", number=False))
    lines = table_lines(Table(caption="", columns=columns, rows=(Row(name="crash", cells=(Text(words),)),)), width=60)
    assert max(map(len, lines)) <= 60
    assert re.sub(r"\s", "", "".join(lines[2:])) == "crash" + re.sub(r"\s", "", words)


def test_foreign_text_is_cleaned_and_styles_are_ours():
    evil = "\x1b]0;owned\x07\x1b[2Jred\u202e\r\nnext"
    rows = (Group(evil, evil, evil), Row(name=evil, cells=(Text(evil, below=evil, tone="bad"),), note=evil))
    columns = (Column("a", number=False), Column(evil, number=False))
    table = Table(caption=evil, columns=columns, rows=rows, legend=evil)
    for color in (False, True):
        text = "\n".join(table_lines(table, width=80, color=color))
        assert not set("\x07\u202e\r\x9b") & set(text)
        assert set(re.findall(r"\x1b\[(\d+)m", text)) == ({"0", "1", "2", "31"} if color else set())
        assert text.count("\x1b") == len(re.findall(r"\x1b\[\d+m", text))


def test_rows_beyond_the_limit_are_counted():
    shown = limited(TABLE, 2, "`--full` shows them")
    assert shown.rows == ROWS[:2]
    assert shown.legend == "1 further row left out: `--full` shows them."
    assert limited(TABLE, 0) is TABLE
    assert limited(TABLE, 3) is TABLE


def test_a_text_is_wrapped_before_a_column_is_left_out():
    columns = (Column("failure", number=False), Column("trials", rank=1), Column("message", number=False))
    row = Row(name="crash", cells=(Count(3), Text(" ".join(["word"] * 40))))
    for width in (200, 60):
        lines = table_lines(Table(caption="", columns=columns, rows=(row,)), width=width)
        assert lines[0].split() == ["failure", "trials", "message"]
        assert " ".join(lines[2:]).split() == ["crash", "3", *["word"] * 40]
        assert max(map(len, lines)) <= width
