"""Other people's SQL: what it gives, and what it may not do."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from karat.errors import BadOption
from karat_query.sql import Limits, Selected, Table, _child, select_each, shape_of

TYPES = {"participant": "text", "choice": "text", "x": "number", "order": "texts", "went": "truth"}
PEOPLE = Table(
    types=TYPES,
    columns={
        "participant": ["a", "b", "ü"],
        "choice": ["A", None, "it's"],
        "x": [1, None, 2.5],
        "order": [["p", "q"], None, []],
        "went": [True, None, False],
    },
)


def select(sql: str, tables: dict[str, Table], **asked: Any) -> Selected:
    [(name, table)] = tables.items()
    return select_each(sql, name, [table], **asked)[0]


def test_rows_come_back_as_they_were_given():
    found = select("SELECT * FROM responses", {"responses": PEOPLE})
    assert found.columns == dict(PEOPLE.columns)
    assert len(found) == 3


def test_half_a_surrogate_pair_loses_no_row():
    table = Table(types={"said": "text"}, columns={"said": ["\ud800x", "\U0001f600", 'it "is"\\u0000\x00']})
    found = select("SELECT said FROM responses", {"responses": table}).columns["said"]
    assert found[0].endswith("x") and found[1:] == ["\U0001f600", 'it "is"\\u0000\x00']


def test_null_is_no_answer():
    found = select(
        "SELECT choice IN ('A', 'B') AS picked, list_position(\"order\", 'q') AS place, x * 2 AS twice, "
        "1.5::DECIMAL(4, 2) AS money, DATE '2020-01-02' AS day FROM responses",
        {"responses": PEOPLE},
    )
    assert found.columns == {
        "picked": [True, None, False],
        "place": [2, None, None],
        "twice": [2.0, None, 5.0],
        "money": [1.5] * 3,
        "day": ["2020-01-02"] * 3,
    }


def test_an_empty_table_has_columns_and_no_rows():
    found = select("SELECT x, count(*) AS n FROM responses GROUP BY x", {"responses": Table(types=TYPES)})
    assert found.columns == {"x": [], "n": []}


def test_the_shape_says_what_a_column_is_made_of():
    shape = shape_of(
        "WITH doubled AS (SELECT *, x * 2 AS twice FROM responses) "
        "SELECT participant, twice + 1 AS more, choice = 'B' AS picked FROM doubled",
        {"responses": TYPES},
    )
    assert shape.types == {"participant": "VARCHAR", "more": "DOUBLE", "picked": "BOOLEAN"}
    assert (shape.sources["more"], shape.sources["twice"], shape.sources["picked"]) == (("twice",), ("x",), ("choice",))


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT went, x AS m FROM responses UNION ALL SELECT went, choice = 'A' FROM responses", "choice x"),
        ("SELECT NULL AS m UNION SELECT x FROM responses UNION ALL SELECT len(\"order\") FROM responses", "order x"),
        ("SELECT *, x AS m FROM responses UNION ALL SELECT *, choice = 'A' FROM responses", "choice x"),
        ("SELECT x AS m, * FROM responses UNION ALL SELECT choice = 'A', * FROM responses", "choice x"),
        ("SELECT participant, x AS m FROM responses UNION ALL SELECT choice, COLUMNS('went') FROM responses", "x"),
        ("SELECT x AS m FROM responses UNION BY NAME SELECT choice AS n, went AS m FROM responses", "went x"),
        ("(SELECT x AS m FROM responses UNION SELECT went FROM responses) EXCEPT SELECT len(choice) FROM responses",
         "went x"),
        ("WITH a AS (SELECT *, 1 AS k FROM responses UNION ALL SELECT *, choice FROM responses) SELECT k AS m FROM a",
         "choice"),
        ("SELECT m FROM (SELECT x AS m FROM responses UNION ALL SELECT went FROM responses) AS a", "went x"),
        ("SELECT participant, NULL AS m FROM responses UNION ALL SELECT participant, 1 FROM responses WHERE x > 1", ""),
    ],
)  # fmt: skip
def test_a_column_of_a_union_is_made_of_what_each_part_puts_there(sql: str, wanted: str) -> None:
    sources = shape_of(sql, {"responses": TYPES}).sources
    found: set[str] = set()
    waiting = ["m"]
    while waiting:
        new = set(sources.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    assert found & set(TYPES) == set(wanted.split())


@pytest.mark.quick(8)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM read_csv('{path}')", "may not reach files, the network or settings"),
        ("SELECT * FROM read_text('{path}')", "may not reach files"),
        ("SELECT * FROM '{path}'", "may not reach files"),
        ("SELECT * FROM glob('/*')", "may not reach files"),
        ("SELECT * FROM read_text('https://localhost/x')", "may not reach files"),
        ("ATTACH '{path}.db' AS other", "must be one SELECT, got ATTACH"),
        ("COPY responses TO '{path}'", "must be one SELECT, got COPY"),
        ("SELECT 1; COPY responses TO '{path}'", "must be one SELECT, got 2 statements"),
        ("SET threads = 4", "must be one SELECT, got SET"),
        ("CREATE TABLE more AS SELECT 1", "must be one SELECT, got CREATE"),
        ("INSTALL httpfs", "must be one SELECT, got"),
        ("", "must be one SELECT, got no statements"),
        ("SELECT nothing FROM responses", 'Referenced column "nothing" not found'),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT x, x FROM responses", "gives two columns called 'x'"),
        ("SELECT repeat('x', 3000000000)", "needs more memory than it is allowed"),
        ("SELECT repeat('x', 100000000) FROM range(50)", "needs more memory than it is allowed"),
        ("SELECT * FROM range(20)", "gives more than 10 rows"),
        ("SELECT answer FROM question", "Table with name question does not exist"),
    ],
)
def test_what_is_not_a_plain_select_is_refused(tmp_path: Path, sql: str, said: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(BadOption) as caught:
        select(sql.format(path=secret), {"responses": PEOPLE}, limits=Limits(rows=10), place="derive")
    assert said in str(caught.value)
    assert str(caught.value).startswith("derive: ")
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == [secret]
    assert secret.read_text(encoding="utf-8") == "a,b\n1,2\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000000) AS a, range(1000) AS b",
        "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT max(n) FROM more",
    ],
)
def test_what_never_ends_is_ended(sql: str) -> None:
    begun = time.monotonic()
    with pytest.raises(BadOption, match=r"took longer than 0\.5 seconds and was stopped"):
        select(sql, {"responses": PEOPLE}, limits=Limits(seconds=0.5))
    assert time.monotonic() - begun < 120  # it would take years


def test_names_of_tables_and_columns_are_no_sql():
    types = {'x"; DROP TABLE responses; --': "number", "it's": "text"}
    found = select('SELECT * FROM "a""b"', {'a"b': Table(types=types, columns={name: [None] for name in types})})
    assert list(found.columns) == list(types)


def test_one_query_runs_over_one_content_after_the_other():
    tables = [Table(types={"x": "number"}, columns={"x": values}) for values in ([1, 2], [], [None, 5])]
    found = select_each("SELECT sum(x) AS total, count(*) AS n FROM responses", "responses", tables)
    assert [one.columns for one in found] == [
        {"total": [3.0], "n": [2]},
        {"total": [None], "n": [0]},
        {"total": [5.0], "n": [2]},
    ]
    assert select_each("SELECT 1 AS x", "responses", []) == []


def test_each_content_has_the_whole_time_and_no_more():
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) AS n FROM t"
    tables = [Table(types={"x": "number"}, columns={"x": [1]})] * 2
    with pytest.raises(BadOption, match=r"longer than 0\.5 seconds"):
        select_each(endless, "responses", tables, limits=Limits(seconds=0.5))


def test_a_time_with_a_zone_is_text_or_the_message_says_how_to_make_it_text():
    said = ""
    try:  # DuckDB before 2.0.1 needs another library to give it to Python
        said = select("SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00' AS x", {"t": PEOPLE}).columns["x"][0]
    except BadOption as error:
        said = str(error)
    assert said == "2020-01-01 00:00:00+00:00" or ("CAST them to text" in said and "/" not in said)


@pytest.mark.quick(6)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ('SELECT "random" /* */ () FROM responses', "random() gives another value each time"),
        ("SELECT system.main.UUID() FROM responses", "uuid() gives another value each time"),
        ("SELECT * FROM responses ORDER BY random()", "random() gives another value each time"),
        ("SELECT list_transform([1], lambda y: y + random()) AS z FROM responses", "random() gives"),
        ("SELECT count(*) FILTER (WHERE random() < 0.5) AS n FROM responses", "random() gives"),
        ("SELECT x FROM responses WHERE x > (SELECT avg(random()) FROM responses)", "random() gives"),
        ("SELECT setseed(0.5) FROM responses", "setseed() gives another value each time"),
        ("SELECT CURRENT_DATE::VARCHAR AS x FROM responses", "current_date gives another value each time"),
        ("SELECT current_date() AS x FROM responses", "current_date() gives another value each time"),
        ("SELECT localtime::VARCHAR AS x FROM responses", "localtime gives another value each time"),
        ("SELECT current_localtimestamp()::VARCHAR AS x FROM responses", "current_localtimestamp() gives"),
        ("SELECT age(DATE '2020-01-01') AS x FROM responses", "age() gives another value each time"),
        ("SELECT ago(INTERVAL 1 DAY)::VARCHAR AS x FROM responses", "ago() gives another value each time"),
        ("SELECT * FROM responses USING SAMPLE 10", "a SAMPLE without REPEATABLE picks other rows each time"),
        ("SELECT * FROM responses TABLESAMPLE 10%", "a SAMPLE without REPEATABLE picks other rows each time"),
        ("SELECT * FROM query('SELECT random() AS x')", "query() reads something other than the answers"),
        ("SELECT * FROM duckdb_settings()", "duckdb_settings() reads something other than the answers"),
        ("SELECT * FROM information_schema.tables", "tables is not a table of answers"),
    ],
)
def test_what_gives_something_else_each_time_is_found_in_the_parsed_query(sql: str, said: str) -> None:
    (found,) = shape_of(sql, {"responses": TYPES}).changing
    assert found.startswith(said)


def test_every_function_that_the_engine_calls_volatile_is_named() -> None:
    volatile = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE'"
    clocks = "SELECT function_name FROM duckdb_functions() WHERE macro_definition ILIKE '%current_%'"
    with duckdb.connect() as engine:
        names = {row[0] for query in (volatile, clocks) for row in engine.execute(query).fetchall()}
    assert names - _child._UNSTEADY == {"error"}  # it returns nothing


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x - 1 AS a, date_diff('day', DATE '2020-01-01', DATE '2020-01-02') AS b, -x AS c FROM responses",
        "SELECT 'random(' AS a, 'now()' AS \"uuid()\", x AS random FROM responses -- random()",
        "SELECT hash(x) AS a, md5(choice) AS b, age(DATE '2021-01-01', DATE '2020-01-01') AS c FROM responses",
        "SELECT CASE WHEN x > 3 THEN error('too much') ELSE x END AS y FROM responses",
        "SELECT current_date + 1 AS later FROM (SELECT x AS current_date FROM responses)",
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT n FROM a, main.Responses",
        "SELECT x FROM responses, range(3) AS r(i), unnest([1, 2]) AS u(v)",
        "SELECT * FROM responses USING SAMPLE reservoir(2 ROWS) REPEATABLE (7)",
        "SELECT participant, row_number() OVER (ORDER BY participant) AS place FROM responses",
        "SELECT x FROM responses; -- the end",
    ],
)
def test_what_gives_the_same_each_time_is_not_suspected(sql: str) -> None:
    assert shape_of(sql, {"responses": TYPES}).changing == ()


@pytest.mark.parametrize(
    ("rest", "samples"),
    [
        ("WHERE sample = 'a'", ["a"]),
        ("t WHERE t.Sample = 'a' AND x > 3", ["a"]),
        ("WHERE x > 3 AND sample IN ('a', 'b') ORDER BY x LIMIT 2", ["a", "b"]),
        ("", None),
        ("WHERE x = 'a'", None),
        ("WHERE sample = 'a' OR x > 3", None),
        ("WHERE NOT sample = 'a'", None),
        ("WHERE sample <> 'a'", None),
        ("WHERE sample NOT IN ('a', 'b')", None),
        ("WHERE sample IN ('a', upper('b'))", None),
        ("WHERE sample = NULL", None),
        ("WHERE sample = 1", None),
        ("WHERE sample = x", None),
        ("WHERE sample = 'a' COLLATE NOCASE", None),
        ("TABLESAMPLE 10% WHERE sample = 'a'", None),
        ("AS t (sample, x) WHERE sample = 'a'", None),
        (", trials AS u WHERE trials.sample = 'a'", None),
        ("WHERE sample = 'a' UNION ALL SELECT * FROM trials", None),
        ("WHERE sample = 'a' AND x = (SELECT max(x) FROM trials)", None),
    ],
)
def test_only_a_query_that_keeps_rows_of_some_samples_reads_those_alone(rest: str, samples: list[str] | None) -> None:
    with duckdb.connect() as engine:
        assert _child._samples_wanted(_child._tree(engine, f"SELECT * FROM trials {rest}")) == samples


def test_a_column_is_no_clock() -> None:
    assert shape_of("SELECT current_date FROM responses", {"responses": {"current_date": "text"}}).changing == ()


def test_its_process_does_not_load_the_python_around_the_engine() -> None:
    """It takes most of the time of a small query, and a study has many."""
    pytest.importorskip("_duckdb", reason="before DuckDB 1.4 it is part of the package")
    script = "import sys, runpy; runpy.run_path(sys.argv[1]); print('duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, _child.__file__], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
