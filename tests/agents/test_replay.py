"""Recorded answers: each trial gets its own, and what was not recorded stays missing."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.journals import Script

from karat.agents import AgentSetting
from karat.agents.replay import Replay
from karat.errors import AgentFault, BadDataset
from karat.journal import CHECKSUMS_SINCE, NO_PLAN
from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition, Reply, Sample, ToolCall, Trial, Turn, Usage
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


def test_an_answer_that_is_an_error_of_a_service_is_a_fault(ask: Ask, tmp_path: Path) -> None:
    path = write(tmp_path / "answers.jsonl", [{"id": "0", "answer": "Error code: 429 - {'error': 'quota'}"}])
    with pytest.raises(AgentFault, match="Error code: 429"):
        ask("replay", {"path": path})


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


def agent(folder: Path, rows: list[dict[str, Any]] | None = None, **options: Any) -> Replay:
    path = folder / "answers.jsonl"
    if rows is not None:
        write(path, rows)
    toolbox = Toolbox((), redact=Redactor({}), folder=folder)
    return Replay(Replay.Options(**{"path": str(path), **options}), AgentSetting(folder=folder, toolbox=toolbox))


def trial(sample: str, *, condition: str = "a", repetition: int = 0) -> Trial:
    return Trial(
        id="0" * 24,
        index=0,
        sample=Sample(id=sample, position=0, digest="d", turns=(Turn(question="q"),)),
        condition=Condition(name=condition, position=0, digest="d", agent=AgentSpec(type="replay")),
        repetition=repetition,
        seed=7,
    )


def test_a_file_of_answers_says_what_it_holds(tmp_path: Path) -> None:
    found = agent(tmp_path, ROWS)
    assert (found.conditions, found.repetitions) == (("a", "b"), 2)
    whole = (tmp_path / "answers.jsonl").read_bytes()
    assert found.source == {"file": str(tmp_path / "answers.jsonl"), "sha256": hashlib.sha256(whole).hexdigest()}
    assert found.source_notes([], conditions=["a"], repetitions=2) == NO_PLAN
    assert found.census([], conditions=["a"], repetitions=2) is None
    table = agent(tmp_path, path=write(tmp_path / "answers.csv", ROWS))
    assert table.source["file"] == str(tmp_path / "answers.csv")
    assert (table.conditions, table.repetitions) == (("a", "b"), 2)


def test_a_path_starts_beside_the_experiment_and_else_where_one_is(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "answers.jsonl", [{"id": "0", "answer": "here"}])
    setting = AgentSetting(
        folder=tmp_path / "inner", toolbox=Toolbox((), redact=Redactor({}), folder=tmp_path / "inner")
    )
    with contextlib.chdir(tmp_path):
        assert Replay(Replay.Options(path="answers.jsonl"), setting).source["file"] == "answers.jsonl"
        beside = write(tmp_path / "inner" / "answers.jsonl", [{"id": "0", "answer": "beside"}])
        assert Replay(Replay.Options(path="answers.jsonl"), setting).source["file"] == beside


def test_repetitions_that_no_question_of_theirs_has_were_never_made(tmp_path: Path) -> None:
    rows = [{"id": name, "answer": f"{name}{at}"} for name, most in (("0", 3), ("1", 1)) for at in range(most)]
    uneven = agent(tmp_path, rows).never_made
    assert uneven is not None
    assert [uneven(trial("0", repetition=number)) for number in range(4)] == [False] * 4
    assert [uneven(trial("1", repetition=number)) for number in range(4)] == [False, True, True, False]
    assert agent(tmp_path, reuse=True).never_made is None
    assert agent(tmp_path, rows[:2]).never_made is None, "all questions that were answered have as many"
    numbered = [{"id": "0", "answer": "x", "repetition": number} for number in range(2)]
    assert agent(tmp_path, [*numbered, {"id": "1", "answer": "x", "repetition": 0}]).never_made is None


def test_a_slow_agent_is_rehearsed_and_not_looked_up(tmp_path: Path) -> None:
    rows = [{"id": "0", "answer": "yes"}]
    found = agent(tmp_path, rows).recorded_reply
    assert found is not None
    assert found(trial("0"), 0) == Reply(text="yes")
    assert agent(tmp_path, latency_seconds=0.001).recorded_reply is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"error": "quota exceeded"}, "error: quota exceeded"),
        ({"answer": "half", "error": "broken off"}, "error: broken off"),
        ({"answer": ""}, "not_recorded: 'answer' is empty in answers.jsonl"),
        ({"answer": None}, "not_recorded: 'answer' is empty in answers.jsonl"),
    ],
)
def test_a_row_without_an_answer_says_why(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    look_up = agent(tmp_path, [{"id": "0", "answer": "", **row}]).recorded_reply
    assert look_up is not None
    with pytest.raises(AgentFault) as fault:
        look_up(trial("0"), 0)
    assert str(fault.value) == says


def test_an_answer_that_was_cut_off_at_once_is_empty_and_no_error(tmp_path: Path) -> None:
    look_up = agent(tmp_path, [{"id": "0", "answer": "", "stop_reason": "length"}]).recorded_reply
    assert look_up is not None
    assert look_up(trial("0"), 0) == Reply(text="", stop_reason="length")


def test_columns_of_several_agents_are_conditions_and_an_error_may_be_that_of_another(tmp_path: Path) -> None:
    found = agent(tmp_path, [{"id": "0", "one": "1", "two": "2", "error": "of one"}], answer_key=["one", "two"])
    assert found.conditions == ("one", "two")
    look_up = found.recorded_reply
    assert look_up is not None
    assert [look_up(trial("0", condition=name), 0).text for name in ("one", "two")] == ["1", "2"]


@pytest.mark.parametrize(
    ("columns", "reply"),
    [
        ({"latency_seconds": 2}, {"milliseconds": 2000.0}),
        ({"milliseconds": 0}, {"milliseconds": 0.0}),
        ({"latency_seconds": "soon", "milliseconds": 5}, {"milliseconds": 5.0}),
        ({"dollars": "inf", "cost": "nan"}, {}),
        ({"dollars": None, "cost": 0.5}, {"dollars": 0.5}),
    ],
)
def test_the_first_number_that_can_be_a_cost_or_a_time_counts(
    tmp_path: Path, columns: dict[str, object], reply: dict[str, float]
) -> None:
    look_up = agent(tmp_path, [{"id": "0", "answer": "yes", **columns}]).recorded_reply
    assert look_up is not None
    assert look_up(trial("0"), 0) == Reply(text="yes", **reply)


def test_a_run_that_holds_fewer_turns_or_a_changed_line_gives_no_answer(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", conditions=("a",), format=CHECKSUMS_SINCE)
    script.answer(0, "a")
    script.answer(0, "a")
    run = script.end()
    found = agent(tmp_path, path=str(run.path))
    assert (found.conditions, found.repetitions) == (("a",), 1), "the first answer of a trial counts"
    assert found.source["file"] == str(run.journal)
    look_up = found.recorded_reply
    assert look_up is not None
    assert look_up(trial("0"), 0).text == "Answer 0 a 0."
    with pytest.raises(AgentFault, match=r"not_recorded: journal.jsonl holds 1 turns, asked for 2"):
        look_up(trial("0"), 1)
    run.journal.write_bytes(run.journal.read_bytes().replace(b"Answer 0", b"Answer 7", 1))
    with pytest.raises(AgentFault, match=r"bad_record: .*was damaged at byte .*its checksum does not match"):
        look_up(trial("0"), 0)


def test_rows_that_name_models_in_a_column_of_their_own_are_no_repetitions(tmp_path: Path) -> None:
    rows = [{"id": str(number), "model": model, "answer": f"{model}{number}"} for number in range(8) for model in "xy"]
    with pytest.raises(BadDataset, match=r"rows differ in 'model': set `agent\.condition_key: model`"):
        agent(tmp_path, rows)
    assert agent(tmp_path, rows, condition_key="model").conditions == ("x", "y")
    assert agent(tmp_path, rows, condition_key=None).repetitions == 2


def test_samples_may_be_what_rows_agree_in(tmp_path: Path) -> None:
    rows = [
        {"topic": topic, "text": "q", "answer": topic + name, "condition": name} for name in "ab" for topic in "xyx"
    ]
    found = agent(tmp_path, rows[:2] + rows[3:5], id_key=["topic", "text"])
    look_up = found.recorded_reply
    assert look_up is not None
    assert [look_up(trial(number, condition=name), 0).text for number in "01" for name in "ab"] == [
        "xa",
        "xb",
        "ya",
        "yb",
    ]


@pytest.mark.parametrize("size", [4095, 4096, 4097, 40_000])
def test_an_answer_of_any_length_is_read_whole(tmp_path: Path, size: int) -> None:
    rows = [{"id": "0", "answer": "x" * size}, {"id": "1", "answer": "y"}]
    look_up = agent(tmp_path, rows).recorded_reply
    assert look_up is not None
    assert look_up(trial("0"), 0).text == "x" * size
    assert look_up(trial("1"), 0).text == "y"


def test_a_row_that_lacks_its_columns_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"has no 'id' \(set id_key to one of: name, answer; or null to count rows\)"):
        agent(tmp_path, [{"name": "0", "answer": "x"}])
