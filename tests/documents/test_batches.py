"""A batch says by column what its rows say one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.documents.answers import condition_of, conditions_of, key_of
from karat.documents.batches import Batch, Table
from karat.documents.rows import read_rows

VALUES = st.one_of(st.none(), st.integers(), st.text(" a\t\xa0\0", max_size=4), st.lists(st.booleans(), max_size=1))
ROWS = st.lists(
    st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES, "c": st.dictionaries(st.just("d"), VALUES)})
)


@given(ROWS)
def test_keys_and_conditions_of_a_batch_are_those_of_its_rows(rows: list[dict[str, object]]) -> None:
    batch = Batch(range(len(rows)), rows)
    for columns in (["a"], ["b", "c.d"], []):
        assert [*batch.keys(columns)] == [key_of(row, columns) for row in rows]
        assert [*conditions_of(batch, columns)] == [condition_of(row, columns) for row in rows]


@given(st.lists(st.text(" a\t\xa0", max_size=4), min_size=1))
def test_columns_of_texts_are_read_as_rows_are(texts: list[str]) -> None:
    rows = [{"a": text, "b": "x"} for text in texts]
    by_row = Batch(range(len(rows)), rows)
    by_column = Batch(range(len(rows)), columns={"a": texts, "b": ["x"] * len(texts)})
    for columns in (["a"], ["b", "a", "a.b"]):
        assert [*by_column.keys(columns)] == [*by_row.keys(columns)]
    assert [*by_column.others({"b"})] == [*by_row.others({"b"})] == [{"a": text} for text in texts]
    assert [*by_column.others({"a", "b"})] == [{}] * len(texts)
    assert [*by_column.rows] == rows


def test_a_long_table_is_read_in_batches_with_the_numbers_of_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    lines = ["a,b", ""]
    expected = []
    number = 3  # of the line on which the next row begins
    for row in range(10_000):
        if row % 1000 == 7:
            lines += [f'{row},"two', 'lines"', "", "one cell"]
            expected.append((number, {"a": str(row), "b": "two\nlines"}))
            number += 4
        else:
            lines.append(f"{row},x")
            expected.append((number, {"a": str(row), "b": "x"}))
            number += 1
    file.write_text("\n".join(lines))
    rows = read_rows(file)
    batches = [*Table(rows.rows)]
    assert len(batches) == 3
    assert [pair for batch in batches for pair in zip(batch.numbers, batch.rows, strict=True)] == expected
    assert [*rows.rows] == expected
    assert (rows.count, len(rows.faults)) == (10_000, 10)


def test_the_first_rows_of_a_table_can_be_enough(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n3\n4,5\n6,7\n8\n")
    rows = read_rows(file, most=2)
    assert [*rows.rows] == [(2, {"a": "1", "b": "2"}), (4, {"a": "4", "b": "5"})]
    assert ([fault.place for fault in rows.faults], rows.unread) == (["line 3"], 2)


@given(table=st.lists(st.lists(st.text("a\n ", max_size=3), min_size=2, max_size=2)), are_quoted=st.booleans())
def test_rows_have_the_numbers_of_their_lines_whatever_is_quoted(
    table: list[list[str]], are_quoted: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not are_quoted:
        table = [[cell.replace("\n", "") for cell in cells] for cells in table]
    table = [["a", "b"], ["1", "2"], *table]
    file = tmp_path_factory.mktemp("table") / "t.csv"
    number = 1
    expected = []
    lines = []
    for cells in table:
        line = ",".join(f'"{cell}"' if "\n" in cell else cell for cell in cells)
        if any(cells):
            expected.append((number, {"a": cells[0], "b": cells[1]}))
        lines += [line, ""]
        number += 2 + line.count("\n")
    file.write_text("\n".join(lines))
    assert [*read_rows(file).rows] == expected[1:]


def test_a_file_that_is_in_use_is_parsed_once_for_all_who_read_it(tmp_path: Path) -> None:
    file, other = tmp_path / "t.csv", tmp_path / "u.csv"
    file.write_bytes("Where is it at the moment?,It is in the café.\n".encode("cp1252"))
    shutil.copy(file, other)
    first = read_rows(file)
    again = read_rows(other)
    assert again == first
    assert again.rows is first.rows
    again.fault(1, "is wrong for one reader")
    assert not first.faults
    assert len(first.notes) == 2

    file.write_text("a,b\n1,2\n")
    assert [*read_rows(file).rows] == [(2, {"a": "1", "b": "2"})]


def test_rows_that_are_wrong_are_told_to_all_who_read_them(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n3\n")
    readers = [read_rows(file), read_rows(file)]
    assert [[fault.place for fault in rows.faults] for rows in readers] == [["line 3"]] * 2
