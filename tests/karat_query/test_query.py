"""`karat query`: what it gives, in which form, and what it refuses."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import duckdb
import pytest

from karat.journal import with_checksum
from karat_query.tables import TABLES


def test_without_sql_the_tables_and_their_columns_are_listed(karat, run):
    shown = karat("query", run)
    assert shown.code == 0
    listed = karat("query", run, "--json").json["tables"]
    assert [table["name"] for table in listed] == list(TABLES)
    for table in listed:
        assert f"{table['name']}: {table['rows']}" in shown.out
        assert all(column["meaning"] in shown.out and column["name"] in shown.out for column in table["columns"])


def test_rows_are_shown_as_a_table(karat, run):
    sql = "SELECT condition, count(*) AS n, avg(seconds) > 0 AS took, NULL AS nothing FROM trials GROUP BY 1 ORDER BY 1"
    done = karat("query", run, sql)
    assert done.code == 0
    assert done.out.splitlines() == [
        "condition  n  took  nothing",
        "─────────  ─  ────  ───────",
        "add        4  true  –",
        "guess      4  true  –",
    ]
    assert done.err == f"2 rows\nqueried {run}\n"


def test_json_is_one_object(karat, run):
    found = karat("query", run, "SELECT sample, count(*) AS n FROM trials GROUP BY 1 ORDER BY 1", "--json").json
    assert found["format"] == 1
    assert found["columns"] == {"sample": "VARCHAR", "n": "BIGINT"}
    assert found["rows"][0] == {"sample": "q1", "n": 2}
    assert karat("query", run, "SELECT 1 AS x WHERE false", "--json").json["rows"] == []


def test_csv_goes_to_standard_output_or_to_a_file(karat, run, here):
    sql = "SELECT sample, answer, dollars FROM trials ORDER BY ALL"
    shown = karat("query", run, sql, "--to", "csv")
    done = karat("query", run, sql, "--to", "csv", "--out", "trials.csv")
    assert done.out == "trials.csv: 8 rows\n"
    assert (here / "trials.csv").read_text(encoding="utf-8") == shown.out
    assert list(csv.reader(io.StringIO(shown.out)))[:2] == [
        ["sample", "answer", "dollars"],
        ["q1", "I do not know.", ""],
    ]


@pytest.mark.quick(1)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_table_can_be_taken_away(karat, run, here, form):
    done = karat("query", run, "--to", form, "--out", "tables", "--json")
    assert set(done.json["files"]) == {f"tables/{name}.{form}" for name in TABLES}
    assert {path.name for path in (here / "tables").iterdir()} == {f"{name}.{form}" for name in TABLES}
    for path, rows in done.json["files"].items():
        assert duckdb.sql(f"SELECT count(*) FROM '{here / path}'").fetchall() == [(rows,)]


def test_parquet_keeps_types_and_nulls(karat, run, here):
    sql = (
        "SELECT trial, repetition, seconds, dollars, outcome = 'scored' AS fine, "
        '[answer, NULL] AS "a list; --" FROM trials'
    )
    assert karat("query", run, sql, "--to", "parquet", "--out", "it's.parquet").code == 0
    found = duckdb.read_parquet(str(here / "it's.parquet"))
    assert dict(zip(found.columns, map(str, found.types), strict=True)) == {
        "trial": "VARCHAR", "repetition": "BIGINT", "seconds": "DOUBLE", "dollars": "DOUBLE", "fine": "BOOLEAN",
        "a list; --": "VARCHAR[]",
    }  # fmt: skip
    assert found.aggregate("count(*), count(dollars)").fetchall() == [(8, 0)]
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


@pytest.mark.quick(10)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT answr FROM trials"], "there is no column 'answr' (did you mean 'answer'?)"),
        (["SELECT t.answr FROM trials AS t"], "there is no column 'answr' (did you mean 'answer'?)"),
        (["SELECT * FROM trial"], "there is no table 'trial' (did you mean 'trials'?)"),
        (["SELEC 1"], "syntax error"),
        ([""], "must be one SELECT, got no statements"),
        (["SELECT 1; SELECT 2"], "must be one SELECT, got 2 statements"),
        (["COPY trials TO '{path}'"], "must be one SELECT, got COPY"),
        (["COPY (SELECT 1) TO '{path}'"], "must be one SELECT, got COPY"),
        (["ATTACH '{path}' AS x"], "must be one SELECT, got ATTACH"),
        (["PRAGMA database_list"], "must be one SELECT, got PRAGMA"),
        (["SET enable_external_access = true"], "must be one SELECT, got SET"),
        (["INSERT INTO trials SELECT * FROM trials"], "must be one SELECT, got INSERT"),
        (["SELECT * FROM read_text('{path}')"], "may not reach files"),
        (["SELECT * FROM '{path}'"], "there is no table"),
        (["SELECT * FROM '{journal}'"], "may not reach files"),
        (["SELECT * FROM read_blob((SELECT '{path}'))"], "query: "),
        (["SELECT * FROM glob('/*')"], "may not reach files"),
        (["SELECT * FROM trials, read_csv('{journal}')"], "may not reach files"),
        (["SELECT * FROM read_json('{journal}')"], "may not reach files"),
        (["SELECT sample, sample FROM trials"], "gives two columns called 'sample'"),
        (["SELECT count(*) FROM range(1000000000000) a, range(1000) b", "--seconds", "0.5"], "took longer than 0.5"),
        (["SELECT repeat('x', 3000000000) AS x FROM trials"], "needs more memory than it is allowed"),
        (["SELECT repeat('x', 100000000) AS x FROM range(90)", "--megabytes", "64"], "memory"),
        (
            ["SELECT 2::UBIGINT * 9223372036854775807 AS x", "--to", "parquet", "--out", "x.parquet"],
            "the number 18446744073709551614 is too large for Parquet",
        ),
        (["PIVOT trials ON condition USING avg(seconds)"], "write PIVOT … ON column IN (value, …)"),
        (["SELECT * FROM (PIVOT trials ON sample USING count(*))"], "a PIVOT without a list is two"),
        (["SELECT error('mine') FROM trials"], "mine"),
        (["SELECT 1", "--to", "parquet"], "--out: parquet is not text"),
        (["SELECT 1", "--out", "x"], "--out: say what to write"),
        (["--to", "csv"], "--out: every table as csv makes several files"),
        (["--to", "csv", "--out", "secret.txt"], "is a file; every table needs a folder"),
        (["SELECT 1 AS x", "--to", "csv", "--out", "results"], "results is a folder"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(karat, run, here, arguments, said):
    secret = here / "secret.txt"
    secret.write_text("the secret\n", encoding="utf-8")
    journal = here / run / "journal.jsonl"
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    done = karat("query", run, *[one.format(path=secret, journal=journal) for one in arguments])
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert "the secret" not in done.out + done.err
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_a_query_that_fails_on_the_way_leaves_no_file(karat, run, here):
    sql = "SELECT CASE WHEN range > 5000 THEN error('late') ELSE 'x' END AS x FROM range(10000)"
    done = karat("query", run, sql, "--to", "csv", "--out", "x.csv")
    assert (done.code, done.out) == (2, "")
    assert "late" in done.err
    assert sorted(path.name for path in here.iterdir() if "x.csv" in path.name) == []


LATE = "SELECT CASE WHEN range > 5000 THEN error('late') ELSE 'x' END AS x FROM range(10000)"


@pytest.mark.parametrize("form", [("--json",), ("--to", "csv"), ()])
def test_nothing_is_printed_of_a_query_that_fails_on_the_way(karat, run, form):
    done = karat("query", run, LATE, *form)
    assert (done.code, done.out) == (2, "")
    assert "late" in done.err


HUGE = {
    "a": ("9223372036854775807::HUGEINT + 1", 2**63),
    "b": ("(-170141183460469231731687303715884105727)::HUGEINT", -(2**127) + 1),
    "c": ("340282366920938463463374607431768211455::UHUGEINT", 2**128 - 1),
    "d": ("18446744073709551615::UBIGINT", 2**64 - 1),
    "e": ("99999999999999999999999999999999999999::DECIMAL(38, 0)", 10**38 - 1),
    "f": ("sum(9223372036854775807)", 8 * (2**63 - 1)),
    "g": ("NULL::HUGEINT", None),
}


@pytest.mark.slow
def test_whole_numbers_of_any_size_are_written_with_every_digit(karat, run, here):
    sql = f"SELECT {', '.join(f'{sql} AS {name}' for name, (sql, _) in HUGE.items())}, 'é\x1b[1m' AS text FROM trials"
    wanted = {name: value for name, (_, value) in HUGE.items()}
    found = karat("query", run, sql, "--json").json
    assert found["rows"] == [{**wanted, "text": "é\x1b[1m"}]
    assert {found["columns"][name] for name in HUGE} == {"HUGEINT"}
    head, row = csv.reader(io.StringIO(karat("query", run, sql, "--to", "csv").out))
    cells = dict(zip(head, row, strict=True))
    assert cells["g"] == ""
    assert {name: int(cells[name].lstrip("'")) for name in HUGE if name != "g"} == {
        name: value for name, value in wanted.items() if value is not None
    }
    for value in wanted.values():
        assert str("–" if value is None else value) in karat("query", run, sql).out


def test_a_sum_that_64_bits_hold_is_a_plain_whole_number_in_parquet(karat, run, here):
    assert karat("query", run, "SELECT sum(line) AS n FROM trials", "--to", "parquet", "--out", "n.parquet").code == 0
    assert [str(kind) for kind in duckdb.read_parquet(str(here / "n.parquet")).types] == ["BIGINT"]


def test_foreign_escape_sequences_and_formulas_stay_texts(karat, experiment, here):
    (here / "adder.py").write_text("print('=1+1 \\x1b]0;owned\\x07 \\x1b[2Jno \\u202eback')\n", encoding="utf-8")
    karat("run", experiment.name, "-q")
    sql = 'SELECT answer AS "\x1b[31mred" FROM trials LIMIT 1'
    shown = karat("query", "latest", sql)
    assert shown.out.splitlines() == ["red", "────────────", "=1+1 no back"]
    assert karat("query", "latest", sql, "--to", "csv").out == "red\n'=1+1  no back\n"
    assert "\x1b" not in karat("query", "latest", 'SELECT "\x1b[31mx" FROM trials').err
    exact = karat("query", "latest", sql, "--json").json
    assert "\x1b]0;owned" in exact["rows"][0]["\x1b[31mred"]


def test_more_rows_than_a_screen_has_are_not_printed(karat, run):
    done = karat("query", run, "SELECT * FROM range(100000)")
    assert len(done.out.splitlines()) == 1002
    assert done.err.startswith("the first 1,000 rows")


def test_a_table_is_cut_to_the_terminal(run, here):
    """A real terminal of 40 columns, whose other end is read here."""
    sql = "SELECT sample, answer, repeat('long ', 40) AS filler, seconds FROM trials"
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    command = [sys.executable, "-m", "karat", "query", run, sql, "-q"]
    with subprocess.Popen(command, cwd=here, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            told += part
        process.wait(timeout=60)
    os.close(ours)
    lines = told.decode().splitlines()
    assert len(lines) == 10
    assert max(map(len, lines)) <= 40
    assert lines[0].split() == ["sample", "answer", "filler", "seconds"]


def test_a_rehearsed_run_says_so(karat, run, here):
    info = json.loads((here / run / "run.json").read_text(encoding="utf-8"))
    del info["crc"]
    text = json.dumps({**info, "rehearsed": True}, separators=(",", ":"))
    Path(here / run / "run.json").write_bytes(with_checksum(text.encode()))
    assert "rehears" in karat("query", run, "SELECT 1 AS x").err


@pytest.mark.slow
def test_a_folder_of_runs_is_asked_as_one_with_a_column_that_says_whose_a_row_is(karat, run, here):
    shutil.copytree(here / run, here / "several" / "first")
    shutil.copytree(here / run, here / "several" / "second")
    sql = "SELECT run, count(*) AS n FROM {} GROUP BY ALL ORDER BY ALL"
    one = karat("query", run, sql.format("scores"), "--json").json["rows"][0]["n"]
    for table in TABLES:
        done = karat("query", "several", sql.format(table), "--json")
        assert done.code == 0
        if table == "scores":
            assert done.json["rows"] == [{"run": "first", "n": one}, {"run": "second", "n": one}]
        assert "2 runs in several" in done.err
    assert str(run) in karat("query", run, "SELECT 1 AS x").err
    (here / "several" / "second" / "run.json").write_bytes(b"{")
    done = karat("query", "several", "SELECT run FROM trials")
    assert (done.code, done.out) == (2, "")
    assert "several/second" in done.err
