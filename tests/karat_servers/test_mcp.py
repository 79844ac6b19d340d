"""One tool call a sample, without a model: live, recorded and replayed."""

from __future__ import annotations

import asyncio
import json

import pytest

from karat import plugins
from karat.agents import AgentSetting
from karat.errors import AgentFault, InfrastructureFault
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.records import AgentSpec, Cassettes, Condition, McpServer, Reply, Sample, ToolCall, Turn
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server


def ask(folder, *servers, options=None, cassettes=None, **metadata):
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), mcp_servers=servers)
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata=metadata)

    async def story():
        async with Toolbox(servers, redact=Redactor({}), folder=folder, cassettes=cassettes) as toolbox:
            setting = AgentSetting(folder=folder, toolbox=toolbox)
            agent = plugins.build(plugins.find("agents", "mcp"), options or {}, setting=setting)
            with Attempt("trial-1"):
                async with agent.session(condition, sample) as session:
                    return await session.ask(sample.turns[0])

    return asyncio.run(story())


def test_the_answer_is_the_text_of_the_result(tmp_path):
    reply = ask(tmp_path, stdio_server("docs"), tool="echo", arguments={"text": "a lamp"})
    (call,) = reply.tool_calls
    assert call == ToolCall(
        server="docs", tool="echo", input={"text": "a lamp"}, result="a lamp", milliseconds=call.milliseconds
    )
    assert (reply.text, reply.answer, reply.dollars, reply.milliseconds) == ("a lamp", None, 0.0, call.milliseconds)


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_structured_content_is_the_short_answer(tmp_path, shared_server, transport):
    server = McpServer(name="docs", type=transport, url=shared_server(transport))
    assert json.loads(ask(tmp_path, server, tool="structured", arguments="").answer) == {"seven": 7}


def test_a_tool_that_fails_is_an_answer(tmp_path):
    reply = ask(tmp_path, stdio_server("docs"), tool="fail", arguments='{"message": "out of paper"}')
    message = "Error executing tool fail: out of paper"
    assert (reply.text, reply.stop_reason, reply.tool_calls[0].error) == (message, "error", message)


def test_a_server_that_crashes_is_no_answer_and_its_call_is_counted(tmp_path):
    with pytest.raises(InfrastructureFault) as caught:
        ask(tmp_path, stdio_server("docs"), tool="crash")
    assert caught.value.kind == "mcp_server_down"
    assert isinstance(caught.value.reply, Reply)
    assert [call.tool for call in caught.value.reply.tool_calls] == ["crash"]


@pytest.mark.slow
def test_the_option_and_the_columns_say_which_tool_of_which_server(tmp_path):
    servers = (stdio_server("a"), stdio_server("b"))
    reply = ask(tmp_path, *servers, options={"tool": "echo"}, server="b", arguments={"text": "x"})
    assert (reply.tool_calls[0].server, reply.text) == ("b", "x")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"tool": "echo", "arguments": "{"}, "the column `arguments` is not JSON"),
        ({"tool": "echo", "arguments": [1]}, "must hold a JSON object"),
        ({}, "no column `tool`, `resource` or `prompt`"),
        ({"tool": "echo", "resource": "shelf://lamps"}, "`tool` and `resource`: it is one request"),
    ],
)
def test_a_sample_that_names_no_call_is_a_fault_that_no_retry_helps(tmp_path, metadata, problem):
    with pytest.raises(AgentFault, match=problem) as caught:
        ask(tmp_path, stdio_server("docs"), **metadata)
    assert (caught.value.kind, caught.value.retriable) == ("bad_call", False)


@pytest.mark.quick(1)
@pytest.mark.parametrize("tool", ["structured", "fail"])
def test_a_replay_gives_the_same_reply_without_the_server(tmp_path, tool):
    server = stdio_server("docs", digest="d")
    live = ask(tmp_path, server, cassettes=Cassettes(mode="record", folder=tmp_path / "tapes"), tool=tool)
    gone = McpServer(name="docs", type="stdio", command="python", args=("-c", "exit(1)"), digest="d")
    assert ask(tmp_path, gone, cassettes=Cassettes(mode="replay", folder=tmp_path / "tapes"), tool=tool) == live


@pytest.mark.slow
def test_a_sample_may_be_a_resource_or_a_prompt(tmp_path):
    resource = ask(tmp_path, stdio_server("docs"), resource="shelf://lamps")
    assert (resource.text.splitlines()[0], resource.tool_calls[0].tool) == ("# Lamps", "resources/read")
    assert json.loads(resource.answer)["contents"][0]["mimeType"] == "text/markdown"
    prompt = ask(tmp_path, stdio_server("docs"), prompt="ask_about", arguments={"topic": "rain"})
    assert prompt.text == "user: What do you know about rain?"
    assert json.loads(prompt.answer)["messages"][0]["role"] == "user"


def test_a_resource_that_is_not_there_is_an_answer(tmp_path):
    reply = ask(tmp_path, stdio_server("docs"), resource="shelf://none")
    assert (reply.stop_reason, reply.answer, reply.tool_calls[0].error) == ("error", None, reply.text)
