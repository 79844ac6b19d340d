"""The files that k-eval's viewer and scripts read."""

from __future__ import annotations

import json

import pytest

from karat.analysis import summarize
from karat.records import Reply, ToolCall, Usage
from karat_imports.exports.keval import Keval

STEM = "support-kb_20261120_1234abcd"


def rendered(run):
    files = Keval().render(summarize(run), run)
    assert list(files) == [f"{STEM}.json", f"{STEM}.detailed.jsonl"]
    detailed = [json.loads(line) for line in files[f"{STEM}.detailed.jsonl"].split("\n")[:-1]]
    return json.loads(files[f"{STEM}.json"]), detailed


def test_twelve_samples_come_in_the_order_of_numbers_and_conditions_in_the_files(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=12, conditions=("zero", "alpha"))
    for row in reversed(range(12)):
        for condition in ("alpha", "zero"):
            script.scored(row, condition, value=3)
    _, lines = rendered(script.end())
    wanted = [(str(row), f"support-kb/{condition}") for row in range(12) for condition in ("zero", "alpha")]
    assert [(line["sample_idx"], line["evaluation_name"]) for line in lines] == wanted
    assert all(isinstance(line["sample_idx"], str) for line in lines)


@pytest.fixture
def with_a_failure(tmp_path, journals):
    """Of three repetitions the first failed; the second's judge failed; the third and fourth are whole."""
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",), repetitions=4)
    script.failure(0, "only", 0)
    script.answer(0, "only", 1)
    script.failure(0, "only", 1, cls="judge", stage="score", scorer="judge")
    for repetition, value in ((2, 5), (3, 2)):
        script.answer(0, "only", repetition, seconds=1.25, reply=Reply(text=f"said {repetition}", dollars=0.5))
        reasons = {"completeness": f"because {repetition}"}
        script.score(0, "only", repetition, value=value, reasons=reasons, claims=("x", f"y{repetition}"))
    for repetition in range(4):
        script.failure(1, "only", repetition)
    return script.end()


def test_positions_are_renumbered_when_a_repetition_failed(with_a_failure):
    _, lines = rendered(with_a_failure)
    (line,) = lines  # a question without any whole repetition has no line
    runs = line["run_details"]
    assert [(run["repetition_index"], run["agent_response"]) for run in runs] == [(0, "said 2"), (1, "said 3")]
    details = line["evaluation"]["details"]
    assert details["completeness_reasonings"] == ["because 2", "because 3"]
    assert [trace["repetition_index"] for trace in details["reasoning_traces"]] == [0, 1]
    assert [step["repetition_index"] for step in line["answer_attribution"]] == [0, 1]
    assert line["output"] == {"raw": "said 2", "reasoning_trace": ""}


@pytest.mark.parametrize(
    ("failed", "repetitions"),
    [
        pytest.param({(0, "a", 2), (0, "b", 0), (0, "b", 1)}, [3, 2, 1, 3], id="one question is complete"),
        pytest.param({(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0), (1, "b", 0)}, [2, 1, 2, 2], id="none is"),
        pytest.param({(0, "a", 0), (0, "a", 1), (0, "a", 2), (0, "b", 0)}, [3, 2, 3], id="one has no line"),
    ],
)
def test_no_later_line_has_more_repetitions_than_the_first_so_the_viewer_shows_all(
    tmp_path, journals, failed, repetitions
):
    script = journals.Script(tmp_path / "run", samples=2, conditions=("a", "b"), repetitions=3)
    for row, condition, repetition in [(s, c, r) for s in range(2) for c in "ab" for r in range(3)]:
        if (row, condition, repetition) in failed:
            script.failure(row, condition, repetition)
        else:
            script.scored(row, condition, repetition, value=3)
    aggregate, lines = rendered(script.end())
    assert [len(line["run_details"]) for line in lines] == repetitions
    pairs = [(line["sample_idx"], line["evaluation_name"]) for line in lines]
    assert pairs[1:] == sorted(pairs[1:])
    assert [one["evaluation_name"] for one in aggregate["evaluation_results"]] == ["support-kb/a", "support-kb/b"]


def test_a_line_holds_what_the_viewer_reads(with_a_failure):
    _, (line,) = rendered(with_a_failure)
    details = line["evaluation"]["details"]
    assert (details["completeness_mean"], details["completeness_stddev"]) == (3.5, pytest.approx(4.5**0.5))
    assert details["unverified_claims"] == ["x", "y2", "y3"]
    assert details["elapsed_seconds"] == 600.0
    assert line["input"] == {"raw": "Question 0?", "reference": "Golden answer 0."}
    assert line["run_details"][0] == {
        "repetition_index": 0,
        "agent_response": "said 2",
        "reasoning_trace": "",
        "cost_usd": 0.5,
        "duration_ms": 1250,
        "num_turns": 1,
        "completeness": 5,
    }
    assert line["token_usage"] == {"input_tokens": None, "output_tokens": None}
    assert line["interaction_type"] == "single_turn"


def test_one_repetition_has_no_deviation(tmp_path, journals):
    aggregate, (line,) = rendered(journals.table(tmp_path / "run", {"only": [[4]]}))
    assert line["evaluation"]["details"]["completeness_stddev"] is None
    details = aggregate["evaluation_results"][0]["score_details"]["details"]
    assert details == {"completeness_mean": 4, "completeness_stddev": None}


def test_the_trace_tells_thoughts_mcp_calls_and_the_answer_in_order(tmp_path, journals):
    calls = (
        ToolCall(tool="search", server="docs", input={"q": "x"}, result="found", milliseconds=3.5),
        ToolCall(tool="search", server="docs", error="gone"),
        ToolCall(tool="Bash", result="no MCP tool"),
    )
    usage = Usage(input_tokens=7, output_tokens=3)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",))
    script.answer(0, "only", reply=Reply(text="So it is.", reasoning="Let me look.", tool_calls=calls, usage=usage))
    script.score(0, "only", value=3)
    aggregate, (line,) = rendered(script.end())
    (condition,) = aggregate["evaluation_results"]
    (docs,) = condition["mcp_servers"]
    assert (docs["server"], docs["calls"], docs["errors"], docs["median_ms"]) == ("docs", 2, 1, 3.5)
    steps = line["answer_attribution"]
    assert [(step["turn_idx"], step["source"], step["extracted_value"], step["is_terminal"]) for step in steps] == [
        (0, "agent_reasoning", "Let me look.", False),
        (1, "mcp_tool", "found", False),
        (2, "mcp_tool", "", False),
        (3, "agent_reasoning", "So it is.", True),
    ]
    assert {key: steps[1][key] for key in ("tool_name", "tool_input", "tool_error", "duration_ms")} == {
        "tool_name": "mcp__docs__search",
        "tool_input": {"q": "x"},
        "tool_error": False,
        "duration_ms": 3.5,
    }
    assert (steps[2]["tool_error"], steps[2]["duration_ms"]) == (True, None)
    assert line["output"] == {"raw": "So it is.", "reasoning_trace": "Let me look."}
    assert line["interaction_type"] == "agentic"
    assert line["token_usage"] == {"input_tokens": 7, "output_tokens": 3}


def test_the_aggregate(tmp_path, journals, golden):
    run = journals.table(tmp_path / "run", {"a": [[1, 3], [4, 4]], "b": [[5, 5], [5, None]]})
    files = Keval().render(summarize(run), run)
    golden("keval.json", files[f"{STEM}.json"])
    golden("keval.detailed.jsonl", files[f"{STEM}.detailed.jsonl"])


def test_answers_without_scorers_are_told_too(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=())
    script.answer(0, "only")
    _, (line,) = rendered(script.end())
    assert [run["agent_response"] for run in line["run_details"]] == ["Answer 0 only 0."]
