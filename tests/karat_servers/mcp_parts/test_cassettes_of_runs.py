"""A run with real MCP servers, recorded; then the same run with the servers gone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from karat.analysis import summarize
from karat.config import load
from karat.execution import Outcome
from karat.journal import Attempt
from karat.records import Answer, Failure
from karat.testing.mcp_server import serving
from karat.testing.models import Request, serve

Write = Callable[..., Path]
Run = Callable[..., Outcome]

SECRET = "canary-in-an-answer-8421"

COUNTING = """
import json, os, pathlib, sys, time
with pathlib.Path("starts").open("a") as starts:
    starts.write("x")
SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
TOOL = {"name": "ask_me", "description": "Answers anything.", "inputSchema": SCHEMA}
calls = 0
def ask(question):
    global calls
    calls += 1
    if question == "q0":
        raise ValueError("no such question")
    if question == "q1" and not pathlib.Path("crashed").exists():
        pathlib.Path("crashed").touch()
        os._exit(3)
    if question == "q2":
        return "the key is " + os.environ["KEY"]
    if question == "q3":
        return "x" * 20_000
    return f"{question}: call {calls} of process {os.getpid()}, at {time.monotonic_ns()}"
def called(name, arguments, **_):
    try:
        return {"content": [{"type": "text", "text": ask(**arguments)}]}
    except ValueError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
ABOUT["serverInfo"] = {"name": "counting", "version": "1"}
ANSWERS = {
    "initialize": lambda **_: ABOUT, "ping": lambda **_: {}, "tools/list": lambda **_: {"tools": [TOOL]},
    "tools/call": called,
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = ANSWERS.get(asked["method"])
    done = {"error": {"code": -32601, "message": "Method not found"}}
    if answer is not None:
        done = {"result": answer(**asked.get("params", {}))}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **done}), flush=True)
"""

CLIENT = '''
"""An agent that is another program and starts its MCP servers itself."""
import json, subprocess, sys
task = json.load(sys.stdin)
calls, said = [], []
for name, how in task["mcp_servers"].items():
    assert how["type"] == "stdio", how
    server = subprocess.Popen([how["command"], *how["args"]], env=how["env"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    def ask(number, method, **params):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
        server.stdin.flush()
        line = server.stdout.readline()
        if not line:
            sys.exit(name + " hung up")
        return json.loads(line)
    about = ask(1, "initialize", protocolVersion="2025-06-18", capabilities={},
                clientInfo={"name": "client", "version": "1"})
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\\n")
    if "error" in about:
        sys.exit(about["error"]["message"])
    tools = [tool["name"] for tool in ask(2, "tools/list")["result"]["tools"]]
    tool, argument = ("ask_me", "question") if "ask_me" in tools else ("search", "query")
    for number in range(2):
        asked = {argument: task["question"]}
        got = ask(3 + number, "tools/call", name=tool, arguments=asked)
        call = {"server": name, "tool": tool, "input": asked}
        if "error" in got or got["result"].get("isError"):
            call["error"] = json.dumps(got.get("error") or got["result"]["content"])
        else:
            call["result"] = got["result"]["content"][0]["text"]
        calls.append(call)
    server.stdin.close()
    server.wait()
print(json.dumps({"text": json.dumps(calls), "tool_calls": calls}))
'''


def journal(outcome: Outcome) -> dict[str, list[Any]]:
    """Everything in the journal but times, by trial: trials end in any order."""
    told: dict[str, list[Any]] = {}
    for line in (outcome.run.path / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        del event["crc"]  # of the whole line, times included
        if event["event"] in ("head", "end", "resume"):
            continue
        told.setdefault(event["trial"], []).append(timeless(event))
    return told


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        times = ("started", "seconds", "milliseconds")
        return {key: timeless(below) for key, below in value.items() if key not in times}
    return [timeless(below) for below in value] if isinstance(value, list) else value


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[dict[str, Any], Callable[[], None]]]:
    """Definitions of a stdio, an http and an sse server, and what takes them all away."""
    with ExitStack() as up:
        (tmp_path / "counting.py").write_text(COUNTING)
        definitions = {
            "counting": {"command": "python", "args": ["counting.py"], "env": {"KEY": "${SOME_KEY}"}},
            "shelf": {"type": "http", "url": up.enter_context(serving("http"))},
            "old": {"type": "sse", "url": up.enter_context(serving("sse")), "scope": "run"},
        }

        def remove() -> None:
            up.close()
            (tmp_path / "counting.py").write_text("import sys; sys.exit('the server is gone')")

        yield definitions, remove


def replayed(file: Path) -> Path:
    """The same experiment, with the recording in the place of the servers."""
    whole = yaml.safe_load(file.read_text())
    whole["mcp"] = {"replay": whole["mcp"]["record"]}
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    return file


def latencies(outcome: Outcome) -> list[float | None]:
    answers = sorted(outcome.run.events_of(Answer), key=lambda answer: answer.trial)
    return [call.milliseconds for answer in answers for call in answer.replies[0].tool_calls]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "repetitions"), [pytest.param("floor", 2, id="floor"), pytest.param("command", 1, id="command")]
)
def test_a_recorded_run_replays_without_its_servers(
    experiment: Write, run: Run, servers, tmp_path: Path, agent: str, repetitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", SECRET)
    definitions, remove = servers
    (tmp_path / "client.py").write_text(CLIENT)
    options = {} if agent == "floor" else {"command": [sys.executable, "-S", "client.py"]}
    file = experiment(
        questions=4,
        agent={"type": agent, **options},
        mcp={"record": "cassettes"},
        mcp_servers=definitions,
        conditions={
            "one": {"mcp_servers": ["counting"], "require_mcp_tool_use": True, "require_mcp_tool_success": True},
            "remote": {"mcp_servers": ["shelf"]},
            "shared": {"mcp_servers": ["old"]},
            "both": {"mcp_servers": ["counting", "old"]},
        },
        execution={"num_repetitions": repetitions, "max_concurrent": 6},
    )
    with (tmp_path / "questions.jsonl").open("a") as questions:
        questions.write('{"question": "lamp", "answer": "a match"}\n')
    first = run(file)
    started = (tmp_path / "starts").stat().st_size
    remove()
    second = run(replayed(file))

    assert journal(second) == journal(first)
    assert len(journal(first)) == 5 * 4 * repetitions
    assert latencies(second) == latencies(first), "a replay tells how long the server took"
    assert (tmp_path / "starts").stat().st_size == started, "the server was started"
    assert second.run.info.servers == first.run.info.servers
    kinds = {(one.condition, one.kind) for one in first.run.events_of(Failure)}
    assert kinds == {("one", "gate_tool_success")}, "q0 is an error every time"
    assert any(
        one.kind in ("mcp_server_down", "gate_tool_success", "exit_code") for one in first.run.events_of(Attempt)
    )
    calls = [
        (call.server, call.error is not None)
        for answer in first.run.events_of(Answer)
        for call in answer.replies[0].tool_calls
    ]
    assert {("counting", False), ("counting", True), ("shelf", False), ("old", False)} <= set(calls)

    said = "MCP servers were not asked: their answers and latencies come from the recording 'cassettes'"
    assert said in summarize(second.run).warnings
    assert said not in summarize(first.run).warnings

    tapes = sorted((tmp_path / "cassettes").iterdir())
    assert [tape.name.partition("-")[0] for tape in tapes] == ["counting", "old", "shelf"]
    text = "".join(tape.read_text() for tape in tapes)
    assert SECRET not in text
    assert "the key is ${KEY}" in text or "the key is ${SOME_KEY}" in text
    assert text.count("x" * 20_000) == 1, "what was written before is not written again"


def looks_up(request: Request) -> Any:
    """A model that searches wherever it can, twice over, and tells what it found."""
    offered = [tool.name for tool in request.tools if tool.name.endswith("search")]
    if request.tool_results or not offered:
        return " / ".join(request.tool_results) or "I do not know."
    return {"tool_calls": [{"name": name, "arguments": {"query": "lamp"}} for name in offered]}


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["chat", "claude"])
def test_agents_with_models_replay_too(
    experiment: Write, run: Run, tmp_path: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"chat": "pydantic_ai", "claude": "claude_agent_sdk"}[agent], reason=f"needs `{agent}`")
    (tmp_path / "shelf.py").write_text("from karat.testing.mcp_server import main\nmain([])")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "no-key-is-needed-here")
    with serve(looks_up) as model:
        name = "anthropic:rehearsal" if agent == "chat" else "claude-sonnet-4-5"
        with serving("http") as url:
            file = experiment(
                questions=2,
                agent={"type": agent, "model": name, "base_url": model.anthropic_url},
                mcp={"record": "tapes"},
                mcp_servers={
                    "shelf": {"command": "python", "args": ["shelf.py"]},
                    "far": {"type": "http", "url": url},
                },
                conditions={"none": {}, "docs": {"mcp_servers": ["shelf", "far"], "require_mcp_tool_success": True}},
                execution={"num_repetitions": 1},
            )
            first = run(file)
        (tmp_path / "shelf.py").write_text("import sys; sys.exit('gone')")
        second = run(replayed(file))
    assert journal(second) == journal(first)
    found = [answer for answer in second.run.events_of(Answer) if answer.condition == "docs"]
    assert len(found) == 2
    assert all("lit with a match" in answer.text and len(answer.replies[0].tool_calls) == 2 for answer in found)


@pytest.mark.slow
def test_what_was_not_recorded_is_a_fault_that_says_so(experiment: Write, run: Run, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    scripted = {"command": "python", "args": ["-m", "karat.testing.mcp_server"]}
    sections: dict[str, Any] = {
        "mcp_servers": {"shelf": scripted},
        "conditions": {"docs": {"mcp_servers": ["shelf"]}},
        "mcp": {"record": "tapes"},
    }
    program = {"type": "command", "command": [sys.executable, "-S", "client.py"]}
    run(experiment(questions=1, agent=program, execution={"num_repetitions": 1}, **sections))
    # Another repetition is another session, of which the recording knows nothing.
    file = replayed(experiment(questions=1, agent=program, execution={"num_repetitions": 2}, **sections))
    outcome = run(file)
    assert len(list(outcome.run.events_of(Answer))) == 1
    (failure,) = outcome.run.events_of(Failure)
    assert (failure.cls, failure.kind, failure.retriable) == ("infrastructure", "cassette_miss", False)
    assert failure.message.startswith("MCP server 'shelf' is replayed: the recording holds no answer to initialize {}")
    assert len(list(outcome.run.events_of(Attempt))) == 1, "it was not tried again"


def test_a_server_of_another_definition_has_no_recording(experiment: Write, run: Run, tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    file = experiment(
        agent={"type": "floor"},
        mcp={"replay": "tapes"},
        mcp_servers={"shelf": {"command": "no-such-program"}},
        conditions={"docs": {"mcp_servers": ["shelf"]}},
    )
    outcome = run(file)
    assert {(one.stage, one.kind) for one in outcome.run.events_of(Failure)} == {("preflight", "cassette_miss")}
    (server,) = outcome.run.info.servers
    assert "there is no recording of it with this definition" in (server.fault or "")


@pytest.mark.slow
def test_a_resumed_recording_is_whole(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(
        questions=4,
        agent={"type": "floor"},
        mcp={"record": "tapes"},
        mcp_servers={"shelf": {"command": "python", "args": ["-m", "karat.testing.mcp_server"], "scope": "run"}},
        conditions={"docs": {"mcp_servers": ["shelf"]}},
    )
    from karat.execution import Selection

    part = run(file, selection=Selection(limit=2))
    (tape,) = (tmp_path / "tapes").iterdir()
    with tape.open("ab") as torn:
        torn.write(b'{"event":"asked","session":"x')
    whole = run(file, resume=part.run.path)
    again = run(replayed(file))
    assert journal(again) == journal(whole)
    assert len(journal(whole)) == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"record": "a", "replay": "b"}, "leave out one of `record` and `replay`"),
        ({"replay": "nowhere"}, "there is no folder"),
        ({"recrod": "a"}, "no such key (did you mean 'record'?)"),
    ],
)
def test_what_may_be_said_of_cassettes_is_checked(experiment: Write, given: dict[str, str], message: str) -> None:
    from karat.errors import BadExperiment

    with pytest.raises(BadExperiment) as error:
        load(experiment(mcp=given))
    assert message in str(error.value)
