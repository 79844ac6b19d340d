"""Claude Code: the real program from the SDK's wheel, real MCP servers, a scripted model on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("claude_agent_sdk") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `claude`", allow_module_level=True)

from tests.karat_coding.claude_trials import KEY, Trials, alive, descendants, environment_of, is_claude, wait_for

from karat.errors import AgentFault, BadExperiment, ForeignTools, InfrastructureFault, LimitReached, TrialFault
from karat.mcp import Toolbox
from karat.models import Price, metered
from karat.records import AgentSpec, Condition, Reply, ToolCall, Usage
from karat.redact import Redactor
from karat.testing.mcp_server import serving, stdio_server
from karat.testing.models import ModelServer, Request, serve
from karat_coding.agents._claude_session import ToolNames, TurnMessages

TOOLS = {
    *("complain", "crash", "echo", "environment", "fail", "grow", "hang", "headers", "large", "order", "picture"),
    *("search", "spawn", "structured"),
}


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    """What the trials start is gone when they are over, and so are their folders."""
    before, folders = descendants(os.getpid()), f"karat-claude-{os.getpid()}-*"
    yield Trials(tmp_path)
    assert wait_for(lambda: not (descendants(os.getpid()) - before), seconds=3)
    assert not list(Path(tempfile.gettempdir()).glob(folders))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def says(*utterances: Any) -> list[dict[str, Any]]:
    return [{"say": list(utterances)}]


def asked(server: ModelServer) -> list[Request]:
    return [request for request in server.requests if request.api == "messages"]


def kept(fault: Any) -> Reply:
    """What the agent had said when it failed."""
    assert isinstance(fault.value.reply, Reply)
    return fault.value.reply


def test_a_model_without_servers_sees_no_tool_and_the_conditions_prompt_alone(trials: Trials) -> None:
    tokens = {"input": 100, "output": 9, "cache_read": 64, "reasoning": 4}
    with serve(says({"reasoning": "hm", "text": "because", "usage": tokens})) as server:
        (reply,) = trials.ask(server, "why?")
    (request,) = asked(server)
    assert request.tools == ()
    assert request.body["system"][-1]["text"] == "be brief"
    assert "Bash" not in json.dumps(request.body["system"])
    assert request.messages[-1].text == "why?"
    assert request.headers["x-api-key"] == KEY
    assert reply == Reply(
        text="because",
        reasoning="hm",
        usage=Usage(input_tokens=100, output_tokens=9, cache_read_tokens=64, reasoning_tokens=4),
        dollars=pytest.approx(36 * 3e-6 + 64 * 0.3e-6 + 9 * 15e-6),
        milliseconds=reply.milliseconds,
        model="claude-sonnet-4-5",
        stop_reason="end_turn",
        responses=1,
    )


@pytest.mark.slow
def test_the_tools_are_the_conditions_and_each_call_is_told_of(trials: Trials) -> None:
    trials.servers = (stdio_server("my docs.v2"),)
    calls = [
        {"name": "echo", "arguments": {"text": "hi"}},
        {"name": "fail", "arguments": {"message": "oops"}},
        {"name": "Bash", "arguments": {"command": "ls"}},
    ]
    with serve(says({"text": "Let me see.", "tool_calls": calls}, "It is so.")) as server:
        (reply,) = trials.ask(server)
    for request in asked(server):
        assert {tool.name for tool in request.tools} == {f"mcp__my_docs_v2__{name}" for name in TOOLS}
    echo, fail, bash = reply.tool_calls
    assert echo == ToolCall(
        tool="echo", server="my docs.v2", input={"text": "hi"}, result="hi", milliseconds=echo.milliseconds
    )
    assert fail == ToolCall(
        tool="fail",
        server="my docs.v2",
        input={"message": "oops"},
        error="Error executing tool fail: oops",
        milliseconds=fail.milliseconds,
    )
    assert (bash.tool, bash.server, bash.result) == ("Bash", None, None)
    assert "No such tool" in bash.error
    assert echo.milliseconds is not None
    assert (reply.text, reply.reasoning, reply.responses) == ("It is so.", "Let me see.", 2)


def test_several_questions_are_one_conversation_and_each_costs_its_own(trials: Trials) -> None:
    trials.materials = "A document."
    tokens = {"input": 10, "output": 10}
    with serve(says({"text": "one", "usage": tokens}, {"text": "two", "usage": tokens})) as server:
        first, second = trials.ask(server, "@/etc/hostname", "/help me")
    assert (first.text, second.text) == ("one", "two")
    assert [said.text for said in asked(server)[1].messages] == ["A document.\n\n@/etc/hostname", "one", "/help me"]
    assert first.usage == second.usage == Usage(input_tokens=10, output_tokens=10)
    assert first.dollars == pytest.approx(second.dollars) == pytest.approx(10 * 3e-6 + 10 * 15e-6)


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["trial", "run"])
def test_a_canary_of_the_parent_is_in_neither_environment(trials: Trials, scope: str) -> None:
    """In the program's, in its servers', whoever starts them."""
    trials.servers = (stdio_server("s", scope=scope, env={"INDEX": "${HOME} $x"}),)
    os.environ["KARAT_TEST_CANARY"] = "tweet"
    seen: list[dict[str, str]] = []

    def answer(request: Request) -> Any:
        if request.tool_results:
            return request.tool_results[-1]
        seen.extend(environment_of(pid) for pid in descendants(os.getpid()) if is_claude(pid))
        return call("environment")

    try:
        with serve(answer) as server:
            (reply,) = trials.ask(server, env={"HTTPS_PROXY": "http://127.0.0.1:9"})
    finally:
        del os.environ["KARAT_TEST_CANARY"]
    told = json.loads(reply.text)
    assert set(told["variables"]) == {"PATH", "HOME", "LANG", "INDEX"}
    assert told["variables"]["INDEX"] == "${HOME} $x"
    assert told["cwd"] == str(trials.folder)
    assert len(seen) == 2
    assert not any("KARAT_TEST_CANARY" in one for one in seen)
    program = max(seen, key=len)
    assert {name for name in program if not name.startswith(("CLAUDE_", "MCP_"))} == {
        *("PATH", "HOME", "LANG", "TMPDIR", "PWD", "HTTPS_PROXY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        *("DISABLE_AUTOUPDATER", "ENABLE_TOOL_SEARCH", "NO_PROXY", "no_proxy"),
    }
    assert program["HOME"] != os.environ["HOME"]
    assert program["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


@pytest.mark.quick(1)
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_remote_servers_get_their_headers(trials: Trials, transport: str) -> None:
    from karat.records import McpServer

    with serving(transport, "--require-header", "authorization: Bearer abc") as url:
        trials.servers = (McpServer(name="far", type=transport, url=url, headers={"authorization": "Bearer abc"}),)
        with serve(says(call("echo", text="hi"), "done")) as server:
            (reply,) = trials.ask(server)
    assert [(one.server, one.tool, one.result) for one in reply.tool_calls] == [("far", "echo", "hi")]


@pytest.mark.slow
def test_a_server_that_starts_slowly_is_waited_for(trials: Trials) -> None:
    trials.servers = (stdio_server("s", "--start-seconds", "8"),)
    with serve(says(call("echo", text="hi"), "done")) as server:
        (reply,) = trials.ask(server)
    assert reply.tool_calls[0].result == "hi"


@pytest.mark.slow
def test_what_was_said_before_max_turns_is_kept(trials: Trials) -> None:
    trials.servers = (stdio_server("s"),)
    with serve(says({"text": "Looking.", **call("echo", text="hi")})) as server, pytest.raises(LimitReached) as limit:
        trials.ask(server, max_turns=2)
    assert limit.value.kind == "max_turns"
    assert kept(limit).text == "Looking.\n\nLooking."
    assert [one.result for one in kept(limit).tool_calls] == ["hi", "hi"]
    assert kept(limit).usage is not None
    assert len(asked(server)) == 2


FAULTS: dict[str, tuple[dict[str, Any], type[TrialFault], str, bool]] = {
    "429": ({"status": 429}, InfrastructureFault, "rate_limit", True),
    "529": ({"status": 529}, InfrastructureFault, "rate_limit", True),
    "overloaded in mid-stream": ({"status": 529, "after": 2}, InfrastructureFault, "rate_limit", True),
    "500": ({"status": 500}, InfrastructureFault, "server_error", True),
    "401": ({"status": 401, "error": f"no such key: {KEY}"}, InfrastructureFault, "unauthorized", False),
    "404": ({"status": 404}, InfrastructureFault, "not_found", False),
    "400": ({"status": 400}, InfrastructureFault, "refused", False),
    "cut off": ({"disconnect": True}, InfrastructureFault, "network", True),
    "silence": ({"text": ""}, AgentFault, "empty_answer", True),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("said", FAULTS)
def test_a_fault_of_the_service_has_its_kind(trials: Trials, said: str) -> None:
    utterance, kind, slug, retriable = FAULTS[said]
    times = {} if said == "silence" else {"times": 9}
    with serve(says({**utterance, **times}, "fine")) as server, pytest.raises(kind) as fault:
        trials.ask(server, max_retries=0)
    assert (fault.value.kind, fault.value.retriable) == (slug, retriable)
    assert KEY not in fault.value.message


def test_a_refused_request_is_repeated_and_the_limiter_hears_of_it(trials: Trials) -> None:
    with serve(says({"status": 429, "retry_after": 1}, "fine")) as server:
        (reply,) = trials.ask(server, max_retries=1)
    assert (reply.text, len(asked(server))) == ("fine", 2)
    assert list(trials.limits.values()) == [1]


SERVERS = {
    "no start": (("--exit", "3"), {}, "mcp_server_start"),
    "no handshake": (("--silent",), {"init_timeout_seconds": 3.0}, "mcp_init_timeout"),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("said", SERVERS)
def test_without_its_server_a_trial_asks_nothing(trials: Trials, said: str) -> None:
    options, fields, slug = SERVERS[said]
    trials.servers = (stdio_server("s", *options, **fields),)
    with serve(says("from memory")) as server, pytest.raises(InfrastructureFault) as fault:
        trials.ask(server)
    assert fault.value.kind == slug
    assert "MCP server 's'" in fault.value.message
    assert asked(server) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("utterance", "slug"),
    [(call("crash"), "mcp_server_down"), (call("hang"), "mcp_call_timeout")],
)
def test_a_server_that_fails_in_mid_run_is_no_answer(trials: Trials, utterance: Any, slug: str) -> None:
    trials.servers = (stdio_server("s", call_timeout_seconds=2.0),)
    with serve(says(utterance, "from memory")) as server, pytest.raises(InfrastructureFault) as fault:
        trials.ask(server)
    assert fault.value.kind == slug
    assert kept(fault).text == "from memory"
    assert kept(fault).usage is not None


def test_what_no_model_said_is_no_answer(trials: Trials) -> None:
    with serve(says("hi")) as server, pytest.raises(AgentFault, match=r"asked no model: Blank prompt") as fault:
        trials.ask(server, "  ")
    assert fault.value.kind == "not_asked"
    assert asked(server) == []


@pytest.mark.slow
def test_a_timeout_leaves_nothing_not_even_what_ignores_signals(trials: Trials) -> None:
    trials.servers, trials.timeout = (stdio_server("s", "--ignore-sigterm"),), 12
    with serve(says(call("spawn", stubborn=True), call("hang"))) as server, pytest.raises(TimeoutError):
        trials.ask(server)
    child = int(asked(server)[-1].tool_results[-1])
    assert not alive(child)


@pytest.mark.slow
def test_what_was_spent_before_a_timeout_is_known(trials: Trials) -> None:
    trials.timeout = 8

    async def story(server: ModelServer) -> tuple[Usage | None, float | None]:
        async with Toolbox((), redact=Redactor({}), folder=trials.folder) as toolbox:
            agent = trials.agent(toolbox, {"model": "claude-sonnet-4-5", "base_url": server.anthropic_url})
            trial = trials.trial("one", "two")
            with metered() as meter, pytest.raises(TimeoutError):
                async with asyncio.timeout(8), agent.session(trial) as session:
                    await session.ask(trial.sample.turns[0])
                    await session.ask(trial.sample.turns[1])
            return meter.usage, meter.dollars

    tokens = {"input": 10, "output": 10}
    with serve(says({"text": "one", "usage": tokens}, {"hang": True})) as server:
        usage, dollars = asyncio.run(story(server))
    assert usage == Usage(input_tokens=10, output_tokens=10)
    assert dollars is None  # of the second question nobody knows


def test_the_price_of_an_unknown_model_is_not_guessed(trials: Trials) -> None:
    with serve(says({"text": "hi", "usage": {"input": 10, "output": 10}})) as server:
        (unknown,) = trials.ask(server, model="my-model")
        trials.prices = {"my-model": Price(input=1.0, output=2.0)}
        (known,) = trials.ask(server, model="my-model")
    assert unknown.dollars is None
    assert known.dollars == pytest.approx(30e-6)


def test_thinking_and_effort_reach_the_model(trials: Trials) -> None:
    with serve(says("hi")) as server:
        trials.ask(server, thinking_tokens=2048)
        trials.ask(server, thinking_tokens=0, model="claude-opus-4-5", effort="low")
    first, second = asked(server)
    assert first.body["thinking"]["budget_tokens"] == 2048
    assert second.body.get("thinking", {"type": "disabled"})["type"] == "disabled"
    assert second.body["output_config"] == {"effort": "low"}


def test_a_long_prompt_and_a_long_question_arrive_as_they_are(trials: Trials) -> None:
    trials.system_prompt = "  Be brief.\n\n@x " + "ä" * 200_000 + "\n"
    with serve(says("hi")) as server:
        trials.ask(server, " /clear " + "q" * 200_000)
    assert asked(server)[0].body["system"][-1]["text"] == trials.system_prompt
    said = asked(server)[0].body["messages"][-1]["content"][-1]["text"]
    assert said == " /clear " + "q" * 200_000


STRANGER = """#!{python}
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "control_request":
        answer = {{"subtype": "success", "request_id": asked["request_id"], "response": {{"mcpServers": []}}}}
        print(json.dumps({{"type": "control_response", "response": answer}}), flush=True)
    else:
        told = {{"tools": {tools}, "mcp_servers": {servers}, "session_id": "s"}}
        print(json.dumps({{"type": "system", "subtype": "init", **told}}), flush=True)
"""


def stranger(folder: Path, *, tools: list[str], servers: list[Any]) -> str:
    """A program that says it has these tools."""
    path = folder / "stranger"
    path.write_text(STRANGER.format(python=sys.executable, tools=json.dumps(tools), servers=json.dumps(servers)))
    path.chmod(0o755)
    return "./stranger"


@pytest.mark.parametrize(
    ("tools", "servers", "named"),
    [
        (["mcp__s__echo", "Bash"], [], "Bash"),
        (["mcp__other__echo"], [], "mcp__other__echo"),
        ([], [{"name": "plugin:x", "status": "connected"}], "plugin:x"),
    ],
)
def test_a_tool_of_its_own_stops_the_run(trials: Trials, tools: list[str], servers: list[Any], named: str) -> None:
    program = stranger(trials.folder, tools=tools, servers=servers)
    with serve() as server, pytest.raises(ForeignTools, match=f"condition 'a'.*{named}"):
        trials.ask(server, program=program)


def test_a_program_that_breaks_off_is_quoted(trials: Trials) -> None:
    path = trials.folder / "broken"
    path.write_text(f"#!/bin/sh\necho 'no licence for {KEY}' >&2\nexit 4\n")
    path.chmod(0o755)
    with serve() as server, pytest.raises(InfrastructureFault) as fault:
        trials.ask(server, program="./broken")
    assert fault.value.kind == "cli_ended"
    assert "no licence for ${ANTHROPIC_API_KEY}" in fault.value.message


def test_servers_that_claude_code_cannot_tell_apart_are_refused(trials: Trials) -> None:
    trials.servers = (stdio_server("my docs"), stdio_server("my.docs"))
    with serve() as server, pytest.raises(BadExperiment, match=r"cannot tell the servers 'my docs', 'my\.docs' apart"):
        trials.ask(server)


def turn_of(*messages: Any) -> TurnMessages:
    """A turn under servers `docs` (which offers `read`) and `more`, after a result that cost a dollar."""
    import claude_agent_sdk as sdk

    servers = tuple(stdio_server(name) for name in ("docs", "more"))
    agent = AgentSpec(type="claude")
    known = ToolNames(Condition(name="c", position=0, digest="", agent=agent, mcp_servers=servers))
    known.check({"tools": ["mcp__docs__read"], "mcp_servers": [{"name": "docs"}]})
    before = sdk.ResultMessage("success", 1, 1, False, 1, "s", total_cost_usd=1.0)
    turn = TurnMessages(known, redact=lambda text: text.replace("secret", "***"), before=before)
    for kind, given in messages:
        if kind == "result":
            turn.add(sdk.ResultMessage(**{"subtype": "success", "is_error": False, **given}, **WHOLE))
        elif kind == "said":
            blocks = [sdk.ToolUseBlock(*block) if isinstance(block, tuple) else sdk.TextBlock(block) for block in given]
            turn.add(sdk.AssistantMessage(blocks, "m-1", message_id=str(len(given)), usage={"input_tokens": 5}))
        elif kind == "error":
            turn.add(sdk.AssistantMessage([], "<synthetic>", error=given))
        elif kind == "returned":
            turn.add(sdk.UserMessage([sdk.ToolResultBlock(*given)]))
        else:
            turn.add(sdk.SystemMessage(kind, given))
    return turn


WHOLE = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "session_id": "s"}
FAILED = {"is_error": True, "errors": ["a secret", "b"]}
CALLED = ("said", [("1", "mcp__docs__read", {"q": 1})])


@pytest.mark.parametrize(
    ("messages", "said", "again"),
    [
        ([], "cli_ended: Claude Code ended without a result", True),
        ([("result", {"subtype": "error_max_turns"})], "max_turns: the model wanted more responses for one", False),
        ([("result", FAILED | {"subtype": "strange"})], "strange: a ***; b", True),
        ([("error", "rate_limit"), ("result", FAILED)], "rate_limit: a ***; b", True),
        ([("error", "billing_error"), ("result", FAILED)], "quota: a ***; b", False),
        ([("error", "authentication_failed"), ("result", FAILED)], "unauthorized: a ***; b", False),
        ([("error", "max_output_tokens"), ("result", FAILED)], "max_tokens: a ***; b", False),
        ([("error", "unknown"), ("result", FAILED)], "network: a ***; b", True),
        ([("result", FAILED | {"api_error_status": 529})], "rate_limit: a ***; b", True),
        ([("result", {"result": "the secret"})], "not_asked: Claude Code asked no model: the ***", False),
        ([("said", []), ("result", {})], "empty_answer: the model ended its turn without an answer", True),
        ([CALLED, ("returned", ("1", "MCP error -32000: Connection closed", True)), ("said", ["A"]), ("result", {})],
         "mcp_server_down: MCP server 'docs' ended while in use", True),
        ([CALLED, ("returned", ("1", 'MCP server "docs" tool "read" timed out after 5 s', True)), ("result", {})],
         "mcp_call_timeout: MCP server 'docs': tool 'read' gave no result in time (call_timeout_seconds)", True),
        ([CALLED, ("returned", ("1", "no such page", True)), ("said", ["A"]), ("result", {})], "None", False),
        ([("said", ["A"]), ("result", {})], "None", False),
    ],
)  # fmt: skip
def test_why_claude_code_gave_no_answer(messages: Any, said: str, again: bool) -> None:
    fault = turn_of(*messages).fault()
    assert str(fault).startswith(said), str(fault)
    assert getattr(fault, "retriable", False) is again


def test_a_turn_of_claude_code_is_a_reply() -> None:
    parts = [{"type": "text", "text": "a secret"}, {"type": "image", "data": "x"}]
    turn = turn_of(
        ("said", ["First. ", ("1", "mcp__docs__read", {"q": 1}), ("2", "mcp__more__write", {}), ("3", "x", {})]),
        ("returned", ("1", parts, False)),
        ("returned", ("2", "no", True)),
        ("said", ["Last."]),
        ("api_retry", {"retry_delay_ms": 1500}),
        ("result", {"total_cost_usd": 1.25, "stop_reason": "end_turn", "usage": USED}),
    )
    turn.took("1", 7.0)
    turn.took(None, 8.0)
    reply = turn.reply()
    assert (reply.text, reply.reasoning, reply.model, reply.stop_reason) == ("Last.", "First. ", "m-1", "end_turn")
    assert (reply.dollars, reply.responses) == (0.25, 2)
    assert reply.tool_calls == (
        ToolCall(tool="read", server="docs", input={"q": 1}, milliseconds=7.0,
                 result='a ***\n{"type": "image", "data": "x"}'),
        ToolCall(tool="mcp__more__write", input={}, error="no", milliseconds=reply.tool_calls[1].milliseconds),
        ToolCall(tool="x", input={}, error="the attempt ended before the call did"),
    )  # fmt: skip
    assert reply.usage == Usage(
        input_tokens=18, output_tokens=4, cache_read_tokens=2, cache_write_tokens=6, reasoning_tokens=3
    )
    assert turn.reply(whole=True).text == "First. \n\nLast."
    assert turn_of(("said", ["A"]), ("said", ["B", "C"])).usage == Usage(input_tokens=10)
    assert turn_of(("result", {"total_cost_usd": 0.5})).dollars == 0.0
    guessed = {"total_cost_usd": 2.0, "model_usage": {"m": {"costBasis": "unknown"}}}
    assert turn_of(("result", guessed)).dollars is None


USED = {
    "input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 6,
    "output_tokens_details": {"thinking_tokens": 3},
}  # fmt: skip
