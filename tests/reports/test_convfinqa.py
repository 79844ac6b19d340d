"""`--to convfinqa` and the tables for the terminal: against the summary, and against plain Python over the rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from karat.errors import BadOption
from karat.journal import RunFolder
from karat.records import Reply, ToolCall, Usage
from karat.reports import Streamed, save
from karat.reports.convfinqa import Convfinqa
from karat.reports.csv import Csv
from karat.reports.json import Json
from karat.reports.terminal import Terminal
from karat.summary import summarize

COLUMNS = {
    "summary.csv": "trace_id conversation_id condition repetition conversation_type num_turns total_tokens "
    "prompt_tokens completion_tokens total_llm_calls total_tool_calls total_latency_ms numerical_accuracy "
    "soft_match_accuracy unit_agnostic_accuracy sign_agnostic_accuracy general_accuracy avg_logic_recall "
    "avg_operations_per_turn error_occurred error_type error_message failed_turn timestamp_start timestamp_end "
    "has_type2_question has_duplicate_columns has_non_numeric_values",
    "turns.csv": "trace_id conversation_id condition repetition turn_idx question expected_answer actual_answer "
    "numerical_match soft_match unit_agnostic_match sign_agnostic_match general_match exact_match logic_recall "
    "operations_per_turn ground_truth_program predicted_program diagnosis turn_tokens prompt_tokens completion_tokens "
    "turn_llm_calls turn_tool_calls turn_latency_ms tools_used error_occurred error_type error_message",
    "errors.csv": "trace_id conversation_id turn_idx question expected_answer actual_answer error_type error_message "
    "has_type2_question has_non_numeric_values plan_steps operations_per_turn diagnosis error_context",
    "validation.csv": "trace_id conversation_id turn_idx retry_number valid confidence failed_steps issues",
}


def reply(answer: str, **more: Any) -> Reply:
    usage = Usage(input_tokens=10, output_tokens=2)
    return Reply(text="", answer=answer, usage=usage, milliseconds=5.0, responses=1, **more)


@pytest.fixture
def run(tmp_path: Path, journals: ModuleType) -> RunFolder:
    features = {"has_type2_question": False, "has_duplicate_columns": True, "conversation_type": "simple"}
    first = journals.asked(
        "=cmd()",
        0,
        [
            {"golden": "10.0", "program": "10"},
            {"golden": "-2.0", "program": "subtract(8, 10)"},
            {"golden": "0.0", "program": "subtract(10, 10), multiply(#0, 2)"},
        ],
        metadata=features,
    )
    second = journals.asked("two", 1, [{"golden": "1.0"}, {"golden": "2.0"}], metadata=features)
    call = ToolCall(tool="compute")
    said = [
        reply("10", verdict=True, tool_calls=(call, call)),
        reply("-2", program="subtract(8, 10)", verdict=False),
        reply("@now", program="add(1, 2), add(#0, 3)"),
    ]
    return journals.conversations(tmp_path / "run", [first, second], {"a": [[said], [None]]})


@pytest.fixture
def files(run: RunFolder) -> dict[str, str]:
    return dict(Convfinqa().render(summarize(run), run))


def rows(files: dict[str, str], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[name])))


def test_six_outputs_with_the_columns_that_were_agreed(files):
    traces = [name for name in files if name.startswith("traces/")]
    assert set(files) == {*COLUMNS, "statistics.json", *traces}
    assert len(traces) == 2
    for name, columns in COLUMNS.items():
        assert files[name].split("\n", 1)[0].split(",") == columns.split()


def test_one_row_a_conversation(files):
    first, second = rows(files, "summary.csv")
    assert {key: first[key] for key in ("num_turns", "total_tokens", "prompt_tokens", "total_llm_calls")} == {
        "num_turns": "3",
        "total_tokens": "36",
        "prompt_tokens": "30",
        "total_llm_calls": "3",
    }
    assert float(first["numerical_accuracy"]) == pytest.approx(2 / 3)
    assert float(first["avg_operations_per_turn"]) == pytest.approx((0 + 1 + 2) / 3)
    assert (first["total_tool_calls"], first["error_occurred"], first["failed_turn"]) == ("2", "False", "")
    assert (first["timestamp_start"], first["timestamp_end"]) == (
        "2026-11-20T12:00:00Z",
        "2026-11-20T12:00:01.000+00:00",
    )
    assert (first["has_duplicate_columns"], first["has_non_numeric_values"]) == ("True", "")
    # What broke off is wrong: 0.0 is written as such, and what is not known is empty.
    assert (second["numerical_accuracy"], second["error_type"], second["failed_turn"]) == ("0.0", "crash", "0")
    assert (second["total_tokens"], second["avg_logic_recall"], second["timestamp_start"]) == ("", "", "")


def test_one_row_a_turn(files):
    found = rows(files, "turns.csv")
    assert [(row["turn_idx"], row["numerical_match"], row["diagnosis"]) for row in found] == [
        ("0", "True", ""),
        ("1", "True", ""),
        ("2", "False", "unreadable"),
        ("0", "False", ""),
        ("1", "False", ""),
    ]
    assert [row["error_type"] for row in found] == ["", "", "", "crash", ""]
    assert (found[0]["tools_used"], found[0]["turn_tool_calls"]) == ("compute", "2")
    assert (found[1]["logic_recall"], found[0]["logic_recall"]) == ("1.0", "")
    assert found[1]["expected_answer"] == found[1]["actual_answer"].replace("-2", "-2.0") == "-2.0"


def test_errors_are_every_turn_that_failed(files):
    found = rows(files, "errors.csv")
    assert [(row["turn_idx"], row["error_type"]) for row in found] == [
        ("2", "wrong_answer"),
        ("0", "crash"),
        ("1", "unreached"),
    ]
    assert found[0]["plan_steps"] == "2"
    assert json.loads(found[0]["error_context"])["rules"] == "karat-numeric/1"


def test_verdicts_of_the_file_are_rows_of_their_own(files):
    found = rows(files, "validation.csv")
    assert [(row["turn_idx"], row["valid"], row["retry_number"]) for row in found] == [
        ("0", "True", "0"),
        ("1", "False", "0"),
    ]


def test_no_cell_is_a_formula_and_numbers_stay_numbers(files):
    for name in COLUMNS:
        for row in rows(files, name):
            for cell in row.values():
                assert not cell.startswith(("=", "+", "@"))
                assert not cell.startswith("-") or float(cell) < 0
    first = rows(files, "turns.csv")[2]
    assert (first["conversation_id"], first["question"], first["actual_answer"]) == ("'=cmd()", "'=how much?", "'@now")


def test_statistics_hold_the_numbers_of_the_summary(files, run):
    told = json.loads(files["statistics.json"])
    part = summarize(run).conversation.conditions[0]
    for rate in (*part.accuracies, part.conversation_accuracy, *part.reasoning):
        assert told[rate.name] == rate.estimate.value
        estimate = told["estimates"][rate.name]
        assert (estimate["n"], estimate["design_effect"]) == (rate.n, rate.design_effect)
        assert (estimate["low"], estimate["high"]) == (rate.estimate.low, rate.estimate.high)
    assert set(told["null_rates"]["numerical_accuracy"]) == set(told["null_answerers"])
    assert told["accuracy_by_turn_number"] == {"0": 0.5, "1": 0.5, "2": 0.0}
    assert told["cost_per_correct_answer"] is None
    assert told["unreached"] == 2
    assert told["error_types"] == {"unreadable": 1}
    assert told["failures"] == {"agent: crash": 1}
    assert told["conditions"]["a"]["numerical_accuracy"] == told["numerical_accuracy"] == pytest.approx(2 / 5)
    assert told["rules"] == ["karat-numeric/1"]


def test_what_no_turn_has_is_there_and_null(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}])
    run = journals.conversations(tmp_path / "one", [only], {"a": [[[reply("1")]]]})
    told = json.loads(Convfinqa().render(summarize(run), run)["statistics.json"])
    assert told["avg_logic_recall"] is None
    assert told["without_quarantine"] is None
    assert told["cost_per_correct_answer"] == 12


def test_a_trace_is_the_whole_conversation(files):
    name = next(name for name in files if name.startswith("traces/"))
    told = json.loads(files[name])
    assert name == f"traces/{told['trace_id']}.json"
    assert [one["reply"]["answer"] for one in told["turns"]] == ["10", "-2", "@now"]
    assert told["turns"][2]["scores"][0]["labels"]["diagnosis"] == "unreadable"
    assert told["features"]["conversation_type"] == "simple"


def test_the_turns_before_a_break_are_as_right_as_they_are(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "2.0"}, {"golden": "3.0"}, {"golden": "4.0"}])
    script = journals.Script(
        tmp_path / "broken", samples=[only], conditions=("a",), scorers=(journals.NUMERIC,), kind="conversation"
    )
    script.reply(0, "a", reply=reply("1"))
    script.reply(0, "a", turn=1, reply=reply("7"))
    script.failure(0, "a")
    run = script.end()
    files = dict(Convfinqa().render(summarize(run), run))
    assert [
        (row["actual_answer"], row["numerical_match"], row["error_occurred"]) for row in rows(files, "turns.csv")
    ] == [("1", "True", "False"), ("7", "False", "False"), ("", "False", "True"), ("", "False", "False")]
    assert rows(files, "summary.csv")[0]["failed_turn"] == "2"
    assert rows(files, "summary.csv")[0]["numerical_accuracy"] == "0.25"
    assert [(row["turn_idx"], row["error_type"]) for row in rows(files, "errors.csv")] == [
        ("1", "wrong_answer"),
        ("2", "crash"),
        ("3", "unreached"),
    ]


def test_it_is_written_piece_by_piece_into_a_folder(tmp_path, run, files):
    report = Convfinqa().render(summarize(run), run)
    assert isinstance(report, Streamed)
    out = tmp_path / "out"
    paths = save(report, out)
    assert {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in paths} == files


@pytest.mark.parametrize("name", ["../up", "a//c", "a/../../up", "a/./c", "/etc/up", "a/..", "a/", "", "a\\b/c"])
def test_a_streamed_report_writes_nowhere_else(tmp_path, name):
    with pytest.raises(BadOption, match="plain name"):
        save(Streamed(lambda: iter([(name, "text")])), tmp_path / "out")


def test_other_runs_have_the_tables_too_and_no_statistics(tmp_path, journals):
    run = journals.table(tmp_path / "golden", {"only": [[3], [4]]})
    files = dict(Convfinqa().render(summarize(run), run))
    assert json.loads(files["statistics.json"])["conditions"] == {}
    assert len(rows(files, "turns.csv")) == 2


def test_json_and_csv_carry_the_part(run):
    summary = summarize(run)
    told = json.loads(Json().render(summary, run)["summary.json"])
    rate = told["conversation"]["conditions"][0]["accuracies"][0]
    assert (rate["name"], rate["shown"]["value"]) == ("numerical_accuracy", "40.0 %")
    table = Csv(Csv.Options(rows="rates")).render(summary, run)["rates.csv"]
    first = next(csv.DictReader(io.StringIO(table)))
    assert (first["name"], first["value"], first["n"], first["zero"]) == ("numerical_accuracy", "0.4", "5", "0.2")


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_the_tables(run, golden, width):
    text = Terminal(Terminal.Options(width=width)).render(summarize(run), run)["report.txt"]
    titles = ("Accuracy", "Ladder of matches", "Accuracy by turn", "Complexity ceiling", "Diagnoses", "Propagation")
    for title in (*titles, "Reasoning", "Features", "Cost of right answers", "Verdicts of the file"):
        assert f"\n{title}" in text
    assert max(map(len, text.split("\n"))) <= width
    golden(f"terminal-conversation-{width}.txt", text)


def test_a_cell_is_no_longer_than_a_spreadsheet_takes(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}])
    run = journals.conversations(tmp_path / "long", [only], {"a": [[[Reply(text="x" * 200_000)]]]})
    files = dict(Convfinqa().render(summarize(run), run))
    assert max(len(cell) for row in rows(files, "errors.csv") for cell in row.values()) <= 32_001
    trace = next(text for name, text in files.items() if name.startswith("traces/"))
    assert "x" * 200_000 in trace
