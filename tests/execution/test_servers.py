"""Conditions with real MCP servers: what a broken one costs, and what the journal knows of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from karat.analysis import summarize
from karat.execution import Outcome, RunStatus
from karat.journal import Attempt
from karat.records import Answer, Failure

Write = Callable[..., Path]
Run = Callable[..., Outcome]

SCRIPTED = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"]}
BROKEN = {"type": "stdio", "command": "python", "args": ["-c", "import sys; sys.exit('no licence')"]}


def floor(experiment: Write, **sections: Any) -> Path:
    return experiment(agent={"type": "floor"}, **sections)


def test_a_broken_server_costs_only_its_conditions_and_is_told_once_first(experiment: Write, run: Run) -> None:
    seen: list[Any] = []
    watch = RunStatus(seen.append)
    file = floor(
        experiment,
        mcp_servers={"good": {**SCRIPTED, "scope": "run"}, "bad": BROKEN},
        conditions={
            "none": {},
            "good": {"mcp_servers": ["good"]},
            "bad": {"mcp_servers": ["bad"]},
            "both": {"mcp_servers": ["good", "bad"]},
        },
        execution={"max_failures": 0.01},
    )
    outcome = run(file, status=watch)
    assert isinstance(seen[0], str)
    assert "'bad'" in seen[0]
    assert "bad, both" in seen[0]
    assert "no licence" in seen[0]
    assert len([one for one in seen if isinstance(one, str)]) == 1
    assert Counter(one.condition for one in outcome.run.events_of(Answer)) == {"none": 6, "good": 6}
    failures = list(outcome.run.events_of(Failure))
    assert Counter(one.condition for one in failures) == {"bad": 6, "both": 6}
    assert {(one.stage, one.cls) for one in failures} == {("preflight", "infrastructure")}
    assert not list(outcome.run.events_of(Attempt)), "no attempt was made"
    assert outcome.reason == "done", "what could not be tried does not count towards max_failures"
    ledger = summarize(outcome.run).accounts["bad"].ledger
    assert (ledger.planned, ledger.infrastructure, ledger.scored) == (6, 6, 0)


def test_a_resumed_run_asks_what_a_broken_server_cost(experiment: Write, run: Run, tmp_path: Path) -> None:
    switch = tmp_path / "licence"
    command = f"import pathlib, sys\nif not pathlib.Path({str(switch)!r}).exists(): sys.exit('no licence')\n"
    command += "from karat.testing.mcp_server import main; main([])"
    server = {"type": "stdio", "command": "python", "args": ["-c", command], "scope": "run"}
    conditions = {"none": {}, "docs": {"mcp_servers": ["docs"]}}
    file = floor(experiment, mcp_servers={"docs": server}, conditions=conditions)
    first = run(file)
    assert len(list(first.run.events_of(Answer))) == 6
    switch.touch()
    second = run(file, resume=first.run.path)
    assert Counter(one.condition for one in second.run.events_of(Answer)) == {"none": 6, "docs": 6}
    assert summarize(second.run).total.ledger.infrastructure == 0


def test_tool_calls_are_journalled_with_server_input_result_and_time(experiment: Write, run: Run) -> None:
    file = floor(
        experiment,
        mcp_servers={"shelf": {**SCRIPTED, "scope": "run"}},
        conditions={"docs": {"mcp_servers": ["shelf"], "require_mcp_tool_use": True, "require_mcp_tool_success": True}},
    )
    file.with_name("questions.jsonl").write_text('{"question": "lamp", "answer": "A lamp is lit with a match."}\n')
    outcome = run(file)
    (call,) = next(outcome.run.events_of(Answer)).replies[0].tool_calls
    assert (call.server, call.tool, call.error) == ("shelf", "search", None)
    assert call.input["query"] == "lamp"
    assert "six hours" in (call.result or "")
    assert (call.milliseconds or 0) > 0
    assert [server.tools_digest is not None for server in outcome.run.info.servers] == [True]


def test_an_a_a_run_keeps_its_trials_apart_and_names_no_winner(experiment: Write, run: Run) -> None:
    code = """
import random
def query(user_query, system_prompt, mcp_servers, seed):
    return random.Random(seed).choice(["The answer is 40 items.", "The answer is 30 items.", "No idea, sorry."])
"""
    same = {"system_prompt": "same"}
    file = experiment(
        code,
        conditions={"first": same, "second": same},
        scorers=[],
        judge={"type": "overlap"},
        execution={"num_repetitions": 5},
    )
    rows = '{"question": "How many?", "answer": "40 items."}\n' * 20
    file.with_name("questions.jsonl").write_text(rows)
    summary = summarize(run(file).run)
    assert {name: account.ledger.scored for name, account in summary.accounts.items()} == {"first": 100, "second": 100}
    assert [difference.winner for difference in summary.differences] == [None] * 3
    assert "no difference" in summary.headline.lower()
