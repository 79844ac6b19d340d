"""The rows of the tables: what counts in the summary counts here, what is missing is NULL."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest
from tests.document.hostile import ALL, HOSTILE, hostile_run, written

import karat
from karat.analysis import summarize
from karat.errors import BadOption, BadRun
from karat.exports.csv import Csv
from karat.journal import ScorerInfo
from karat.records import Metric, Reply, Sample, ToolCall, Turn, Usage
from karat_query.sql import SQL_TYPES
from karat_query.tables import TABLES, ask, relation

USED = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=2)


def rows(run, sql: str, **more) -> list[dict]:
    return karat.query(run, sql, **more).table()


def eventful(folder: Path, journals) -> karat.RunFolder:
    """Everything that a journal can tell of a trial: answered, repeated, failed, mended, scored twice, cut short."""
    script = journals.Script(folder, samples=3, repetitions=2)
    call = ToolCall(tool="look", server="docs", input={"q": "ü", "n": 3}, result="found", milliseconds=4.5)
    broken = ToolCall(tool="write", error="no such file")
    script.answer(0, "baseline", 0, reply=Reply(text="first", dollars=0.5, usage=USED, tool_calls=(call, broken)))
    script.answer(0, "baseline", 0, reply=Reply(text="second"))
    script.score(0, "baseline", 0, value=1)
    script.score(0, "baseline", 0, value=4, reasons={"completeness": "nearly all"}, claims=("a claim",))
    script.attempt(0, "baseline", 1, n=1, dollars=0.25, seconds=2.0)
    script.answer(0, "baseline", 1, attempts=2, reply=Reply(text="", usage=USED))
    script.score(0, "baseline", 1, value=2, rows=2)
    script.failure(1, "baseline", 0, kind="timeout", message="too late", cls="limit")
    script.failure(1, "with-docs", 0)
    script.answer(1, "with-docs", 0, replies=(Reply(text="one", usage=USED), Reply(text="two", dollars=1.0)))
    script.failure(1, "with-docs", 0, stage="score", cls="judge", kind="refused", message="no", scorer="judge")
    script.answer(2, "nowhere", 0)
    script.answer(2, "with-docs", 1)
    script.score(2, "with-docs", 1, value=None)
    return script.stop()


def test_outcomes_are_those_of_the_ledger(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    counted = rows(run, "SELECT condition, outcome, count(*) AS n FROM trials GROUP BY ALL")
    for condition, account in summarize(run).accounts.items():
        ledger = msgspec.structs.asdict(account.ledger)
        assert ledger.pop("planned") == sum(row["n"] for row in counted if row["condition"] == condition)
        found = {row["outcome"]: row["n"] for row in counted if row["condition"] == condition}
        assert found == {name: count for name, count in ledger.items() if count}


def test_the_ledger_has_every_attempt_and_what_those_without_an_answer_cost(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    summary = summarize(run)
    found = {row["condition"]: row for row in rows(run, "SELECT * FROM ledger")}
    assert list(found) == [*summary.accounts, None]
    for name, account in [*summary.accounts.items(), (None, summary.total)]:
        row, made = found[name], account.attempts
        ledger = msgspec.structs.asdict(account.ledger)
        assert {key: row[key] for key in ledger} == ledger
        counts = (row["answered_attempts"], row["failed_attempts"], row["unfinished_attempts"])
        assert counts == (made.answered, made.failed, made.unfinished)
        assert row["attempts"] == sum(counts)
        assert (row["lost_dollars"], row["lost_unknown"]) == (made.lost.known, made.lost.unknown)
    assert found["baseline"]["lost_dollars"] == 0.25
    written = Csv(Csv.Options(rows="ledger")).render(summary, run)["ledger.csv"]
    lines = list(csv.DictReader(written.splitlines()))
    assert [line["lost_dollars"] for line in lines] == [str(found[name]["lost_dollars"]) for name in found]
    assert list(lines[0]) == [column for column in found[None] if column != "run"]


def test_a_trial_is_its_first_answer(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    first = rows(run, "SELECT * FROM trials WHERE answer = 'first'")
    assert first == [
        {
            "run": "run", "trial": "0" * 24, "sample": "0", "condition": "baseline", "repetition": 0, "position": 0,
            "outcome": "scored", "answer": "first", "turns": 1, "tool_calls": 2, "attempts": 1, "seconds": 1.0,
            "started": "2026-11-20T12:00:00Z", "dollars": 0.5, "not_kept": None, "input_tokens": 10, "output_tokens": 5,
            "cache_read_tokens": 2, "cache_write_tokens": None, "reasoning_tokens": None, "line": 2,
        }
    ]  # fmt: skip
    assert rows(run, "SELECT * FROM trials WHERE answer = 'second'") == []


def test_what_is_not_known_is_null_and_empty_is_not(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    empty = rows(run, "SELECT answer, dollars, input_tokens FROM trials WHERE attempts = 2")
    assert empty == [{"answer": "", "dollars": None, "input_tokens": 10}]
    several = rows(run, "SELECT dollars, output_tokens, turns FROM trials WHERE turns = 2")
    assert several == [{"dollars": None, "output_tokens": None, "turns": 2}]
    failed = rows(run, "SELECT trial, answer, turns, line FROM trials WHERE outcome = 'limit'")
    assert failed == [{"trial": "00000001" + "0" * 16, "answer": None, "turns": None, "line": None}]
    assert rows(run, "SELECT count(*) AS n, count(trial) AS ids FROM trials WHERE outcome = 'not_run'") == [
        {"n": 8, "ids": 1}
    ]


def test_tool_calls_and_replies_stand_in_order(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    calls = rows(run, "SELECT turn, call, server, tool, input->>'q' AS q, result, error, milliseconds FROM tool_calls")
    assert calls == [
        {"turn": 0, "call": 0, "server": "docs", "tool": "look", "q": "ü", "result": "found", "error": None,
         "milliseconds": 4.5},
        {"turn": 0, "call": 1, "server": None, "tool": "write", "q": None, "result": None,
         "error": "no such file", "milliseconds": None},
    ]  # fmt: skip
    replies = rows(run, "SELECT sample, turn, question, golden, text FROM replies WHERE sample = '1' ORDER BY turn")
    assert replies == [
        {"sample": "1", "turn": 0, "question": "Question 1?", "golden": "Golden answer 1.", "text": "one"},
        {"sample": "1", "turn": 1, "question": None, "golden": None, "text": "two"},
    ]


def test_use_and_expected_tools_are_those_of_the_report(tmp_path, journals):
    scorer = ScorerInfo(
        name="path", type="trajectory", scoring="3c" * 16, metrics=(Metric(name="path", kind="share"),),
        options={"columns": {"used": "tools"}},
    )  # fmt: skip
    samples = [
        msgspec.structs.replace(journals.sample(row), metadata={"tools": tools} if tools else {})
        for row, tools in enumerate([["docs.look"], ["write"], [], ["look", "write"]])
    ]
    script = journals.Script(
        tmp_path / "run", samples=samples, repetitions=2, scorers=(scorer,),
        condition_servers={"baseline": ("docs",), "with-docs": ("docs", "spare")},
    )  # fmt: skip
    found = ToolCall(tool="look", server="docs", result="found")
    broken = ToolCall(tool="look", server="spare", error="lost")
    written = ToolCall(tool="write", result="done")
    for row, calls in enumerate([(found, written), (broken, written), (), (written, broken, found)]):
        for repetition in range(2):
            for condition in ("baseline", "with-docs"):
                script.answer(row, condition, repetition, reply=Reply(text="", tool_calls=calls[repetition:]))
                script.score(row, condition, repetition, value=True, scorer=scorer)
    run = script.end()
    summary = summarize(run)
    uses = rows(
        run,
        "SELECT condition, name, count(*) AS answers, count_if(used) AS used, avg(used::INT) AS share, "
        "count_if(calls > 0 AND NOT used) AS only_failed FROM contexts GROUP BY ALL ORDER BY ALL",
    )
    assert uses == [
        {"condition": use.condition, "name": use.name, "answers": use.answers, "used": use.used,
         "share": use.share.value, "only_failed": use.only_failed} for use in summary.contexts
    ]  # fmt: skip
    assert {row["used"] for row in uses} == {0, 3}
    tools = rows(
        run,
        "SELECT scorer, condition, tool, count_if(expected) AS expected, count_if(called) AS called, "
        "count_if(expected AND called) AS matched, avg(called::INT) FILTER (expected) AS recall, "
        "avg(expected::INT) FILTER (called) AS precision FROM expected_tools GROUP BY ALL ORDER BY ALL",
    )
    assert tools == [
        {"scorer": use.scorer, "condition": use.condition, "tool": use.tool, "expected": use.expected,
         "called": use.called, "matched": use.matched, "recall": use.recall.value, "precision": use.precision.value}
        for use in sorted(summary.tools, key=lambda use: (use.condition, use.tool))
    ]  # fmt: skip
    assert {row["tool"] for row in tools} == {"docs.look", "look", "write"}
    pairs = rows(
        run,
        "SELECT one.condition, one.tool AS expected, two.tool AS called, count(*) AS answers FROM expected_tools one "
        "JOIN expected_tools two USING (trial) WHERE one.expected AND NOT one.called AND two.called "
        "AND NOT two.expected GROUP BY ALL ORDER BY ALL",
    )
    assert pairs == [
        {"condition": pair.condition, "expected": pair.expected, "called": pair.called, "answers": pair.answers}
        for pair in sorted(summary.confusions, key=lambda pair: (pair.condition, pair.expected))
        if pair.called
    ]
    assert pairs


def test_use_is_null_where_the_agent_may_not_report_its_calls(tmp_path, journals):
    script = journals.Script(tmp_path / "run", condition_servers={"with-docs": ("docs",)})
    script.answer(0, "with-docs")
    (row,) = rows(script.end(), "SELECT kind, name, used, calls, failed_calls FROM contexts")
    assert row == {"kind": "server", "name": "docs", "used": None, "calls": 0, "failed_calls": 0}


def test_scores_are_whole_and_the_last_at_their_place(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    assert rows(run, "SELECT sample, repetition, metric, value, reason, claims, offline FROM scores ORDER BY line") == [
        {"sample": "0", "repetition": 0, "metric": "completeness", "value": 4.0, "reason": "nearly all",
         "claims": ["a claim"], "offline": True},
        {"sample": "2", "repetition": 1, "metric": "completeness", "value": None, "reason": None, "claims": [],
         "offline": True},
    ]  # fmt: skip


QUERIES = (
    "SELECT run, sample, condition, repetition, scorer, turn, judge, repeat, metric, value FROM scores",
    "SELECT scoring, offline, value FROM scores WHERE value IS NULL OR value > 1",
    "SELECT run, sample, condition, repetition, position, outcome FROM trials",
    "SELECT count(*) AS n FROM trials",
    "SELECT s.condition, avg(s.value) AS mean, 1.5::DECIMAL(4, 2) AS x FROM scores s GROUP BY s.condition ORDER BY 1",
    "SELECT t.outcome, s.value FROM trials AS t JOIN scores AS s USING (sample, condition, repetition) ORDER BY 1, 2",
    "SELECT condition, n FROM (SELECT condition, count(value) AS n FROM scores GROUP BY ALL) WHERE n > 0",
    "SELECT * FROM scores",
    "SELECT (s).metric FROM scores AS s",
    "SELECT trial, value FROM scores",
    "SELECT #1 FROM (FROM trials)",
    "SELECT rowid, value FROM scores",
    "SELECT value FROM main.scores",
    "SELECT a, b FROM scores AS s(a, b)",
    "SELECT scores.value FROM scores NATURAL JOIN samples",
    "SELECT columns('v.*') FROM scores",
    "SELECT condition FROM query_table(['scores'])",
)


@pytest.mark.quick(4)
@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_gets_every_row_of_the_tables_that_it_names(tmp_path, journals, sql):
    run = eventful(tmp_path / "run", journals)
    with duckdb.connect() as engine:
        for name in ("scores", "trials", "samples"):
            file = tmp_path / f"{name}.parquet"
            relation(run, name).write_parquet(str(file))
            engine.execute(f"CREATE TABLE {name} AS FROM read_parquet('{file}')")
        expected = engine.execute(sql).fetchall()
    with ask(run, sql) as stream:
        assert [tuple(row) for batch in stream for row in batch] == expected
    assert expected


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", [name for name in TABLES if name != "ledger"])
def test_rows_of_one_sample_are_those_of_the_whole_table(tmp_path, journals, name):
    run = eventful(tmp_path / "run", journals)
    table = rows(run, f"SELECT * FROM {name}")
    for sample in ("0", "1", "2", "nothing"):
        of_sample = [row for row in table if row["sample"] == sample]
        assert rows(run, f"SELECT * FROM {name} WHERE sample = '{sample}'") == of_sample
    in_two = rows(run, f"SELECT * FROM {name} AS a WHERE a.run = 'run' AND a.Sample IN ('0', '2')")
    assert in_two == [row for row in table if row["sample"] in ("0", "2")]


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT * FROM trials", 12),
        ("SELECT * FROM trials WHERE sample = '0' OR repetition = 0", 8),
        ("SELECT * FROM trials WHERE NOT sample = '0'", 8),
        ("SELECT * FROM trials WHERE sample IN ('0', lower('1'))", 8),
        ("SELECT * FROM trials WHERE sample = (SELECT max(sample) FROM trials)", 4),
        ("SELECT b.trial FROM trials a, trials b WHERE a.sample = '0'", 48),
        ("SELECT * FROM (SELECT condition AS sample, trial FROM trials) WHERE sample = 'baseline'", 6),
        ("WITH t AS (SELECT * FROM trials WHERE sample = '0') SELECT * FROM t UNION ALL SELECT * FROM trials", 16),
        ("SELECT condition AS sample FROM trials WHERE sample = 'baseline'", 0),
        ("SELECT * FROM trials AS t(a, sample) WHERE sample = '000000000000000000000000'", 1),
        ("SELECT * FROM trials TABLESAMPLE 100 PERCENT WHERE sample = '0'", 4),
        ("FROM trials WHERE '0' = sample", 4),
        ("SELECT count(*) FROM trials WHERE sample = '0' GROUP BY condition", 2),
    ],
)
def test_a_query_about_a_sample_gets_all_rows_that_it_means(tmp_path, journals, sql, count):
    run = eventful(tmp_path / "run", journals)
    assert len(rows(run, sql)) == count


def test_runs_of_a_kind_that_is_not_installed_are_asked_beside_others(tmp_path, journals):
    kinds = ("golden", "interviews")
    runs = []
    for value, kind in enumerate(kinds):
        script = journals.Script(tmp_path / kind, kind=kind)
        script.answer(0, "baseline", reply=Reply(text=f"of {kind}"))
        script.score(0, "baseline", value=value)
        runs.append(script.end())
    with ask(runs, "SELECT run, value FROM scores ORDER BY run") as stream:
        assert [row for batch in stream for row in batch] == [["golden", 0.0], ["interviews", 1.0]]
    with ask(runs, "SELECT run, answer FROM trials WHERE answer IS NOT NULL ORDER BY run") as stream:
        assert [row for batch in stream for row in batch] == [[kind, f"of {kind}"] for kind in kinds]
    with ask(runs, "SELECT run, scored FROM ledger WHERE condition = 'baseline' ORDER BY run") as stream:
        assert [row for batch in stream for row in batch] == [[kind, 1] for kind in kinds]


def test_failures_say_which_stand(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    found = rows(run, "SELECT sample, stage, class, kind, attempt, stands, dollars, line FROM failures ORDER BY line")
    assert [(row["sample"], row["class"], row["kind"], row["attempt"], row["stands"]) for row in found] == [
        ("0", "infrastructure", "rate_limit", 1, False),
        ("1", "limit", "timeout", None, True),
        ("1", "agent", "crash", None, False),
        ("1", "judge", "refused", None, True),
    ]
    assert found[0]["dollars"] == 0.25


def test_means_of_scores_are_those_of_the_report(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"a": [[1, 2], [2, 3]], "b": [[3, 4], [5, None]]})
    means = rows(
        run,
        "WITH q AS (SELECT condition, metric, sample, avg(value) AS m FROM scores GROUP BY ALL) "
        "SELECT condition, avg(m) AS mean FROM q GROUP BY ALL ORDER BY condition",
    )
    assert [row["mean"] for row in means] == [result.mean.value for result in summarize(run).results]


def test_an_older_scoring_is_asked_for_by_its_digest(tmp_path, journals):
    newer = msgspec.structs.replace(journals.JUDGE, scoring="77" * 16)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("a",))
    script.answer(0, "a")
    script.score(0, "a", value=2)
    script.pause("done")
    script.resume(newer)
    script.score(0, "a", value=5, scorer=newer)
    run = script.end(command="score")
    assert rows(run, "SELECT value FROM scores") == [{"value": 5.0}]
    assert rows(run, "SELECT value FROM scores", scorings={"judge": "0f"}) == [{"value": 2.0}]


@pytest.mark.needs_package("karat_conversations")
def test_conversations_have_a_row_a_turn(tmp_path, journals):
    sample = journals.asked("c", 0, [{"golden": "1"}, {"golden": "2"}])
    said = (Reply(text="1", answer="1"), Reply(text="3", answer="3"))
    run = journals.conversations(tmp_path / "run", [sample], {"a": [[said]]})
    assert rows(run, "SELECT turn, golden, answer FROM replies ORDER BY turn") == [
        {"turn": 0, "golden": "1", "answer": "1"},
        {"turn": 1, "golden": "2", "answer": "3"},
    ]
    assert rows(
        run, "SELECT turn, value, labels IS NULL AS bare FROM scores WHERE metric = 'numerical' ORDER BY turn"
    ) == [{"turn": 0, "value": 1.0, "bare": False}, {"turn": 1, "value": 0.0, "bare": False}]


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_has_the_columns_that_are_promised(tmp_path, journals, name):
    run = eventful(tmp_path / "run", journals)
    found = karat.query(run, f"SELECT * FROM {name}")
    assert found.types == {column.name: SQL_TYPES[column.type] for column in TABLES[name].columns}
    empty = karat.query(journals.Script(tmp_path / "empty", samples=0).stop(), f"SELECT * FROM {name}")
    rows_of_none = 3 if name == "ledger" else 0  # two conditions and the run, all without trials
    assert (empty.types, len(empty)) == (found.types, rows_of_none)


@pytest.mark.parametrize("name", list(TABLES))
def test_hostile_texts_come_back_as_they_were_written(tmp_path, journals, name):
    run = hostile_run(tmp_path / "run", journals)
    found = karat.query(run, f"SELECT * FROM {name}").table()
    text = written(ALL)
    texts = {
        "trials": "answer", "replies": "text", "scores": "reason", "failures": "message", "samples": "golden",
    }  # fmt: skip
    if name in texts:
        assert found
        assert all(str(row[texts[name]] or text).removeprefix("golden ") == text for row in found)


@pytest.mark.slow
def test_a_line_of_twenty_megabytes_is_a_row(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("a",))
    script.answer(0, "a", reply=Reply(text='"\\' * (10 << 20)))
    assert rows(script.end(), "SELECT length(answer) AS n FROM trials") == [{"n": 20 << 20}]


def test_numbers_beyond_a_column_are_null(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("a",))
    script.answer(0, "a", reply=Reply(text="x", usage=Usage(input_tokens=2**63, output_tokens=-1)), attempts=2**70)
    found = rows(script.stop(), "SELECT input_tokens, output_tokens, attempts FROM trials")
    assert found == [{"input_tokens": None, "output_tokens": -1, "attempts": None}]


def test_metadata_can_be_grouped_by(tmp_path, journals):
    samples = [
        Sample(id=str(n), position=n, digest="d", turns=(Turn(question="q"),), metadata={"topic": f"t{n % 2}"})
        for n in range(3)
    ]
    run = journals.table(tmp_path / "run", {"a": [[1], [2], [3]]}, samples=samples)
    found = rows(
        run,
        "SELECT metadata->>'topic' AS topic, avg(value) AS mean FROM scores JOIN samples USING (sample) "
        "GROUP BY ALL ORDER BY ALL",
    )
    assert found == [{"topic": "t0", "mean": 2.0}, {"topic": "t1", "mean": 2.0}]


def test_a_run_in_progress_and_a_torn_line_can_be_asked(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    with run.journal.open("ab") as file:
        file.write(b'{"event":"answer","trial":"zzz')
    assert rows(run, "SELECT count(*) AS n FROM trials WHERE answer IS NOT NULL") == [{"n": 4}]


def test_a_damaged_line_is_named(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    with run.journal.open("ab") as file:
        file.write(b'{"event":"answer","trial":1}\n')
    with pytest.raises(BadRun, match="line 16 of the journal is damaged"):
        rows(run, "SELECT * FROM trials")


def test_nothing_is_left_behind_and_the_run_is_untouched(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    aside = tmp_path / "aside"
    aside.mkdir()
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    code = """
import gc, os, sys
import karat
karat.query(sys.argv[1], "SELECT * FROM trials")
try:
    karat.query(sys.argv[1], "SELECT error('no') FROM trials")
except karat.errors.BadOption:
    print(os.listdir(sys.argv[2]))
taken = karat.relation(sys.argv[1], "scores")
print(taken.aggregate("sum(value)").fetchall(), len(os.listdir(sys.argv[2])))
del taken
gc.collect()
print(os.listdir(sys.argv[2]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, run.path, aside],
        env={**os.environ, "TMPDIR": str(aside)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.splitlines(), done.stderr) == (["[]", "[(4.0,)] 1", "[]"], "")
    assert {path: path.read_bytes() for path in run.path.iterdir()} == before


def test_a_relation_of_a_table_that_is_not_there_names_the_nearest(tmp_path, journals):
    with pytest.raises(BadOption, match="there is no table 'score' \\(did you mean 'scores'\\?\\)"):
        relation(eventful(tmp_path / "run", journals), "score")


def test_the_result_shows_itself_in_a_notebook(tmp_path, journals):
    run = hostile_run(tmp_path / "run", journals, text=HOSTILE["script"])
    html = karat.query(run, "SELECT trial, text, dollars, NULL AS none FROM replies")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "–" in html
    assert len(karat.query(run, "SELECT * FROM range(500)")._repr_html_()) < 5000


def test_rows_become_json_values(tmp_path, journals):
    run = eventful(tmp_path / "run", journals)
    found = rows(
        run,
        "SELECT {'a': [1, NULL]} AS nested, [1.5] AS numbers, DATE '2020-01-02' AS day, 'NaN'::DOUBLE AS nan, "
        "'inf'::DOUBLE AS inf, 2::HUGEINT AS big, 1.25::DECIMAL(4, 2) AS money, true AS yes, ['a', NULL] AS texts",
    )
    assert found == [
        {"nested": '{"a": [1, null]}', "numbers": "[1.5]", "day": "2020-01-02", "nan": None, "inf": None, "big": 2,
         "money": 1.25, "yes": True, "texts": ["a", None]}
    ]  # fmt: skip
    assert json.loads(found[0]["nested"]) == {"a": [1, None]}
