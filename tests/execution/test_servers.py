"""Conditions with real MCP servers: what a broken one costs, and what the journal knows of the others."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_httpserver import HTTPServer
from tests.mcp.oauth_server import SECRET, guarded, happened
from tests.mcp.raw_server import RawServer
from werkzeug import Request, Response

from karat.analysis import summarize
from karat.errors import BadDataset, BadExperiment, ResumeRefused
from karat.execution import Outcome, RunStatus
from karat.journal import Attempt, verify
from karat.records import Answer, Failure, Score

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
    # A busy machine may add a notice of its own.
    (place,) = [place for place, one in enumerate(seen) if isinstance(one, str) and "'bad'" in one]
    assert all(isinstance(one, str) for one in seen[:place]), "before any event"
    assert "bad, both" in seen[place]
    assert "no licence" in seen[place]
    assert Counter(one.condition for one in outcome.run.events_of(Answer)) == {"none": 6, "good": 6}
    failures = list(outcome.run.events_of(Failure))
    assert Counter(one.condition for one in failures) == {"bad": 6, "both": 6}
    assert {(one.stage, one.cls) for one in failures} == {("preflight", "infrastructure")}
    assert not list(outcome.run.events_of(Attempt)), "no attempt was made"
    assert outcome.reason == "done", "what could not be tried does not count towards max_failures"
    ledger = summarize(outcome.run).accounts["bad"].ledger
    assert (ledger.planned, ledger.infrastructure, ledger.scored) == (6, 6, 0)


@pytest.mark.slow
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
    rows = (f'{{"question": "How many on shelf {n}?", "answer": "40 items."}}\n' for n in range(20))
    file.with_name("questions.jsonl").write_text("".join(rows))
    summary = summarize(run(file).run)
    assert {name: account.ledger.scored for name, account in summary.accounts.items()} == {"first": 100, "second": 100}
    assert [difference.winner for difference in summary.differences] == [None] * 3
    assert "no difference" in summary.headline.lower()


CALLS = [
    {"question": "structured", "tool": "structured", "values": {"seven": 7}},
    {"question": "document", "resource": "shelf://lamps", "values": {"contents[0].mimeType": "text/markdown"}},
    {
        "question": "prompt",
        "prompt": "ask_about",
        "arguments": {"topic": "rain"},
        "values": {"messages[0].role": "user"},
    },
]


def calls(experiment: Write, server: dict[str, Any], rows: list[dict[str, Any]], **sections: Any) -> Path:
    file = experiment(
        agent={"type": "mcp"},
        scorers=[{"mcp_result": {"columns": {"values": "values"}}}],
        mcp_servers={"shelf": server},
        conditions={"shelf": {"mcp_servers": ["shelf"]}},
        **sections,
    )
    file.with_name("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.needs_package("karat_servers")
def test_requests_without_golden_answers_are_scored_by_mcp_result(experiment: Write, run: Run) -> None:
    outcome = run(calls(experiment, {**SCRIPTED, "scope": "run", "protocol": "2025-06-18"}, CALLS))
    assert [server.protocol for server in outcome.run.info.servers] == ["2025-06-18"]
    assert [turn.golden for sample in outcome.run.samples() for turn in sample.turns] == [None] * 3
    assert [score.values for score in outcome.run.events_of(Score)] == [{"mcp_result": True}] * 6


@pytest.mark.needs_package("karat_servers")
def test_golden_answers_are_wanted_where_a_scorer_looks_at_them(experiment: Write, run: Run) -> None:
    file = calls(experiment, SCRIPTED, CALLS)
    file.write_text(file.read_text().replace("scorers:\n", "scorers:\n- contains\n"))
    with pytest.raises(BadDataset, match="answer"):
        run(file)


@pytest.mark.needs_package("karat_servers")
def test_a_run_is_not_resumed_with_other_calls(experiment: Write, run: Run) -> None:
    server = {**SCRIPTED, "scope": "run"}
    outcome = run(calls(experiment, server, CALLS))
    again = calls(experiment, server, [*CALLS[:2], {**CALLS[2], "arguments": {"topic": "boats"}}])
    with pytest.raises(ResumeRefused, match="the dataset changed in sample '2'"):
        run(again, resume=outcome.run.path)


@pytest.mark.needs_package("karat_servers")
def test_another_version_of_the_protocol_after_resuming_is_said(experiment: Write, run: Run, tmp_path: Path) -> None:
    version = tmp_path / "version"
    command = f"""
import json, pathlib, sys
version = pathlib.Path({str(version)!r}).read_text()
for line in sys.stdin:
    asked = json.loads(line)
    answer = {{"jsonrpc": "2.0", "id": asked.get("id")}}
    if asked["method"] == "initialize":
        about = {{"name": "old", "version": "1"}}
        answer["result"] = {{"protocolVersion": version, "capabilities": {{}}, "serverInfo": about}}
    elif asked["method"] == "tools/call":
        answer["result"] = {{"content": [], "structuredContent": {{"seven": 7}}}}
    elif "id" in asked:
        answer["error"] = {{"code": -32601, "message": "no such method"}}
    else:
        continue
    print(json.dumps(answer), flush=True)
"""
    server = {"type": "stdio", "command": "python", "args": ["-c", command], "scope": "run"}
    version.write_text("2025-06-18")
    first = run(calls(experiment, server, CALLS[:1], execution={"num_repetitions": 1}))
    version.write_text("2025-11-25")
    seen: list[Any] = []
    more = calls(experiment, server, CALLS[:1], execution={"num_repetitions": 2})
    second = run(more, resume=first.run.path, status=RunStatus(seen.append))
    told = "MCP server 'shelf' spoke protocol 2025-06-18 at the start, and then 2025-11-25"
    assert f"{told}; answers of both parts are not alike" in seen
    assert f"{told}; answers of both parts are not alike" in summarize(second.run).warnings


@pytest.mark.slow
@pytest.mark.needs_package("karat_servers")
def test_the_user_of_a_condition_is_scripted_and_shown_with_the_call(experiment: Write, run: Run) -> None:
    rows = [
        {"question": "three", "tool": "order", "arguments": {"book": "Emma"}, "user": {"accept": {"copies": 3}}},
        {"question": "none", "tool": "order", "arguments": {"book": "Emma"}, "user": "decline"},
    ]
    file = calls(experiment, SCRIPTED, rows, execution={"num_repetitions": 1})
    conditions = {
        "says-no": {"mcp_servers": ["shelf"], "elicit": "cancel"},
        "by-sample": {"mcp_servers": ["shelf"], "elicit": {"column": "user"}},
    }
    whole = {**yaml.safe_load(file.read_text()), "conditions": conditions}
    file.write_text(yaml.safe_dump(whole))
    outcome = run(file)
    told = {
        (answer.condition, answer.sample): answer.replies[0].tool_calls[0].elicited
        for answer in outcome.run.events_of(Answer)
    }
    said = {key: [(each.action, each.content) for each in elicited] for key, elicited in told.items()}
    assert said == {
        ("says-no", "0"): [("cancel", {})],
        ("says-no", "1"): [("cancel", {})],
        ("by-sample", "0"): [("accept", {"copies": 3})],
        ("by-sample", "1"): [("decline", {})],
    }
    rows[1]["user"] = "cancel"
    file.with_name("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ResumeRefused, match="the dataset changed in sample '1'"):
        run(file, resume=outcome.run.path)


def test_questions_of_a_shared_server_are_refused(experiment: Write, run: Run) -> None:
    file = calls(experiment, {**SCRIPTED, "scope": "run"}, CALLS)
    conditions = {"shelf": {"mcp_servers": ["shelf"], "elicit": "cancel"}}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "conditions": conditions}))
    with pytest.raises(BadExperiment, match=r"conditions.shelf.elicit.*'shelf' is shared"):
        run(file)


@pytest.mark.slow
@pytest.mark.needs_package("karat_servers")
def test_tokens_that_expire_lose_nothing_and_a_wrong_client_costs_its_condition_alone(
    experiment: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    with guarded("--token-uses", "9") as url:
        origin = url.removesuffix("/mcp")
        auth = {"type": "client_credentials", "issuer": origin, "client_secret_env": "SHOP_KEY"}
        file = experiment(
            agent={"type": "mcp", "tool": "headers"},
            scorers=[{"mcp_result": {"error": False}}],
            mcp_servers={
                "shop": {"url": url, "auth": {**auth, "client_id": "karat"}},
                "stranger": {"url": url, "auth": {**auth, "client_id": "stranger"}},
            },
            conditions={"known": {"mcp_servers": ["shop"]}, "unknown": {"mcp_servers": ["stranger"]}},
        )
        outcome = run(file)
        seen = happened(url)
    assert Counter(answer.condition for answer in outcome.run.events_of(Answer)) == {"known": 6}
    failures = list(outcome.run.events_of(Failure))
    assert Counter((failure.condition, failure.cls, failure.kind) for failure in failures) == {
        ("unknown", "infrastructure", "mcp_unauthorized"): 6
    }
    assert not list(outcome.run.events_of(Attempt)), "nothing had to be tried again"
    assert seen["passed tools/call"] == 6
    assert seen["token client_credentials"] >= 3
    written = b"".join(path.read_bytes() for path in outcome.run.path.rglob("*") if path.is_file())
    assert b"Bearer ${token of shop}" in written
    assert b"Bearer token-" not in written
    assert SECRET.encode() not in written


EVERYTHING = [
    *CALLS,
    {
        "question": "order",
        "tool": "order",
        "arguments": {"book": "Emma"},
        "values": {"copies": 3},
        "user": [{"accept": {"copies": 3}}],
    },
    {"question": "no order", "tool": "order", "arguments": {"book": "Emma"}, "values": {"copies": 3}, "user": "cancel"},
    {"question": "fails", "tool": "fail", "arguments": {"message": "no paper"}, "values": {"seven": 7}},
    {"question": "not there", "resource": "shelf://none", "values": {"seven": 7}},
]


@pytest.mark.needs_package("karat_servers")
@pytest.mark.quick(1)
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_replayed_run_has_the_answers_calls_and_scores_of_the_live_one(
    experiment: Write, run: Run, tmp_path: Path, version: str
) -> None:
    """Of tools with structured content, resources, prompts, elicitation and errors; the server cannot start then."""
    switch = tmp_path / "gone"
    command = f"import pathlib, sys\nif pathlib.Path({str(switch)!r}).exists(): sys.exit('gone')\n"
    command += "from karat.testing.mcp_server import main; main([])"
    server = {"type": "stdio", "command": "python", "args": ["-c", command], "protocol": version}
    conditions = {"shelf": {"mcp_servers": ["shelf"], "elicit": {"column": "user"}}}

    def once(mode: str) -> Outcome:
        file = calls(experiment, server, EVERYTHING, mcp={mode: "tapes"}, execution={"num_repetitions": 1})
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "conditions": conditions}))
        return run(file)

    live = once("record")
    switch.touch()
    replayed = once("replay")
    told = [{answer.sample: answer.replies for answer in outcome.run.events_of(Answer)} for outcome in (live, replayed)]
    scores = [
        {score.trial: (score.values, score.reasons) for score in outcome.run.events_of(Score)}
        for outcome in (live, replayed)
    ]
    assert told[0] == told[1]
    assert scores[0] == scores[1]
    assert [outcome.run.info.servers[0].protocol for outcome in (live, replayed)] == [version, version]
    by_sample = {answer.sample: answer.trial for answer in live.run.events_of(Answer)}
    right = [scores[0][by_sample[str(number)]][0]["mcp_result"] for number in range(len(EVERYTHING))]
    assert right == [True, True, True, True, False, False, False]
    assert [told[0][str(number)][0].tool_calls[0].elicited[0].action for number in (3, 4)] == ["accept", "cancel"]


def raw(raw_server: RawServer, **fields: Any) -> dict[str, Any]:
    return {"type": "http", "url": raw_server.url, "scope": "run", "protocol": "2025-06-18", **fields}


ONE = {"question": "q", "tool": "t", "arguments": {}, "values": {"seven": 7}}


@pytest.mark.needs_package("karat_servers")
def test_what_servers_do_during_a_run_is_in_its_journal_and_report(
    experiment: Write, run: Run, httpserver: HTTPServer
) -> None:
    server = RawServer(httpserver)
    server.tools += [{"name": "bad", "inputSchema": {}}]
    calls_made = 0

    def answer(request: Request) -> Any:
        nonlocal calls_made
        calls_made += 1
        if calls_made == 2:
            server.tools = [server.tools[0], {"name": "new", "inputSchema": {"type": "object"}}]
            return Response(status=404)
        return server.text("fine")

    server.answers["tools/call"] = answer
    outcome = run(calls(experiment, raw(server), [ONE], execution={"num_repetitions": 3, "max_concurrent": 1}))
    assert [len(answer.replies) for answer in outcome.run.events_of(Answer)] == [1, 1, 1]
    assert [(event.what, event.added) for event in outcome.run.server_events()] == [
        ("renewed", ()),
        ("changed", ("new",)),
    ]
    assert set(outcome.run.info.servers[0].left_out) == {"bad"}
    warnings = summarize(outcome.run).warnings
    start = "MCP server 'shelf' "
    changed = "changed its tools during the run (new: new): answers before and after are not alike"
    assert f"{start}{changed}" in warnings
    assert f"{start}ended its session 1 time: karat opened another and repeated the request" in warnings
    assert any(text.startswith(f"{start}lists tools that no client can call: bad: ") for text in warnings)
    assert verify(outcome.run.path).damages == ()


@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize(
    ("refusal", "tries"),
    [
        pytest.param(Response(status=503, headers={"Retry-After": "0"}), 2, id="503"),
        pytest.param(Response(status=429, headers={"Retry-After": "1"}), 2, id="429"),
        pytest.param(Response(status=502), 2, id="502"),
    ],
)
def test_a_passing_fault_at_the_start_costs_no_trial(
    experiment: Write, run: Run, httpserver: HTTPServer, refusal: Response, tries: int
) -> None:
    server = RawServer(httpserver)
    server.answers["initialize"] = lambda request: refusal if server.seen.count("initialize") == 1 else None
    outcome = run(calls(experiment, raw(server), [ONE], execution={"num_repetitions": 1}))
    assert [score.values for score in outcome.run.events_of(Score)] == [{"mcp_result": True}]
    assert server.seen.count("initialize") == tries


@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize(
    ("refusal", "execution"),
    [
        pytest.param(Response(status=503), {"retry": {"max_attempts": 1}}, id="no second attempt is wanted"),
        pytest.param(Response(status=503, headers={"Retry-After": "20"}), {}, id="it would be too late"),
        pytest.param(Response(status=401), {}, id="no attempt helps"),
    ],
)
def test_other_faults_at_the_start_are_reported_at_once(
    experiment: Write, run: Run, httpserver: HTTPServer, refusal: Response, execution: dict[str, Any]
) -> None:
    server = RawServer(httpserver)
    server.answers["initialize"] = lambda request: refusal
    outcome = run(calls(experiment, raw(server, init_timeout_seconds=5), [ONE], execution=execution))
    assert {failure.stage for failure in outcome.run.events_of(Failure)} == {"preflight"}
    assert server.seen.count("initialize") == 1


@pytest.mark.needs_package("karat_servers")
def test_a_server_that_listens_later_is_waited_for(experiment: Write, run: Run) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    listening.close()
    later = HTTPServer(port=port)
    server = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "scope": "run", "init_timeout_seconds": 30}
    seen: list[Any] = []
    RawServer(later)
    starting = threading.Timer(1.5, later.start)
    starting.start()
    try:
        file = calls(experiment, server, [ONE], execution={"num_repetitions": 1})
        outcome = run(file, status=RunStatus(seen.append))
    finally:
        starting.join()
        later.stop()
    assert [score.values for score in outcome.run.events_of(Score)] == [{"mcp_result": True}]
    notices = [text for text in seen if isinstance(text, str)]
    assert len(notices) == 1
    assert notices[0].endswith("; karat keeps trying for 30 s (init_timeout_seconds)")
