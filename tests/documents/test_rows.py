"""Rows of a table are read as often as they are wanted, and a fault late in the file names its row."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from karat.documents.csv_rows import delimiter_of
from karat.documents.hub import Fetched
from karat.documents.rows import (
    _hub_rows,
    has_key,
    has_too_many_nan,
    holds_row,
    left_out,
    read_rows,
    repeated_key,
    unpacks_too_large,
)
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset, Fault


def test_rows_before_an_open_quote_are_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b\n1,"two\nlines"\n\n3,4,5\n6,7\n8,"never closed\n9,10\n')
    rows = read_rows(file)
    expected = [(2, {"a": "1", "b": "two\nlines"}), (6, {"a": "6", "b": "7"}), (8, {"a": "9", "b": "10"})]
    assert [*rows.rows] == [*rows.rows] == expected
    assert rows.count == 3
    assert [fault.place for fault in rows.sorted_faults()] == ["line 5", "line 7"]


def test_lines_as_python_prints_them_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    path.write_text("{'id': 1, 'said': 'a\\nb', 'none': None}\n" + '{"id": 2, "said": "c"}\n{\'id\': open()}\n')
    rows = read_rows(path)
    assert [row for _, row in rows.rows] == [{"id": 1, "said": "a\nb", "none": None}, {"id": 2, "said": "c"}]
    assert [fault.place for fault in rows.faults] == ["line 3"]


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
    rows = [(2, {"a": 1}), (5, {"a": "# 3"})]
    assert read(tmp_path, "t.jsonl", text) == (rows, ["without 2 comment lines"], [])


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
    _, _, of_one_row = read(tmp_path, "t.csv", "question,answer,model a\nA?,a")
    assert of_one_row == faults, "the file may have been cut off"


NO_NUMBER = "which JSON does not allow or no floating-point number can hold"
BAD_JSON = "is not JSON, column 7: expecting value"


@pytest.mark.parametrize(
    ("name", "text", "rows", "notes", "faults"),
    [
        # JSON Lines
        ("t.jsonl", '\ufeff{"a": 1}\n\n {"a": 2}\t\n', [(1, {"a": 1}), (3, {"a": 2})], [], []),
        ("t.ndjson", '{"a": 1}\n', [(1, {"a": 1})], [], []),
        ("t.jsonl", '{"a": 1}\n{"a": x}\n{"a": 3}', [(1, {"a": 1}), (3, {"a": 3})], [], [f"line 2: {BAD_JSON}"]),
        ("t.jsonl", '{"a": 1}\n[1]\n', [(1, {"a": 1})], [], ["line 2: is a list; each line must be a JSON object"]),
        (
            "t.jsonl",
            '["q", {"a": 1}]\n["r", {"a": 2}]\n',
            [],
            [],
            [f"line {number}: is a list; each line must be a JSON object" for number in (1, 2)],
        ),
        ("t.jsonl", '{"a": 1}\n"x"\n', [(1, {"a": 1})], [], ["line 2: is a text; each line must be a JSON object"]),
        ("t.jsonl", '{"a": 1}\n7\n', [(1, {"a": 1})], [], ["line 2: is a number (7); each line must be a JSON object"]),
        ("t.jsonl", '{"a": 1}\ntrue\n', [(1, {"a": 1})], [], ["line 2: is true; each line must be a JSON object"]),
        ("t.jsonl", '{"a": 1}\nfalse\n', [(1, {"a": 1})], [], ["line 2: is false; each line must be a JSON object"]),
        ("t.jsonl", '{"a": 1}\nnull\n', [(1, {"a": 1})], [], ["line 2: is null; each line must be a JSON object"]),
        (
            "t.jsonl",
            '{"a": 1}\n1e999\n',
            [(1, {"a": 1})],
            [],
            ["line 2: is a number (1e999); each line must be a JSON object"],
        ),
        (
            "t.jsonl",
            '{"a": 1}\n{"b": 1, "b": 2}\n',
            [(1, {"a": 1})],
            [],
            ["line 2: an object has the key 'b' twice; remove one of them"],
        ),
        ("t.jsonl", '{"a": NaN}\n{"a": 1}\n', [(1, {"a": None}), (2, {"a": 1})], [], []),
        ("t.jsonl", '[{"a": 1}, {"a": 2}]', [(1, {"a": 1}), (2, {"a": 2})], [], []),
        # JSON
        ("t.json", '{"a": 1}\n{"a": 2}\n', [(1, {"a": 1}), (2, {"a": 2})], [], []),
        (
            "t.json",
            '[{"a": 1}, 7, {"a": 2}]',
            [(1, {"a": 1}), (3, {"a": 2})],
            [],
            ["item 2: is a number (7); each item must be an object"],
        ),
        ("t.json", '[[{"a": 1}, {"a": 2}]]', [(1, {"a": 1}), (1, {"a": 2})], [], []),
        ("t.json", '[{"a": NaN}]', [(1, {"a": None})], [], []),
        # CSV
        ("t.csv", "a,b\n1,2\n\n3,4\n", [(2, {"a": "1", "b": "2"}), (4, {"a": "3", "b": "4"})], [], []),
        ("t.tsv", "a\tb,c\n1\t2;3\n", [(2, {"a": "1", "b,c": "2;3"})], [], []),
        ("t.csv", "a|b\n1|2\n", [(2, {"a": "1", "b": "2"})], [], []),
        ("t.csv", "sep=,\na,b\n1,2\n", [(3, {"a": "1", "b": "2"})], [], []),
        ("t.csv", "a,,b\n1,2,3\n", [(2, {"a": "1", "column 2": "2", "b": "3"})], [], []),
        ("t.csv", " a ,b\n1,2\n", [(2, {"a": "1", "b": "2"})], [], []),
        (
            "t.csv",
            "a,b\n1,2\n3\n4,5\n",
            [(2, {"a": "1", "b": "2"}), (4, {"a": "4", "b": "5"})],
            [],
            ["line 3: has 1 cell, the header has 2; put text with commas in quotes"],
        ),
        ("t.csv", "a\n1,2\n3\n", [(2, {"a": "1,2"}), (3, {"a": "3"})], [], []),
        # YAML
        ("t.yaml", "- a: 1\n- a: 2\n", [(1, {"a": 1}), (2, {"a": 2})], [], []),
        ("t.yml", "[{a: 1}, {a: 2}]\n", [(1, {"a": 1}), (2, {"a": 2})], [], []),
        ("t.yaml", "- a: 1\n- a: .inf\n", [(1, {"a": 1})], [], [f"line 2: holds .inf, {NO_NUMBER}"]),
        ("t.yaml", "- a: .nan\n- a: 1\n", [(2, {"a": 1})], [], [f"line 1: holds .nan, {NO_NUMBER}"]),
    ],
)
def test_rows_notes_and_faults_of_a_file(tmp_path, name, text, rows, notes, faults):
    assert read(tmp_path, name, text) == (rows, notes, faults)


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("t.doc", b"x", "cannot read files that end in '.doc', only .jsonl, .ndjson, .json, .csv, .tsv, .yaml, "),
        ("t.yaml.gz", b"x", "cannot read files that end in '.yaml.gz', only .jsonl, "),
        ("t.csv", b" \n", "is empty; it needs at least one sample"),
        ("t.csv", b"a,b\n", "holds no sample; it needs at least one"),
        ("t.jsonl", b"\0{}", "is not a text file"),
        ("t.csv", b"a\0b\n1\n", "is not a text file"),
        ("t.json", b"[\0]", "is not a text file"),
        ("t.json", b"[]", "holds no sample; it needs at least one"),
        ("t.json", b'"x"', "is a text; it must be a list of objects: [{…}, {…}]"),
        ("t.json", b"null", "is null; it must be a list of objects: [{…}, {…}]"),
        ("t.json", b'{"a": 1, "a": 2}', "an object has the key 'a' twice; remove one of them"),
        ("t.json", b"[" * 20_000, "is nested too deeply"),
        ("t.json", b'{"a": 1} x', "line 1: is not JSON, column 10: expecting value"),
        ("t.json", b"[1,\n x]", "line 2: is not JSON, column 2: expecting value"),
        ("t.json", b'{"agent": 1, "conditions": 2}', "is an experiment file, not a dataset"),
        ("t.json", b'{"dev": [], "test": []}', "holds nothing but empty lists: dev, test"),
        ("t.json", b'{"queries": 1, "corpus": 2}', "is a retrieval set: questions, documents and which of them is"),
        ("t.json", b'{"questions": 1, "corpus": 2}', "is a retrieval set"),
        ("t.json", b'{"n": 1, "m": 2, "x": []}', "holds nothing but empty lists: x"),
        ("t.json", b'{"n": 1, "m": 2.5, "x": "y"}', "holds means or settings, but no rows: give the file with one row"),
        ("t.json", b'{"n": 1, "x": "y"}', 'is an object without a list of rows; it must be {"dev": [{…}, {…}]} or a '),
        ("t.json", b"{}", "is an object without a list of rows"),
        ("t.csv", b"\xff\xfea", "is UTF-16 cut in the middle of a character"),
        (
            "t.csv",
            b"version https://git-lfs.github.com/spec/v1\n",
            "is a pointer of Git LFS, not the file: run `git lfs ",
        ),
        ("t.csv", b" <!DOCTYPE html><p>", "is a web page, not the file: download the file itself"),
        ("t.json", b"<html>", "is a web page, not the file"),
        ("t.json", b"<?xml version='1.0'?>", "is XML; if it is JUnit, `karat import junit` reads it"),
        ("t.json", b"<testsuites/>", "is JUnit XML: `karat import junit` reads it"),
        (
            "t.json",
            b'["\xe9"]',
            "line 1: byte 0xe9 is not UTF-8 (is the file Latin-1 or Windows-1252?); save it as UTF-8",
        ),
        ("t.jsonl.gz", b"x", "is not a gzip file, or is damaged"),
        (
            "t.jsonl.gz",
            gzip.compress(b'{"a": 1}', mtime=0)[:-9],
            "is cut off: the end of the compressed data is missing",
        ),
        (
            "t.jsonl.gz",
            gzip.compress(b" " * 10_000_001, mtime=0),
            "unpacks to more than 200 times its size, as only a damaged",
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_what_it_is(tmp_path, name, data, fault):
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(BadDataset) as error:
        read_rows(file)
    (found,) = error.value.faults
    if not fault.startswith("line "):
        assert found.place == "file"
        assert found.message.startswith(fault)
    else:
        assert str(found).startswith(fault)


def test_a_sheet_is_one_of_a_workbook(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(BadDataset, match=r"dataset\.sheet: is for workbooks \(\.xlsx\); this file has no sheets"):
        read_rows(tmp_path / "t.csv", sheet="first")
    with pytest.raises(BadDataset, match="cannot be read: No such file or directory"):
        read_rows(tmp_path / "gone.csv")


def test_a_file_may_be_compressed_or_in_utf_16(tmp_path):
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n') + gzip.compress(b'{"a": 2}\n'))
    assert [*read_rows(tmp_path / "t.jsonl.gz").rows] == [(1, {"a": 1}), (2, {"a": 2})]
    (tmp_path / "T.JSON").write_bytes('[{"a": "é"}]'.encode("utf-16-be").join([b"\xfe\xff", b""]))
    rows = read_rows(tmp_path / "T.JSON")
    assert [*rows.rows] == [(1, {"a": "é"})]
    assert rows.notes == ["read as UTF-16"]
    assert rows.sha256 == hashlib.sha256((tmp_path / "T.JSON").read_bytes()).hexdigest()
    (tmp_path / "t.csv").write_bytes(b"a\n\x81\n")
    assert read_rows(tmp_path / "t.csv").notes == ["read as Mac Roman, since it is neither UTF-8 nor Windows-1252"]
    (tmp_path / "t.csv").write_bytes(b"a\n\xe9\n")
    assert read_rows(tmp_path / "t.csv").notes == ["read as Windows-1252, since it is not UTF-8"]


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("法国的首都是哪里？,巴黎", ["GBK", "UTF-16"]),
        ("法國的首都是哪裡？,巴黎", ["Big5"]),
        ("フランスの首都はどこですか,パリです", ["Shift-JIS", "EUC-JP"]),
        ("프랑스의 수도는 어디입니까?,파리", ["EUC-KR"]),
        ("Какая столица Франции?,Париж", ["Windows-1251", "KOI8-R", "IBM 866"]),
        ("Ποια είναι η πρωτεύουσα της Γαλλίας;,Το Παρίσι", ["Windows-1253"]),
        ("מהי בירת צרפת?,פריז", ["Windows-1255"]),
        ("ما هي عاصمة فرنسا؟,باريس", ["Windows-1256"]),
        ("เมืองหลวงของไทยคืออะไร,กรุงเทพ", ["Windows-874"]),
        ("« À Évry créée en été ? »,Zoë’s “naïve” élève", ["Windows-1252"]),
        ("Informações sobre situações?,À noite não são", ["Windows-1252"]),
    ],
)
def test_words_of_one_script_tell_the_encoding_of_a_table(tmp_path, text, encodings):
    codecs = {"EUC-KR": "cp949", "Big5": "cp950", "Shift-JIS": "cp932", "IBM 866": "cp866", "Windows-874": "cp874"}
    for name in encodings:
        codec = codecs.get(name, name.lower())
        (tmp_path / "t.csv").write_bytes(f"question,answer\n{text}\n".encode(codec))
        rows = read_rows(tmp_path / "t.csv")
        assert [*rows.rows] == [(2, dict(zip(("question", "answer"), text.split(",", 1), strict=True)))]
        assert rows.notes[0].startswith(f"read as {name}")


def test_what_unpacks_too_large_is_refused():
    assert unpacks_too_large(2**30, 2**30) is None
    assert unpacks_too_large(2**30 + 1, 2**30) == "unpacks to more than 1 GiB; split it, or use Parquet"
    assert unpacks_too_large(10_000_000, 1) is None
    assert unpacks_too_large(20_000_000, 100_000) is None
    why = "unpacks to more than 200 times its size, as only a damaged or hostile file does"
    assert unpacks_too_large(20_000_001, 100_000) == why


def test_only_so_many_rows_are_read(tmp_path):
    texts = {
        "t.jsonl": "".join(f'{{"a": {at}}}\n' for at in range(200)),
        "t.csv": "a,b\n" + "".join(f"{at},1\n" for at in range(200)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        rows = read_rows(tmp_path / name, most=70)
        assert (rows.count, rows.unread, len([*rows.rows])) == (70, 130, 70)
        rows = read_rows(tmp_path / name, most=200)
        assert (rows.count, rows.unread) == (200, 0)


def test_lines_that_are_wrong_after_many_others_keep_their_numbers(tmp_path):
    lines = [f'{{"a": {at}}}' for at in range(1, 200)]
    lines[149] = "wrong"
    rows, _, faults = read(tmp_path, "t.jsonl", "\n".join(lines))
    assert [number for number, _ in rows] == [*range(1, 150), *range(151, 200)]
    assert all(row == {"a": number} for number, row in rows)
    assert faults == ["line 150: is not JSON, column 1: expecting value"]


def test_a_list_in_an_object_is_found_by_its_name_or_by_what_it_holds(tmp_path):
    def found(document, **options):
        file = tmp_path / "t.json"
        file.write_text(json.dumps(document))
        rows = read_rows(file, **options)
        return [*rows.rows], rows.notes

    one, two = {"question": "A?", "answer": "a"}, {"question": "B?", "answer": "b"}
    both = {"dev": [one], "test": [two], "names": ["x"], "meta": [{"n": 1}, {"n": 2}]}
    assert found(both, section="test") == ([(1, two)], ["rows: the list 'test'"])
    with pytest.raises(
        BadDataset, match=r"dataset\.split: there is no list 'tests' in the file \(did you mean 'test'\?\)"
    ):
        found(both, section="tests")
    with pytest.raises(BadDataset, match=r"dataset\.split: must name one of the file's lists: dev, test$"):
        found(both)
    assert found(both, first=True) == ([(1, one)], ["rows: the list 'dev'; not read: 'meta' (2 rows)"])
    assert found({"dev": [one]}) == ([(1, one)], ["rows: the list 'dev'"])
    assert found(one) == ([(1, one)], [])
    systems = {"small": [{"question": "A?", "response": "a"}], "large": [{"question": "A?", "response": "b"}]}
    rows, notes = found(systems, results=True)
    assert [row["condition"] for _, row in rows] == ["small", "large"]
    assert notes == ["rows: the list 'small, large'"]
    with pytest.raises(BadDataset, match="must name one of the file's lists: small, large"):
        found(systems)
    empty = {"dev": [one], "empty": []}
    with pytest.raises(BadDataset, match="holds no sample"):
        found(empty, section="empty")
    assert found({"a": 1, "b": 2}, entry=lambda key, value: {"id": key, "n": value}) == (
        [(1, {"id": "a", "n": 1}), (2, {"id": "b", "n": 2})],
        [],
    )
    odd = {"dev": [one], "b": 2}
    assert found(odd, entry=lambda key, value: {"n": 1} if key == "b" else None) == (
        [(1, one)],
        ["rows: the list 'dev'"],
    )


def test_rows_of_yaml_under_a_key_keep_their_lines(tmp_path):
    text = "version: 1\ncases:\n  - question: A?\n    answer: a\n\n  - question: B?\n    answer: b\n"
    rows, notes, faults = read(tmp_path, "t.yaml", text)
    assert [number for number, _ in rows] == [3, 6]
    assert (notes, faults) == (["rows: the list 'cases'"], [])
    by_id = "a:\n  question: A?\n  answer: a\nb:\n  question: B?\n  answer: b\n"
    rows, _, _ = read(tmp_path, "t.yaml", by_id)
    assert [(number, row["id"]) for number, row in rows] == [(1, "a"), (2, "b")]
    with pytest.raises(BadDataset, match=r"1\.a \(line 2, column 6\): YAML reads no as false; write false"):
        read(tmp_path, "t.yaml", "- a: x\n- a: no\n")


def test_a_key_is_there_twice_only_within_one_object():
    assert repeated_key(b'{"a": 1, "b": {"a": 2}}', {"a": 1, "b": {"a": 2}}) is None
    assert repeated_key(b'[{"a": 1, "a" : 2}]', [{"a": 2}]) == "a"
    assert repeated_key(b'{"a": "\\":\\":"}', {"a": '":":'}) is None
    assert repeated_key(b'{"b": {"c": 1, "c": 1}}', {"b": {"c": 1}}) == "c"


def test_many_nan_are_too_many():
    assert not has_too_many_nan(b"NaN" * 500_000 + b"Infinity" * 500_000)
    assert has_too_many_nan(b"NaN" * 500_001 + b"Infinity" * 500_000)


def test_a_line_holds_a_row_unless_it_is_blank_or_a_comment():
    lines = (b" \t\n", b"# {}", b" // {}", b"{}", b'"# x"', b"x # y")
    assert [holds_row(line) for line in lines] == [False, False, False, True, True, True]


def test_left_out_rows_are_named():
    path = Path("q.jsonl")
    faults = [Fault(place=f"line {number}", message="is wrong") for number in (10, 9, 9)]
    assert left_out(path, [], skip=False, unit="line") is None
    named = "2 unreadable lines left out: line 9 is wrong, line 9 is wrong, line 10 is wrong"
    assert left_out(path, faults, skip=True, unit="line") == named
    assert left_out(path, faults[:1], skip=True, unit="line") == "1 unreadable line left out: line 10 is wrong"
    with pytest.raises(BadDataset) as error:
        left_out(path, faults, skip=False, unit="line", setting="answers.skip")
    assert [fault.place for fault in error.value.faults] == ["line 9", "line 9", "line 10"]
    assert "To leave such rows out, set `answers.skip: unreadable` (on the command line: --skip-unreadable)." in str(
        error.value
    )
    of_the_file = [*faults, Fault(place="file", message="is odd")]
    with pytest.raises(BadDataset) as error:
        left_out(path, of_the_file, skip=True, unit="line")
    assert [*error.value.faults] == of_the_file
    assert "To leave such rows out" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("a,b", ","),
        ("a", ","),
        ("a;b", ";"),
        ("a;b,c", ","),
        ("a;b,c;d", ";"),
        ("a\tb", "\t"),
        ("a\tb,c", "\t"),
        ("a\tb,c,d", ","),
        ("a|b", "|"),
        ("a|b,c", ","),
        ('"a;b;c",d', ","),
        ('"a,b";c', ";"),
        ("sep=|\n", "|"),
        ("sep=;\r\n", ";"),
        ("sep=x", ","),
    ],
)
def test_the_delimiter_is_that_of_the_header(header, delimiter):
    assert delimiter_of(header) == delimiter


def test_a_first_line_of_data_is_no_header(tmp_path):
    def header(text):
        (tmp_path / "t.csv").write_text(text)
        rows = read_rows(tmp_path / "t.csv")
        return [*rows.columns], rows.notes

    named = ["line 1 is a row: columns are called column 1, column 2, column 3"]
    four = [f"column {place}" for place in range(1, 5)]
    assert header("2026-01-02,0.5,When does it open?,x\n") == (four, named)
    assert header("2026-01-02,0.5,x,y\n1,2,3,4\n")[1] == []  # half of the cells are not enough
    assert header("2026-01-02,0.5,When does it open?,answer\n1,2,3,4\n")[1] == []  # a name that says something
    assert header("https://x.org/a/b,a/b.txt,-1.5,x\n")[0] == four
    assert header("x" * 80 + "\n") == (["column 1"], ["line 1 is a row: columns are called column 1"])
    assert header("x" * 79 + "\n1\n") == (["x" * 79], [])
    assert header("a7,2025-07-02 18:42:36.3,2-3,k\n1,2,3,4\n")[0] == four  # no column is called so
    assert header("a7,2025-07-02 00:00:00,2-3,k\n1,2,3,4\n")[1] == []  # a day may be one


def test_rows_of_a_large_table_are_all_there(tmp_path):
    lines = [f'{at},"{at}\n"' if at == 4_000 else f"{at},{at}" for at in range(9_000)]
    lines[4_500] = ""
    lines[8_500] = "wrong"
    rows, _, faults = read(tmp_path, "t.csv", "\n".join(["a,b", *lines]))
    assert [int(row["a"]) for _, row in rows] == [at for at in range(9_000) if at not in (4_500, 8_500)]
    numbers = {int(row["a"]): number for number, row in rows}
    assert [numbers[at] for at in (0, 4_000, 4_001, 4_499, 4_501, 8_999)] == [2, 4_002, 4_004, 4_502, 4_504, 9_002]
    assert faults == ["line 8503: has 1 cell, the header has 2; put text with commas in quotes"]


def test_files_of_the_hub_are_one_table(tmp_path: Path) -> None:
    path = Path("hf:/owner/name")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\nwrong\n{"a": 2}\n')
    (tmp_path / "b.jsonl").write_text('{"a": 3}\n[]\n')
    one = _hub_rows(Fetched(commit="c0", files=(tmp_path / "a.jsonl",)), path, None)
    assert (one.commit, one.count, [*one.rows]) == ("c0", 2, [(1, {"a": 1}), (3, {"a": 2})])
    assert one.sha256 == hashlib.sha256((tmp_path / "a.jsonl").read_bytes()).hexdigest()
    both = _hub_rows(Fetched(commit="c0", files=(tmp_path / "a.jsonl", tmp_path / "b.jsonl")), path, None)
    assert (both.commit, both.count, [*both.rows]) == ("c0", 3, [(1, {"a": 1}), (3, {"a": 2}), (4, {"a": 3})])
    assert [fault.place for fault in both.faults] == ["line 2", "line 5"]
    digests = [hashlib.sha256((tmp_path / f"{name}.jsonl").read_bytes()).hexdigest() for name in "ab"]
    assert both.sha256 == hashlib.sha256("".join(digests).encode()).hexdigest()
    (tmp_path / "c.jsonl").write_text("\0")
    with pytest.raises(BadDataset, match=r"^hf://owner/name: 1 fault"):
        _hub_rows(Fetched(commit="c0", files=(tmp_path / "c.jsonl",)), path, None)
    with pytest.raises(BadDataset, match="must name a dataset as hf://owner/name"):
        read_rows(Path("hf:/owner"))


def test_values_of_parquet_are_those_of_json(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        columns = (
            "DATE '2026-01-02' AS day, 1.50::DECIMAL(4, 2) AS price, [1, 2] AS list, {'a': DATE '2026-01-02'} AS part"
        )
        zoned = "TIMESTAMPTZ '2026-01-02 03:04:05+01'"
        columns += f""", {zoned} AS "at ""noon", [{zoned}] AS times, {{'n': 1, 'at': {zoned}}} AS run"""
        connection.execute(f"COPY (SELECT {columns}, true AS flag, 0.5::DOUBLE AS share) TO '{file}' (FORMAT parquet)")
    row = {
        "day": "2026-01-02",
        "price": "1.50",
        "list": [1, 2],
        "part": {"a": "2026-01-02"},
        'at "noon': "2026-01-02 02:04:05+00",
        "times": ["2026-01-02 02:04:05+00"],
        "run": {"n": 1, "at": "2026-01-02 02:04:05+00"},
        "flag": True,
        "share": 0.5,
    }
    assert [*read_rows(file).rows] == [(1, row)]
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(BadDataset, match="file: cannot be read as Parquet: "):
        read_rows(file)


def test_a_title_above_the_header_is_left_out_and_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("Results of May,,\n,,\nquestion,answer,score\nA?,a,1\n")
    rows = read_rows(file)
    assert [*rows.rows] == [(4, {"question": "A?", "answer": "a", "score": "1"})]
    assert rows.notes == ["left out above the header: Results of May"]
    file.write_text("question,,\nA?,,\nB?,,\n")  # a table of one column
    assert read_rows(file).count == 2


def test_a_title_above_the_header_of_a_sheet_is_left_out(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for cells in (["Results", None, None], ["question", "answer", "score"], ["A?", "a", 1]):
        sheet.append(cells)
    book.save(tmp_path / "t.xlsx")
    rows = read_rows(tmp_path / "t.xlsx")
    assert [*rows.rows] == [(3, {"question": "A?", "answer": "a", "score": 1})]
    assert rows.notes == ["left out above the header: Results"]


@pytest.mark.parametrize(
    "document",
    [
        {"What is an A?": {"gpt": "a", "mine": "b"}, "What is a B?": {"gpt": "c", "mine": "d"}},
        {"results": {"q1": {"gpt": "a", "mine": "b"}, "q2": {"gpt": "c", "mine": "d"}}},
        {"gpt": {"q1": "a", "q2": "c"}, "mine": {"q1": "b", "q2": "d"}},
    ],
)
def test_a_table_of_systems_and_questions_has_a_row_a_question(tmp_path: Path, document: object) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(document))
    answers = [row["answers"] for _, row in read_rows(file, results=True).rows]
    assert answers == [{"gpt": "a", "mine": "b"}, {"gpt": "c", "mine": "d"}]


def test_means_by_system_are_called_means(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text('{"a": {"accuracy": 0.8, "seconds": 1.1}, "b": {"accuracy": 0.7, "seconds": 1.5}}')
    with pytest.raises(BadDataset, match="holds means or settings, but no rows"):
        read_rows(file, results=True)


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["q1\tWhat is inflation?", "q2\tWho sets the rate?"], ["column 1", "column 2"]),
        (["5560\twho decides what all others have to pay", "5622\twhy"], ["column 1", "column 2"]),
        (["2019\t2020\tMean of both", "1.5\t2.5\t2"], ["2019", "2020", "Mean of both"]),
        (["q1\tWhat is inflation?", "1\tyes"], ["q1", "What is inflation?"]),
    ],
)
def test_a_first_line_with_a_number_like_the_next_and_a_sentence_is_a_row(
    tmp_path: Path, lines: list[str], header: list[str]
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [*read_rows(path).columns] == header


def test_quotes_inside_cells_that_are_not_doubled_are_text(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('id,q\n1,"Who called it "a toy" first?"\n2,"""Why"", he asks"\n3,"A, b"\n', encoding="utf-8")
    rows = read_rows(path)
    assert [row["q"] for _, row in rows.rows] == ['Who called it "a toy" first?', '"Why", he asks', "A, b"]
    assert rows.notes == ["quotes inside cells are read as text (first in line 2)"]
    assert not rows.faults


def test_lines_after_one_that_is_no_csv_are_read(tmp_path: Path) -> None:
    rows, _, faults = read(tmp_path, "t.csv", 'id,q\n1,a\n2,"b" ,c"\n3,d\n4,"e" ,f"\n5,g\n')
    assert rows == [(2, {"id": "1", "q": "a"}), (4, {"id": "3", "q": "d"}), (6, {"id": "5", "q": "g"})]
    assert [fault.partition(":")[0] for fault in faults] == ["line 3", "line 5"]
    of_header = 'id,"q" ,c"\n1,a\n2,b\n'
    assert read(tmp_path, "t.csv", of_header)[2][1:] == [
        "line 2: is not read, since line 1 is not CSV",
        "line 3: is not read, since line 1 is not CSV",
    ]


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rows, notes, faults = read(tmp_path, "t.csv", "a,b,a,a 3,a\n1,2,3,4,5\n")
    assert rows == [(2, {"a": "1", "b": "2", "a 3": "3", "a 3 4": "4", "a 5": "5"})]
    assert [note.partition(",")[0] for note in notes] == ["column 3", "column 4", "column 5"]
    assert not faults


def test_lines_that_lack_the_same_last_cells_are_rows(tmp_path: Path) -> None:
    rows, notes, faults = read(tmp_path, "t.csv", "a,b,c\n1,2\n3,4,5\n6,7\n")
    assert [[*row.values()] for _, row in rows] == [["1", "2", ""], ["3", "4", "5"], ["6", "7", ""]]
    assert (notes, faults) == (["2 lines end before c, which is empty there"], [])
    _, notes, faults = read(tmp_path, "t.csv", "a,b,c,d\n1,2\n3,4,5\n6,7,8,9\n")
    assert len(faults) == 2 and not notes, "lines that end in different places are damaged"


def test_a_comment_that_repeats_the_header_is_above_it(tmp_path: Path) -> None:
    rows, notes, _ = read(tmp_path, "t.csv", "# Columns: a, b\na,b\n1,2\n")
    assert rows == [(3, {"a": "1", "b": "2"})]
    assert notes == ["left out above the header: # Columns: a,  b"]
