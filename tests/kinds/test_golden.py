"""Questions with golden answers, in every format, and what is said of bad ones."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadDataset
from karat.kinds import Dataset
from karat.kinds.golden import Golden
from karat.records import Turn

ROWS = [
    {"question": "How many?", "answer": "3", "topic": "numbers", "weight": 1.5},
    {"question": 'Say "hi",\nplease', "answer": "hi, there", "topic": "words", "weight": 2.0},
    {"question": "Größe?", "answer": "groß\u2028und breit", "topic": "words", "weight": 0.5},
]


def load(path: str | Path, **options: Any) -> Dataset:
    return Golden(Golden.Options(**options)).load(Path(path))


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: list[dict[str, Any]], **dialect: Any) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **dialect)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_all(folder: Path) -> dict[str, Path]:
    """The same rows in every format."""
    texts = {
        "a.jsonl": lines(ROWS),
        "a.ndjson": "\ufeff" + lines(ROWS).replace("\n", "\r\n\r\n \n"),
        "a.json": json.dumps(ROWS, indent=2),
        "a.csv": "\ufeff" + as_csv(ROWS),
        "a.tsv": as_csv(ROWS, delimiter="\t", lineterminator="\n"),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_json('{folder / 'a.json'}')) TO '{folder / 'a[1].parquet'}'")
    return {path.suffix: path for path in folder.iterdir()}


def test_every_format_gives_the_same_samples(folder: Path) -> None:
    files = write_all(folder)
    assert sorted(files) == [".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".tsv"]
    for ending, path in files.items():
        dataset = load(path)
        assert [sample.turns for sample in dataset] == [
            (Turn(question=str(row["question"]), golden=str(row["answer"])),) for row in ROWS
        ], ending
        assert [sample.id for sample in dataset] == ["0", "1", "2"]
        assert [sample.position for sample in dataset] == [0, 1, 2]
        assert [sample.metadata["topic"] for sample in dataset] == ["numbers", "words", "words"]
        assert float(dataset.samples[0].metadata["weight"]) == 1.5
        assert dataset.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert [sample.digest for sample in dataset] == [sample.digest for sample in load(files[".jsonl"])]


def test_keys_are_named_and_ids_may_be_numbers(folder: Path) -> None:
    Path("q.jsonl").write_text('{"q": "a", "a": "b", "n": 7}\n{"q": "c", "a": "d", "n": "x"}\n')
    dataset = load("q.jsonl", question_key="q", answer_key="a", id_key="n")
    assert [sample.id for sample in dataset] == ["7", "x"]
    assert [sample.metadata for sample in dataset] == [{}, {}]


def test_a_question_may_be_its_own_id(folder: Path) -> None:
    Path("q.jsonl").write_bytes(GOOD)
    (sample,) = load("q.jsonl", id_key="question")
    assert (sample.id, sample.turns[0].question) == ("q", "q")


def test_a_digest_covers_question_and_answer_and_nothing_else(folder: Path) -> None:
    rows = [
        {"question": "q", "answer": "a", "n": 1},
        {"question": "q", "answer": "a", "n": 2},
        {"question": "q", "answer": "b"},
        {"question": "p", "answer": "a"},
    ]
    Path("q.jsonl").write_text(lines(rows))
    first, same, *others = [sample.digest for sample in load("q.jsonl")]
    assert first == same
    assert len({first, *others}) == 3


TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\r\t\u2028\u0085"), min_size=1
).filter(lambda text: bool(text.strip()))


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_any_text_survives_jsonl_and_csv(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    rows = [{"question": question, "answer": answer} for question, answer in pairs]
    (folder / "a.jsonl").write_bytes(lines(rows).encode())
    (folder / "a.csv").write_bytes(as_csv(rows, quoting=csv.QUOTE_ALL).encode())
    for name in ("a.jsonl", "a.csv"):
        turns = [sample.turns[0] for sample in load(folder / name)]
        assert [(turn.question, turn.golden) for turn in turns] == pairs


GOOD = b'{"question": "q", "answer": "a"}\n'
BAD: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "an empty file": ("q.jsonl", b"", {}),
    "blank lines only": ("q.jsonl", b"\n  \n\r\n", {}),
    "only a BOM": ("q.jsonl", b"\xef\xbb\xbf", {}),
    "an empty list": ("q.json", b"[]", {}),
    "a header only": ("q.csv", b"question,answer\n", {}),
    "an unknown ending": ("q.docx", b"PK", {}),
    "an unknown compressed ending": ("q.parquet.gz", b"PK", {}),
    "a sheet of a file without sheets": ("q.csv", b"question,answer\na,b\n", {"sheet": "A"}),
    "YAML that is misread": ("q.yaml", b"- question: q\n  answer: no\n  zip: 010\n- {question: [a, answer: b}\n", {}),
    "YAML with bad rows": (
        "q.yaml",
        b"- question: q\n  answer: 3\n\n- text\n- question: p\n  answer: a\n  n: .inf\n- question: r\n  answer:\n",
        {},
    ),
    "YAML with a tag": ("q.yaml", b"- !!python/object/apply:os.system [ls]\n", {}),
    "no gzip": ("q.jsonl.gz", GOOD, {}),
    "no workbook": ("q.xlsx", b"question,answer\na,b\n", {}),
    "no ending": ("questions", GOOD, {}),
    "bad JSON": (
        "q.jsonl",
        GOOD + b"\n{question: q}\n" + GOOD + b'{"question": "q", "answer": "a"\n{\'question\': 1}\n',
        {},
    ),
    "NaN": ("q.jsonl", b'{"question": "q", "answer": NaN}\n', {}),
    "half a surrogate": ("q.jsonl", b'{"question": "q", "answer": "\\ud800"}\n', {}),
    "half a surrogate in a list": ("q.json", b'[{"question": "q", "answer": "\\ud800"}, {"\\udfff": 1}]', {}),
    "numbers that are too long": (
        "q.jsonl",
        b"".join(
            b'{"question": "q", "answer": "a", "n": %s}\n' % number
            for number in (b"18446744073709551615", b"18446744073709551616", b"-" + b"9" * 500, b"9" * 5000, b"1e999")
        )
        + b"9" * 5000,
        {},
    ),
    "numbers that are too long in a list": (
        "q.json",
        b'[{"n": [18446744073709551616, %s]}, {"n": {"n": -%s}}, {"n": NaN}, {"n": 1e999}]' % (b"9" * 500, b"9" * 5000),
        {},
    ),
    "nothing but a number that is too long": ("q.json", b"9" * 5000, {}),
    "nested deeper than 64 levels": (
        "q.jsonl",
        b"".join(
            b'{"question": "q", "answer": "a", "n": %s}\n' % (b"[" * depth + b"]" * depth) for depth in (63, 64, 900)
        ),
        {},
    ),
    "nested deeper than 64 levels in a list": ("q.json", b'[{"n": %s}]' % (b"[" * 64 + b"]" * 64), {}),
    "nested too deeply": ("q.jsonl", b'{"question": ' + b"[" * 100_000 + b"\n", {}),
    "not an object": ("q.jsonl", GOOD + b'"text"\n[1]\n5\nnull\ntrue\n', {}),
    "missing keys": ("q.jsonl", GOOD + b'{"question": "q"}\n{"qestion": "q", "answer": "a"}\n{}\n', {}),
    "an id key that no line has": ("q.jsonl", GOOD, {"id_key": "id"}),
    "a stratum that no line has": ("q.jsonl", GOOD, {"stratify": "topic", "sample_size": 1}),
    "answers that are no text": (
        "q.jsonl",
        b"".join(
            b'{"question": "q", "answer": %s}\n' % value for value in (b"[1]", b"{}", b"4.5", b"7", b"true", b"null")
        ),
        {},
    ),
    "empty texts": ("q.jsonl", b'{"question": " ", "answer": ""}\n', {}),
    "ids twice": (
        "q.jsonl",
        b"".join(b'{"question": "q", "answer": "a", "id": %s}\n' % value for value in (b'"1"', b"2", b"1", b'"2"')),
        {"id_key": "id"},
    ),
    "ids that are none": (
        "q.jsonl",
        b"".join(b'{"question": "q", "answer": "a", "id": %s}\n' % value for value in (b"1.5", b"null", b'""', b"[1]")),
        {"id_key": "id"},
    ),
    "Latin-1": ("q.jsonl", GOOD + '{"question": "Größe", "answer": "a"}\n'.encode("latin-1") + GOOD, {}),
    "binary": ("q.jsonl", b"\x7fELF\x00\x01", {}),
    "bad JSON in a list": ("q.json", b'[\n  {"question": "q"\n  "answer": "a"}\n]\n', {}),
    "an object called .json": ("q.json", b'{"data": []}', {}),
    "a list of texts": ("q.json", b'["q", "a"]', {}),
    "a list deeper than any": ("q.json", b"[" * 200_000, {}),
    "too many cells": ("q.csv", b"question,answer\na,b\nWhat, exactly?,c\nd\n", {}),
    "an open quote": ("q.csv", b'question,answer\n"a,b\nc,d\n', {}),
    "a quote inside": ("q.csv", b'question,answer\na,"b" c\n', {}),
    "a column twice": ("q.csv", b"question,answer,answer\na,b,c\n", {}),
    "columns by other names": ("q.csv", b"Question,Text\na,b\n", {}),
    "an empty cell": ("q.csv", b"question,answer\na,b\nc,\n\n,d\n", {}),
    "no Parquet": ("q.parquet", b"question,answer\n", {}),
    "broken Parquet": ("q.parquet", b"PAR1" + b"x" * 100, {}),
}


READ: dict[str, tuple[str, bytes]] = {
    "one row in YAML": ("q.yaml", b"question: q\nanswer: a\n"),
    "names that only differ": ("q.jsonl", b'{"prompt": "q", "answers": "a"}\n'),
    "a question in a list of one": ("q.jsonl", b'{"question": ["q"], "answer": "a"}\n'),
    "UTF-16": ("q.jsonl", GOOD.decode().encode("utf-16")),
    "UTF-16 in CSV": ("q.csv", "question,answer\nq,a\n".encode("utf-16")),
    "a list called .jsonl": ("q.jsonl", b'[{"question": "q", "answer": "a"}]\n'),
    "a list over lines called .jsonl": ("q.jsonl", b'[\n  {\n    "question": "q",\n    "answer": "a"\n  }\n]\n'),
    "objects over lines called .jsonl": ("q.jsonl", b'{\n "question": "q",\n "answer": "a"\n}\n'),
    "lines called .json": ("q.json", GOOD + b"\n" + b'{"question": "p", "answer": "a"}\n'),
    "columns split at semicolons": ("q.csv", b"question;answer\nq;a\n"),
    "columns split at tabs": ("q.csv", b"question\tanswer\nq\ta\n"),
    "rows by id": ("q.json", b'{"x": {"question": "q", "answer": "a"}, "y": {"question": "p", "answer": "b"}}'),
    "columns as lists": ("q.json", b'{"question": ["q", "p"], "answer": ["a", "b"]}'),
    "columns as objects": ("q.json", b'{"question": {"0": "q", "1": "p"}, "answer": {"0": "a", "1": "b"}}'),
    "a list far inside": ("q.json", b'{"data": {"version": 1, "cases": [{"question": "q", "answer": "a"}]}}'),
    "the list with the questions": (
        "q.json",
        b'{"authors": [{"name": "n"}, {"name": "m"}], "cases": [{"question": "q", "answer": "a"}]}',
    ),
    "a number": ("q.jsonl", b'{"question": "q", "answer": "a"}\n{"question": "p", "answer": 4.5}\n'),
}


@pytest.mark.parametrize(("name", "data"), READ.values(), ids=[*READ])
def test_a_file_is_read_as_it_lies(folder: Path, name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    assert load(name).samples[0].turns[0] == Turn(question="q", golden="a")


def test_a_spreadsheet_in_windows_1252_is_read_and_said(folder: Path) -> None:
    Path("q.csv").write_bytes("question,answer\nGröße?,groß\n".encode("cp1252"))
    dataset = load("q.csv")
    assert dataset.samples[0].turns[0] == Turn(question="Größe?", golden="groß")
    assert dataset.understood is not None
    assert dataset.understood.notes == ("read as Windows-1252, since it is not UTF-8",)


def test_what_holds_no_rows_is_named_for_what_it_is(folder: Path) -> None:
    for name, data, what in (
        ("q.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a pointer of Git LFS"),
        ("q.csv", b"<!DOCTYPE html>\n<html>", "a web page"),
        ("q.json", b'{"queries": {"a": "b"}, "corpus": {"c": "d"}}', "a retrieval set"),
        ("q.json", b'{"accuracy": 0.5, "f1": 0.25, "model": "m"}', "means or settings, but no rows"),
        ("q.yaml", b"agent: {type: python}\nconditions: {a: {}}\ndataset: {path: q.jsonl}\n", "an experiment file"),
    ):
        Path(name).write_bytes(data)
        with pytest.raises(BadDataset, match=what):
            load(name)


def test_what_is_barely_no_fault_is_kept(folder: Path) -> None:
    deep: Any = "in"
    for _ in range(62):
        deep = [deep]
    row = {"question": "q", "answer": "a", "n": [2**64 - 1, -(2**63)], "deep": deep, "pair": "\U0001f600"}
    for name, text in (("q.json", json.dumps([row])), ("q.jsonl", json.dumps(row))):
        Path(name).write_text(text)
        assert [sample.metadata for sample in load(name)] == [{key: row[key] for key in ("n", "deep", "pair")}]


def said_of(name: str, data: bytes, options: dict[str, Any]) -> BadDataset:
    Path(name).write_bytes(data)
    with pytest.raises(BadDataset) as caught:
        load(name, **options)
    return caught.value


def test_what_is_said_of_every_bad_dataset(folder: Path, golden: Callable[[str, str], None]) -> None:
    said = []
    for name, (file, data, options) in BAD.items():
        given = f"  {options}" if options else ""
        said.append(f"{'=' * 20} {name}{given}\n{data[:200]!r}\n{'-' * 20}\n{said_of(file, data, options)}\n")
    golden("faults/datasets.txt", "\n".join(said))


def test_a_file_with_many_faults_shows_the_first_and_counts_the_rest(folder: Path) -> None:
    error = said_of("q.jsonl", b"{}\n" * 2 + b"[]\n" * 1000, {})
    assert len(error.faults) == 1001
    shown = str(error).split("\n")
    assert shown[0] == "q.jsonl: 1001 faults"
    assert shown[-1] == "  … and 951 more"
    assert len(shown) == 54


@pytest.mark.needs_kind("conversation")
def test_conversations_are_recognised_where_questions_were_wanted(folder: Path) -> None:
    file = folder / "turns.jsonl"
    file.write_text(lines([{"conversation_id": "c", "turn_idx": 0, "question": "How many?", "answer": 3}]))
    with pytest.raises(BadDataset) as caught:
        load(file)
    conversations, undecided = [fault.message for fault in caught.value.faults]
    assert conversations == "holds conversations, so it seems: set `dataset.kind: conversation`"
    assert "1) roles: {question: question, golden: answer}" in undecided


def test_a_file_that_cannot_be_read_is_a_fault(folder: Path) -> None:
    with pytest.raises(BadDataset, match="cannot be read: No such file or directory"):
        load("gone.jsonl")
    Path("d.jsonl").mkdir()
    with pytest.raises(BadDataset, match="cannot be read: is a folder, not a regular file"):
        load("d.jsonl")


def write_many(count: int) -> Path:
    path = Path("many.jsonl")
    text = "".join(
        f'{{"question": "What is {n} + {n}?", "answer": "{2 * n}", "topic": "t{n % 7}"}}\n' for n in range(count)
    )
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_hundred_thousand_samples_fit(folder: Path) -> None:
    write_many(100_000)
    code = """
import resource, sys
from pathlib import Path
from karat.kinds.golden import Golden
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(Golden(Golden.Options()).load(Path("many.jsonl"))) == 100_000
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown * (1 if sys.platform == "darwin" else 1024))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000_000


def first(count: int, path: Path, **options: Any) -> Dataset:
    return Golden(Golden.Options(**options)).first(count).load(path)


NUMBERED = [{"question": f"What is {n}?", "answer": str(n), "topic": str(n % 7)} for n in range(2_000)]
SQUAD = [{"id": f"{n}", "question": "?", "context": f"Of {n}.", "answers": {"text": [f"{n}"]}} for n in range(2_000)]
LATE = {"question": "And this?", "answer": "", "topic": "none"}


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", lines([*NUMBERED, LATE])), ("a.csv", as_csv([*NUMBERED, LATE]))]
)
def test_a_run_of_the_first_samples_reads_no_more_rows_than_it_needs(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    for count, read in ((3, 500), (700, 700)):
        dataset = first(count, folder / name)
        assert [sample.turns[0].golden for sample in dataset] == [str(n) for n in range(read)]
        assert len(dataset) + dataset.unread == 2_001
        assert dataset.sha256 == hashlib.sha256(text.encode()).hexdigest()

    with pytest.raises(BadDataset, match="'answer' is empty"):
        load(folder / name)


def test_a_fault_in_the_first_rows_names_all_others(folder: Path) -> None:
    (folder / "a.jsonl").write_text(lines([LATE, *NUMBERED, LATE]), encoding="utf-8")
    with pytest.raises(BadDataset) as bad:
        first(3, folder / "a.jsonl")
    (fault,) = bad.value.faults
    assert (fault.place, "(1, 2002)" in fault.message) == ("line 1", True)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param(NUMBERED, {"sample_size": 900}, id="a draw is of all rows"),
        pytest.param(NUMBERED, {"cluster": "topic"}, id="every row needs its cluster"),
        pytest.param([*NUMBERED, *NUMBERED], {"repeated": True}, id="rows are merged"),
        pytest.param([*NUMBERED, {**LATE, "answer": "x", "late": 1}], {"stratify": "late"}, id="a late column"),
        pytest.param([LATE, *NUMBERED], {"skip": "unreadable"}, id="rows that are left out are counted"),
        pytest.param(SQUAD, {}, id="a form of several questions"),
    ],
)
def test_a_file_is_read_as_a_whole_where_samples_depend_on_it(
    folder: Path, rows: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    (folder / "a.jsonl").write_text(lines(rows), encoding="utf-8")
    whole = load(folder / "a.jsonl", **options)
    limited = first(3, folder / "a.jsonl", **options)
    assert (list(limited), limited.warnings, limited.unread) == (list(whole), whole.warnings, 0)


def test_lint_tells_what_golden_answers_say_against_each_other(folder: Path) -> None:
    rows = [
        {"id": "a", "question": "What is 2 + 2?", "answer": "4"},
        {"id": "b", "question": "what is 2 + 2", "answer": "4.0"},
        {"id": "c", "question": "What is  2 + 2?", "answer": "5"},
        {"id": "d", "question": "Is it?", "answer": "yes"},
        {"id": "e", "question": "Is it?", "answer": "True"},
        {"id": "f", "question": "Why?", "answer": "why"},
        *({"id": f"t{n}", "question": f"And {n}?", "answer": "To be written by an expert."} for n in range(3)),
        {"id": "g", "question": "", "answer": "a"},
    ]
    Path("q.jsonl").write_text(lines(rows))
    found = Golden(Golden.Options(id_key="id")).lint(Path("q.jsonl"))
    assert [(one.id, one.turn, one.reasons) for one in found.doubted] == [
        ("b", None, ("same_question",)),
        ("c", None, ("contradicts",)),
        ("e", None, ("same_question",)),
        ("f", None, ("answer_is_question",)),
        ("t1", None, ("same_answer",)),
        ("t2", None, ("same_answer",)),
    ]
    assert found.doubted[1].evidence == {"contradicts": {"id": "a", "there": "4", "answer": "5"}}
    assert (found.samples, [str(fault) for fault in found.faults]) == (
        9,
        ["line 10: 'question' is empty; fill it in, or remove the row"],
    )
    assert set(found.meanings) >= {reason for one in found.doubted for reason in one.reasons}


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("10 %", "0.1", "same_question"),
        ("$5", "5", "same_question"),
        ("10percent", ".10", "same_question"),
        ("-5%", "\u22120.05", "same_question"),
        ("1,234.5", "+1234.50", "same_question"),
        ("NO", "false", "same_question"),
        ("12,5", "125", "contradicts"),
        ("-5", "5", "contradicts"),
        ("10 %", "10", "contradicts"),
        ("yes", "no", "contradicts"),
        ("yes", "1", "contradicts"),
        ("9" * 400, "8" * 400, "contradicts"),
        ("about 10", "10", "contradicts"),
    ],
)
def test_lint_knows_two_spellings_of_one_golden_value(folder: Path, one: str, other: str, reason: str) -> None:
    rows = [{"id": "a", "question": "How many?", "answer": one}, {"id": "b", "question": "How many?", "answer": other}]
    Path("q.jsonl").write_text(lines(rows))
    found = Golden(Golden.Options(id_key="id")).lint(Path("q.jsonl"))
    assert [(doubt.id, doubt.reasons) for doubt in found.doubted] == [("b", (reason,))]
