"""Sessions over stdio: what calls give, how servers fail, and what is shared."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

import pytest

from karat.errors import AgentFault, InfrastructureFault
from karat.mcp.servers import MOST_STARTS
from karat.records import McpServer, ToolCall
from karat.testing.mcp_server import stdio_server

SECRET = "s3cr3t/of the-server"


# Ends at a request that it does not know, as servers written with rmcp do. VERSION [ERROR of tools/list]
OLDER = r"""
import json, sys
about = {"protocolVersion": sys.argv[1], "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
known = {"initialize": about, "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
         "tools/call": {"content": [{"type": "text", "text": "fine"}]}}
for line in sys.stdin:
    asked = json.loads(line)
    with open("asked.txt", "a") as log:
        print(asked["method"], file=log)
    if "id" not in asked:
        continue
    if asked["method"] not in known:
        sys.exit("ExpectedInitializeRequest")
    answer = {"result": known[asked["method"]]}
    if asked["method"] == "tools/list" and sys.argv[2:]:
        answer = {"error": {"code": -32603, "message": sys.argv[2]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def python(code: str, *args: str, **fields) -> McpServer:
    return McpServer(name="broken", type="stdio", command="python", args=("-c", code, *args), **fields)


def test_calls_give_text_and_tool_errors_are_data(toolbox, condition):
    async def story():
        server = stdio_server("s")
        async with toolbox(server).open(condition(server)) as tools:
            assert {"search", "echo", "fail"} <= {tool.name for tool in tools.tools}
            calls = [
                await tools.call("s", "echo", {"text": "hé\u2028llo"}),
                await tools.call("s", "fail", {"message": "out of\x1b[31m paper"}),
                await tools.call("s", "no_such_tool", {}),
                await tools.call("s", "echo", {"wrong": 1}),
                await tools.call("s", "echo", {"text": 1}),
                await tools.call("s", "picture", {}),
                await tools.call("s", "structured", {}),
            ]
            assert list(tools.calls) == calls
            return calls

    echo, fail, unknown, missing, mistyped, picture, structured = asyncio.run(story())
    assert echo == ToolCall(
        tool="echo", server="s", input={"text": "hé\u2028llo"}, result="hé\u2028llo", milliseconds=echo.milliseconds
    )
    assert 0 < (echo.milliseconds or 0) < 5_000
    assert (fail.result, fail.error) == (None, "Error executing tool fail: out of paper")
    assert (unknown.result, unknown.error) == (None, "Unknown tool: no_such_tool")
    assert missing.error == "Error executing tool echo: the argument 'text' is missing"
    assert mistyped.error == "Error executing tool echo: the argument 'text' must be of the type string"
    assert picture.result == "[image image/png, 3 bytes]\n[link more: file:///more.md]"
    assert json.loads(structured.result or "") == {"seven": 7}


@pytest.mark.slow
def test_a_result_that_is_too_large_is_an_error_of_the_call_and_the_session_goes_on(toolbox, condition):
    async def story():
        server = stdio_server("s")
        async with toolbox(server).open(condition(server)) as tools:
            return await tools.call("s", "large", {"megabytes": 11}), await tools.call(
                "s", "echo", {"text": "still here"}
            )

    large, after = asyncio.run(story())
    assert (large.result, large.error) == (None, "the result has 11534336 bytes, more than the 10485760 that are taken")
    assert after.result == "still here"


def test_a_crash_is_told_with_exit_code_and_last_words_without_secrets_and_escapes(toolbox, condition):
    async def story():
        server = stdio_server("s", env={"KEY": SECRET})
        async with toolbox(server, KEY=SECRET).open(condition(server)) as tools:
            with pytest.raises(InfrastructureFault) as caught:
                await tools.call("s", "crash", {"words": f"\x1b[2Jbad key {SECRET}\n", "code": 9})
            assert [(call.tool, call.result, call.error is None) for call in tools.calls] == [("crash", None, False)]
            with pytest.raises(InfrastructureFault, match="mcp_server_down"):
                await tools.call("s", "echo", {"text": "anyone?"})
            return caught.value

    fault = asyncio.run(story())
    assert (fault.kind, fault.retriable) == ("mcp_server_down", True)
    assert fault.message == "MCP server 's' ended with exit code 9 while in use; its stderr ends:\nbad key ${KEY}"


@pytest.mark.slow
def test_a_tool_that_hangs_is_a_fault_after_its_timeout_and_the_session_goes_on(toolbox, condition):
    async def story():
        server = stdio_server("s", call_timeout_seconds=1.5)
        async with toolbox(server).open(condition(server)) as tools:
            with pytest.raises(InfrastructureFault) as caught:
                await tools.call("s", "hang", {})
            return caught.value, await tools.call("s", "echo", {"text": "still here"})

    fault, after = asyncio.run(story())
    assert (fault.kind, fault.retriable) == ("mcp_call_timeout", True)
    assert fault.message == "MCP server 's': tool 'hang' gave no result within 1.5 s (call_timeout_seconds)"
    assert after.result == "still here"


@pytest.mark.parametrize(
    ("server", "kind", "message"),
    [
        pytest.param(
            McpServer(name="broken", type="stdio", command="no-such-program"),
            "mcp_server_start",
            "MCP server 'broken' cannot be started: 'no-such-program': No such file or directory",
            id="no such program",
        ),
        pytest.param(
            python("import sys; sys.exit('no index here')"),
            "mcp_server_start",
            "MCP server 'broken' ended with exit code 1 before the handshake; its stderr ends:\nno index here",
            id="ends at once",
        ),
        pytest.param(
            python("import os; os.kill(os.getpid(), 9)"),
            "mcp_server_start",
            "MCP server 'broken' was killed by signal 9 before the handshake",
            id="is killed",
        ),
        pytest.param(
            python("print('Welcome to my server!'); input()"),
            "mcp_server_start",
            "MCP server 'broken' ended with exit code 0 before the handshake; "
            "it wrote to stdout, which is for messages only: 'Welcome to my server!'",
            id="talks plain text and ends",
        ),
        pytest.param(
            python("import time; print('Ready.', flush=True); time.sleep(60)", init_timeout_seconds=0.5),
            "mcp_init_timeout",
            "MCP server 'broken' did not finish its handshake within 0.5 s (init_timeout_seconds); "
            "it wrote to stdout, which is for messages only: 'Ready.'",
            id="talks plain text and stays",
        ),
        pytest.param(
            python("import time; time.sleep(60)", init_timeout_seconds=0.5),
            "mcp_init_timeout",
            "MCP server 'broken' did not finish its handshake within 0.5 s (init_timeout_seconds); "
            "raise it if the server needs longer to start",
            id="starts slowly",
        ),
        pytest.param(
            python(
                "import json, sys\nfor line in sys.stdin:\n"
                "    asked = json.loads(line)\n"
                "    if 'id' in asked:\n"
                "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': {'odd': 1}}), flush=True)"
            ),
            "mcp_handshake",
            "MCP server 'broken' does not speak MCP: ",
            id="answers nonsense",
        ),
        pytest.param(
            python(OLDER, "2024-10-07"),
            "mcp_protocol",
            "MCP server 'broken' speaks protocol 2024-10-07, which karat does not",
            id="an unknown version",
        ),
        pytest.param(
            python(OLDER, "2025-06-18", "no index"),
            "mcp_handshake",
            "MCP server 'broken' answered with an error: no index",
            id="cannot list its tools",
        ),
    ],
)
def test_a_server_that_does_not_come_up_says_why(toolbox, condition, server, kind, message):
    async def story():
        with pytest.raises(InfrastructureFault) as caught:
            async with toolbox(server).open(condition(server)):
                raise AssertionError("opened")
        return caught.value

    fault = asyncio.run(story())
    assert (fault.kind, fault.message[: len(message)]) == (kind, message)


@pytest.mark.slow
def test_a_server_that_ends_at_a_request_of_the_newest_version_is_asked_as_an_older_one(toolbox, condition, tmp_path):
    server = python(OLDER, "2025-06-18")

    async def story():
        async with toolbox(server) as box:
            listed = (await box.preflight())["broken"]
            async with box.open(condition(server)) as tools:
                return listed, await tools.call("broken", "t", {})

    listed, call = asyncio.run(story())
    assert (listed.protocol, call.result) == ("2025-06-18", "fine")
    # preflight, and the trial, which knows
    asked = (tmp_path / "asked.txt").read_text().split()
    assert asked == ["server/discover", *2 * ["initialize", "notifications/initialized", "tools/list"], "tools/call"]


def test_text_on_stdout_between_messages_does_no_harm(toolbox, condition):
    async def story():
        server = stdio_server("s", "--babble", "Listening…\n")
        async with toolbox(server).open(condition(server)) as tools:
            return await tools.call("s", "echo", {"text": "x"})

    assert asyncio.run(story()).result == "x"


@pytest.mark.slow
def test_much_talk_on_stderr_neither_blocks_nor_gathers(toolbox, condition):
    async def story():
        server = stdio_server("s")
        async with toolbox(server).open(condition(server)) as tools:
            await tools.call("s", "complain", {"lines": 200_000})
            with pytest.raises(InfrastructureFault) as caught:
                await tools.call("s", "crash", {})
            return caught.value.message

    message = asyncio.run(story())
    assert message.endswith("\ncomplaint 199999")
    assert len(message) < 2_500


def test_a_line_without_end_breaks_the_session_and_nothing_else(toolbox, condition):
    async def story():
        flood = python("import sys\nwhile True: sys.stdout.write('x' * 1_000_000)", init_timeout_seconds=30)
        with pytest.raises(InfrastructureFault) as caught:
            async with toolbox(flood).open(condition(flood)):
                raise AssertionError("opened")
        return caught.value.message

    assert "a line of more than 64 MB" in asyncio.run(story())


@pytest.mark.slow
def test_only_the_conditions_servers_can_be_called(toolbox, condition):
    async def story():
        docs, other = stdio_server("docs"), stdio_server("other")
        async with toolbox(docs, other).open(condition(docs)) as tools:
            assert {tool.server for tool in tools.tools} == {"docs"}
            with pytest.raises(AgentFault, match=r"no MCP server 'dosc' \(did you mean 'docs'\?\)"):
                await tools.call("dosc", "echo", {})
            with pytest.raises(AgentFault, match="no MCP server 'other'"):
                await tools.call("other", "echo", {})
            return tools.calls

    assert asyncio.run(story()) == ()


def test_a_condition_without_servers_has_no_tools(toolbox, condition):
    async def story():
        async with toolbox().open(condition()) as tools:
            return tools.tools, tools.calls

    assert asyncio.run(story()) == ((), ())


@pytest.mark.slow
def test_every_trial_has_a_process_of_its_own_unless_the_server_is_shared(toolbox, condition):
    async def pid(box, server):
        async with box.open(condition(server)) as tools:
            return json.loads((await tools.call(server.name, "environment", {})).result)["pid"]

    async def story(scope):
        server = stdio_server("s", scope=scope)
        async with toolbox(server) as box:
            return await asyncio.gather(*(pid(box, server) for _ in range(2)))

    assert len(set(asyncio.run(story("trial")))) == 2
    assert len(set(asyncio.run(story("run")))) == 1


@pytest.mark.slow
def test_calls_to_a_shared_server_do_not_wait_for_each_other(toolbox, condition):
    async def one(box, server):
        async with box.open(condition(server)) as tools:
            return (await tools.call("s", "hang", {"seconds": 4})).result

    async def story():
        server = stdio_server("s", scope="run")
        async with toolbox(server) as box:
            await box.preflight()
            started = time.monotonic()
            results = await asyncio.gather(*(one(box, server) for _ in range(20)))
            return results, time.monotonic() - started

    results, seconds = asyncio.run(story())
    assert results == ["here after 4 s"] * 20
    assert seconds < 78, "one after the other takes 80"


@pytest.mark.slow
def test_a_trial_that_is_cut_off_does_not_harm_the_server_it_shares(toolbox, condition):
    async def story():
        server = stdio_server("s", scope="run")
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            other = asyncio.create_task(tools.call("s", "hang", {"seconds": 1}))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), box.open(condition(server)) as hasty:
                    await hasty.call("s", "hang", {})
            return (await other).result, (await tools.call("s", "echo", {"text": "x"})).result

    assert asyncio.run(story()) == ("here after 1 s", "x")


@pytest.mark.slow
def test_a_shared_server_that_died_is_started_again(toolbox, condition):
    async def story():
        server = stdio_server("s", scope="run")
        async with toolbox(server) as box:
            async with box.open(condition(server)) as tools:
                waiting = asyncio.create_task(tools.call("s", "hang", {}))
                await asyncio.sleep(0.1)
                with pytest.raises(InfrastructureFault) as caught:
                    await tools.call("s", "crash", {})
                with pytest.raises(InfrastructureFault, match="mcp_server_down"):
                    await waiting
            async with box.open(condition(server)) as tools:
                return caught.value, await tools.call("s", "echo", {"text": "back"})

    fault, after = asyncio.run(story())
    assert (fault.kind, fault.retriable) == ("mcp_server_down", True)
    assert after.result == "back"


@pytest.mark.slow
def test_a_shared_server_that_dies_between_trials_costs_no_attempt(toolbox, condition, ends):
    async def story():
        server = stdio_server("s", scope="run")
        async with toolbox(server) as box:
            async with box.open(condition(server)) as tools:
                pid = json.loads((await tools.call("s", "environment", {})).result)["pid"]
            os.kill(pid, 9)
            assert await asyncio.to_thread(ends, pid)
            await asyncio.sleep(1)
            async with box.open(condition(server)) as tools:
                return await tools.call("s", "echo", {"text": "back"})

    assert asyncio.run(story()).result == "back"


def test_a_shared_server_is_not_started_for_ever(toolbox, condition):
    async def attempt(box, server):
        with pytest.raises(InfrastructureFault) as caught:
            async with box.open(condition(server)):
                raise AssertionError("opened")
        return caught.value

    async def story():
        server = McpServer(name="broken", type="stdio", command="false", scope="run")
        async with toolbox(server) as box:
            return [await attempt(box, server) for _ in range(MOST_STARTS + 1)]

    *others, last = asyncio.run(story())
    assert {fault.kind for fault in others} == {"mcp_server_start"}
    assert (last.kind, last.retriable) == ("mcp_server_down", False)
    assert f"it was started {MOST_STARTS} times in this run, and is not started any more" in last.message


@pytest.mark.slow
def test_two_dozen_servers_may_start_at_once(toolbox, condition):
    async def story():
        servers = [stdio_server(f"s{number}") for number in range(24)]
        async with toolbox(*servers).open(condition(*servers)) as tools:
            calls = await asyncio.gather(
                *(tools.call(server.name, "echo", {"text": server.name}) for server in servers)
            )
            return [call.result for call in calls]

    assert asyncio.run(story()) == [f"s{number}" for number in range(24)]


def test_a_server_that_cannot_import_says_which_interpreter_it_ran_in(toolbox, condition):
    server = McpServer(name="odd", type="stdio", command="python", args=("-c", "import no_such_package"))

    async def fault() -> str:
        async with toolbox(server) as opened:
            return (await opened.preflight())["odd"].message

    message = asyncio.run(fault())
    assert f"`python` is karat's own interpreter, {sys.executable}: " in message
    assert "give the full path of its python as `command`" in message
    assert "ModuleNotFoundError: No module named 'no_such_package'" in message
