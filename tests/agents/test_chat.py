"""The chat agent against scripted models and real MCP servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("pydantic_ai") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `chat`", allow_module_level=True)

from karat import plugins
from karat.agents import AgentSetting, Resumable, as_agent
from karat.errors import AgentFault, BadOption, InfrastructureFault, LimitReached, TrialFault
from karat.execution.setup import close_agents
from karat.mcp import Toolbox
from karat.models import Price
from karat.records import AgentSpec, Condition, McpServer, Reply, Sample, ToolCall, Trial, Turn, Usage
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server
from karat.testing.models import ModelServer, serve

SEARCH = {"tool_calls": [{"name": "search", "arguments": {"query": "lamp"}}]}
APIS = ("openai", "openai-responses", "anthropic")
LAMP = "# Lamps\n\nA lamp is lit with a match. It burns for six hours.\n\nKeep it away from curtains."


class Asking:
    """One trial of the agent, as the engine has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env: dict[str, str] = {}
        self.prices: dict[str, Price] = {}

    def options(self, server: ModelServer, api: str, **more: Any) -> dict[str, Any]:
        url = server.anthropic_url if api == "anthropic" else server.openai_url
        return {"model": f"{api}:rehearsal", "base_url": url, **more}

    def __call__(
        self,
        options: dict[str, Any],
        *questions: str,
        servers: tuple[McpServer, ...] = (),
        system_prompt: str | None = "be brief",
        materials: str | None = None,
        before: tuple[tuple[str, Reply], ...] = (),  # what an earlier attempt was told
    ) -> tuple[Reply, ...]:
        turns = tuple(Turn(question=text) for text in questions or ("how is a lamp lit?",))
        condition = Condition(
            name="a",
            position=0,
            digest="d",
            agent=AgentSpec(type="chat"),
            system_prompt=system_prompt,
            mcp_servers=servers,
        )
        sample = Sample(id="0", position=0, digest="d", turns=turns, materials=materials)
        trial = Trial(id="0" * 24, index=0, sample=sample, condition=condition, repetition=0, seed=7)

        async def whole() -> tuple[Reply, ...]:
            async with Toolbox(servers, redact=Redactor({}), folder=self.folder) as toolbox:
                setting = AgentSetting(folder=self.folder, toolbox=toolbox, env=self.env, prices=self.prices)
                agent = as_agent(plugins.build(plugins.find("agents", "chat"), options, setting=setting))
                try:
                    async with asyncio.timeout(60), agent.session(trial) as session:
                        if before:
                            assert isinstance(session, Resumable)
                            session.restore([(Turn(question=text), reply) for text, reply in before])
                        return tuple([await session.ask(turn) for turn in turns])
                finally:
                    await close_agents({"a": agent})

        return asyncio.run(whole())


@pytest.fixture
def ask(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


@pytest.mark.quick(1)
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
@pytest.mark.parametrize("api", APIS)
def test_a_model_calls_a_tool_and_answers_from_it(
    ask: Asking, shared_server: Callable[[str], str], api: str, transport: str
) -> None:
    script = [
        {
            "say": [
                {**SEARCH, "usage": {"input": 100, "output": 10, "cache_read": 60, "reasoning": 3}},
                {"text": "{{ tool_result }}", "usage": {"input": 200, "output": 20, "cache_read": 100}},
            ]
        }
    ]
    if transport == "stdio":
        tools = stdio_server()
    else:
        tools = McpServer(name="scripted", type=transport, url=shared_server(transport))
    with serve(script) as server:
        (reply,) = ask(ask.options(server, api), servers=(tools,))
        asked = server.requests
    assert LAMP in reply.text
    (call,) = reply.tool_calls
    assert (call.server, call.tool, call.input) == ("scripted", "search", {"query": "lamp"})
    assert call.result == LAMP
    assert call.error is None
    assert call.milliseconds > 0
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens) == (300, 30, 160)
    assert reply.usage.reasoning_tokens in {3, None}  # Anthropic does not count them apart
    assert (reply.model, reply.stop_reason, reply.dollars) == ("rehearsal", "stop", None)
    assert [one.system for one in asked] == ["be brief"] * 2
    assert {"search", "echo", "fail"} <= {tool.name for tool in asked[0].tools}


@pytest.mark.quick(1)
@pytest.mark.parametrize(("options", "sent"), [({}, 1), ({"images": False}, 0)])
@pytest.mark.parametrize("api", APIS)
def test_the_image_that_a_tool_returns_reaches_the_model(
    ask: Asking, api: str, options: dict[str, object], sent: int
) -> None:
    script = [{"say": [{"tool_calls": [{"name": "picture", "arguments": {}}]}, {"text": "{{ tool_result }}"}]}]
    with serve(script) as server:
        (reply,) = ask({**ask.options(server, api), **options}, servers=(stdio_server(),))
        last = server.requests[-1]
    (call,) = reply.tool_calls
    assert "[image image/png, 3 bytes]" in call.result
    assert "[image image/png, 3 bytes]" in reply.text  # the model read the text, with or without the image
    body = json.dumps(last.body)
    assert body.count("AAAA") == sent, body


@pytest.mark.parametrize("api", APIS)
def test_all_turns_are_one_conversation(ask: Asking, api: str) -> None:
    with serve([{"say": ["I heard: {{ question }}"]}]) as server:
        replies = ask(ask.options(server, api), "one", "two", "three", materials="A long report.")
        last = server.requests[-1]
    assert [reply.text for reply in replies][1:] == ["I heard: two", "I heard: three"]
    said = [(one.role, one.text) for one in last.messages if one.role != "system"]
    assert said == [
        ("user", "A long report.\n\none"),
        ("assistant", replies[0].text),
        ("user", "two"),
        ("assistant", "I heard: two"),
        ("user", "three"),
    ]


@pytest.mark.parametrize("api", APIS)
def test_a_conversation_that_was_broken_off_is_retold_with_its_tool_calls(
    ask: Asking, shared_server: Callable[[str], str], api: str
) -> None:
    tools = McpServer(name="scripted", type="http", url=shared_server("http"))
    found = ToolCall(tool="search", server="scripted", input={"query": "lamp"}, result="a match")
    failed = ToolCall(tool="echo", server="scripted", input={"text": "x"}, error="no echo")
    gone = ToolCall(tool="gone", server="other", result="nobody offers it")
    before = ("one", Reply(text="By a match.", tool_calls=(found, failed, gone))), ("two", Reply(text="Six hours."))
    with serve([{"say": ["I heard: {{ question }}"]}]) as server:
        options = ask.options(server, api)
        (reply,) = ask(options, "three", servers=(tools,), materials="A long report.", before=before)
        last = server.requests[-1]
    assert reply.text == "I heard: three"
    said = [(one.role, one.text) for one in last.messages if one.role in ("user", "assistant") and one.text]
    assert [text for role, text in said if role == "user"] == ["A long report.\n\none", "two", "three"]
    assert [text for role, text in said if role == "assistant"] == ["By a match.", "Six hours."]
    back = [one.text for one in last.messages if one.role == "tool"]
    assert len(back) == 2
    assert back[0] == "a match"
    assert "no echo" in back[1]


@pytest.mark.parametrize("api", APIS)
def test_what_goes_wrong_with_a_tool_is_told_to_the_model(
    ask: Asking, shared_server: Callable[[str], str], api: str
) -> None:
    tools = McpServer(name="scripted", type="http", url=shared_server("http"))
    wanted = [
        {"name": "echo", "arguments": {"text": "hi"}},
        {"name": "fail", "arguments": {"message": "no paper"}},
        {"name": "fly", "arguments": {}},
        {"name": "echo", "arguments": {"txt": "wrong name"}},
    ]
    with serve([{"say": [{"tool_calls": wanted}, "done"]}]) as server:
        (reply,) = ask(ask.options(server, api), servers=(tools,))
        told = [one.text for one in server.requests[-1].messages if one.role == "tool"]
    assert [call.tool for call in reply.tool_calls] == ["echo", "fail", "fly", "echo"]
    first, failed, unknown, wrong = reply.tool_calls
    assert (first.result, first.error) == ("hi", None)
    assert "no paper" in failed.error
    assert (unknown.server, unknown.input) == (None, {})
    assert unknown.error.startswith("there is no tool 'fly' (there are: search, echo")
    assert "text" in wrong.error
    assert len(told) == 4
    assert "no paper" in told[1]
    assert "there is no tool 'fly'" in told[2]
    assert reply.text == "done"


def test_arguments_that_are_no_json_are_told_to_the_model_and_reach_no_server(
    ask: Asking, shared_server: Callable[[str], str]
) -> None:
    tools = McpServer(name="scripted", type="http", url=shared_server("http"))
    with serve([{"say": [{"tool_calls": [{"name": "echo", "arguments": '{"text": '}]}, "sorry"]}]) as server:
        (reply,) = ask(ask.options(server, "openai"), servers=(tools,))
    (call,) = reply.tool_calls
    assert call == ToolCall(tool="echo", error='the arguments are not a JSON object: {"text": ')


def test_two_servers_with_the_same_tools_stay_apart(ask: Asking, shared_server: Callable[[str], str]) -> None:
    servers = tuple(McpServer(name=name, type="http", url=shared_server("http")) for name in ("a", "b"))
    with serve([{"say": [{"tool_calls": [{"name": "b__echo", "arguments": {"text": "x"}}]}, "done"]}]) as server:
        (reply,) = ask(ask.options(server, "openai"), servers=servers)
        offered = [tool.name for tool in server.requests[0].tools]
    assert [(call.server, call.tool) for call in reply.tool_calls] == [("b", "echo")]
    assert len(set(offered)) == len(offered)
    assert {"a__echo", "b__echo"} <= set(offered)


@pytest.mark.quick(1)
@pytest.mark.parametrize("parallel", [False, True])
def test_a_server_that_dies_ends_the_attempt_and_keeps_what_was_spent(ask: Asking, parallel: bool) -> None:
    calls = [{"name": "crash", "arguments": {"words": "out of oil"}}]
    if parallel:
        calls.insert(0, {"name": "hang", "arguments": {"seconds": 30}})
    with (
        serve([{"say": [{"text": "let me see", "tool_calls": calls}, "done"]}]) as server,
        pytest.raises(InfrastructureFault) as caught,
    ):
        ask(ask.options(server, "openai"), servers=(stdio_server(),))
    fault = caught.value
    assert (fault.kind, fault.retriable) == ("mcp_server_down", True)
    assert "out of oil" in fault.message
    said = fault.reply
    assert isinstance(said, Reply)
    assert said.text == "let me see"
    assert said.tool_calls[-1].tool == "crash"
    assert said.usage.output_tokens


@pytest.mark.parametrize("api", APIS)
def test_too_many_turns_are_a_limit_that_keeps_what_was_said_and_spent(
    ask: Asking, shared_server: Callable[[str], str], api: str
) -> None:
    tools = McpServer(name="scripted", type="http", url=shared_server("http"))
    ask.prices = {f"{api}:rehearsal": Price(input=1, output=10)}
    turn = {"text": "once more", **SEARCH, "usage": {"input": 1000, "output": 100}}
    with serve([{"say": [turn]}]) as server, pytest.raises(LimitReached) as caught:
        ask(ask.options(server, api, max_turns=3), servers=(tools,))
    fault = caught.value
    assert (fault.kind, fault.retriable) == ("max_turns", False)
    said = fault.reply
    assert isinstance(said, Reply)
    assert said.text == "once more\n\nonce more\n\nonce more"
    assert len(said.tool_calls) == 3
    assert said.usage == Usage(input_tokens=3000, output_tokens=300)
    assert said.dollars == pytest.approx(3 * (1000 * 1 + 100 * 10) / 1e6)


FAULTS = [
    ({"status": 429, "retry_after": 7, "times": 9}, InfrastructureFault, "rate_limit", True, 7.0),
    ({"status": 529, "times": 9}, InfrastructureFault, "rate_limit", True, None),
    ({"status": 500, "times": 9}, InfrastructureFault, "server_error", True, None),
    ({"status": 503, "times": 9}, InfrastructureFault, "server_error", True, None),
    ({"status": 401, "times": 9}, InfrastructureFault, "unauthorized", False, None),
    ({"status": 404, "times": 9}, InfrastructureFault, "not_found", False, None),
    ({"status": 400, "times": 9}, InfrastructureFault, "refused", False, None),
    ({"malformed": True, "times": 9}, InfrastructureFault, "bad_response", True, None),
    ({"body": "<h1>Bad gateway</h1>", "times": 9}, InfrastructureFault, "bad_response", True, None),
    ({"disconnect": True, "times": 9}, InfrastructureFault, "network", True, None),
    ({"truncate": True, "times": 9}, InfrastructureFault, "network", True, None),
    ({"text": "", "stop": "length"}, LimitReached, "max_tokens", False, None),
    ({"text": "<think>It could be Lyon", "stop": "length"}, LimitReached, "max_tokens", False, None),
    ({"text": ""}, AgentFault, "empty_answer", True, None),
    ({"text": "<think>It could be Lyon.</think>"}, AgentFault, "empty_answer", True, None),
]


@pytest.mark.parametrize(("say", "kind_of", "kind", "retriable", "wait"), FAULTS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("api", APIS)
def test_each_fault_of_a_provider_has_its_name(
    ask: Asking, api: str, say: dict[str, Any], kind_of: type[TrialFault], kind: str, retriable: bool, wait: float
) -> None:
    with serve([{"say": [say]}]) as server, pytest.raises(kind_of) as caught:
        ask(ask.options(server, api))
    fault = caught.value
    assert (type(fault), fault.kind, fault.retriable, fault.retry_after) == (kind_of, kind, retriable, wait)
    assert len(server.requests) == 1  # trying again is the engine's business


@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("<think>Lyon?</think>\n\nParis", "Paris", "Lyon?"),
        ("Lyon?\n</THINK>Paris", "Paris", "Lyon?"),
        ("Paris. <think>Or Lyon?</think>", "Paris.", "Or Lyon?"),
        ("Begin with the <think> tag.", "Begin with the <think> tag.", None),
    ],
)
def test_thoughts_in_the_text_are_no_part_of_the_answer(ask: Asking, text: str, answer: str, thought: str) -> None:
    with serve([{"say": [{"text": text}]}]) as server:
        (reply,) = ask(ask.options(server, "openai"))
    assert (reply.text, reply.reasoning) == (answer, thought)


def test_a_model_that_hangs_is_given_up_with_its_attempt(ask: Asking) -> None:
    async def briefly() -> None:
        async with Toolbox((), redact=Redactor({}), folder=ask.folder) as toolbox:
            setting = AgentSetting(folder=ask.folder, toolbox=toolbox, env={})
            chat = plugins.build(plugins.find("agents", "chat"), ask.options(server, "openai"), setting=setting)
            sample = Sample(id="0", position=0, digest="d", turns=(Turn(question="?"),))
            condition = Condition(name="a", position=0, digest="d", agent=AgentSpec(type="chat"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5), chat.session(condition, sample) as session:
                    await session.ask(sample.turns[0])
            await chat.aclose()

    with serve([{"say": [{"hang": True}]}]) as server:
        asyncio.run(briefly())


@pytest.mark.parametrize("api", APIS)
def test_parameters_reach_the_provider(ask: Asking, api: str) -> None:
    given = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 77}
    if api == "openai":
        given["seed"] = 3
    more = {"headers": {"x-team": "blue"}, "extra_body": {"priority": 5}}
    with serve([{"say": ["yes"]}]) as server:
        ask(ask.options(server, api, **given, **more))
        (request,) = server.requests
    names = {"max_tokens": {"openai": "max_completion_tokens", "openai-responses": "max_output_tokens"}}
    for name, value in given.items():
        sent = names.get(name, {}).get(api, name)
        assert request.body[sent] == value
    assert request.body["priority"] == 5
    assert request.headers["x-team"] == "blue"


def test_a_parameter_that_would_be_ignored_is_refused(ask: Asking) -> None:
    with pytest.raises(BadOption, match=r"agent\.seed: .* `openai-chat:` takes one"):
        ask({"model": "openai-responses:gpt-4.1", "base_url": "http://127.0.0.1:1", "seed": 3})


def test_the_key_comes_from_the_variable_that_the_file_names(ask: Asking) -> None:
    ask.env = {"TEAM_KEY": "secret-of-the-team", "OPENAI_API_KEY": "another"}
    with serve([{"say": ["yes"]}]) as server:
        ask(ask.options(server, "openai", api_key_env="TEAM_KEY"))
        ask(ask.options(server, "openai"))
        ask.env = {}
        ask(ask.options(server, "openai"))
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer secret-of-the-team", "Bearer another", "Bearer no-key"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "openai:gpt-4.1"}, r"OPENAI_API_KEY"),
        ({"model": "opnai:gpt-4.1"}, r"agent\.model: 'opnai:gpt-4.1' cannot be used: Unknown provider"),
        ({"model": "openai:gpt-4.1", "api_key_env": "NOWHERE"}, r"NOWHERE is not set"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_before_anything_is(
    ask: Asking, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadOption, match=message):
        ask(options)
