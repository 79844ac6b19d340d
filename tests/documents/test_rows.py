"""Rows of a table are read as often as they are wanted, and a fault late in the file names its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karat.documents.rows import has_key, read_rows
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset


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


def read(folder: Path, name: str, text: str) -> tuple[list[Any], list[str], list[str]]:
    """The rows of a file with this text, with their numbers; its notes; its faults."""
    file = folder / name
    file.write_text(text)
    rows = read_rows(file)
    return [*rows.rows], rows.notes, [str(fault) for fault in rows.sorted_faults()]


def test_a_header_that_stands_again_is_no_row(tmp_path: Path) -> None:
    rows, notes, faults = read(tmp_path, "t.csv", "a,b\n1,2\na,b\n3,4\na,b\n5\n")
    assert rows == [(2, {"a": "1", "b": "2"}), (4, {"a": "3", "b": "4"})]
    assert notes == ["2 lines left out that repeat the header"]
    assert faults == ["line 6: has 1 cell, the header has 2; put text with commas in quotes"]


@pytest.mark.parametrize(
    "text",
    [
        "a\tb, c\n1\t2\n",  # names with commas, in a file called .csv
        "a;b, c;\n1;2;\n",
        "sep=;\na;b, c;d\n1;2;3\n",
        "sep=\t\na\tb, c\n1\t2\n",
        'a,"b, c"\n1,2\n',
        'a,"b;\tc; c"\n1,2\n',
    ],
)
def test_the_header_says_what_parts_columns(tmp_path: Path, text: str) -> None:
    ((number, row),), notes, faults = read(tmp_path, "t.csv", text)
    assert number == len(text.splitlines())
    assert [*row.values()][:2] == ["1", "2"]
    assert not notes and not faults


def test_lines_of_json_may_be_comments(tmp_path: Path) -> None:
    text = '# made by hand\n{"a": 1}\n  // {"a": 2}\n\n{"a": "# 3"}\n'
    assert read(tmp_path, "t.jsonl", text) == ([(2, {"a": 1}), (5, {"a": "# 3"})], [], [])


def test_objects_may_follow_each_other_in_a_json_file(tmp_path: Path) -> None:
    one, two = '{\n  "a": 1\n}\n', '{\n  "a": 2\n}\n'
    expected: object = ([(1, {"a": 1}), (2, {"a": 2})], [], [])
    assert read(tmp_path, "t.json", one + two) == expected
    assert read(tmp_path, "t.json", one + "," + two) == expected
    assert read(tmp_path, "t.jsonl", one + two) == expected
    twice = '{\n  "a": 2,\n  "a": 3\n}\n'
    with pytest.raises(BadDataset, match=r"item 2: an object has the key 'a' twice"):
        read(tmp_path, "t.json", one + twice)
    with pytest.raises(BadDataset, match=r"line 4: is not JSON, column 1"):
        read(tmp_path, "t.json", one + "and so on")


def test_no_object_of_many_that_follow_each_other_is_lost(tmp_path: Path) -> None:
    rows, _, _ = read(tmp_path, "t.json", '{\n"a": 1\n}' * 100_002)
    assert len(rows) == 100_002


def test_a_yaml_file_has_a_key_where_one_begins_a_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text('a: 1\n"quoted" : 2\n inside: 3\n')
    assert [has_key(file, [name]) for name in ("a", "quoted", "inside", "b")] == [True, True, False, False]
    assert has_key(file, ["b", "a"])
    assert not has_key(tmp_path / "gone.yaml", ["a"])


def test_rows_of_parquet_are_counted_from_one(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "odd [1]*.parquet"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 'A?' AS question, 3 AS answer UNION ALL SELECT 'B?', NULL")
        connection.execute("COPY t TO '" + str(tmp_path / "t.parquet") + "' (FORMAT parquet)")
    (tmp_path / "t.parquet").rename(file)
    assert [*read_rows(file).rows] == [(1, {"question": "A?", "answer": 3}), (2, {"question": "B?", "answer": None})]
    file.write_bytes(b"PAR2")
    with pytest.raises(BadDataset, match="is not a Parquet file"):
        read_rows(file)


def test_lists_beside_the_one_that_is_read_are_named(tmp_path: Path) -> None:
    text = '{"cases": [{"question": "A?", "answer": "a"}], "more": [{"x": 1}, {"x": 2}], "none": []}'
    rows, notes, _ = read(tmp_path, "t.json", text)
    assert rows == [(1, {"question": "A?", "answer": "a"})]
    assert notes == ["rows: the list 'cases'; not read: 'more' (2 rows)"]


@pytest.mark.parametrize("ending", ["parquet", "xlsx", "csv", "json"])
def test_a_pointer_to_a_file_elsewhere_is_named(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"t.{ending}"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(BadDataset, match="is a pointer of Git LFS"):
        read_rows(file)


def test_columns_after_the_last_cell_of_every_row_are_left_out(tmp_path: Path) -> None:
    rows, notes, _ = read(tmp_path, "t.csv", "question,answer,model a,model b\nA?,a\nB?,b\n")
    assert rows == [(2, {"question": "A?", "answer": "a"}), (3, {"question": "B?", "answer": "b"})]
    assert notes == ["2 columns without a cell in any row: model a, model b"]
    _, _, faults = read(tmp_path, "t.csv", "question,answer,model a\nA?,a\nB?,b,c\n")
    assert faults == ["line 2: has 2 cells, the header has 3; put text with commas in quotes"]
