"""`--to convfinqa` and the tables for the terminal: against the summary, and against plain Python over the rows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from karat.analysis import summarize
from karat.errors import BadOption
from karat.exports import Streamed, save
from karat.exports.csv import Csv
from karat.exports.json import Json
from karat.exports.terminal import Terminal
from karat.journal import RunFolder
from karat.records import Reply, ToolCall, Usage, Validation
from karat_conversations.exports.convfinqa import Convfinqa
from karat_conversations.exports.convfinqa_official import ConvfinqaOfficial

COLUMNS = {
    "summary.csv": "trace_id conversation_id conversation_type num_turns total_tokens prompt_tokens completion_tokens "
    "total_llm_calls total_tool_calls total_latency_ms avg_plan_steps total_validator_retries numerical_accuracy "
    "financial_accuracy soft_match_accuracy avg_logic_recall avg_operations_per_turn error_occurred error_type "
    "error_message failed_turn timestamp_start timestamp_end has_type2_question has_non_numeric_values",
    "turns.csv": "trace_id conversation_id turn_idx question expected_answer actual_answer turn_tokens prompt_tokens "
    "completion_tokens turn_llm_calls turn_tool_calls turn_latency_ms plan_type plan_steps plan_complexity "
    "validator_retries validator_valid validator_confidence tools_used numerical_match financial_match soft_match "
    "logic_recall operations_per_turn ground_truth_program error_occurred error_type error_message",
    "validation.csv": "trace_id conversation_id turn_idx retry_number valid confidence failed_steps issues",
    "errors.csv": "trace_id conversation_id turn_idx question expected_answer error_type error_message "
    "has_type2_question has_non_numeric_values plan_steps operations_per_turn error_context",
}
"""Of the original system, in its order."""

OWN_COLUMNS = {
    "summary.csv": "condition repetition right_accuracy unit_agnostic_accuracy sign_agnostic_accuracy general_accuracy "
    "avg_golden_operations_per_turn has_duplicate_columns",
    "turns.csv": "condition repetition right unit_agnostic_match sign_agnostic_match general_match exact_match "
    "predicted_program golden_operations diagnosis expected_text actual_text extractor recorded_verdict",
    "validation.csv": "",
    "errors.csv": "actual_answer diagnosis condition repetition golden_operations expected_text actual_text",
}


class Original(BaseModel):
    """A record of the original system: exactly its types, nothing converted."""

    model_config = ConfigDict(strict=True)


class ToolUse(Original):
    tool_name: str
    params: dict[str, Any]
    result: Any
    latency_ms: float
    success: bool
    error: str | None


class ModelCall(Original):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    latency_ms: float
    model: str
    purpose: str | None


class ValidatorLog(Original):
    valid: bool
    confidence: float
    failed_steps: list[str]
    issues: list[str]
    retry_number: int


class TurnRecord(Original):
    turn_idx: int
    question: str
    expected_answer: float | int | str
    actual_answer: float | int | str | None
    turn_tokens: int
    prompt_tokens: int
    completion_tokens: int
    turn_llm_calls: int
    turn_tool_calls: int
    turn_latency_ms: float
    plan_type: str | None
    plan_steps: int
    plan_complexity: float
    validator_retries: int
    validator_valid: bool
    validator_confidence: float
    validator_logs: list[ValidatorLog]
    tools_used: list[str]
    tool_calls: list[ToolUse]
    llm_calls: list[ModelCall]
    numerical_match: bool
    financial_match: bool
    soft_match: bool
    logic_recall: float | None
    ground_truth_program: str | None
    operations_per_turn: int
    error_occurred: bool
    error_type: str | None
    error_message: str | None
    error_context: dict[str, Any]
    timestamp_start: str
    timestamp_end: str


class TraceRecord(Original):
    trace_id: str
    conversation_id: str
    conversation_type: str
    num_turns: int
    total_tokens: int
    total_prompt_tokens: int
    total_completion_tokens: int
    total_llm_calls: int
    total_tool_calls: int
    total_latency_ms: float
    avg_plan_steps: float
    total_validator_retries: int
    numerical_accuracy: float
    financial_accuracy: float
    soft_match_accuracy: float
    avg_logic_recall: float
    avg_operations_per_turn: float
    error_occurred: bool
    error_type: str | None
    error_message: str | None
    failed_turn: int | None
    timestamp_start: str
    timestamp_end: str
    has_type2_question: bool
    has_duplicate_columns: bool
    has_non_numeric_values: bool
    turns: list[TurnRecord]


class EvaluationSummary(Original):
    run_id: str
    timestamp: str
    total_conversations: int
    total_turns: int
    sample_size: int
    random_seed: int
    numerical_accuracy: float
    financial_accuracy: float
    soft_match_accuracy: float
    conversation_level_accuracy: float
    avg_logic_recall: float
    cost_per_correct_answer: float | None  # None: no conversation is right
    accuracy_by_turn_number: dict[str, float | None]
    avg_operations_by_turn: dict[str, float | None]  # None: no agent gave a program in this turn
    avg_tokens_per_turn: float
    avg_latency_per_turn: float
    avg_llm_calls_per_turn: float
    avg_tool_calls_per_turn: float
    avg_plan_steps: float
    error_rate: float
    error_types: dict[str, int]
    avg_validator_retries: float
    avg_validator_confidence: float
    tool_usage_counts: dict[str, int]
    tool_success_rates: dict[str, float]
    accuracy_by_type: dict[str, float]


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


@pytest.fixture
def validated(tmp_path, journals) -> RunFolder:
    """A run under two conditions, in one of which the agent reports a validator."""
    turns = [{"golden": "-0.074", "printed": "-7.4%"}, {"golden": "yes"}]
    only = journals.asked("only", 0, turns)
    first = Validation(valid=False, confidence=0.25, failed_steps=("step 2",), issues=("no such row", "no sum"))
    second = Validation(valid=True, confidence=0.75, retry_number=1)
    call = ToolCall(tool="extract_value", input={"row": "sales"}, result="-7.4", milliseconds=2.0)
    failed = ToolCall(tool="compute", error="no such row")
    with_it = [reply("-7.4%", validations=(first, second), tool_calls=(call, failed)), reply("yes")]
    without = [Reply(text="", answer="1"), Reply(text="", answer="no")]
    return journals.conversations(tmp_path / "validated", [only], {"a": [[with_it]], "b": [[without]]})


def test_the_outputs_of_the_original_with_its_columns_first(files, validated):
    traces = [name for name in files if name.startswith("traces/")]
    assert set(files) == {*COLUMNS, "statistics.json", *traces} - {"validation.csv"}
    assert len(traces) == 2
    files = files | dict(Convfinqa().render(summarize(validated), validated))
    for name, columns in COLUMNS.items():
        assert files[name].split("\n", 1)[0].split(",") == [*columns.split(), *OWN_COLUMNS[name].split()]


def test_the_columns_and_fields_are_those_of_the_contract(shared_data):
    text = (shared_data / "convfinqa" / "original_outputs.md").read_text(encoding="utf-8")
    for name, columns in COLUMNS.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
        assert line.split("|")[2].partition(" – ")[0].split() == columns.split()
    paragraphs = text.split("\n\n")
    (statistics,) = [part for part in paragraphs if part.startswith("`statistics.json`")]
    (traces,) = [part for part in paragraphs if part.startswith("`traces/")]
    trace, turn = traces.split("\nA turn: ")
    wanted: dict[type[Original], str] = {EvaluationSummary: statistics, TraceRecord: trace, TurnRecord: turn}
    for model, told in wanted.items():
        words = set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b|\bquestion\b|\btimestamp\b", told))
        nested = {name for kind in (ToolUse, ModelCall, ValidatorLog) for name in kind.model_fields}
        words -= nested - set(model.model_fields)
        words -= {"statistics_json", "table_lookup", "multi_step_table_query"}
        assert words == set(model.model_fields) - {"turns"}


def test_readers_of_the_original_load_every_trace_and_the_statistics(files, validated):
    told = {f"b/{name}": text for name, text in Convfinqa().render(summarize(validated), validated).items()}
    for name, text in (files | told).items():
        if "traces/" in name:
            TraceRecord.model_validate_json(text)
        if name.endswith("statistics.json"):
            EvaluationSummary.model_validate_json(text)


def test_what_is_not_known_has_a_neutral_value_and_is_listed(files):
    traces = [json.loads(text) for name, text in files.items() if name.startswith("traces/")]
    broken = next(trace for trace in traces if trace["conversation_id"] == "two")
    assert (broken["total_tokens"], broken["avg_logic_recall"]) == (0, 0.0)
    assert {"total_tokens", "avg_logic_recall", "timestamp_start"} <= set(broken["unknown"])
    assert "validator_valid" in broken["turns"][0]["unknown"]
    assert "numerical_accuracy" not in broken["unknown"]
    assert "avg_validator_confidence" in json.loads(files["statistics.json"])["unknown"]


def test_a_validator_s_word_is_there_where_an_agent_reports_one(validated):
    files = dict(Convfinqa().render(summarize(validated), validated))
    assert [tuple(row.values())[2:] for row in rows(files, "validation.csv")] == [
        ("0", "0", "False", "0.25", "step 2", "no such row; no sum"),
        ("0", "1", "True", "0.75", "", ""),
    ]
    first = rows(files, "turns.csv")[0]
    assert [first[f"validator_{name}"] for name in ("retries", "valid", "confidence")] == ["1", "True", "0.75"]
    assert rows(files, "summary.csv")[0]["total_validator_retries"] == "1"
    told = json.loads(files["statistics.json"])
    assert (told["avg_validator_retries"], told["avg_validator_confidence"]) == (1.0, 0.75)


def test_statistics_of_several_conditions_have_the_original_s_fields_over_all_of_them(validated):
    told = json.loads(Convfinqa().render(summarize(validated), validated)["statistics.json"])
    assert (told["total_conversations"], told["total_turns"], told["error_rate"]) == (2, 4, 0.0)
    assert told["numerical_accuracy"] == 0.25  # the match numerical has nothing to say of yes and no
    assert (told["tool_usage_counts"], told["tool_success_rates"]) == (
        {"compute": 1, "extract_value": 1},
        {"compute": 0.0, "extract_value": 1.0},
    )
    assert told["conversation_level_accuracy"] == 0.5


def test_negative_percentages_are_numbers(validated):
    files = dict(Convfinqa().render(summarize(validated), validated))
    first = rows(files, "turns.csv")[0]
    assert (float(first["expected_answer"]), float(first["actual_answer"])) == (-0.074, -0.074)
    assert first["actual_text"] == "-7.4%"
    trace = next(json.loads(text) for name, text in files.items() if name.startswith("traces/"))
    assert trace["turns"][0]["actual_answer"] == -0.074


def test_one_row_a_conversation(files):
    first, second = rows(files, "summary.csv")
    assert {key: first[key] for key in ("num_turns", "total_tokens", "prompt_tokens", "total_llm_calls")} == {
        "num_turns": "3",
        "total_tokens": "36",
        "prompt_tokens": "30",
        "total_llm_calls": "3",
    }
    assert float(first["numerical_accuracy"]) == pytest.approx(2 / 3)
    assert float(first["avg_operations_per_turn"]) == pytest.approx((1 + 2) / 2)  # of the two programs it gave
    assert float(first["avg_golden_operations_per_turn"]) == pytest.approx((0 + 1 + 2) / 3)
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
        ("2", "unreadable"),
        ("0", "crash"),
        ("1", "unreached"),
    ]
    assert found[0]["plan_steps"] == "2"
    assert json.loads(found[0]["error_context"])["rules"] == "karat-numeric/2"


def test_verdicts_of_the_file_are_no_validator_s(files):
    assert "validation.csv" not in files
    assert [row["recorded_verdict"] for row in rows(files, "turns.csv")] == ["True", "False", "", "", ""]


def test_no_cell_is_a_formula_and_numbers_stay_numbers(files):
    for name in (name for name in files if name.endswith(".csv")):
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
    assert told["rules"] == ["karat-numeric/2"]


def test_what_no_turn_has_is_there_and_null(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}])
    run = journals.conversations(tmp_path / "one", [only], {"a": [[[reply("1")]]]})
    told = json.loads(Convfinqa().render(summarize(run), run)["statistics.json"])
    assert (told["avg_logic_recall"], told["conditions"]["a"]["avg_logic_recall"]) == (0.0, None)
    assert "avg_logic_recall" in told["unknown"]
    assert told["without_quarantine"] is None
    assert told["cost_per_correct_answer"] == 12


@pytest.mark.parametrize("conditions", [("a",), ("a", "b")])
def test_without_programs_and_without_a_right_conversation_every_key_is_there(tmp_path, journals, conditions):
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "2.0"}])
    answers = [[[reply("1"), reply("200")]]]
    run = journals.conversations(tmp_path / "one", [only], dict.fromkeys(conditions, answers))
    told = json.loads(Convfinqa().render(summarize(run), run)["statistics.json"])
    assert {*EvaluationSummary.model_fields} <= {*told}
    EvaluationSummary.model_validate(told)
    assert told["accuracy_by_turn_number"] == {"0": 1.0, "1": 0.0}
    assert told["avg_operations_by_turn"] == {"0": None, "1": None}
    assert told["cost_per_correct_answer"] is None
    assert told["error_types"] == {"scale": len(conditions)}


def test_errors_name_their_causes_as_the_statistics_count_them(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "50.0"}, {"golden": "50.0"}, {"golden": "50.0"}, {"golden": "50.0"}])
    replies = [reply("5000"), reply("-50"), reply("@now"), reply("50.1")]
    run = journals.conversations(tmp_path / "one", [only], {"a": [[replies]]})
    files = dict(Convfinqa().render(summarize(run, right="exact"), run))
    causes = [row["error_type"] for row in rows(files, "errors.csv")]
    assert causes == ["scale", "sign", "unreadable", "within_1_percent"]
    assert Counter(causes) == json.loads(files["statistics.json"])["error_types"]


def test_a_right_text_is_no_error_and_an_unscored_one_makes_no_conversation_right(tmp_path, journals):
    texts = [{"golden": "60.94"}, {"golden": "the chief financial officer"}]
    named = [journals.asked(name, at, texts) for at, name in enumerate(("same", "other", "unread"))]
    said = [
        [[reply("60.94"), reply("The Chief  Financial Officer")]],
        [[reply("60.94"), reply("the chairman")]],
        [[reply("7"), Reply(text='{"answer": "the chief financial officer", "unit": null}')]],
    ]
    run = journals.conversations(tmp_path / "texts", named, {"a": said})
    files = dict(Convfinqa().render(summarize(run), run))
    answers = [row["actual_answer"] for row in rows(files, "turns.csv") if row["turn_idx"] == "1"]
    assert answers == ["The Chief  Financial Officer", "the chairman", "the chief financial officer"]
    assert [row["right"] for row in rows(files, "turns.csv") if row["turn_idx"] == "1"] == ["True", "", "True"]
    assert [(row["conversation_id"], row["turn_idx"]) for row in rows(files, "errors.csv")] == [("unread", "0")]
    told = json.loads(files["statistics.json"])
    assert told["conversation_level_accuracy"] == told["conversation_accuracy"] == pytest.approx(1 / 3)
    assert told["never_wrong"] == 1


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
    text = Terminal(Terminal.Options(width=width, full=True)).render(summarize(run), run)["report.txt"]
    titles = ("Accuracy", "Ladder of matches", "Accuracy by turn", "Complexity ceiling", "Diagnoses", "Propagation")
    rest = ("Reasoning", "Accuracy by feature", "Cost of right answers", "Verdicts of the file")
    for title in (*titles, *rest):
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


def test_the_official_accuracies_are_of_programs(tmp_path, journals):
    table = {"2019": {"sales": 60.0}, "2018": {"sales": 50.0}}
    turns = [
        {"golden": "60.0", "program": "60"},
        {"golden": "10.0", "program": "subtract(60, 50)"},
        {"golden": "0.2", "program": "subtract(60, 50), divide(#0, 50)"},
        {"golden": "yes", "program": "greater(60, 50)"},
        {"golden": "1.0", "program": None},
    ]
    only = journals.asked("only", 0, turns, detail={"table": table})
    programs = ["60.0", "add(5, 5)", "subtract(60, 50), divide(#0, 50)", "greater(60, 50)", "1"]
    exact = [Reply(text="", answer="0", program=program) for program in programs]
    rest = [Reply(text="", answer=turn["golden"]) for turn in turns[:3]] + [
        Reply(text="", answer="yes", program="yes(")
    ]
    conditions = {"programs": [[exact]], "answers": [[[*rest, Reply(text="", answer="1")]]]}
    run = journals.conversations(tmp_path / "official", [only], conditions)
    told = json.loads(ConvfinqaOfficial().render(summarize(run), run)["official.json"])["conditions"]
    found = {
        name: [one[rate]["right"] for rate in ("execution_accuracy", "program_accuracy")] for name, one in told.items()
    }
    assert found == {"programs": [4, 2], "answers": [0, 0]}  # 60.0 is another token than 60; 5 + 5 is 10
    assert told["programs"]["execution_accuracy"]["value"] == 1.0
    assert [told["answers"][key] for key in ("turns", "without_program", "invalid_programs")] == [4, 3, 1]
    assert told["answers"]["turns_without_golden_program"] == 1


@pytest.mark.parametrize(("detail", "dialect", "right"), [({}, "convfinqa", 2), ({"dialect": "finqa"}, "finqa", 1)])
def test_questions_of_finqa_are_scored_by_its_own_rule(tmp_path, journals, detail, dialect, right):
    turns = [{"golden": "35.8", "program": "subtract(60.94, 25.14)"}] * 2
    replies = [Reply(text="", answer="0", program=program) for program in ("35.8", turns[0]["program"])]
    only = journals.asked("only", 0, turns, detail=detail)
    run = journals.conversations(tmp_path / "run", [only], {"a": [[replies]]})
    told = json.loads(ConvfinqaOfficial().render(summarize(run), run)["official.json"])
    assert told["dialect"] == dialect
    assert told["conditions"]["a"]["execution_accuracy"]["right"] == right
    assert told["conditions"]["a"]["invalid_programs"] == 2 - right


def test_golden_programs_score_1_by_the_official_rules(tmp_path, journals, shared_data):
    dev = json.loads((shared_data / "convfinqa" / "dev.json").read_text(encoding="utf-8"))["dev"][:60]
    samples, said = [], []
    for position, one in enumerate(dev):
        dialogue = one["dialogue"]
        pairs = list(zip(dialogue["turn_program"], dialogue["executed_answers"], strict=True))
        turns = [{"golden": str(value), "executed": value, "program": program} for program, value in pairs]
        samples.append(journals.asked(one["id"], position, turns, detail={"table": one["doc"]["table"]}))
        said.append([[Reply(text="", answer="0", program=program) for program, _ in pairs]])
    run = journals.conversations(tmp_path / "golden", samples, {"a": said})
    (told,) = json.loads(ConvfinqaOfficial().render(summarize(run), run)["official.json"])["conditions"].values()
    assert told["execution_accuracy"]["right"] == told["program_accuracy"]["right"] == told["turns"] > 100
