"""Rows of a table are read as often as they are wanted, and a fault late in the file names its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.documents.rows import read_rows
from karat.documents.unfolding import unfolded


def test_rows_before_an_open_quote_are_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b\n1,"two\nlines"\n\n3,4,5\n6,7\n8,"never closed\n9,10\n')
    rows = read_rows(file)
    expected = [(2, {"a": "1", "b": "two\nlines"}), (6, {"a": "6", "b": "7"})]
    assert [*rows.rows] == [*rows.rows] == expected
    assert rows.count == 2
    assert [fault.place for fault in rows.sorted_faults()] == ["line 5", "line 7"]


def test_a_table_in_another_encoding_is_read_like_one_in_utf_8(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        file = tmp_path / "t.csv"
        file.write_bytes("größe;b\r\n1;2".encode(encoding))
        assert [*read_rows(file).rows] == [(2, {"größe": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,2\n3,4\n5,6\n"),
        ("t.csv", "a\n1\n3\n5\n"),
        ("t.jsonl", '{"a": 1}\n{"a": 3}\n\n{"a": 5}\n'),
        ("t.json", '[{"a": 1}, {"a": 3}, {"a": 5}]'),
    ],
)
def test_two_who_read_at_once_both_get_every_row(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    rows = read_rows(file).rows
    alone = [*rows]
    assert len(alone) == 3
    assert [*zip(rows, rows, strict=True)] == [*zip(alone, alone, strict=True)]


def test_a_table_says_which_columns_every_row_has(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("question,answer,metric,score\nA?,a,tone,1\n")
    rows = read_rows(file)
    assert [*rows.columns] == ["question", "answer", "metric", "score"]
    assert unfolded(rows).columns == ()  # `metric` and `score` became `scores`
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"a": 1}\n{"b": 2}\n')
    assert read_rows(lines).columns == ()
