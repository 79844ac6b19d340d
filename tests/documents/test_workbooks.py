"""Compressed files, YAML and Excel workbooks as rows, and what is refused of them."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from datetime import date, datetime, time
from pathlib import Path

import pytest

from karat.errors import BadDataset
from karat.kinds import kind_of, read_rows

ROWS = [{"question": "How many?", "answer": "3"}, {"question": "Größe?", "answer": "groß"}]


def rows_of(path: Path, **options):
    from karat.documents.rows import read_rows

    return [(number, dict(row)) for number, row in read_rows(path, **options).rows]


def faults_of(path: Path, **options) -> list[str]:
    from karat.documents.rows import read_rows

    try:
        return [str(fault) for fault in read_rows(path, **options).sorted_faults()]
    except BadDataset as error:
        return [str(fault) for fault in error.faults]


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("q.jsonl.gz", lines()),
        ("q.ndjson.gz", lines()),
        ("q.json.gz", json.dumps(ROWS).encode()),
        ("Q.CSV.GZ", "question,answer\nHow many?,3\nGröße?,groß\n".encode()),
        ("q.tsv.gz", "question\tanswer\nHow many?\t3\nGröße?\tgroß\n".encode()),
    ],
)
def test_compressed_files_are_read_as_what_they_hold(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data))
    assert [row for _, row in rows_of(path)] == ROWS


def test_a_gzip_file_of_several_members_is_read_to_its_end(tmp_path):
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(line + b"\n") for line in lines().splitlines()))
    assert [row for _, row in rows_of(path)] == ROWS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(lines())[:-12], "file: is cut off: the end of the compressed data is missing"),
        (gzip.compress(lines())[:-8] + b"\0" * 8, "file: is not a gzip file, or is damaged"),
        (gzip.compress(b""), "file: is empty; it needs at least one sample"),
        (
            gzip.compress(b" " * 50_000_000),
            "file: unpacks to more than 200 times its size, as only a damaged or hostile file does",
        ),
    ],
    ids=["cut off", "damaged", "empty", "bomb"],
)
def test_what_is_wrong_with_a_compressed_file_is_said(tmp_path, data, message):
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(data)
    (said,) = faults_of(path)
    assert said.startswith(message)


def test_yaml_rows_have_the_lines_of_the_file(tmp_path):
    path = tmp_path / "q.yaml"
    path.write_text(
        "# asked by people\n- question: How many?\n  answer: '3'\n\n- {question: When?, answer: 2024-03-01}\n"
    )
    assert rows_of(path) == [
        (2, {"question": "How many?", "answer": "3"}),
        (5, {"question": "When?", "answer": "2024-03-01"}),
    ]
    path.write_text("[{question: a, answer: b}, {question: c, answer: d}]")
    assert [number for number, _ in rows_of(path)] == [1, 2]
    assert read_rows(path).unit == "item"


def test_a_list_of_a_yaml_file_is_chosen_as_that_of_a_json_file(tmp_path):
    path = tmp_path / "q.yml"
    path.write_text("dev:\n- {a: 1}\ntest:\n- {a: 2}\n")
    assert rows_of(path, section="test") == [(4, {"a": 2})]
    assert faults_of(path) == ["dataset.split: must name one of the file's lists: dev, test"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("&a [" * 60 + "]" * 60, "is a list; each item must be an object"),
        ("[" * 1_000_000, "is nested deeper than 100 levels"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
            "holds more than 200000 values (aliases expanded); save it as JSON Lines",
        ),
        ("- a: " + "x" * 10_000_000, "is larger than 10 MB; a dataset in YAML is read slowly: save it as JSON Lines"),
        ("- a: 1\n---\n- a: 2\n", "a second document starts here ('---'); a dataset holds one"),
        ("- &a [*a]\n", "the alias *a is inside what it refers to"),
        ("- a: .nan\n", "holds .nan, which JSON does not allow or no floating-point number can hold"),
    ],
    ids=["deep", "deeper than any", "aliases", "large", "two documents", "in itself", "nan"],
)
def test_yaml_that_cannot_be_kept_is_refused(tmp_path, text, message):
    path = tmp_path / "q.yaml"
    path.write_text(text)
    assert message in "\n".join(faults_of(path))


@pytest.mark.needs_kind("conversation", "study")
def test_a_yaml_list_is_a_dataset_of_rows_and_any_other_yaml_file_a_study(tmp_path):
    path = tmp_path / "q.yaml"
    for text, kind in (
        ("- question: a\n  answer: b\n", "golden"),
        ("\ufeff# of people\n---\n[{question: a, answer: b}]\n", "golden"),
        ("- {conversation_id: c, turn_idx: 0, question: a, answer: 1}\n", "conversation"),
        ("title: A study\narms: []\n", "study"),
    ):
        path.write_text(text)
        assert kind_of(path) == kind
    assert kind_of(tmp_path / "gone.yaml") == "study"


def test_without_the_extra_excel_a_workbook_says_what_to_install(tmp_path):
    code = """
import sys
sys.modules["openpyxl"] = None
from pathlib import Path
from karat.errors import MissingExtra
from karat.kinds import read_rows
Path("q.xlsx").write_bytes(b"PK")
try:
    read_rows(Path("q.xlsx"))
except MissingExtra as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("q.xlsx: an Excel workbook needs the extra 'excel': "), done.stderr


openpyxl = pytest.importorskip("openpyxl", reason="needs the extra `excel`")


def test_a_sheet_that_is_very_wide_is_refused(tmp_path):
    path = workbook(tmp_path / "q.xlsx", [["question", "answer"], ["q", "a"], ["q", "a", *[None] * 998, "stray"]])
    with pytest.raises(BadDataset, match="row 3: has 1,001 columns, more than 1,000; delete stray cells"):
        read_rows(path)


def workbook(path: Path, *sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"S{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def rewritten(path: Path, change) -> Path:
    """The same workbook with the XML of its first sheet changed."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["xl/worksheets/sheet1.xml"] = change(members["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)
    return path


HEADER = ["question", "answer", "n"]


def test_cells_of_a_workbook_keep_their_types_and_dates_become_text(tmp_path):
    cells = [
        "a",
        "b",
        3,
        1.5,
        True,
        None,
        datetime(2024, 3, 1),  # noqa: DTZ001 -- a cell has no time zone
        datetime(2024, 3, 1, 12, 30),  # noqa: DTZ001 -- likewise
        date(2024, 3, 2),
        time(9),
    ]
    names = [f"c{number}" for number in range(len(cells))]
    path = workbook(tmp_path / "q.xlsx", [[], names, [], cells, [None] * 3])
    dates = ["2024-03-01", "2024-03-01T12:30:00", "2024-03-02", "09:00:00"]
    assert rows_of(path) == [(4, dict(zip(names, cells[:6] + dates, strict=True)))]


def test_a_formula_is_its_stored_value_and_one_without_is_no_empty_cell(tmp_path):
    path = workbook(tmp_path / "q.xlsx", [HEADER, ["a", "b", "=1+1"], ["c", "d", None], ["e", "f", "=2+2"]])
    rewritten(path, lambda xml: xml.replace(b"<f>2+2</f><v></v>", b"<f>2+2</f><v>4</v>").replace(
        b"<f>2+2</f><v />", b"<f>2+2</f><v>4</v>"
    ))  # fmt: skip
    assert rows_of(path) == [
        (3, {"question": "c", "answer": "d", "n": None}),
        (4, {"question": "e", "answer": "f", "n": 4}),
    ]
    assert faults_of(path) == ["row 2: 'n' is a formula without a stored value; open the file in Excel, and save it"]


def test_a_sheet_must_be_named_where_there_are_several(tmp_path):
    path = workbook(tmp_path / "q.xlsx", [HEADER, ["a", "b", 1]], [HEADER, ["a", "d", 2]])
    assert rows_of(path, sheet="S2") == [(2, {"question": "a", "answer": "d", "n": 2})]
    assert faults_of(path) == [
        (
            "dataset.sheet: must name one of the workbook's sheets: 'S1', 'S2' "
            "(of answers to score, save one sheet as a CSV file); '*' reads 'S1', 'S2' as one"
        )
    ]
    assert faults_of(path, sheet="S3") == ["dataset.sheet: the workbook has no sheet 'S3' (known: S1, S2)"]
    assert kind_of(path) == "golden"


def test_sheets_with_one_header_and_other_questions_are_read_together(tmp_path):
    path = workbook(tmp_path / "q.xlsx", [HEADER, ["a", "b", 1]], [HEADER, ["c", "d", None]])
    assert rows_of(path) == [
        (2, {"sheet": "S1", "question": "a", "answer": "b", "n": 1}),
        (4, {"sheet": "S2", "question": "c", "answer": "d", "n": None}),
    ]
    assert read_rows(path).notes == ["rows: the sheets 'S1', 'S2', named in the column 'sheet'"]


def test_sheets_of_results_with_the_same_questions_are_conditions(tmp_path):
    header = ["question", "output"]
    path = workbook(tmp_path / "r.xlsx", [header, ["a", "b"]], [header, ["a", "c"]])
    assert rows_of(path, results=True) == [
        (2, {"condition": "S1", "question": "a", "output": "b"}),
        (4, {"condition": "S2", "question": "a", "output": "c"}),
    ]


def test_sheets_of_results_with_one_header_can_be_read_together(tmp_path):
    path = workbook(tmp_path / "r.xlsx", [["who", "mark"], ["a", 1]], [["who", "mark"], ["a", 2]], [["note"], ["x"]])
    assert faults_of(path, results=True) == [
        (
            "dataset.sheet: must name one of the workbook's sheets: 'S1', 'S2', 'S3' (of answers to score, save one "
            "sheet as a CSV file); '*' reads those with the same columns, each as a condition"
        )
    ]
    assert rows_of(path, results=True, sheet="*") == [
        (2, {"condition": "S1", "who": "a", "mark": 1}),
        (4, {"condition": "S2", "who": "a", "mark": 2}),
    ]


def test_empty_sheets_and_those_without_questions_are_no_choice(tmp_path):
    asked = [HEADER, ["a", "b", 1]]
    path = workbook(tmp_path / "q.xlsx", [["made", "by"], ["Ann", 1]], asked, [])
    assert rows_of(path) == [(2, {"question": "a", "answer": "b", "n": 1})]
    assert read_rows(path).notes == ["rows: the sheet 'S2'; not read: 'S1'"]
    assert rows_of(workbook(tmp_path / "r.xlsx", [["x"], ["a"]], [])) == [(2, {"x": "a"})]


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ([HEADER], "file: holds no sample; it needs at least one"),
        ([], "file: holds no sample; it needs at least one"),
        ([["a", None], [1, 2]], "row 2: has '2' in a column without a name; name the column in the first row"),
        ([["a"], [1, "x"]], "row 2: has 'x' in a column without a name; name the column in the first row"),
        ([["a"], ["#DIV/0!"]], "row 2: 'a' is #DIV/0!: correct the formula, or empty the cell"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said(tmp_path, sheet, message):
    assert faults_of(workbook(tmp_path / "q.xlsx", sheet)) == [message]


def test_a_number_as_golden_answer_is_its_text(tmp_path):
    from karat.kinds.golden import Golden

    path = workbook(tmp_path / "q.xlsx", [HEADER, ["a", 3, 1]])
    assert Golden(Golden.Options()).load(path).samples[0].turns[0].golden == "3"


def test_hostile_workbooks_are_refused(tmp_path):
    path = workbook(tmp_path / "q.xlsx", [["a"], [1]])
    whole = path.read_bytes()
    many = b"".join(b'<row r="%d"><c r="ALL%d"><v>1</v></c></row>' % (n, n) for n in range(3, 6000))
    for change, message in (
        (lambda xml: xml.replace(b'<row r="2"', b'<row r="99999999999"'), "has more than 1,048,576 rows"),
        (
            lambda xml: xml.replace(b"</sheetData>", many + b"</sheetData>"),
            "has more than 1,048,576 rows or 5,000,000",
        ),
        (lambda xml: xml + b" " * 50_000_000, "unpacks to more than 200 times its size"),
        (lambda xml: xml[:100], "is not an Excel workbook (.xlsx), or is damaged"),
        (lambda xml: xml.replace(b"<v>1</v>", b"<v>x</v>"), "is not an Excel workbook (.xlsx), or is damaged"),
    ):
        path.write_bytes(whole)
        (said,) = faults_of(rewritten(path, change))
        assert message in said
    entities = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    laughs = b'<!DOCTYPE x [<!ENTITY a0 "ha">' + entities + b"]>"
    path.write_bytes(whole)
    rewritten(path, lambda xml: laughs + xml[xml.index(b"<worksheet") :].replace(b"<v>1</v>", b"<v>&a9;</v>"))
    (said,) = faults_of(path)
    assert "is damaged" in said
    path.write_bytes(whole[:-50])
    assert "is damaged" in faults_of(path)[0]
    with zipfile.ZipFile(path, "w") as empty:
        empty.writestr("../x", "x")
    assert "is damaged" in faults_of(path)[0]
    assert not (tmp_path.parent / "x").exists()
    assert io.BytesIO(whole).read(2) == b"PK"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twice.jsonl", '{"question": "a: \\"b\\": c?", "answer": "1", "answer": "2"}\n'),
        ("twice.json", '[{"question": "Why?", "answer": "1", "more": [{"answer": 1, "x": 2, "answer": 3}]}]'),
    ],
)
def test_a_key_that_is_there_twice_is_a_fault(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadDataset, match="an object has the key 'answer' twice"):
        rows = read_rows(path)
        raise BadDataset(name, rows.faults)


def test_colons_behind_quotes_inside_a_text_are_no_keys(tmp_path):
    path = tmp_path / "once.jsonl"
    path.write_text('{"question": "\\"answer\\": 1, \\"answer\\": 2", "answer": "3"}\n', encoding="utf-8")
    assert [row for _, row in read_rows(path).rows] == [{"question": '"answer": 1, "answer": 2', "answer": "3"}]


@pytest.mark.parametrize(("name", "fault"), [
    ("q.jsonl", "line 1: is longer than 64 MB; write one object a line"),
    ("q.json", "file: is larger than 512 MB; save it as JSON Lines"),
])  # fmt: skip
def test_a_file_of_a_gigabyte_in_one_line_is_refused_unread(tmp_path, name, fault):
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(1 << 30)  # of NUL bytes, which take no room
    assert faults_of(path) == [fault]


@pytest.mark.parametrize(("name", "text", "place"), [
    ("q.jsonl", '{"a": [%sNaN]}\n', "line 1"),
    ("q.json", '[{"a": [%sNaN]}]', "file"),
])  # fmt: skip
def test_more_nan_than_anyone_writes_are_refused_uncounted(tmp_path, name, text, place):
    path = tmp_path / name
    path.write_text(text % ("NaN," * 1_000_000))
    assert faults_of(path) == [f"{place}: holds more than 1,000,000 NaN or Infinity, which JSON does not allow"]


def test_a_file_without_any_good_row_is_not_listed_to_its_end(tmp_path):
    path = tmp_path / "q.json"
    path.write_text(f"[{'1,' * 200_000}1]")
    found = faults_of(path)
    assert found[:2] == [f"item {number}: is a number (1); each item must be an object" for number in (1, 2)]
    assert found[10:] == ["file: more than 99,999 rows are wrong"]


def test_a_key_that_is_there_twice_is_refused_in_what_is_not_quite_json_too(tmp_path):
    path = tmp_path / "q.json"
    path.write_text('[{"question": "Why?", "answer": NaN, "answer": "So."}]')
    assert faults_of(path) == ["file: an object has the key 'answer' twice; remove one of them"]


def test_a_sheet_without_a_header_has_numbered_columns(tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for row in (["a7", 2.339066339, "often"], ["b2", 1.5, "never"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    names = [f"column {place}" for place in (1, 2, 3)]
    rows = [(1, dict(zip(names, ("a7", 2.339066339, "often"), strict=True)))]
    rows += [(2, dict(zip(names, ("b2", 1.5, "never"), strict=True)))]
    assert rows_of(tmp_path / "t.xlsx") == rows


def test_sheets_that_ask_in_one_column_can_be_read_together(tmp_path):
    more = [*HEADER, "source"]
    path = workbook(tmp_path / "q.xlsx", [HEADER, ["a", "b", 1]], [more, ["a", "c", 2, "x"]], [["note"], ["y"]])
    (said,) = faults_of(path)
    assert said.endswith("CSV file); '*' reads 'S1', 'S2' as one")
    assert rows_of(path, sheet="*") == [
        (2, {"sheet": "S1", "question": "a", "answer": "b", "n": 1}),
        (4, {"sheet": "S2", "question": "a", "answer": "c", "n": 2, "source": "x"}),
    ]


def test_the_table_with_questions_is_read_where_two_are_side_by_side(tmp_path):
    rows = [["Name", "Town", None, "Answer", "Question"], ["Ann", "York", None, 3, "How many?"], ["Bob", "Hull"]]
    path = workbook(tmp_path / "q.xlsx", rows)
    assert rows_of(path) == [(2, {"Answer": 3, "Question": "How many?"})]
    assert read_rows(path).notes == [
        "two tables side by side: 'Answer', 'Question' are read, and not 'Name', 'Town'",
    ]
    apart = [["Question", "Topic", None, "Answer", "Mark"], ["How many?", "sums", None, 3, 1], [None, None, None, 4, 1]]
    assert len(rows_of(workbook(tmp_path / "r.xlsx", apart))) == 2
