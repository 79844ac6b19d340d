"""Recorded answers: each trial gets its own, and what was not recorded stays missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.journals import Script

from karat.agents import AgentSetting
from karat.agents.replay import Replay
from karat.errors import AgentFault, BadDataset
from karat.mcp import Toolbox
from karat.records import Reply, ToolCall, Usage
from karat.redact import Redactor

Ask = Callable[..., tuple[Reply, ...]]
ROWS = [
    {"id": sample, "condition": condition, "repetition": repetition, "answer": f"{sample}{condition}{repetition}"}
    for sample in ("0", "1", "ä")
    for condition in ("a", "b")
    for repetition in range(2)
]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text(json.dumps(rows))
    return str(path)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_every_trial_gets_the_answer_recorded_for_it(ask: Ask, tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"answers.{suffix}", ROWS)
    for row in ROWS:
        said = ask("replay", {"path": path}, sample=row["id"], condition=row["condition"], repetition=row["repetition"])
        assert said == (Reply(text=row["answer"]),)  # the file says nothing of cost and time, so neither is known


def test_a_line_that_is_nested_too_deeply_is_named(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "0", "answer": "yes"}\n' + "[" * 100_000 + "\n")
    with pytest.raises(BadDataset, match=r"answers\.jsonl[^$]*line 2: is nested too deeply"):
        ask("replay", {"path": str(path)})


@pytest.mark.parametrize(
    ("columns", "reply"),
    [
        ({"dollars": "0.25", "latency_ms": "2700"}, {"dollars": 0.25, "milliseconds": 2700.0}),
        ({"cost": 0, "seconds": 1.5}, {"dollars": 0.0, "milliseconds": 1500.0}),
        ({"cost_usd": "free", "latency_ms": "-3"}, {}),
    ],
)
def test_cost_and_time_of_a_recorded_answer_are_those_of_the_file(
    ask: Ask, tmp_path: Path, columns: dict[str, object], reply: dict[str, float]
) -> None:
    path = write(tmp_path / "answers.jsonl", [{"id": "0", "answer": "yes", **columns}])
    assert ask("replay", {"path": path}) == (Reply(text="yes", **reply),)


def test_rows_without_condition_serve_all_and_without_repetition_count_up(ask: Ask, tmp_path: Path) -> None:
    path = write(tmp_path / "answers.jsonl", [{"id": "0", "answer": "first"}, {"id": "0", "answer": "second"}])
    assert ask("replay", {"path": path}, condition="b", repetition=1)[0].text == "second"
    with pytest.raises(AgentFault, match="holds no answer for sample '0', condition 'a', repetition 2"):
        ask("replay", {"path": path}, repetition=2)
    assert ask("replay", {"path": path, "reuse": True}, repetition=2)[0].text == "first"


def test_rows_can_be_numbered_and_columns_renamed_and_a_bom_is_tolerated(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('\ufeff{"output": "zero"}\n\n{"output": "one"}\n')
    options = {"path": "answers.jsonl", "id_key": None, "answer_key": "output"}
    assert [ask("replay", options, sample=name)[0].text for name in ("0", "1")] == ["zero", "one"]


def test_every_fault_of_the_file_is_told_at_once_with_its_line(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = [
        '{"id": "0", "text": "x"}',
        "[1]",
        '{"id"',
        '{"id": "0", "answer": "x", "repetition": [1]}',
        '{"id": "1", "answer": "x", "repetition": 0}',
        '{"id": "1", "answer": "y", "repetition": 0}',
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(BadDataset) as bad:
        ask("replay", {"path": str(path)})
    assert [fault.place for fault in bad.value.faults] == ["line 1", "line 2", "line 3", "line 4", "line 6"]
    assert "set answer_key to one of: id, text" in str(bad.value)
    assert "a second answer for sample '1'" in str(bad.value)


@pytest.mark.parametrize(("answer", "what"), [({"x": 1}, "an object"), (["3", "million"], "a list")])
def test_an_answer_that_is_no_text_is_a_fault_not_a_guess(ask: Ask, tmp_path: Path, answer, what) -> None:
    path = write(tmp_path / "answers.jsonl", [{"id": "0", "answer": answer}])
    with pytest.raises(AgentFault, match=f"is {what}, expected a text"):
        ask("replay", {"path": path})


def test_a_missing_file_is_the_operators_to_mend(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="cannot be read: No such file"):
        ask("replay", {"path": str(tmp_path / "gone.jsonl")})


def test_the_answers_of_a_run_are_repeated_whole(ask: Ask, tmp_path: Path) -> None:
    said = Reply(
        text="a, and b", answer="a", dollars=0.5, usage=Usage(input_tokens=3), milliseconds=7.0, model="m",
        tool_calls=(ToolCall(tool="search", server="docs", input={"q": "x"}, result="found", milliseconds=2.0),),
    )  # fmt: skip
    script = Script(tmp_path / "run", conditions=("a", "b"))
    script.answer(0, "a", reply=said)
    script.answer(1, "b", reply=Reply(text="other"))
    run = script.end()
    for sample, condition, reply in (("0", "a", said), ("1", "b", Reply(text="other"))):
        assert ask("replay", {"path": str(run.path)}, sample=sample, condition=condition, repetition=0) == (reply,)
    with pytest.raises(AgentFault, match="not_recorded"):
        ask("replay", {"path": str(run.path)}, sample="1", condition="a", repetition=0)


def test_rows_that_were_left_out_are_told_to_the_run(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "0", "answer": "x"}\nno json\n')
    toolbox = Toolbox((), redact=Redactor({}), folder=tmp_path)
    agent = Replay(Replay.Options(path=str(path), skip="unreadable"), AgentSetting(folder=tmp_path, toolbox=toolbox))
    notes = agent.source_notes([], conditions=["a"], repetitions=1)
    assert notes["faults"].startswith("the file of answers: 1 unreadable line left out: line 2 ")
